//! What follows a run: whether it took effect, and what there is to do next.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CapabilityRef, Id};

/// What a verify capability found after a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// Which capability was to look.
    pub capability: CapabilityRef,
    /// The action that looked. Absent: none could be asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Id>,
    /// What it found.
    pub verdict: Verified,
    /// Why, in its words, or why it did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Its typed result. `null` where there is none, or it is too long to stand
    /// here: it is in its own Observation then.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub evidence: Value,
}

/// Whether what was to be done is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verified {
    /// It is.
    Held,
    /// It is not.
    Failed,
    /// Nobody looked, or what came back says neither.
    NotRun,
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Held => "held",
            Self::Failed => "failed",
            Self::NotRun => "not run",
        })
    }
}

/// Something to do next. Nothing of it is done by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NextStep {
    /// What kind of step.
    pub kind: NextKind,
    /// The capability that does it. Absent: a person does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<CapabilityRef>,
    /// Why.
    pub why: String,
}

/// The kinds of next steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NextKind {
    /// Find out whether it took effect.
    Verify,
    /// Put right what is half done.
    Repair,
    /// Undo what was done.
    Compensate,
    /// Let a person look.
    Escalate,
}

impl fmt::Display for NextKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Verify => "verify",
            Self::Repair => "repair",
            Self::Compensate => "compensate",
            Self::Escalate => "escalate",
        })
    }
}
