//! The key that signs checkpoints of the audit log.

use std::fmt;
use std::path::Path;

use data_encoding::HEXLOWER;
use ed25519_dalek::SigningKey;
use env_contracts::Code;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::error::IdentityError;
use crate::framed::Framed;
use crate::guarded::Guarded;
use crate::keys::{PublicKey, Signature};

/// The domain of the bytes: a signature over anything else is none over this.
const DOMAIN: &str = "glovebox/checkpoint/v1";

/// What stands at the beginning of the file, for who opens it.
const HEADER: &str = "\
# Signs checkpoints of the audit log. Keep it away from the log: who has both can
# rewrite the log unseen.

";

/// The key that signs checkpoints, in memory until this is dropped, which
/// wipes it.
pub struct CheckpointKey(SigningKey);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    schema: KeySchema,
    /// Printed when the key is made; here it shows damage.
    public: PublicKey,
    secret: Seed,
}

/// What the private key is made of, wiped when it is dropped.
struct Seed(Zeroizing<[u8; 32]>);

#[derive(Serialize, Deserialize)]
enum KeySchema {
    #[serde(rename = "glovebox/checkpoint-key/v1")]
    V1,
}

impl CheckpointKey {
    /// Makes a key and writes it to a file, which must not exist yet.
    ///
    /// # Errors
    /// `key-invalid`, and the host's.
    pub fn create(path: &Path) -> Result<Self, IdentityError> {
        let file = Guarded::new(path, Code::KeyInvalid);
        let mut secret = Seed(Zeroizing::new([0; 32]));
        // So few bytes come whole.
        rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut secret.0[..], rustix::rand::GetRandomFlags::empty()))
            .map_err(|errno| file.failed("draw a key for", errno.into()))?;
        let key = Self(SigningKey::from_bytes(&secret.0));
        let stored = Stored { schema: KeySchema::V1, public: key.public(), secret };
        let text = toml::to_string(&stored).map(Zeroizing::new).map_err(|error| file.invalid(&error.to_string()))?;
        file.create(&Zeroizing::new(format!("{HEADER}{}", *text)))?;
        Ok(key)
    }

    /// Reads a key.
    ///
    /// # Errors
    /// `key-invalid`: it is missing or not of its form, or others could read
    /// it or have written it.
    pub fn load(path: &Path) -> Result<Self, IdentityError> {
        let file = Guarded::new(path, Code::KeyInvalid);
        let text = file.read()?.ok_or_else(|| file.invalid("there is no such file"))?;
        // The parser's message would show the line, which may be the secret's.
        let stored: Stored = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
            file.invalid(&format!("line {line}: {}", error.message()))
        })?;
        let key = Self(SigningKey::from_bytes(&stored.secret.0));
        if key.public() == stored.public { Ok(key) } else { Err(file.invalid("`public` is not that of `secret`")) }
    }

    /// The public half, which is all that verifying takes.
    pub fn public(&self) -> PublicKey {
        PublicKey::of(&self.0)
    }

    /// Signs a checkpoint.
    pub fn sign(&self, checkpoint: &[u8]) -> Signature {
        Signature::of(&self.0, &bytes(checkpoint))
    }
}

impl PublicKey {
    /// Checks that the key of this public half signed exactly this checkpoint.
    ///
    /// # Errors
    /// `signature-invalid`.
    pub fn verify_checkpoint(&self, checkpoint: &[u8], signature: &Signature) -> Result<(), IdentityError> {
        if self.signed(&bytes(checkpoint), signature) {
            return Ok(());
        }
        Err(IdentityError::Signature { what: "checkpoint", signer: format!("the key {self}") })
    }
}

impl fmt::Debug for CheckpointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CheckpointKey").field(&self.public()).finish()
    }
}

impl Serialize for Seed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&Zeroizing::new(HEXLOWER.encode(&*self.0)))
    }
}

impl<'de> Deserialize<'de> for Seed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        let mut seed = Self(Zeroizing::new([0; 32]));
        // Decoding needs exactly as much room as there are digits for.
        let digits = text.len() == 64 && HEXLOWER.decode_mut(text.as_bytes(), &mut *seed.0).is_ok();
        if digits { Ok(seed) } else { Err(D::Error::custom("a secret is 64 lower-case hexadecimal digits")) }
    }
}

fn bytes(checkpoint: &[u8]) -> Vec<u8> {
    Framed::new(DOMAIN).part("checkpoint", checkpoint).finish()
}

#[cfg(test)]
mod tests {
    use env_contracts::{Digest, Name, Verdict};

    use super::*;
    use crate::statement::Statement;

    /// The bytes of a decision, signed as a checkpoint, are no decision,
    /// should a key ever be used for both.
    #[test]
    fn a_signed_checkpoint_is_no_decision() {
        let statement = Statement {
            approval: "a".parse().unwrap(),
            action: "b".parse().unwrap(),
            plan: Digest::of(b"plan"),
            offer: "c".parse().unwrap(),
            verdict: Verdict::Allow,
            scope: "once".parse().unwrap(),
            delta: None,
            words: None,
            decided_at_ms: 7,
        };
        let mira: Name = "mira".parse().unwrap();
        let decision = statement.bytes(&mira);
        let key = SigningKey::from_bytes(&[7; 32]);
        assert!(PublicKey::of(&key).signed(&decision, &Signature::of(&key, &decision)));
        assert!(!PublicKey::of(&key).signed(&decision, &CheckpointKey(key).sign(&decision)));
    }
}
