//! Who answers here, and whether an answer is theirs.

use std::path::PathBuf;

use env_contracts::{Assurance, Code, Name, Problem};
use glovebox_identity::{Approvers, Credentials, IdentityError, Signature, Statement, WitnessKey};
use glovebox_plane::People;
use glovebox_runtime::{Clock as _, SystemClock};

/// Those who approve by passphrase, and those whom the kernel tells from this
/// user, read anew each time: who was removed counts no more.
pub(crate) struct Registered {
    pub(crate) approvers: PathBuf,
    pub(crate) credentials: PathBuf,
    pub(crate) witness: PathBuf,
}

impl Registered {
    fn load(&self) -> Result<(Approvers, Credentials), IdentityError> {
        Ok((Approvers::load(&self.approvers)?, Credentials::load(&self.credentials)?))
    }

    fn vouched(&self, name: &Name, statement: &Statement, signature: &Signature) -> Result<(), IdentityError> {
        let credentials = Credentials::load(&self.credentials)?;
        let now_ms = SystemClock.now().unix_millis;
        WitnessKey::load(&self.witness)?.verify(&credentials, name, statement, signature, now_ms)
    }
}

impl People for Registered {
    fn known(&self) -> Result<Vec<(Name, Assurance)>, Problem> {
        let (approvers, credentials) = self.load().map_err(|error| Problem::of(&error))?;
        let now_ms = SystemClock.now().unix_millis;
        let login = approvers.list().iter().map(|record| (record.name.clone(), Assurance::ConsoleLogin));
        let separate = credentials.list().iter().filter(|known| known.is_separate() && known.in_force(now_ms));
        Ok(login.chain(separate.map(|known| (known.user.clone(), Assurance::SeparateUser))).collect())
    }

    fn verify(
        &self,
        name: &Name,
        assurance: Assurance,
        statement: &Statement,
        signature: &Signature,
    ) -> Result<(), Problem> {
        match assurance {
            Assurance::ConsoleLogin => {
                let approvers = Approvers::load(&self.approvers).map_err(|error| Problem::of(&error))?;
                if !approvers.list().iter().any(|record| record.name == *name) {
                    let message = format!("`{name}` is no approver any more, and what they answered counts no more");
                    return Err(Problem::new(Code::ApproverUnknown, message));
                }
                approvers.verify(name, statement, signature).map_err(|error| Problem::of(&error))
            }
            Assurance::SeparateUser => self.vouched(name, statement, signature).map_err(|error| Problem::of(&error)),
            Assurance::SameUser | Assurance::Passkey => {
                Err(Problem::new(Code::SignatureInvalid, format!("nothing here shows `{assurance}`")))
            }
        }
    }
}
