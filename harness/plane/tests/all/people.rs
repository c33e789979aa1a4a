//! People with a passphrase, and one whom the kernel tells from this user.
//! Deriving a key costs half a second on purpose, so these tests share one.

use std::path::PathBuf;
use std::sync::OnceLock;

use env_contracts::{Assurance, Name, Problem};
use glovebox_identity::{
    Approver, Approvers, Credential, Credentials, New, Role, Signature, Statement, Witness, WitnessKey,
};
use glovebox_plane::People;

use crate::house::name;

struct Shared {
    _dir: tempfile::TempDir,
    approvers: Approvers,
    mira: Approver,
    credentials: Credentials,
    service: WitnessKey,
}

/// A user that no machine has.
const NOOR: u32 = 4_000_000_011;

fn shared() -> &'static Shared {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    SHARED.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let passphrase = "four words that rhyme";
        let mut approvers = Approvers::load(&dir.path().join("approvers.toml")).unwrap();
        approvers.add(&name("mira"), passphrase, 1).unwrap();
        let mira = approvers.unlock(&name("mira"), passphrase).unwrap();
        let mut credentials = Credentials::load(&dir.path().join("credentials.toml")).unwrap();
        credentials.add_peer(noors(), NOOR, 1).unwrap();
        let service = WitnessKey::open(&dir.path().join("witness-key.toml")).unwrap();
        Shared { _dir: dir, approvers, mira, credentials, service }
    })
}

/// The unlocked key of `mira`.
pub(crate) fn mira() -> &'static Approver {
    &shared().mira
}

fn noors() -> New {
    New {
        name: name("noors-account"),
        role: Role::Approver,
        tenant: name("local"),
        user: name("noor"),
        agent: None,
        agent_version: None,
        stage: None,
        on_behalf: false,
        expires_ms: None,
    }
}

/// What lets `noor` in.
pub(crate) fn noors_credential() -> &'static Credential {
    shared().credentials.by_peer(NOOR, 1).unwrap()
}

/// What a door of the service says of `noor`, whom the kernel names.
pub(crate) fn noor() -> Witness<'static> {
    shared().service.of(noors_credential()).unwrap()
}

/// What somebody says of `noor` who has a key, but not the service's.
pub(crate) fn liar() -> &'static WitnessKey {
    static LIAR: OnceLock<(tempfile::TempDir, WitnessKey)> = OnceLock::new();
    let made = || {
        let dir = tempfile::tempdir().unwrap();
        let key = WitnessKey::open(&dir.path().join("witness-key.toml")).unwrap();
        (dir, key)
    };
    &LIAR.get_or_init(made).1
}

/// These can log in, or are users of their own: only `mira` has a key in these
/// tests, and only `noor` a user.
pub(crate) struct Known(pub(crate) Vec<Name>);

impl People for Known {
    fn known(&self) -> Result<Vec<(Name, Assurance)>, Problem> {
        let most = |known: &Name| {
            if *known == noors_credential().user { Assurance::SeparateUser } else { Assurance::ConsoleLogin }
        };
        Ok(self.0.iter().map(|name| (name.clone(), most(name))).collect())
    }

    fn verify(
        &self,
        name: &Name,
        assurance: Assurance,
        statement: &Statement,
        signature: &Signature,
    ) -> Result<(), Problem> {
        let Shared { approvers, credentials, service, .. } = shared();
        let shown = match assurance {
            Assurance::SeparateUser => service.verify(credentials, name, statement, signature, 1),
            _ => approvers.verify(name, statement, signature),
        };
        shown.map_err(|error| Problem::of(&error))
    }
}

/// A service that reads its key and its credentials from this folder, whenever
/// it verifies.
pub(crate) struct Served(pub(crate) PathBuf);

impl Served {
    pub(crate) fn key(&self) -> PathBuf {
        self.0.join("witness-key.toml")
    }

    pub(crate) fn credentials(&self) -> Credentials {
        let mut credentials = Credentials::load(&self.0.join("credentials.toml")).unwrap();
        if credentials.list().is_empty() {
            credentials.add_peer(noors(), NOOR, 1).unwrap();
        }
        credentials
    }
}

impl People for Served {
    fn known(&self) -> Result<Vec<(Name, Assurance)>, Problem> {
        Ok(vec![(noors().user, Assurance::SeparateUser)])
    }

    fn verify(&self, name: &Name, _: Assurance, statement: &Statement, signature: &Signature) -> Result<(), Problem> {
        let key = WitnessKey::load(&self.key()).map_err(|error| Problem::of(&error))?;
        let shown = key.verify(&self.credentials(), name, statement, signature, 1);
        shown.map_err(|error| Problem::of(&error))
    }
}
