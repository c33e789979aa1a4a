//! The key that signs checkpoints of the audit log.

use std::fmt;
use std::path::Path;

use ed25519_dalek::SigningKey;
use env_contracts::Code;
use serde::{Deserialize, Serialize};

use crate::error::IdentityError;
use crate::framed::Framed;
use crate::guarded::Guarded;
use crate::keyfile;
use crate::keys::{PublicKey, Signature};

/// The domain of the bytes: a signature over anything else is none over this.
const DOMAIN: &str = "glovebox/checkpoint/v1";

/// The key that signs checkpoints, in memory until this is dropped, which
/// wipes it.
pub struct CheckpointKey(SigningKey);

#[derive(Serialize, Deserialize)]
enum KeySchema {
    #[serde(rename = "glovebox/checkpoint-key/v1")]
    V1,
}

impl keyfile::Kind for KeySchema {
    const NEWEST: Self = Self::V1;
    const HEADER: &'static str = "\
# Signs checkpoints of the audit log. Keep it away from the log: who has both can
# rewrite the log unseen.

";
}

impl CheckpointKey {
    /// Makes a key and writes it to a file, which must not exist yet.
    ///
    /// # Errors
    /// `key-invalid`, and the host's.
    pub fn create(path: &Path) -> Result<Self, IdentityError> {
        keyfile::create::<KeySchema>(&Guarded::new(path, Code::KeyInvalid)).map(Self)
    }

    /// Reads a key.
    ///
    /// # Errors
    /// `key-invalid`: it is missing or not of its form, or others could read
    /// it or have written it.
    pub fn load(path: &Path) -> Result<Self, IdentityError> {
        let file = Guarded::new(path, Code::KeyInvalid);
        keyfile::load::<KeySchema>(&file)?.map(Self).ok_or_else(|| file.invalid("there is no such file"))
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
