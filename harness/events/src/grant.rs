//! What a person allowed for more than once, and the operator's stop.

use env_contracts::{Id, Name, Principal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Approver, GrantScope, Matcher};

/// A lasting approval. It enters a decision as an approval with the source
/// `grant`; policy decides what that is worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Its id.
    pub id: Id,
    /// For whom: only the same tenant, user, agent and chain are covered.
    pub principal: Principal,
    /// In which session, for scopes that end with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Id>,
    /// In which task, for the scopes `turn` and `task`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Id>,
    /// In which turn of the task, for the scope `turn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// For how much.
    pub scope: GrantScope,
    /// What it covers.
    pub matcher: Matcher,
    /// Where it comes from: the approval and the action that it belonged to.
    pub approval: Id,
    /// The same.
    pub action: Id,
    /// Who gave it.
    pub by: Approver,
    /// The classes of approvers that they were in.
    pub classes: Vec<Name>,
    /// When, in milliseconds since 1970.
    pub made_ms: u64,
    /// Until when, in milliseconds since 1970.
    pub expires_ms: u64,
    /// When it was taken back, and by whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revoked>,
}

/// Who took a grant back, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Revoked {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Who.
    pub by: Name,
}

impl Grant {
    /// Whether it still holds at this moment.
    pub fn live(&self, now_ms: u64) -> bool {
        self.revoked.is_none() && now_ms < self.expires_ms
    }
}

/// The operator's stop: nothing is let past while it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Halt {
    /// Who.
    pub by: Name,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
