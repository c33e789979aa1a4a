//! What events name and don't hold.

use env_contracts::{Digest, Id};
use serde::{Deserialize, Serialize};

/// What a payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
}

/// Bytes that belong to an action and that can be erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// Whose they are.
    pub action: Id,
    /// What they are.
    pub role: PayloadRole,
    /// Their sha256, by which events name them.
    pub sha256: Digest,
    /// The bytes: JSON, or a person's text.
    pub bytes: Vec<u8>,
}

impl Payload {
    /// These bytes in this role.
    pub fn new(action: &Id, role: PayloadRole, bytes: Vec<u8>) -> Self {
        Self { action: action.clone(), role, sha256: Digest::of(&bytes), bytes }
    }

    /// This value as JSON.
    pub fn json(action: &Id, role: PayloadRole, value: &impl Serialize) -> Self {
        let bytes =
            serde_json::to_vec(value).unwrap_or_else(|error| unreachable!("our own types always serialise: {error}"));
        Self::new(action, role, bytes)
    }
}
