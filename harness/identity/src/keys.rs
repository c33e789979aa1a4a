//! The text forms of keys and signatures.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use ed25519_dalek::VerifyingKey;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What stands before the digits: the algorithm, so that there can be another.
const PREFIX: &str = "ed25519:";

/// The public half of a key pair: `ed25519:` and 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// A signature: `ed25519:` and 128 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Signature(ed25519_dalek::Signature);

impl PublicKey {
    pub(crate) fn of(key: &ed25519_dalek::SigningKey) -> Self {
        Self(key.verifying_key())
    }

    /// Whether this key's owner signed these bytes. Strictly: no signature
    /// fits two keys or two messages, and none can be varied.
    pub(crate) fn signed(&self, bytes: &[u8], signature: &Signature) -> bool {
        self.0.verify_strict(bytes, &signature.0).is_ok()
    }
}

impl Signature {
    pub(crate) fn of(key: &ed25519_dalek::SigningKey, bytes: &[u8]) -> Self {
        use ed25519_dalek::Signer as _;
        Self(key.sign(bytes))
    }
}

impl FromStr for PublicKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes: [u8; 32] = digits(text).ok_or("a public key is `ed25519:` and 64 lower-case hexadecimal digits")?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| "these digits are no public key".to_owned())?;
        // Anybody can sign for such a key.
        if key.is_weak() { Err("these digits are a key that proves nothing".to_owned()) } else { Ok(Self(key)) }
    }
}

impl FromStr for Signature {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes: [u8; 64] = digits(text).ok_or("a signature is `ed25519:` and 128 lower-case hexadecimal digits")?;
        Ok(Self(ed25519_dalek::Signature::from_bytes(&bytes)))
    }
}

fn digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    HEXLOWER.decode(text.strip_prefix(PREFIX)?.as_bytes()).ok()?.try_into().ok()
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", HEXLOWER.encode(self.0.as_bytes()))
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", HEXLOWER.encode(&self.0.to_bytes()))
    }
}

/// Written and read as text; nothing in them is secret.
macro_rules! as_text {
    ($name:ident) => {
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

as_text!(PublicKey);
as_text!(Signature);
