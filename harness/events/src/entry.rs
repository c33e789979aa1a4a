//! What a loop, a verifier or a person records into the log of a task, so that
//! its story is whole.

use env_contracts::{Digest, Id, Name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its id: what later entries and actions name as their cause.
    pub id: Id,
    /// In which turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The entries, actions, questions or remarks that caused it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<Id>,
    /// Who recorded it: a user or an agent.
    pub by: Name,
    /// What it is.
    pub what: Told,
    /// The words or the document: a payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Digest>,
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Told {
    /// What the model said.
    Text,
    /// How far it is.
    Progress,
    /// What it plans to do.
    Plan,
    /// What it still has to do.
    Todo,
    /// A call of a model.
    ModelCall {
        /// Which model.
        model: String,
        /// Tokens that went in.
        input_tokens: u64,
        /// Tokens that came out.
        output_tokens: u64,
        /// What it cost, in millionths of the operator's unit.
        cost_micros: u64,
        /// The digest of the list of what was in its context.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<Digest>,
    },
    /// What a verifier found.
    Verified {
        /// Whether what it looked at holds.
        holds: bool,
        /// The revision that it looked at: of an object or a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<String>,
        /// The digest of the condition that it was held against.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        condition: Option<Digest>,
        /// The version of the goal that it counts for.
        goal: u32,
    },
    /// What came of it, as the loop sees it.
    Outcome,
    /// What a person thinks of it.
    Feedback,
}

impl Told {
    /// Its name, as it is printed.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Progress => "progress",
            Self::Plan => "plan",
            Self::Todo => "todo",
            Self::ModelCall { .. } => "model-call",
            Self::Verified { .. } => "verified",
            Self::Outcome => "outcome",
            Self::Feedback => "feedback",
        }
    }
}
