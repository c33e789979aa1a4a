//! The list of credentials: who may call at a door, and as whom.

use std::path::Path;

use env_contracts::{Code, Name};
use zeroize::Zeroizing;

use crate::approvers::same;
use crate::credential::{By, Credential, New, Stored};
use crate::error::IdentityError;
use crate::guarded::{Guarded, Seen};
use crate::token::{self, Token};

/// What stands at the beginning of the file, for who opens it.
const HEADER: &str = "\
# Who may call at a door of Glovebox, and as whom; Glovebox writes this file.
# It holds no token, only digests; who can write it can let anybody in.

";

/// The list of credentials.
#[derive(Debug)]
pub struct Credentials {
    file: Guarded,
    seen: Seen,
    stored: Stored,
}

impl Credentials {
    /// Reads the list. Where there is no file, there are no credentials.
    ///
    /// # Errors
    /// `credentials-invalid`: the file is not of its form, says what can't be,
    /// or others could read it or have written it.
    pub fn load(path: &Path) -> Result<Self, IdentityError> {
        Self::read(Guarded::new(path, Code::CredentialsInvalid))
    }

    /// Whether the file is the one that was read. Who keeps the list asks
    /// before each use, and lets nobody in when it can't be loaded again: what
    /// was removed opens nothing from then on.
    pub fn is_current(&self) -> bool {
        self.file.still(&self.seen)
    }

    /// The credentials, in the order in which they were added.
    pub fn list(&self) -> &[Credential] {
        &self.stored.credentials
    }

    /// Adds a credential that is shown by a new token, which is returned and
    /// kept nowhere.
    ///
    /// # Errors
    /// `usage` for what can't be, `credential-conflict`,
    /// `credentials-invalid`, and the host's.
    pub fn add_token(&mut self, new: New, now_ms: u64) -> Result<(Credential, Token), IdentityError> {
        let mut random = Zeroizing::new([0; 32]);
        // So few bytes come whole.
        rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty()))
            .map_err(|errno| self.file.failed("draw a token for", errno.into()))?;
        let token = Token::of(&random);
        let sha256 = token::digest(token.reveal()).unwrap_or_else(|| unreachable!("a token has the form of one"));
        Ok((self.add(new.shown_by(By::Token { sha256 }, now_ms))?, token))
    }

    /// Adds a credential of whoever the kernel says is this user.
    ///
    /// # Errors
    /// As for [`add_token`](Self::add_token).
    pub fn add_peer(&mut self, new: New, uid: u32, now_ms: u64) -> Result<Credential, IdentityError> {
        self.add(new.shown_by(By::Peer { uid }, now_ms))
    }

    /// Removes a credential: it opens nothing from then on.
    ///
    /// # Errors
    /// `credential-unknown`, `credentials-invalid`, and the host's.
    pub fn remove(&mut self, name: &Name) -> Result<(), IdentityError> {
        self.change(|stored| {
            let before = stored.credentials.len();
            stored.credentials.retain(|credential| credential.name != *name);
            if stored.credentials.len() < before { Ok(()) } else { Err(IdentityError::NoCredential(name.clone())) }
        })
    }

    /// Removes the credentials that are worth nothing any more.
    ///
    /// # Errors
    /// `credentials-invalid`, and the host's.
    pub fn forget_expired(&mut self, now_ms: u64) -> Result<(), IdentityError> {
        if self.list().iter().all(|credential| credential.in_force(now_ms)) {
            return Ok(());
        }
        self.change(|stored| {
            stored.credentials.retain(|credential| credential.in_force(now_ms));
            Ok(())
        })
    }

    /// Whose token this is. `None`: nobody's, or it is worth nothing any more;
    /// which of the two is not told.
    pub fn by_token(&self, text: &str, now_ms: u64) -> Option<&Credential> {
        let shown = token::digest(text)?;
        self.found(now_ms, |by| matches!(by, By::Token { sha256 } if *sha256 == shown))
    }

    /// Who this user of the machine is.
    pub fn by_peer(&self, uid: u32, now_ms: u64) -> Option<&Credential> {
        self.found(now_ms, |by| *by == By::Peer { uid })
    }

    fn found(&self, now_ms: u64, by: impl Fn(&By) -> bool) -> Option<&Credential> {
        self.list().iter().find(|credential| by(&credential.by)).filter(|credential| credential.in_force(now_ms))
    }

    fn add(&mut self, credential: Credential) -> Result<Credential, IdentityError> {
        credential.check().map_err(IdentityError::Credential)?;
        self.change(|stored| {
            free(&stored.credentials, &credential)?;
            stored.credentials.push(credential.clone());
            Ok(())
        })?;
        Ok(credential)
    }

    /// Changes the file as it is now, whatever it was when it was loaded.
    fn change(&mut self, change: impl FnOnce(&mut Stored) -> Result<(), IdentityError>) -> Result<(), IdentityError> {
        let _lock = self.file.lock()?;
        let mut stored = Self::read(self.file.clone())?.stored;
        change(&mut stored)?;
        let text = toml::to_string(&stored).map_err(|error| self.file.invalid(&error.to_string()))?;
        self.file.replace(&format!("{HEADER}{text}"))?;
        *self = Self::read(self.file.clone())?;
        Ok(())
    }

    fn read(file: Guarded) -> Result<Self, IdentityError> {
        let (text, seen) = file.read_seen()?;
        let Some(text) = text else { return Ok(Self { file, seen, stored: Stored::default() }) };
        let stored: Stored = toml::from_str(&text).map_err(|error| file.invalid(error.to_string().trim_end()))?;
        for (at, credential) in stored.credentials.iter().enumerate() {
            credential.check().map_err(|why| file.invalid(&format!("credential `{}` {why}", credential.name)))?;
            let before = stored.credentials.get(..at).unwrap_or_default();
            free(before, credential).map_err(|error| file.invalid(&error.to_string()))?;
        }
        Ok(Self { file, seen, stored })
    }
}

/// Whether neither its name nor what it is shown by belongs to another.
fn free(others: &[Credential], new: &Credential) -> Result<(), IdentityError> {
    if let Some(taken) = others.iter().find(|other| same(&other.name, &new.name)) {
        return Err(IdentityError::CredentialTaken(format!("there is a credential `{}` already", taken.name)));
    }
    let Some(taken) = others.iter().find(|other| other.by == new.by) else { return Ok(()) };
    let what = match &new.by {
        By::Token { .. } => "this token".to_owned(),
        By::Peer { uid } => format!("user {uid}"),
    };
    Err(IdentityError::CredentialTaken(format!("{what} has the credential `{}` already", taken.name)))
}
