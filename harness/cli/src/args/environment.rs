//! The commands around environments.

use clap::{Args, Subcommand};
use env_contracts::Id;

use super::IdArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum EnvironmentCommand {
    /// List environments, the oldest first.
    #[command(after_help = "Examples:\n  glovebox environment list\n  glovebox environment list --json")]
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show an environment: who shares it, what is in it, and its snapshots.
    #[command(after_help = "Examples:\n  glovebox environment show ENVIRONMENT")]
    Show(IdArgs),
    /// Take a snapshot of an environment's folders.
    #[command(after_help = "Examples:\n  glovebox environment snapshot ENVIRONMENT")]
    Snapshot(IdArgs),
    /// List snapshots, also of environments that ended, the oldest first.
    #[command(after_help = "Examples:\n  glovebox environment snapshots")]
    Snapshots {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say how one snapshot differs from another.
    #[command(after_help = "Examples:\n  glovebox environment diff SNAPSHOT SNAPSHOT")]
    Diff {
        /// The earlier one: its name, or the beginning of it.
        from: Id,
        /// The later one.
        to: Id,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Make an environment's folders those of a snapshot again.
    #[command(
        after_help = "Examples:\n  glovebox environment restore SNAPSHOT\n  glovebox environment restore SNAPSHOT --into ENVIRONMENT"
    )]
    Restore(RestoreArgs),
    /// End an environment: its folders are gone, its snapshots stay for a while.
    #[command(after_help = "Examples:\n  glovebox environment end ENVIRONMENT")]
    End(IdArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The snapshot: its name, or the beginning of it, from eight characters,
    /// where no other begins so.
    pub(crate) snapshot: Id,
    /// Another environment of the same capability. Absent: the one that it was
    /// taken of, which begins again if it ended.
    #[arg(long, value_name = "ENVIRONMENT")]
    pub(crate) into: Option<Id>,
    /// Restore it although the tool or the policy is another by now.
    #[arg(long)]
    pub(crate) accept_drift: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl EnvironmentCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::List { .. } => "environment list",
            Self::Show(_) => "environment show",
            Self::Snapshot(_) => "environment snapshot",
            Self::Snapshots { .. } => "environment snapshots",
            Self::Diff { .. } => "environment diff",
            Self::Restore(_) => "environment restore",
            Self::End(_) => "environment end",
        }
    }

    pub(crate) fn json(&self) -> bool {
        match self {
            Self::List { json } | Self::Snapshots { json } | Self::Diff { json, .. } => *json,
            Self::Show(args) | Self::Snapshot(args) | Self::End(args) => args.json,
            Self::Restore(args) => args.json,
        }
    }
}
