//! A decision that waits for a person.

use env_contracts::{Digest, Id, Name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Answer, Offer};

/// Why a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AskedFor {
    /// Policy wants it.
    Policy,
    /// The requester wants it.
    Requester,
    /// The request goes beyond the tool's contract.
    Delta,
    /// What was approved is not what would run now.
    Drift,
}

/// A decision that waits for a person, or did. It belongs to one plan of one
/// action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// Its id: random, never used again.
    pub id: Id,
    /// Which plan of the action.
    pub revision: u32,
    /// The digest of "this one, once".
    pub digest: Digest,
    /// The digest of "the same thing again": equal intents share a card.
    pub intent: Digest,
    /// Why.
    pub asked_for: AskedFor,
    /// What changed since it was approved, where that is why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The rules that want it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The reasons that the rules give to people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Which classes of approvers may answer.
    pub classes: Vec<Name>,
    /// What they can answer.
    pub offers: Vec<Offer>,
    /// Whether a rule wants the tool's preview to be looked at first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preview: bool,
    /// What reviewers that are no persons said before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<Review>,
    /// When it was opened, in milliseconds since 1970.
    pub opened_ms: u64,
    /// When it ends unanswered. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// Nobody who may answer could be reached when it was opened, and so it
    /// ends soon.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nobody_reachable: bool,
    /// What became of it.
    pub state: ApprovalState,
    /// The answer, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

/// What became of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalState {
    /// It waits.
    Pending,
    /// Yes, and nobody has used it yet.
    Approved,
    /// Yes, and it was used.
    Consumed,
    /// No.
    Declined,
    /// Other arguments were given: the next plan has an approval of its own.
    Edited,
    /// Nobody answered in time, or nobody used the answer in time.
    Expired,
    /// It was no longer needed: the action was cancelled, or stopped by the
    /// operator.
    Withdrawn,
    /// What it was for changed: the next approval says how.
    Drifted,
}

impl ApprovalState {
    /// As it is stored and printed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Consumed => "consumed",
            Self::Declined => "declined",
            Self::Edited => "edited",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Drifted => "drifted",
        }
    }
}

/// What a tool's preview found, before anything was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Previewed {
    /// The action that looked. Absent: none could, and the reason says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Id>,
    /// Whether it ended well.
    pub ok: bool,
    /// The version of the object that it saw: what is done is bound to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why there is none, or how it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a reviewer that is no person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// Of which approval.
    pub approval: Id,
    /// The class that it stands for.
    pub class: Name,
    /// The action that asked it. Absent: none could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Id>,
    /// What it said.
    pub verdict: Reviewed,
    /// Why, in its words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// The verdicts of a reviewer that is no person. Only `approved` lets anything
/// run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reviewed {
    /// Yes.
    Approved,
    /// No.
    Denied,
    /// It did not answer in time.
    TimedOut,
    /// It failed, or said what is no verdict.
    Failed,
}
