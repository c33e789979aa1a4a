//! What can be wrong with credentials and keys.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use env_contracts::{Code, Diagnose, Name};

/// What can be wrong with credentials and keys.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file is not of its form, or says what can't be.
    #[error("`{}`: {why}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
        /// That of the list that it holds, or of a key.
        code: Code,
    },
    /// Somebody else could read or change a file, or put another in its place.
    #[error("`{}` {why}", path.display())]
    Exposed {
        /// The file, or a folder above it.
        path: PathBuf,
        /// Who could.
        why: String,
        /// What to do about it.
        help: String,
        /// That of the list that it holds, or of a key.
        code: Code,
    },
    /// The host did not do what a file needs.
    #[error("cannot {what} `{}`", path.display())]
    Host {
        /// What could not be done.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
        /// That of the list that it holds, or of a key.
        code: Code,
    },
    /// There is an approver of this name.
    #[error("there is an approver `{0}` already")]
    Taken(Name),
    /// There is none.
    #[error("there is no approver `{0}`")]
    Unknown(Name),
    /// A credential can't be as it was asked for.
    #[error("a credential {0}")]
    Credential(String),
    /// The name, or what shows who a caller is, belongs to another credential.
    #[error("{0}")]
    CredentialTaken(String),
    /// There is none of this name.
    #[error("there is no credential `{0}`")]
    NoCredential(Name),
    /// There is none, in force, that tells this person from the user that we
    /// run as.
    #[error("no credential says which other user of the machine `{0}` is")]
    NotSeparate(Name),
    /// There is a webhook of this name.
    #[error("there is a webhook `{0}` already")]
    WebhookTaken(Name),
    /// There is none of this name.
    #[error("there is no webhook `{0}`")]
    NoWebhook(Name),
    /// A secret is none.
    #[error("{0}")]
    Secret(String),
    /// The passphrase is too easy to guess, or too long.
    #[error("the passphrase {0}")]
    Passphrase(String),
    /// The passphrase is not this approver's, or there is no such approver:
    /// which of the two is not told.
    #[error("the name or the passphrase is wrong")]
    Wrong,
    /// What was signed is something else, or somebody else signed it.
    #[error("this {what} was not signed by {signer}, or was changed since")]
    Signature {
        /// What should have been signed.
        what: &'static str,
        /// Who should have signed.
        signer: String,
    },
}

impl Diagnose for IdentityError {
    fn code(&self) -> Code {
        match self {
            Self::Host { source, .. } if source.kind() == io::ErrorKind::StorageFull => Code::DiskFull,
            Self::Invalid { code, .. } | Self::Exposed { code, .. } | Self::Host { code, .. } => *code,
            Self::Taken(_) => Code::ApproverConflict,
            Self::Unknown(_) => Code::ApproverUnknown,
            Self::Credential(_) => Code::Usage,
            Self::CredentialTaken(_) => Code::CredentialConflict,
            Self::NoCredential(_) | Self::NotSeparate(_) => Code::CredentialUnknown,
            Self::WebhookTaken(_) => Code::WebhookConflict,
            Self::NoWebhook(_) => Code::WebhookUnknown,
            Self::Secret(_) => Code::WebhookSecret,
            Self::Passphrase(_) => Code::PassphraseWeak,
            Self::Wrong => Code::CredentialWrong,
            Self::Signature { .. } => Code::SignatureInvalid,
        }
    }

    fn help(&self) -> Cow<'static, str> {
        match self {
            Self::Exposed { help, .. } => Cow::Owned(help.clone()),
            Self::Host { code, .. } if self.code() == *code => {
                Cow::Borrowed("check the path, its permissions and the file system that it lies in")
            }
            _ => Cow::Borrowed(self.code().remedy()),
        }
    }
}
