//! The commands of loops: their steps, what they record, what they ask, and the
//! story of it all.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use env_contracts::{Digest, Id, Name, Span};

use super::WhoArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum TurnCommand {
    /// Begin the next step: the one before is closed, and everything that was
    /// said meanwhile is printed as JSON.
    #[command(
        after_help = "Examples:\n  glovebox turn open docs --expected 0 --goal-version 1\n  glovebox turn open docs --expected 1 --goal-version 1 --key step-2"
    )]
    Open {
        /// The task.
        task: Id,
        /// The number of the turn that it was in; 0: it had none.
        #[arg(long, value_name = "N")]
        expected: u64,
        /// The version of the goal that it works for.
        #[arg(long, value_name = "N")]
        goal_version: u32,
        /// A name for this call: with it, a lost answer can be had again.
        #[arg(long, value_name = "WORD")]
        key: Option<Name>,
        #[command(flatten)]
        who: WhoArgs,
    },
    /// End the step without another.
    #[command(after_help = "Examples:\n  glovebox turn close docs 2")]
    Close {
        /// The task.
        task: Id,
        /// The number of the turn.
        turn: u64,
        #[command(flatten)]
        who: WhoArgs,
    },
    /// Record what the model said, planned or used, what a verifier found, or
    /// what a person thinks.
    #[command(
        after_help = "Examples:\n  glovebox turn tell docs text 'reading the parser first' --turn 1\n  glovebox turn tell docs model-call --model m-4 --input-tokens 1200 --output-tokens 80 --cost 900 --turn 1\n  glovebox turn tell docs verified 'all tests pass' --holds true --revision SHA256 --condition 'cargo test is green'"
    )]
    Tell(Box<TellArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct TellArgs {
    /// The task.
    pub(crate) task: Id,
    /// What it is.
    pub(crate) kind: TellKind,
    /// The words.
    pub(crate) text: Option<String>,
    /// In which turn.
    #[arg(long, value_name = "N")]
    pub(crate) turn: Option<u64>,
    /// What caused it: entries, actions, questions, remarks.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub(crate) parents: Vec<Id>,
    /// Of a model call: which model.
    #[arg(long, value_name = "NAME", required_if_eq("kind", "model-call"))]
    pub(crate) model: Option<String>,
    /// Tokens that went in.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) input_tokens: u64,
    /// Tokens that came out.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) output_tokens: u64,
    /// What it cost, in millionths of the unit.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) cost: u64,
    /// The digest of the list of what was in the model's context.
    #[arg(long, value_name = "DIGEST")]
    pub(crate) context: Option<Digest>,
    /// Of a verifier: whether what it looked at holds.
    #[arg(long, value_name = "true|false", required_if_eq("kind", "verified"))]
    pub(crate) holds: Option<bool>,
    /// The revision that it looked at: the sha256 of an artifact or file.
    #[arg(long, value_name = "REVISION")]
    pub(crate) revision: Option<String>,
    /// The condition that it was held against, in words.
    #[arg(long, value_name = "TEXT")]
    pub(crate) condition: Option<String>,
    /// The version of the goal that it counts for.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) goal_version: u32,
    #[command(flatten)]
    pub(crate) who: WhoArgs,
}

/// What is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TellKind {
    /// What the model said.
    Text,
    /// How far it is.
    Progress,
    /// What it plans to do.
    Plan,
    /// What it still has to do.
    Todo,
    /// A call of a model.
    ModelCall,
    /// What a verifier found.
    Verified,
    /// What came of it, as the loop sees it.
    Outcome,
    /// What a person thinks of it.
    Feedback,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QuestionsCommand {
    /// List the questions that wait, the oldest first.
    #[command(after_help = "Examples:\n  glovebox questions list\n  glovebox questions list --all --json")]
    List {
        /// And those that were answered, expired or are needed no more.
        #[arg(long)]
        all: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a question with its options and what each has as its effect.
    #[command(after_help = "Examples:\n  glovebox questions show QUESTION")]
    Show(super::IdArgs),
    /// Answer a question: pick an option, say something, or both.
    #[command(
        after_help = "Examples:\n  glovebox questions answer QUESTION --option two-years\n  glovebox questions answer QUESTION --say 'eighteen months, and tell the users'"
    )]
    Answer {
        /// The question: its id, or the beginning of it, from eight characters.
        id: Id,
        /// The option to pick.
        #[arg(long, value_name = "OPTION", required_unless_present = "say")]
        option: Option<Id>,
        /// What to say.
        #[arg(long, value_name = "TEXT")]
        say: Option<String>,
        #[command(flatten)]
        who: WhoArgs,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Ask a question, for a loop. It is read as JSON: question, options,
    /// recommended, affects.
    #[command(
        after_help = "Examples:\n  glovebox questions ask --task docs --turn 1 --topic window question.json\n\n{ \"question\": \"How long do old clients have to work?\",\n  \"options\": [{ \"id\": \"one-year\", \"label\": \"A year\", \"effect\": \"v1 goes in spring\" },\n              { \"id\": \"two-years\", \"label\": \"Two years\", \"effect\": \"v1 stays until 2028\" }],\n  \"recommended\": \"two-years\", \"affects\": [\"public API\"] }"
    )]
    Ask {
        /// The question as JSON: a file, or - for standard input.
        file: PathBuf,
        /// The task.
        #[arg(long, value_name = "TASK")]
        task: Id,
        /// In which turn.
        #[arg(long, value_name = "N")]
        turn: Option<u64>,
        /// What it decides, in a word.
        #[arg(long, value_name = "WORD")]
        topic: Name,
        /// The action whose output made the loop ask.
        #[arg(long, value_name = "ACTION")]
        induced_by: Option<Id>,
        /// How long it waits.
        #[arg(long, value_name = "TIME")]
        lasts: Option<Span>,
        #[command(flatten)]
        who: WhoArgs,
    },
    /// Pass the question of an agent below on to a person.
    #[command(after_help = "Examples:\n  glovebox questions pass-on QUESTION --agent coder")]
    PassOn {
        /// The question.
        id: Id,
        #[command(flatten)]
        who: WhoArgs,
    },
    /// Let one question of an agent below stand for another.
    #[command(after_help = "Examples:\n  glovebox questions merge QUESTION --into OTHER --agent coder")]
    Merge {
        /// The question.
        id: Id,
        /// The one that stands for it.
        #[arg(long, value_name = "QUESTION")]
        into: Id,
        #[command(flatten)]
        who: WhoArgs,
    },
    /// Say that this front end can't ask it, or take it back.
    #[command(
        after_help = "Examples:\n  glovebox questions withdraw QUESTION\n  glovebox questions withdraw QUESTION --unsupported"
    )]
    Withdraw {
        /// The question.
        id: Id,
        /// Nobody can be asked here: the loop is told.
        #[arg(long)]
        unsupported: bool,
        #[command(flatten)]
        who: WhoArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// The task.
    pub(crate) task: Id,
    /// As JSON, with all words whole.
    #[arg(long)]
    pub(crate) json: bool,
}

impl TurnCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Open { .. } => "turn open",
            Self::Close { .. } => "turn close",
            Self::Tell(_) => "turn tell",
        }
    }
}

impl QuestionsCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::List { .. } => "questions list",
            Self::Show(_) => "questions show",
            Self::Answer { .. } => "questions answer",
            Self::Ask { .. } => "questions ask",
            Self::PassOn { .. } => "questions pass-on",
            Self::Merge { .. } => "questions merge",
            Self::Withdraw { .. } => "questions withdraw",
        }
    }

    pub(crate) fn json(&self) -> bool {
        match self {
            Self::List { json, .. } | Self::Answer { json, .. } => *json,
            Self::Show(args) => args.json,
            // A loop reads what these print.
            Self::Ask { .. } | Self::PassOn { .. } | Self::Merge { .. } | Self::Withdraw { .. } => true,
        }
    }
}
