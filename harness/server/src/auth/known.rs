//! The credentials that this server knows: the operator's file, and the
//! browsers that logged in.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use env_contracts::{Code, Name, Principal, Problem};
use glovebox_identity::{Credential, Credentials, IdentityError, New, Role, Token};

/// How long a browser stays logged in: a working day.
pub(crate) const LOGIN_MS: u64 = 12 * 60 * 60 * 1000;

/// How long a login code can be used.
pub(crate) const CODE_MS: u64 = 10 * 60 * 1000;

/// How many codes can be open at one time.
const MOST_CODES: usize = 16;

/// A file of credentials, read again whenever it changed.
pub(crate) struct Known {
    path: PathBuf,
    read: Mutex<Option<Arc<Credentials>>>,
}

impl Known {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path, read: Mutex::new(None) }
    }

    /// What is in it now.
    ///
    /// # Errors
    /// `credentials-invalid` with what is wrong with the file.
    pub(crate) fn now(&self) -> Result<Arc<Credentials>, Problem> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(credentials) = read.as_ref().filter(|credentials| credentials.is_current()) {
            return Ok(credentials.clone());
        }
        let credentials = Arc::new(Credentials::load(&self.path).map_err(|error| Problem::of(&error))?);
        *read = Some(credentials.clone());
        Ok(credentials)
    }

    /// Changes it.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Credentials) -> Result<T, IdentityError>,
    ) -> Result<T, Problem> {
        let mut credentials = Credentials::load(&self.path).map_err(|error| Problem::of(&error))?;
        change(&mut credentials).map_err(|error| Problem::of(&error))
    }
}

/// A code that logs one browser in, once.
struct OpenCode {
    code: String,
    /// Whom it logs in.
    as_whom: Identity,
    until_ms: u64,
}

/// Somebody, as a login hands them on.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) principal: Principal,
    pub(crate) role: Role,
}

impl Identity {
    /// Of a credential.
    pub(crate) fn of(credential: &Credential) -> Self {
        Self { principal: credential.principal(), role: credential.role }
    }
}

/// Browsers that logged in, and codes that let them.
pub(crate) struct Logins {
    pub(crate) known: Known,
    codes: Mutex<Vec<OpenCode>>,
}

impl Logins {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { known: Known::at(path), codes: Mutex::default() }
    }

    /// A new code for somebody. Typed by a person, so it is short: 60 bits,
    /// used once, within minutes; whoever tries a million a second finds it in
    /// one of a billion cases.
    pub(crate) fn code(&self, as_whom: Identity, random: [u8; 8], now_ms: u64) -> String {
        let text = data_encoding::BASE32_NOPAD.encode(&random);
        let code = format!("{}-{}-{}", &text[..4], &text[4..8], &text[8..12]);
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|open| open.until_ms > now_ms);
        if codes.len() >= MOST_CODES {
            codes.remove(0);
        }
        codes.push(OpenCode { code: code.clone(), as_whom, until_ms: now_ms.saturating_add(CODE_MS) });
        code
    }

    /// Whom a code logs in. It is used up.
    pub(crate) fn redeem(&self, typed: &str, now_ms: u64) -> Option<Identity> {
        let typed: String = typed.trim().to_ascii_uppercase();
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        let at = codes.iter().position(|open| open.code == typed && open.until_ms > now_ms)?;
        Some(codes.remove(at).as_whom)
    }

    /// Logs a browser in: a credential of its own, which the cookie holds.
    pub(crate) fn log_in(&self, who: &Identity, name: Name, now_ms: u64) -> Result<Token, Problem> {
        if who.role == Role::Agent || who.role == Role::Worker {
            return Err(Problem::new(Code::NotEligible, "this page is for people"));
        }
        let new = New {
            name,
            role: who.role,
            tenant: who.principal.tenant.clone(),
            user: who.principal.user.clone(),
            agent: None,
            agent_version: None,
            stage: None,
            on_behalf: false,
            expires_ms: Some(now_ms.saturating_add(LOGIN_MS)),
        };
        self.known.change(|credentials| {
            credentials.forget_expired(now_ms)?;
            credentials.add_token(new, now_ms).map(|(_, token)| token)
        })
    }

    /// Logs a browser out.
    pub(crate) fn log_out(&self, name: &Name) -> Result<(), Problem> {
        self.known.change(|credentials| credentials.remove(name))
    }
}
