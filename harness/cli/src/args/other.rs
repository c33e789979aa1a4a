//! The commands that look after things.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct ReferenceArgs {
    /// The folder.
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContractCommand {
    /// Print each clause and what would enforce it on each backend here, or
    /// why not and what would do.
    #[command(
        after_help = "Examples:\n  glovebox contract check contract.toml\n  glovebox contract check tool.toml --json"
    )]
    Check {
        /// A contract, or a tool's manifest.
        file: PathBuf,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactsCommand {
    /// List what is kept.
    #[command(after_help = "Examples:\n  glovebox artifacts list\n  glovebox artifacts list --action 0197f0c0-51")]
    List {
        /// Of this action alone: its id, or the beginning of it, from eight
        /// characters, where no other begins so.
        #[arg(long)]
        action: Option<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write an artifact to a file or to standard output.
    #[command(after_help = "Examples:\n  glovebox artifacts get artifact/ACTION/1 --out report.csv")]
    Get {
        /// Its URI: artifact/ACTION/N.
        uri: String,
        /// The file; it must not exist.
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every key and its value.
    #[command(
        after_help = "Examples:\n  glovebox config show --origin\n  glovebox config show --ceiling\n  glovebox config show --ceiling=shipped > ~/.config/glovebox/ceiling.toml"
    )]
    Show {
        /// And where it comes from.
        #[arg(long)]
        origin: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
        /// Print a ceiling as TOML instead: the one in force, or the shipped
        /// one to start from.
        #[arg(
            long,
            value_enum,
            value_name = "WHICH",
            num_args = 0..=1,
            require_equals = true,
            default_missing_value = "in-force",
            conflicts_with_all = ["origin", "json"]
        )]
        ceiling: Option<WhichCeiling>,
    },
}

/// One of two ceilings.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum WhichCeiling {
    /// What tools may be given at most, here and now.
    InForce,
    /// What holds where the operator wrote none.
    Shipped,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  glovebox gc --dry-run\n  glovebox gc")]
pub(crate) struct GcArgs {
    /// Only say what would go.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  glovebox doctor\n  glovebox doctor --json")]
pub(crate) struct DoctorArgs {
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  glovebox explain\n  glovebox explain limit-hit")]
pub(crate) struct ExplainArgs {
    /// The error code.
    pub(crate) code: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  glovebox completions bash > ~/.local/share/bash-completion/completions/glovebox")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

impl ArtifactsCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::List { .. } => "artifacts list",
            Self::Get { .. } => "artifacts get",
        }
    }

    pub(crate) fn json(&self) -> bool {
        matches!(self, Self::List { json: true, .. })
    }
}
