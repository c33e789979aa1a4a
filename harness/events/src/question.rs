//! What a loop wants to know: a question, never a right.

use env_contracts::{Digest, Id, Name, Principal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A question, or what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Its id: random, never used again.
    pub id: Id,
    /// The session, in whose log it stands.
    pub session: Id,
    /// The topmost session of its tree, where it is answered.
    pub root: Id,
    /// The task that it is about.
    pub task: Id,
    /// In which turn it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// For which version of the goal.
    pub goal: u32,
    /// Who asks, with the chain of those that handed the work down.
    pub principal: Principal,
    /// What it decides, in a word: one question for each at a time.
    pub topic: Name,
    /// The question, its options and what it affects: a payload.
    pub text: Digest,
    /// The ids of the options, in their order.
    pub options: Vec<Id>,
    /// The one that the loop recommends.
    pub recommended: Id,
    /// Where the question came from.
    pub origin: Origin,
    /// Who is to answer it.
    pub to: AskedOf,
    /// What became of it.
    pub state: QuestionState,
    /// The question that stands for this one, where two children asked the
    /// same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<Id>,
    /// The answer, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<QuestionAnswer>,
    /// The turn that was told how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<u64>,
    /// How many events made it what it is: what compare-and-set compares.
    pub version: u64,
    /// When it was asked, in milliseconds since 1970.
    pub opened_ms: u64,
    /// When it ends unanswered, in milliseconds since 1970. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// When it last changed, in milliseconds since 1970.
    pub changed_ms: u64,
}

/// Where a question came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Origin {
    /// The loop's own thinking.
    Loop,
    /// The output of a tool made the loop ask: whoever answers should know.
    ToolOutput {
        /// Of which action.
        action: Id,
    },
}

/// Who is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AskedOf {
    /// The agent of the root session.
    Root,
    /// A person.
    Person,
}

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionState {
    /// It waits.
    Pending,
    /// It was answered.
    Answered,
    /// Nobody answered in time.
    Expired,
    /// It was no longer needed.
    Withdrawn,
    /// The front end can't ask.
    Unsupported,
    /// Another question stands for it.
    Merged,
}

impl QuestionState {
    /// As it is stored and printed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Answered => "answered",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Unsupported => "unsupported",
            Self::Merged => "merged",
        }
    }
}

/// An answer, which is data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionAnswer {
    /// The option that was picked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<Id>,
    /// What was said: a payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Digest>,
    /// Who: a user, or the agent of the root session.
    pub by: Name,
    /// Whether it was an agent, and no person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agent: bool,
    /// Through which door.
    pub channel: Name,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// What can happen to a question.
#[expect(clippy::large_enum_variant, reason = "an event is written down and gone; nobody holds many of them")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum QuestionEvent {
    /// It was asked.
    Opened {
        /// What.
        asked: Question,
    },
    /// It was answered.
    Answered {
        /// What was said.
        answer: QuestionAnswer,
    },
    /// Nobody answered in time.
    Expired,
    /// It is no longer needed.
    Withdrawn {
        /// Why, in a word of ours.
        why: Name,
    },
    /// The front end can't ask.
    Unsupported {
        /// Which one.
        channel: Name,
    },
    /// The root passes it on to a person.
    PassedOn {
        /// Which agent did.
        by: Name,
    },
    /// Another question stands for it.
    Merged {
        /// Which one.
        into: Id,
        /// Which agent said so.
        by: Name,
    },
    /// The loop was told how it ended.
    Told {
        /// In which turn.
        turn: u64,
    },
}

impl QuestionEvent {
    /// Its name, as it is printed.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Opened { .. } => "question-opened",
            Self::Answered { .. } => "question-answered",
            Self::Expired => "question-expired",
            Self::Withdrawn { .. } => "question-withdrawn",
            Self::Unsupported { .. } => "question-unsupported",
            Self::PassedOn { .. } => "question-passed-on",
            Self::Merged { .. } => "question-merged",
            Self::Told { .. } => "question-told",
        }
    }
}
