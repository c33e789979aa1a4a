//! What events name and don't hold.

use env_contracts::{Digest, Id};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PayloadRole {
    /// The request with everything that is needed to carry it out later.
    Submission,
    /// The plan.
    Plan,
    /// What binding found.
    Facts,
    /// What a person said with an answer.
    Words,
    /// Other arguments or a narrower contract that a person gave.
    Edit,
    /// The Observation.
    Observation,
    /// A task's goal.
    Goal,
    /// A steer, a constraint or a reason.
    Remark,
    /// What a loop was told when it opened a turn.
    Start,
    /// What was recorded into a task's log.
    Entry,
    /// A question with its options.
    Question,
    /// What was said to a question.
    Answer,
}

/// Whose payload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// An action's.
    Action(Id),
    /// A task's.
    Task(Id),
}

/// Bytes that belong to an action or to a task and that can be erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// Whose they are.
    pub of: Owner,
    /// What they are.
    pub role: PayloadRole,
    /// Their sha256, by which events name them.
    pub sha256: Digest,
    /// The bytes: JSON, or a person's text.
    pub bytes: Vec<u8>,
}

impl Payload {
    /// These bytes in this role.
    pub fn new(of: Owner, role: PayloadRole, bytes: Vec<u8>) -> Self {
        Self { of, role, sha256: Digest::of(&bytes), bytes }
    }

    /// This value as JSON.
    pub fn json(of: Owner, role: PayloadRole, value: &impl Serialize) -> Self {
        let bytes =
            serde_json::to_vec(value).unwrap_or_else(|error| unreachable!("our own types always serialise: {error}"));
        Self::new(of, role, bytes)
    }
}
