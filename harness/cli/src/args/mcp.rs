//! `glovebox mcp`.

use clap::Args;
use env_contracts::Id;

/// Serve the tools to an agent that speaks MCP.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  glovebox mcp --agent coder --workspace ~/src/project
  glovebox mcp --agent coder@1.2.0 --workspace ~/src/project:write --purpose 'fix the parser'

It ends when standard input is closed. Where a person has to decide, the agent is told where; `glovebox approvals`
shows what waits.")]
pub(crate) struct McpArgs {
    /// The agent that it speaks for, NAME or NAME@VERSION. What a client says of
    /// itself is never taken for it. Absent: the configured one, or else `mcp`.
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// The folder that tools work on, and the most that may be done with it:
    /// read (the default) or write.
    #[arg(long, value_name = "DIR[:read|:write]", default_value = ".")]
    pub(crate) workspace: String,
    /// The session, which is its one task too. Absent: a new one.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<Id>,
    /// Start no server for the people who decide, where none runs on this state
    /// folder. One that was started goes on when this ends, and ends by itself
    /// once no agent is connected and nothing has waited for a person for a while.
    #[arg(long)]
    pub(crate) no_serve: bool,
    /// What it is for: people who decide see it, and policy.
    #[arg(long, value_name = "TEXT")]
    pub(crate) purpose: Option<String>,
}
