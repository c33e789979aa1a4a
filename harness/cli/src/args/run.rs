//! `glovebox run`, and the context that other commands share with it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use env_contracts::{Id, Moment, Name};

/// Run a tool.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  glovebox run text.count --arg path=README.md
  glovebox run fs.search --arg pattern=TODO --workspace ~/src/project --json
  glovebox run fs.read --args '{\"path\": \"Cargo.toml\", \"line_count\": 20}' --raw
  echo '{\"path\": \"a.txt\"}' | glovebox run text.count --args -
  glovebox run my.tool --input table=data.csv --contract stricter.toml
  glovebox run my.tool --seed 7 --time 2026-01-01T00:00:00Z")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) call: CallArgs,
    /// Print the whole Observation as JSON; where there is none, the problem.
    #[arg(long, conflicts_with = "raw")]
    pub(crate) json: bool,
    /// Print the bare result: standard output of a command, or the data of a
    /// tool as JSON.
    #[arg(long)]
    pub(crate) raw: bool,
    /// An idempotency key: the same request with the same key is the same
    /// action, and gets its result.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<Name>,
}

/// What is asked for, as `run` and `policy explain` take it.
#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool: NAME (its newest version) or NAME@VERSION.
    pub(crate) tool: String,
    /// An argument. The value is read as the schema has it: as text, as a
    /// number, or as JSON. Repeat it for an array, or write one JSON array.
    #[arg(long = "arg", value_name = "KEY=VALUE")]
    pub(crate) arg: Vec<String>,
    /// All arguments as one JSON object: the text itself, @FILE, or - for
    /// standard input.
    #[arg(long, value_name = "JSON|@FILE|-", conflicts_with = "arg")]
    pub(crate) args: Option<String>,
    /// The folder to work on, and the most that may be done with it: read
    /// (the default) or write.
    #[arg(long, value_name = "DIR[:read|:write]", default_value = ".")]
    pub(crate) workspace: String,
    /// A file for the tool, under a name: a path, or the URI of an artifact.
    #[arg(long = "input", value_name = "NAME=FILE")]
    pub(crate) input: Vec<String>,
    /// An Environment Contract to narrow the tool's with: of its sections,
    /// those that are present count.
    #[arg(long, value_name = "FILE")]
    pub(crate) contract: Option<PathBuf>,
    /// Give the tool a clock and random numbers that are the same in every run
    /// with this number, so that the run can be repeated.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// When that clock begins: 2000-01-01T00:00:00Z if nothing else is said.
    #[arg(long, value_name = "TIME", requires = "seed")]
    pub(crate) time: Option<Moment>,
    /// Why, in words that people who decide see. Nothing is decided by them.
    #[arg(long, value_name = "TEXT")]
    pub(crate) purpose: Option<String>,
    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

/// Who asks, and in which context. The caller of the command sets it: it is
/// the channel, and what a model writes does not come here.
#[derive(Debug, Default, Args)]
pub(crate) struct ContextArgs {
    /// The agent that asks: NAME or NAME@VERSION. Absent: the user does.
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// The session that it belongs to.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<Id>,
    /// The task that it belongs to. Absent: the session has one.
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<Id>,
    /// The turn of the task, for loops that have turns.
    #[arg(long, value_name = "N", requires = "task")]
    pub(crate) turn: Option<u64>,
    /// The agents that handed the work down to the one that asks, the first one
    /// first.
    #[arg(long, value_name = "AGENT,…", value_delimiter = ',', requires = "agent")]
    pub(crate) chain: Vec<Name>,
    /// Where the task stands, for policy, unless whoever opened it says so.
    #[arg(long, value_name = "WORD")]
    pub(crate) stage: Option<Name>,
    /// What happens where a person has to decide.
    #[arg(long, value_enum)]
    pub(crate) ask: Option<AskMode>,
}

/// What happens where a person has to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AskMode {
    /// Here where there is a terminal, else as `leave`.
    Auto,
    /// The question is put here, and waited for.
    Here,
    /// The answer is waited for, from wherever it comes.
    Wait,
    /// The ids are printed, and the action is left waiting.
    Leave,
    /// Nobody is asked: it ends as unattended.
    Never,
}
