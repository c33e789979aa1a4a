//! The stored form of an approver.

use std::borrow::Cow;

use data_encoding::HEXLOWER;
use env_contracts::{ByteSize, Moment, Name};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::keys::PublicKey;
use crate::passphrase::{LANES, MEMORY, PASSES};

/// The most memory that a stored record may ask for: a file with a larger
/// number would take the host's.
const MOST_MEMORY: ByteSize = ByteSize(1 << 30);

/// The most passes and lanes that a stored record may ask for, for the same
/// reason.
const MOST_PASSES: u32 = 64;
const MOST_LANES: u32 = 16;

/// The version tag of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum ApproversSchema {
    #[default]
    #[serde(rename = "glovebox/approvers/v1")]
    V1,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stored {
    pub(crate) schema: ApproversSchema,
    #[serde(default, rename = "approver", skip_serializing_if = "Vec::is_empty")]
    pub(crate) approvers: Vec<Record>,
}

/// An approver, as stored. Nothing in it tells the passphrase or the private
/// key, but to who guesses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Who it is.
    pub name: Name,
    /// The public half of the key that the passphrase yields.
    pub public: PublicKey,
    /// When the approver was added.
    pub created: Moment,
    /// How the key is made of the passphrase.
    pub derivation: Derivation,
}

/// How a key is made of a passphrase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Derivation {
    /// The function.
    pub algorithm: Algorithm,
    /// The memory that it goes over.
    pub memory: ByteSize,
    /// How often.
    pub passes: u32,
    /// In how many lanes.
    pub lanes: u32,
    /// What makes two approvers with one passphrase differ.
    pub(crate) salt: Salt,
}

/// The function that makes a key of a passphrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// RFC 9106.
    #[serde(rename = "argon2id")]
    Argon2id,
}

/// Sixteen random bytes, as RFC 9106 recommends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Salt(pub(crate) [u8; 16]);

impl Derivation {
    /// Today's, with this salt.
    pub(crate) fn with(salt: [u8; 16]) -> Self {
        Self { algorithm: Algorithm::Argon2id, memory: MEMORY, passes: PASSES, lanes: LANES, salt: Salt(salt) }
    }

    /// The memory in the function's unit.
    pub(crate) fn kibibytes(&self) -> u32 {
        u32::try_from(self.memory.0 >> 10).unwrap_or(u32::MAX)
    }

    /// Whether a guess costs enough, and a derivation not too much.
    pub(crate) fn check(&self) -> Result<(), String> {
        let within = |what: &str, fits: bool, least: &dyn std::fmt::Display, most: &dyn std::fmt::Display| {
            if fits { Ok(()) } else { Err(format!("`derivation.{what}` lies between {least} and {most}")) }
        };
        let memory = self.memory.0.is_multiple_of(1024) && (MEMORY.0..=MOST_MEMORY.0).contains(&self.memory.0);
        within("memory", memory, &MEMORY, &MOST_MEMORY)?;
        within("passes", (PASSES..=MOST_PASSES).contains(&self.passes), &PASSES, &MOST_PASSES)?;
        within("lanes", (LANES..=MOST_LANES).contains(&self.lanes), &LANES, &MOST_LANES)
    }
}

impl Serialize for Salt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&HEXLOWER.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Salt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = HEXLOWER.decode(text.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| serde::de::Error::custom("a salt is 32 lower-case hexadecimal digits"))
    }
}
