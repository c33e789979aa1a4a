//! People with a passphrase. Deriving a key costs half a second on purpose, so
//! these tests share one.

use std::sync::OnceLock;

use env_contracts::{Assurance, Name, Problem};
use glovebox_identity::{Approver, Approvers, Signature, Statement};
use glovebox_plane::People;

use crate::house::name;

struct Shared {
    _dir: tempfile::TempDir,
    approvers: Approvers,
    mira: Approver,
}

fn shared() -> &'static Shared {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    SHARED.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let passphrase = "four words that rhyme";
        let mut approvers = Approvers::load(&dir.path().join("approvers.toml")).unwrap();
        approvers.add(&name("mira"), passphrase, 1).unwrap();
        let mira = approvers.unlock(&name("mira"), passphrase).unwrap();
        Shared { _dir: dir, approvers, mira }
    })
}

/// The unlocked key of `mira`.
pub(crate) fn mira() -> &'static Approver {
    &shared().mira
}

/// These can log in; only `mira` has a key in these tests.
pub(crate) struct Known(pub(crate) Vec<Name>);

impl People for Known {
    fn known(&self) -> Result<Vec<(Name, Assurance)>, Problem> {
        Ok(self.0.iter().map(|name| (name.clone(), Assurance::ConsoleLogin)).collect())
    }

    fn verify(&self, name: &Name, statement: &Statement, signature: &Signature) -> Result<(), Problem> {
        shared().approvers.verify(name, statement, signature).map_err(|error| Problem::of(&error))
    }
}
