//! Who calls and who decided, and how that can be shown: credentials of callers
//! and of approvers, the statements that are signed, and the keys that sign.
//!
//! What it is: a list of approvers, each with a public key that only their
//! passphrase yields; the exact bytes that an approver signs; the check that a
//! recorded decision was signed by whom it names. So a row that somebody else
//! writes into the database is never taken for a decision made with
//! [`console-login`](env_contracts::Assurance::ConsoleLogin). And a list of
//! who may call at a door, by token or by the user that the kernel names; and a
//! list of whom a server tells of what waits, with what signs it.
//!
//! What it is not: it knows no approvals, no policy, no database and no door.
//! It does not slow down who guesses, beyond what a guess costs: a door that
//! takes passphrases from strangers counts their failures itself, and bounds
//! how many guesses it checks at once, each of which takes [`MEMORY`].
//!
//! ```
//! use env_contracts::{Digest, Verdict};
//! use glovebox_identity::{Approvers, Statement};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("approvers.toml");
//! let mira = "mira".parse()?;
//! let mut approvers = Approvers::load(&path)?;
//! approvers.add(&mira, "four words that rhyme", 1_800_000_000_000)?;
//!
//! let statement = Statement {
//!     approval: "ap-1".parse()?,
//!     action: "ac-1".parse()?,
//!     plan: Digest::of(b"what was shown"),
//!     offer: "once".parse()?,
//!     verdict: Verdict::Allow,
//!     scope: "once".parse()?,
//!     delta: None,
//!     words: None,
//!     decided_at_ms: 1_800_000_001_000,
//! };
//! let signature = approvers.unlock(&mira, "four words that rhyme")?.sign(&statement);
//! approvers.verify(&mira, &statement, &signature)?;
//! let other = Statement { action: "ac-2".parse()?, ..statement };
//! assert!(approvers.verify(&mira, &other, &signature).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod approvers;
mod checkpoint;
mod credential;
mod credentials;
mod error;
mod framed;
mod guarded;
mod keyfile;
mod keys;
mod passphrase;
mod record;
mod secret;
mod statement;
mod token;
mod webhook;
mod webhooks;
mod witness;

pub use approvers::{Approver, Approvers};
pub use checkpoint::CheckpointKey;
pub use credential::{By, Credential, New, Role};
pub use credentials::Credentials;
pub use error::IdentityError;
pub use keys::{PublicKey, Signature};
pub use passphrase::{LANES, LONGEST, MEMORY, MIN_DIFFERENT, PASSES, SHORTEST};
pub use record::{Algorithm, Derivation, Record};
pub use secret::read_secret;
pub use statement::Statement;
pub use token::{PREFIX as TOKEN_PREFIX, Token};
pub use webhook::{SecretFrom, Webhook, WebhookKind, WebhookSecret};
pub use webhooks::{MOST_WEBHOOKS, Webhooks};
pub use witness::{Witness, WitnessKey};
