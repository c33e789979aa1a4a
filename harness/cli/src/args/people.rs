//! The commands with which people see what is asked, and decide.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use env_contracts::{Id, Name};

use super::run::ContextArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum ActionCommand {
    /// Hand in a whole Action Request as JSON.
    #[command(
        after_help = "Examples:\n  glovebox action submit request.json --workspace ~/src/project\n  echo '{\"capability\": \"text.count\", \"arguments\": {\"path\": \"README.md\"}}' | glovebox action submit -"
    )]
    Submit(SubmitArgs),
    /// Show an action: its state, and its Observation once it ended.
    #[command(after_help = "Examples:\n  glovebox action show ACTION\n  glovebox action show ACTION --json")]
    Show(IdArgs),
    /// List actions, the newest first.
    #[command(
        after_help = "Examples:\n  glovebox action list\n  glovebox action list --open\n  glovebox action list --task build-42 --json"
    )]
    List(ActionListArgs),
    /// Print everything that happened to an action.
    #[command(after_help = "Examples:\n  glovebox action events ACTION\n  glovebox action events ACTION --json")]
    Events(IdArgs),
    /// Stop an action, whether it waits or runs.
    #[command(after_help = "Examples:\n  glovebox action cancel ACTION\n  glovebox action cancel ACTION --grace 30s")]
    Cancel {
        #[command(flatten)]
        action: IdArgs,
        /// How long it may go on to end by itself. With it, the end is waited
        /// for.
        #[arg(long, value_name = "TIME")]
        grace: Option<env_contracts::Span>,
    },
    /// Go on with an action that was left: run it if it was approved.
    #[command(after_help = "Examples:\n  glovebox action resume ACTION\n  glovebox action resume ACTION --ask wait")]
    Resume(ResumeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// The request: a file, or - for standard input.
    pub(crate) file: PathBuf,
    /// The folder to work on, and the most that may be done with it.
    #[arg(long, value_name = "DIR[:read|:write]")]
    pub(crate) workspace: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

#[derive(Debug, Args)]
pub(crate) struct IdArgs {
    /// Its id, or the beginning of it, from eight characters, where no other
    /// begins so.
    pub(crate) id: Id,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ActionListArgs {
    /// Only what has not ended.
    #[arg(long)]
    pub(crate) open: bool,
    /// Only of this session.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<Id>,
    /// Only of this task.
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<Id>,
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The action: its id, or the beginning of it.
    pub(crate) id: Id,
    /// As JSON.
    #[arg(long, conflicts_with = "raw")]
    pub(crate) json: bool,
    /// Print the bare result.
    #[arg(long)]
    pub(crate) raw: bool,
    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List what waits for a person, the oldest first.
    #[command(after_help = "Examples:\n  glovebox approvals list\n  glovebox approvals list --all --json")]
    List {
        /// And what was answered, expired or is needed no more.
        #[arg(long)]
        all: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what is asked: what would happen, why, and what can be answered.
    #[command(after_help = "Examples:\n  glovebox approvals show APPROVAL")]
    Show(IdArgs),
    /// Approve. Nothing runs by it: whoever asked goes on.
    #[command(
        after_help = "Examples:\n  glovebox approvals approve APPROVAL\n  glovebox approvals approve APPROVAL --offer session --as mira\n  glovebox approvals approve APPROVAL --offer session --contract less.toml"
    )]
    Approve(ApproveArgs),
    /// Decline. Whoever asked gets your words.
    #[command(
        after_help = "Examples:\n  glovebox approvals decline APPROVAL --say 'use the staging host'\n  glovebox approvals decline APPROVAL --stop-task"
    )]
    Decline(DeclineArgs),
    /// Put other arguments, or a narrower contract, in place of what is asked.
    /// It is a new plan: policy decides anew, and may ask again.
    #[command(
        after_help = "Examples:\n  glovebox approvals edit APPROVAL --args '{\"path\": \"docs/a.md\"}'\n  glovebox approvals edit APPROVAL --contract stricter.toml"
    )]
    Edit(EditArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The approval: its id, or the beginning of it, from eight characters.
    pub(crate) id: Id,
    /// What you have to say about it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) say: Option<String>,
    /// Answer as this registered approver, by passphrase.
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) approver: Option<Name>,
    /// Read the passphrase from the first line of standard input.
    #[arg(long, requires = "approver")]
    pub(crate) passphrase_stdin: bool,
    /// Refuse unless the plan's digest begins so: the twelve characters that
    /// `show` prints.
    #[arg(long, value_name = "DIGEST")]
    pub(crate) plan: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
    /// Which offer: `once`, or another that `show` lists.
    #[arg(long, value_name = "OFFER")]
    pub(crate) offer: Option<Id>,
    /// Of a permission, give only what this contract names.
    #[arg(long, value_name = "FILE")]
    pub(crate) contract: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DeclineArgs {
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
    /// And stop what else the task has under way.
    #[arg(long)]
    pub(crate) stop_task: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
    /// All arguments as one JSON object: the text itself, or @FILE.
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) args: Option<String>,
    /// The scope: an Environment Contract of which the sections that are
    /// present count.
    #[arg(long, value_name = "FILE")]
    pub(crate) contract: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GrantsCommand {
    /// List what was allowed for more than once.
    #[command(after_help = "Examples:\n  glovebox grants list\n  glovebox grants list --all --json")]
    List {
        /// And what has ended or was taken back.
        #[arg(long)]
        all: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Take a grant back.
    #[command(after_help = "Examples:\n  glovebox grants revoke GRANT")]
    Revoke(IdArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionCommand {
    /// Ask that a tool may have more than its contract gives.
    #[command(
        after_help = "Examples:\n  glovebox permission request my.tool --contract more.toml --reason 'the build needs it'"
    )]
    Request(PermissionArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PermissionArgs {
    /// The tool: NAME or NAME@VERSION.
    pub(crate) tool: String,
    /// What it is to have: an Environment Contract of which the sections that
    /// are present count.
    #[arg(long, value_name = "FILE")]
    pub(crate) contract: PathBuf,
    /// Why, in words that people who decide see.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  glovebox stop --all --reason 'the agent runs wild'\n  glovebox stop --release")]
pub(crate) struct StopArgs {
    /// Let nothing past any more, stop what runs, end what waits, take back
    /// every grant.
    #[arg(long, required_unless_present = "release")]
    pub(crate) all: bool,
    /// Why, for whoever finds it stopped.
    #[arg(long, value_name = "TEXT", requires = "all")]
    pub(crate) reason: Option<String>,
    /// Let things go on.
    #[arg(long, conflicts_with = "all")]
    pub(crate) release: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl ActionCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Submit(_) => "action submit",
            Self::Show(_) => "action show",
            Self::List(_) => "action list",
            Self::Events(_) => "action events",
            Self::Cancel { .. } => "action cancel",
            Self::Resume(_) => "action resume",
        }
    }

    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Submit(args) => args.json,
            Self::Show(args) | Self::Events(args) | Self::Cancel { action: args, .. } => args.json,
            Self::List(args) => args.json,
            Self::Resume(args) => args.json,
        }
    }
}

impl ApprovalsCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::List { .. } => "approvals list",
            Self::Show(_) => "approvals show",
            Self::Approve(_) => "approvals approve",
            Self::Decline(_) => "approvals decline",
            Self::Edit(_) => "approvals edit",
        }
    }

    pub(crate) fn json(&self) -> bool {
        match self {
            Self::List { json, .. } => *json,
            Self::Show(args) => args.json,
            Self::Approve(args) => args.answer.json,
            Self::Decline(args) => args.answer.json,
            Self::Edit(args) => args.answer.json,
        }
    }
}

impl GrantsCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::List { .. } => "grants list",
            Self::Revoke(_) => "grants revoke",
        }
    }

    pub(crate) fn json(&self) -> bool {
        match self {
            Self::List { json, .. } => *json,
            Self::Revoke(args) => args.json,
        }
    }
}
