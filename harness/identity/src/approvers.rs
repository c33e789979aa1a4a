//! The list of approvers, and an approver whose passphrase was right.

use std::fmt;
use std::path::Path;

use ed25519_dalek::SigningKey;
use env_contracts::{Code, Moment, Name, Verdict};

use crate::error::IdentityError;
use crate::guarded::Guarded;
use crate::keys::{PublicKey, Signature};
use crate::passphrase;
use crate::record::{Derivation, Record, Stored};
use crate::statement::Statement;

/// What stands at the beginning of the file, for who opens it.
const HEADER: &str = "\
# Who may approve with a passphrase; Glovebox writes this file.
# It holds no passphrase and no private key; who can read it can guess, and who
# can write it can approve.

";

/// The list of approvers.
#[derive(Debug)]
pub struct Approvers {
    file: Guarded,
    stored: Stored,
}

/// An approver whose passphrase was right: the key, in memory until this is
/// dropped, which wipes it.
pub struct Approver {
    name: Name,
    key: SigningKey,
}

impl Approvers {
    /// Reads the list. Where there is no file, there are no approvers.
    ///
    /// # Errors
    /// `approvers-invalid`: the file is not of its form, or others could have
    /// written it.
    pub fn load(path: &Path) -> Result<Self, IdentityError> {
        let file = Guarded::new(path, Code::ApproversInvalid);
        let stored = read(&file)?;
        Ok(Self { file, stored })
    }

    /// The approvers, in the order in which they were added.
    pub fn list(&self) -> &[Record] {
        &self.stored.approvers
    }

    /// Adds an approver.
    ///
    /// # Errors
    /// `passphrase-weak`, `approver-conflict`, `approvers-invalid`, and the
    /// host's.
    pub fn add(&mut self, name: &Name, passphrase: &str, now_ms: u64) -> Result<&Record, IdentityError> {
        passphrase::acceptable(passphrase)?;
        self.free(name)?;
        let mut salt = [0; 16];
        // So few bytes come whole.
        rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut salt, rustix::rand::GetRandomFlags::empty()))
            .map_err(|errno| self.file.failed("draw a salt for", errno.into()))?;
        let derivation = Derivation::with(salt);
        let public = PublicKey::of(&passphrase::derive(passphrase, &derivation)?);
        let record = Record { name: name.clone(), public, created: Moment::at(now_ms / 1000), derivation };
        self.change(|approvers| {
            approvers.free(name)?;
            approvers.stored.approvers.push(record);
            Ok(())
        })?;
        self.record(name).ok_or_else(|| IdentityError::Unknown(name.clone()))
    }

    /// Removes an approver: what they signed is no longer accepted, also not
    /// when the name is given to somebody again.
    ///
    /// # Errors
    /// `approver-unknown`, `approvers-invalid`, and the host's.
    pub fn remove(&mut self, name: &Name) -> Result<(), IdentityError> {
        self.change(|approvers| {
            approvers.record(name).ok_or_else(|| IdentityError::Unknown(name.clone()))?;
            approvers.stored.approvers.retain(|record| record.name != *name);
            Ok(())
        })
    }

    /// The approver of this name, if this is the passphrase. A guess costs one
    /// derivation, also one of a name that does not exist; that is all that
    /// slows guessing down.
    ///
    /// # Errors
    /// `credential-wrong`, for a wrong name too.
    pub fn unlock(&self, name: &Name, passphrase: &str) -> Result<Approver, IdentityError> {
        let Some(record) = self.record(name) else {
            // As slow as for one who exists: time must not tell the names.
            passphrase::derive(passphrase, &Derivation::with([0; 16]))?;
            return Err(IdentityError::Wrong);
        };
        let key = passphrase::derive(passphrase, &record.derivation)?;
        if PublicKey::of(&key) == record.public {
            Ok(Approver { name: name.clone(), key })
        } else {
            Err(IdentityError::Wrong)
        }
    }

    /// Checks that this approver, who still is one, signed exactly this.
    ///
    /// # Errors
    /// `signature-invalid`, also for a name that is no approver's.
    pub fn verify(&self, name: &Name, statement: &Statement, signature: &Signature) -> Result<(), IdentityError> {
        let decides = statement.verdict != Verdict::Ask;
        let signed = self.record(name).is_some_and(|record| record.public.signed(&statement.bytes(name), signature));
        if decides && signed {
            return Ok(());
        }
        Err(IdentityError::Signature { what: "decision", signer: format!("the approver `{name}`") })
    }

    fn record(&self, name: &Name) -> Option<&Record> {
        self.list().iter().find(|record| record.name == *name)
    }

    fn free(&self, name: &Name) -> Result<(), IdentityError> {
        match self.list().iter().find(|record| same(&record.name, name)) {
            Some(taken) => Err(IdentityError::Taken(taken.name.clone())),
            None => Ok(()),
        }
    }

    /// Changes the file as it is now, whatever it was when it was loaded.
    fn change(&mut self, change: impl FnOnce(&mut Self) -> Result<(), IdentityError>) -> Result<(), IdentityError> {
        let _lock = self.file.lock()?;
        let mut next = Self { file: self.file.clone(), stored: read(&self.file)? };
        change(&mut next)?;
        let text = toml::to_string(&next.stored).map_err(|error| self.file.invalid(&error.to_string()))?;
        self.file.replace(&format!("{HEADER}{text}"))?;
        *self = next;
        Ok(())
    }
}

impl Approver {
    /// Who it is.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// This approver's signature under a decision.
    pub fn sign(&self, statement: &Statement) -> Signature {
        Signature::of(&self.key, &statement.bytes(&self.name))
    }
}

impl fmt::Debug for Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approver").field("name", &self.name).finish_non_exhaustive()
    }
}

fn read(file: &Guarded) -> Result<Stored, IdentityError> {
    let Some(text) = file.read()? else { return Ok(Stored::default()) };
    let stored: Stored = toml::from_str(&text).map_err(|error| file.invalid(error.to_string().trim_end()))?;
    for (at, record) in stored.approvers.iter().enumerate() {
        record.derivation.check().map_err(|why| file.invalid(&format!("approver `{}`: {why}", record.name)))?;
        if let Some(other) = stored.approvers.iter().take(at).find(|other| same(&other.name, &record.name)) {
            let why = format!("two approvers are called `{}` and `{}`", other.name, record.name);
            return Err(file.invalid(&why));
        }
    }
    Ok(stored)
}

/// Whether people would take two names for one.
pub(crate) fn same(a: &Name, b: &Name) -> bool {
    a.as_str().eq_ignore_ascii_case(b.as_str())
}
