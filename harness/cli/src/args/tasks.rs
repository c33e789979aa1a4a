//! The commands around tasks: what is to be reached, what people say to it, and
//! the steps of a loop.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use env_contracts::{Digest, Id, Name, Span};

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Open a session: a log of its own, in which tasks are worked on.
    #[command(
        after_help = "Examples:\n  glovebox session new\n  glovebox session new review-7 --parent build-7 --agent reviewer --chain coder"
    )]
    New {
        /// Its name. Absent: one is made.
        id: Option<Id>,
        /// The session that it is called from.
        #[arg(long, value_name = "SESSION")]
        parent: Option<Id>,
        #[command(flatten)]
        who: WhoArgs,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// List sessions, the newest first.
    #[command(after_help = "Examples:\n  glovebox session list --json")]
    List {
        /// At most so many.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a session: its tasks, and how often people were asked, by which
    /// rule.
    #[command(after_help = "Examples:\n  glovebox session show build-7")]
    Show(NamedArgs),
    /// Say in which direction to go: it reaches the loop at its next step.
    #[command(
        after_help = "Examples:\n  glovebox session steer build-7 'keep the public interface as it is'\n  glovebox session steer build-7 --task docs 'shorter'"
    )]
    Steer {
        /// The session.
        id: Id,
        /// What to say.
        text: String,
        /// The task that is meant, where the session has several.
        #[arg(long, value_name = "TASK")]
        task: Option<Id>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Stop what runs and end what waits in a session. Nothing is taken back.
    #[command(
        after_help = "Examples:\n  glovebox session interrupt build-7\n  glovebox session interrupt build-7 --tree --grace 30s --reason 'wrong branch'\n  glovebox session interrupt build-7 --turn --task docs"
    )]
    Interrupt(InterruptArgs),
    /// Let nothing new begin in a session. What runs goes on.
    #[command(after_help = "Examples:\n  glovebox session close build-7")]
    Close(NamedArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InterruptArgs {
    /// The session.
    pub(crate) id: Id,
    /// And every session below it.
    #[arg(long, conflicts_with_all = ["turn", "task"])]
    pub(crate) tree: bool,
    /// Only the turn that its task is in: the loop goes on with another.
    #[arg(long)]
    pub(crate) turn: bool,
    /// Only this task. Without --turn it is cancelled.
    #[arg(long, value_name = "TASK")]
    pub(crate) task: Option<Id>,
    /// How long what runs may go on to end by itself.
    #[arg(long, value_name = "TIME")]
    pub(crate) grace: Option<Span>,
    /// Why. The loop is told.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NamedArgs {
    /// Its name.
    pub(crate) id: Id,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who does it, for what loops do.
#[derive(Debug, Args)]
pub(crate) struct WhoArgs {
    /// The agent that does it: NAME or NAME@VERSION. Absent: the user does.
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// The agents that handed the work down to it, the first one first.
    #[arg(long, value_name = "AGENT,…", value_delimiter = ',', requires = "agent")]
    pub(crate) chain: Vec<Name>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Open a task: a goal, and what it may use.
    #[command(
        after_help = "Examples:\n  glovebox task new --session build-7 --goal 'update the parser'\n  glovebox task new docs --session build-7 --goal 'write the guide' --budget-actions 50 --purpose documentation"
    )]
    New(Box<TaskNewArgs>),
    /// List tasks, the newest first.
    #[command(after_help = "Examples:\n  glovebox task list --session build-7 --open")]
    List {
        /// Only of this session.
        #[arg(long, value_name = "SESSION")]
        session: Option<Id>,
        /// Only those that are not over.
        #[arg(long)]
        open: bool,
        /// At most so many.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a task: goal, constraints, turn, what it used and has left.
    #[command(after_help = "Examples:\n  glovebox task show docs")]
    Show(NamedArgs),
    /// Set another goal. Plans are void; what was approved and not run yet has
    /// to be resumed by whoever asked.
    #[command(after_help = "Examples:\n  glovebox task goal docs 'write the guide, without the appendix'")]
    Goal(SayArgs),
    /// Add something that has to hold besides the goal: the loop plans anew.
    #[command(after_help = "Examples:\n  glovebox task constrain docs 'no new dependencies'")]
    Constrain(SayArgs),
    /// Say in which direction to go: it reaches the loop at its next step.
    #[command(after_help = "Examples:\n  glovebox task steer docs 'shorter'")]
    Steer(SayArgs),
    /// Say at which stage it is, for policy.
    #[command(after_help = "Examples:\n  glovebox task stage docs review")]
    Stage {
        /// The task.
        id: Id,
        /// The stage.
        stage: Name,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Put the loop's plan before a person, as JSON: summary and steps. That it
    /// is accepted gives no right to any of its steps.
    #[command(
        after_help = "Examples:\n  glovebox task plan docs plan.json --turn 2 --ask wait\n\n{ \"summary\": \"Write, then publish\",\n  \"steps\": [{ \"title\": \"write the page\", \"capability\": \"fs.write\", \"effects\": \"workspace\" },\n            { \"title\": \"publish it\", \"effects\": \"external\" }] }"
    )]
    Plan {
        #[command(flatten)]
        proposal: ProposalArgs,
        /// The plan as JSON: a file.
        file: PathBuf,
    },
    /// Put what was made before a person, to be accepted.
    #[command(
        after_help = "Examples:\n  glovebox task result docs --artifact artifact/ACTION/1 --condition 'every command has an example' --evidence ENTRY"
    )]
    Result {
        /// The artifact that was made.
        #[arg(long, value_name = "URI", required_unless_present = "sha256", conflicts_with = "sha256")]
        artifact: Option<String>,
        /// The sha256 of what was made, where it lies elsewhere.
        #[arg(long, value_name = "DIGEST")]
        sha256: Option<Digest>,
        /// What it has to be like.
        #[arg(long, value_name = "TEXT")]
        condition: String,
        /// What verifiers found of this very thing and condition: entries.
        #[arg(long, value_name = "ENTRY,…", value_delimiter = ',')]
        evidence: Vec<Id>,
        #[command(flatten)]
        proposal: ProposalArgs,
    },
    /// End it: `done` where its goal is reached, else `failed`.
    #[command(
        after_help = "Examples:\n  glovebox task end docs done\n  glovebox task end docs failed --why 'no access'"
    )]
    End {
        /// The task.
        id: Id,
        /// How it ends.
        how: EndWord,
        /// Why.
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Whose proposal it is, and how the answer is waited for.
#[derive(Debug, Args)]
pub(crate) struct ProposalArgs {
    /// The task.
    pub(crate) id: Id,
    /// In which turn.
    #[arg(long, value_name = "N")]
    pub(crate) turn: Option<u64>,
    /// How the answer is waited for.
    #[arg(long, value_enum)]
    pub(crate) ask: Option<super::AskMode>,
    #[command(flatten)]
    pub(crate) who: WhoArgs,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a task ends by its loop. A person who wants it no more interrupts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EndWord {
    /// Its goal is reached.
    Done,
    /// It is given up.
    Failed,
}

#[derive(Debug, Args)]
pub(crate) struct TaskNewArgs {
    /// Its name. Absent: one is made.
    pub(crate) id: Option<Id>,
    /// The session, which is opened where nobody did.
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Id,
    /// What is to be reached.
    #[arg(long, value_name = "TEXT")]
    pub(crate) goal: String,
    /// What it is for, for policy.
    #[arg(long, value_name = "TEXT")]
    pub(crate) purpose: Option<String>,
    /// At which stage it begins, for policy.
    #[arg(long, value_name = "WORD")]
    pub(crate) stage: Option<Name>,
    /// At most so many actions run.
    #[arg(long, value_name = "N")]
    pub(crate) budget_actions: Option<u64>,
    /// Nothing begins any more once they ran so long, together.
    #[arg(long, value_name = "TIME")]
    pub(crate) budget_run: Option<Span>,
    /// Nothing begins any more once they wrote so many bytes to standard output
    /// and error.
    #[arg(long, value_name = "SIZE")]
    pub(crate) budget_output: Option<env_contracts::ByteSize>,
    /// Nothing begins any more once they sent and received so many bytes outside.
    #[arg(long, value_name = "SIZE")]
    pub(crate) budget_egress: Option<env_contracts::ByteSize>,
    /// Nothing begins any more once tools and models cost so many millionths of
    /// the unit.
    #[arg(long, value_name = "N")]
    pub(crate) budget_cost: Option<u64>,
    #[command(flatten)]
    pub(crate) who: WhoArgs,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SayArgs {
    /// The task.
    pub(crate) id: Id,
    /// What to say.
    pub(crate) text: String,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl SessionCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::New { .. } => "session new",
            Self::List { .. } => "session list",
            Self::Show(_) => "session show",
            Self::Steer { .. } => "session steer",
            Self::Interrupt(_) => "session interrupt",
            Self::Close(_) => "session close",
        }
    }

    pub(crate) fn json(&self) -> bool {
        match self {
            Self::New { json, .. } | Self::List { json, .. } | Self::Steer { json, .. } => *json,
            Self::Show(args) | Self::Close(args) => args.json,
            Self::Interrupt(args) => args.json,
        }
    }
}

impl TaskCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::New(_) => "task new",
            Self::List { .. } => "task list",
            Self::Show(_) => "task show",
            Self::Goal(_) => "task goal",
            Self::Constrain(_) => "task constrain",
            Self::Steer(_) => "task steer",
            Self::Stage { .. } => "task stage",
            Self::Plan { .. } => "task plan",
            Self::Result { .. } => "task result",
            Self::End { .. } => "task end",
        }
    }

    pub(crate) fn json(&self) -> bool {
        match self {
            Self::New(args) => args.json,
            Self::List { json, .. } | Self::Stage { json, .. } | Self::End { json, .. } => *json,
            Self::Plan { proposal, .. } | Self::Result { proposal, .. } => proposal.json,
            Self::Show(args) => args.json,
            Self::Goal(args) | Self::Constrain(args) | Self::Steer(args) => args.json,
        }
    }
}
