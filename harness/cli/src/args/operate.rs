//! The commands of whoever operates an install.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use env_contracts::{Id, Name};

use super::run::CallArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Read the policy, hold it against the tools, and list what is wrong or
    /// suspicious.
    #[command(after_help = "Examples:\n  glovebox policy check\n  glovebox policy check ./policy --json")]
    Check(PolicyArgs),
    /// Run the tests beside the policy.
    #[command(after_help = "Examples:\n  glovebox policy test\n  glovebox policy test ./policy --json")]
    Test(PolicyArgs),
    /// Say what policy would decide about an action, and by which rules.
    /// Takes what `run` takes of the call, and runs nothing.
    #[command(
        after_help = "Examples:\n  glovebox policy explain fs.write --arg path=a.txt --arg text=x --workspace .:write --agent coder"
    )]
    Explain(Box<PolicyExplainArgs>),
    /// Print the schema that policies are validated against.
    #[command(after_help = "Examples:\n  glovebox policy schema > glovebox.cedarschema")]
    Schema,
    /// Write the shipped policy into a folder, to start from.
    #[command(after_help = "Examples:\n  glovebox policy init ~/.config/glovebox/policy")]
    Init {
        /// The folder; it must not exist, or be empty.
        dir: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct PolicyExplainArgs {
    #[command(flatten)]
    pub(crate) call: CallArgs,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    /// The folder of the policy. Absent: the one in force.
    pub(crate) dir: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Look for edits, gaps and missing ends in the log, and whether it adds
    /// up to the state.
    #[command(
        after_help = "Examples:\n  glovebox audit verify\n  glovebox audit verify --checkpoint monday.json --key ed25519:…"
    )]
    Verify(VerifyArgs),
    /// Write the log to standard output.
    #[command(
        after_help = "Examples:\n  glovebox audit export > log.ndjson\n  glovebox audit export --format cloudevents --session build"
    )]
    Export(ExportArgs),
    /// Sign where every log ends now, so that a later `verify` sees what was
    /// cut off or rewritten since. Keep it where the log is not.
    #[command(after_help = "Examples:\n  glovebox audit checkpoint --key /mnt/usb/audit.key > monday.json")]
    Checkpoint {
        /// The file of the signing key, made by `audit key`.
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
    /// Make a signing key for checkpoints, and print its public half.
    #[command(after_help = "Examples:\n  glovebox audit key /mnt/usb/audit.key")]
    Key {
        /// The file; it must not exist.
        file: PathBuf,
    },
    /// Erase the words and contents of an action that ended. Its events stay.
    #[command(after_help = "Examples:\n  glovebox audit erase ACTION")]
    Erase {
        /// The action.
        action: Id,
    },
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// A checkpoint that was signed before.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// The public half of the key that signed it.
    #[arg(long, value_name = "KEY", requires = "checkpoint")]
    pub(crate) key: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The form.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ExportFormat,
    /// Only of this session.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<Id>,
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One event a line, as JSON.
    #[default]
    Ndjson,
    /// One CloudEvent a line.
    Cloudevents,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Look for damage in the database.
    #[command(after_help = "Examples:\n  glovebox db check\n  glovebox db check --json")]
    Check {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Copy the database while it is in use.
    #[command(after_help = "Examples:\n  glovebox db backup /mnt/backup/glovebox.db")]
    Backup {
        /// The file; it must not exist.
        file: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApproverCommand {
    /// Register somebody who answers by passphrase.
    #[command(after_help = "Examples:\n  glovebox approver add mira")]
    Add {
        /// Their name.
        name: Name,
        /// Read the passphrase from the first line of standard input.
        #[arg(long)]
        passphrase_stdin: bool,
    },
    /// List those who are registered.
    #[command(after_help = "Examples:\n  glovebox approver list")]
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove somebody. What they approved and nobody used yet is refused.
    #[command(after_help = "Examples:\n  glovebox approver remove mira")]
    Remove {
        /// Their name.
        name: Name,
    },
}

impl PolicyCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Check(_) => "policy check",
            Self::Test(_) => "policy test",
            Self::Explain(_) => "policy explain",
            Self::Schema => "policy schema",
            Self::Init { .. } => "policy init",
        }
    }

    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Check(args) | Self::Test(args) => args.json,
            Self::Explain(args) => args.json,
            Self::Schema | Self::Init { .. } => false,
        }
    }
}

impl AuditCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Verify(_) => "audit verify",
            Self::Export(_) => "audit export",
            Self::Checkpoint { .. } => "audit checkpoint",
            Self::Key { .. } => "audit key",
            Self::Erase { .. } => "audit erase",
        }
    }

    pub(crate) fn json(&self) -> bool {
        matches!(self, Self::Verify(VerifyArgs { json: true, .. }))
    }
}

impl DbCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Check { .. } => "db check",
            Self::Backup { .. } => "db backup",
        }
    }

    pub(crate) fn json(&self) -> bool {
        matches!(self, Self::Check { json: true })
    }
}

impl ApproverCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Add { .. } => "approver add",
            Self::List { .. } => "approver list",
            Self::Remove { .. } => "approver remove",
        }
    }

    pub(crate) fn json(&self) -> bool {
        matches!(self, Self::List { json: true })
    }
}
