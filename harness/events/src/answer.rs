//! What a person can answer, and what one did.

use env_contracts::{Assurance, CapabilityRef, Digest, Id, Name, Scope, WorkspaceIdentity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// For how much an approval holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GrantScope {
    /// For this one action.
    Once,
    /// For what matches in the turn.
    Turn,
    /// For what matches in the task.
    Task,
    /// For what matches in the session.
    Session,
    /// For what matches, wherever the same user asks.
    Rule,
}

/// What happens besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// The task goes on.
    Continue,
    /// The task's other actions are cancelled, and it should not go on.
    StopTask,
}

/// Yes, no, or differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answered {
    /// It may run.
    Approve,
    /// It may not.
    Decline,
    /// With other arguments or less access: a new plan, decided anew.
    Edit,
}

/// One of the answers that are offered. We make them; whoever answers picks
/// one, and may narrow it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// Its name, such as `once` or `session`.
    pub id: Id,
    /// Yes or no.
    pub answer: Answered,
    /// For how much.
    pub scope: GrantScope,
    /// What happens besides.
    pub control: Control,
    /// What the grant would cover, where it makes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<Matcher>,
    /// How long the grant would hold, in milliseconds from the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts_ms: Option<u64>,
}

/// What a grant covers. Policy is asked again for everything that it covers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Matcher {
    /// The same thing again, to the last byte.
    Intent {
        /// The intent digest.
        intent: Digest,
    },
    /// This capability under this contract on this workspace, with any
    /// arguments but those named.
    Capability {
        /// Which one, in this version.
        capability: CapabilityRef,
        /// The sha256 of its component or image.
        artifact: Digest,
        /// The digest of the effective contract.
        contract: Digest,
        /// The workspace: this very folder, where it lies. Absent: it has
        /// none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<WorkspaceIdentity>,
        /// Arguments that must have these values.
        #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
        arguments: serde_json::Map<String, Value>,
    },
    /// More than the capability's own contract gives: whatever of a request
    /// goes beyond that has to lie inside this.
    Permission {
        /// Which one, in this version.
        capability: CapabilityRef,
        /// The sha256 of its component or image.
        artifact: Digest,
        /// What was granted, in the shape of a request's scope.
        scope: Box<Scope>,
    },
}

/// Who answered, and how sure one can be of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approver {
    /// The person: a registered approver's name, or the user as the channel
    /// knows them.
    pub name: Name,
    /// How sure.
    pub assurance: Assurance,
    /// Through which door: `cli`, `terminal`, later others.
    pub channel: Name,
}

/// An answer as it was recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// To which approval.
    pub approval: Id,
    /// Which offer was picked. `edit` where other arguments were given.
    pub offer: Id,
    /// Yes, no, or differently.
    pub answer: Answered,
    /// For how much.
    pub scope: GrantScope,
    /// What happens besides.
    pub control: Control,
    /// The plan digest that was on the screen.
    pub seen: Digest,
    /// What the person said: a payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<Digest>,
    /// The other arguments or the narrower contract: a payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<Digest>,
    /// Who.
    pub by: Approver,
    /// Their signature over all of this, from `console-login` upwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}
