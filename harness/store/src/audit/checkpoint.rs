//! Where every log was at one moment.

use env_contracts::{Code, Digest, Id, Name, Problem};
use glovebox_events::LogKey;
use serde::{Deserialize, Serialize};

/// The version tag of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckpointSchema {
    /// The first.
    #[serde(rename = "glovebox/checkpoint/v1")]
    V1,
}

/// Where every log was at one moment. Whoever makes it signs its bytes and
/// keeps them where those who can write the store can't.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// The version of this format.
    pub schema: CheckpointSchema,
    /// The database: copies and backups of it have the same.
    pub database: Id,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Every log that has events, by tenant and session.
    pub logs: Vec<Head>,
}

/// The last event of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The tenant.
    pub tenant: Name,
    /// The session.
    pub session: Id,
    /// Its number.
    pub seq: u64,
    /// Its hash, which holds all before it.
    pub hash: Digest,
}

impl Checkpoint {
    /// The bytes to sign.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_else(|error| unreachable!("our own types always serialise: {error}"))
    }

    /// From bytes whose signature was checked.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Problem> {
        serde_json::from_slice(bytes)
            .map_err(|error| Problem::new(Code::FileUnreadable, format!("this is no checkpoint: {error}")))
    }
}

impl Head {
    /// Whose log.
    pub fn log(&self) -> LogKey {
        LogKey { tenant: self.tenant.clone(), session: self.session.clone() }
    }
}
