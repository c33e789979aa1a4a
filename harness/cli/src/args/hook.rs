//! `glovebox hook`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use env_contracts::Span;

/// Decide on what an agent does with tools of its own: it starts this before
/// each call.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  glovebox hook install --agent claude-code --project
  glovebox hook --agent claude-code < call.json

It reads one call on standard input, as Claude Code's PreToolUse hands it over, and says allow or deny on standard
output. Whatever goes wrong, it ends with exit code 2, which is what stops the call there."
)]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    pub(crate) command: Option<HookCommand>,
    /// The agent that asks, NAME or NAME@VERSION. Absent: the configured one, or
    /// else `claude-code`.
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// The folder that the agent works in. Absent: `$CLAUDE_PROJECT_DIR`, or else
    /// where it was started.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// How long to wait for a person, at most 50s. Afterwards the call is denied,
    /// the question stays, and the same call goes ahead once it was approved.
    #[arg(long, value_name = "SPAN", default_value = "50s")]
    pub(crate) wait: Span,
    /// The MCP servers of the agent's that are this program: their tools are
    /// decided on when they are called, and so not here.
    #[arg(long, value_name = "NAME", default_value = "glovebox")]
    pub(crate) mcp_server: Vec<String>,
    /// The part that decides. For our own use.
    #[arg(long, hide = true)]
    pub(crate) inside: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// Put the hook into an agent's settings, beside what is there.
    #[command(
        after_help = "Examples:\n  glovebox hook install --agent claude-code --project\n  glovebox hook install --agent claude-code --print"
    )]
    Install(HookInstallArgs),
}

#[derive(Debug, Args)]
pub(crate) struct HookInstallArgs {
    /// Whose settings.
    #[arg(long, value_enum)]
    pub(crate) agent: HookedAgent,
    #[command(flatten)]
    pub(crate) place: HookPlace,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct HookPlace {
    /// For all who work in this folder: `.claude/settings.json`.
    #[arg(long)]
    pub(crate) project: bool,
    /// For all that this user does: `~/.claude/settings.json`.
    #[arg(long)]
    pub(crate) user: bool,
    /// Print what would be put there.
    #[arg(long)]
    pub(crate) print: bool,
}

/// An agent whose settings are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HookedAgent {
    /// Claude Code.
    ClaudeCode,
}

impl HookArgs {
    pub(crate) fn path(&self) -> &'static str {
        if self.command.is_some() { "hook install" } else { "hook" }
    }
}
