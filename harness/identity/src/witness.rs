//! The key with which a service vouches for what the kernel told a door of it:
//! which other user of the machine an answer came from.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use ed25519_dalek::SigningKey;
use env_contracts::{Code, Name, Verdict};
use serde::{Deserialize, Serialize};

use crate::credential::{By, Credential};
use crate::credentials::Credentials;
use crate::error::IdentityError;
use crate::guarded::Guarded;
use crate::keyfile;
use crate::keys::{PublicKey, Signature};
use crate::statement::Statement;

/// The key of a service. Only the user that the service runs as can read it,
/// so what it signed was written by that user and nobody else.
pub struct WitnessKey(SigningKey);

/// What a service can vouch for: that an answer came from this person, whom
/// the kernel tells from the service's own user.
pub struct Witness<'a> {
    key: &'a WitnessKey,
    person: &'a Name,
}

#[derive(Serialize, Deserialize)]
enum KeySchema {
    #[serde(rename = "glovebox/witness-key/v1")]
    V1,
}

impl keyfile::Kind for KeySchema {
    const NEWEST: Self = Self::V1;
    const HEADER: &'static str = "\
# With this key the service vouches for who answered. Who can read it can answer
# for everybody whom a credential names by their user.

";
}

impl WitnessKey {
    /// Reads the key, or makes it where there is none yet.
    ///
    /// # Errors
    /// `key-invalid`: it is not of its form, or others could read it or have
    /// written it; and the host's.
    pub fn open(path: &Path) -> Result<Self, IdentityError> {
        let file = file(path);
        if let Some(key) = keyfile::load::<KeySchema>(&file)? {
            return Ok(Self(key));
        }
        match keyfile::create::<KeySchema>(&file) {
            // Somebody else made it in between.
            Err(IdentityError::Host { source, .. }) if source.kind() == ErrorKind::AlreadyExists => Self::load(path),
            made => made.map(Self),
        }
    }

    /// Reads the key.
    ///
    /// # Errors
    /// `key-invalid`: it is missing or not of its form, or others could read
    /// it or have written it.
    pub fn load(path: &Path) -> Result<Self, IdentityError> {
        let file = file(path);
        keyfile::load::<KeySchema>(&file)?.map(Self).ok_or_else(|| file.invalid("there is no such file"))
    }

    /// What can be vouched for of a caller whom the kernel says to be the user
    /// of this credential. `None`: nothing, because it is no person's who may
    /// decide, or of no other user than the one that the service runs as.
    pub fn of<'a>(&'a self, credential: &'a Credential) -> Option<Witness<'a>> {
        credential.is_separate().then_some(Witness { key: self, person: &credential.user })
    }

    /// Checks that this service vouched for exactly this, and that the person
    /// has a credential of another user's still.
    ///
    /// # Errors
    /// `signature-invalid`, and `credential-unknown` where they have none.
    pub fn verify(
        &self,
        credentials: &Credentials,
        person: &Name,
        statement: &Statement,
        signature: &Signature,
        now_ms: u64,
    ) -> Result<(), IdentityError> {
        let theirs = |credential: &&Credential| credential.is_separate() && credential.user == *person;
        if !credentials.list().iter().filter(theirs).any(|credential| credential.in_force(now_ms)) {
            return Err(IdentityError::NotSeparate(person.clone()));
        }
        let decides = statement.verdict != Verdict::Ask;
        if decides && PublicKey::of(&self.0).signed(&statement.witnessed(person), signature) {
            return Ok(());
        }
        Err(IdentityError::Signature { what: "decision", signer: format!("the service that `{person}` answers to") })
    }
}

impl Witness<'_> {
    /// Who answers.
    pub fn person(&self) -> &Name {
        self.person
    }

    /// The service's signature under what they decided.
    pub fn sign(&self, statement: &Statement) -> Signature {
        Signature::of(&self.key.0, &statement.witnessed(self.person))
    }
}

impl Credential {
    /// Whether the kernel tells its holder, who may decide, from the user that
    /// this process runs as.
    pub fn is_separate(&self) -> bool {
        match self.by {
            By::Peer { uid } => self.role.decides() && separate(uid, rustix::process::geteuid().as_raw()),
            By::Token { .. } => false,
        }
    }
}

/// Whether one user is another than the one that we run as. Root can be
/// everybody, and so is nobody.
fn separate(uid: u32, ours: u32) -> bool {
    uid != 0 && uid != ours
}

impl fmt::Debug for WitnessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WitnessKey").field(&PublicKey::of(&self.0)).finish()
    }
}

impl fmt::Debug for Witness<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness").field("person", self.person).finish_non_exhaustive()
    }
}

/// No group shares it, not even where root owns it.
fn file(path: &Path) -> Guarded {
    Guarded::alone_with(path, Code::KeyInvalid)
}

#[cfg(test)]
mod tests {
    use env_contracts::Digest;

    use super::*;

    /// Root and our own user are told from nobody, whoever we run as.
    #[test]
    fn neither_root_nor_our_own_user_is_another() {
        for (uid, ours, other) in
            [(1001, 1000, true), (1001, 0, true), (1000, 1000, false), (0, 1000, false), (0, 0, false)]
        {
            assert_eq!(separate(uid, ours), other, "{uid} at {ours}");
        }
    }

    /// What an approver signed is nothing that a service vouched for, and the
    /// other way about, should a key ever be used for both.
    #[test]
    fn a_signed_decision_is_not_vouched_for() {
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
        let noor: Name = "noor".parse().unwrap();
        let key = SigningKey::from_bytes(&[7; 32]);
        let signed = |bytes: &[u8], by: &[u8]| PublicKey::of(&key).signed(bytes, &Signature::of(&key, by));
        let (own, witnessed) = (statement.bytes(&noor), statement.witnessed(&noor));
        assert!(signed(&own, &own) && signed(&witnessed, &witnessed));
        assert!(!signed(&own, &witnessed) && !signed(&witnessed, &own));
    }
}
