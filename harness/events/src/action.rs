//! What an action is now: the sum of its events.

use std::fmt;

use env_contracts::{
    CapabilityRef, Code, DerivedEffects, Digest, Id, Name, Outcome, OutcomeKind, Principal, SideEffects, Verdict,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Approval, ApprovalState, Previewed};

/// Where an action is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionState {
    /// It was asked for.
    Requested,
    /// There is a plan for it.
    Validated,
    /// A person decides.
    WaitingApproval,
    /// It may run, and whoever holds the request has to claim it.
    Authorized,
    /// It runs.
    Running,
    /// It ended well.
    Succeeded,
    /// It ended otherwise.
    Failed,
    /// It was stopped, before or while it ran.
    Cancelled,
}

impl ActionState {
    /// As it is stored and printed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Validated => "validated",
            Self::WaitingApproval => "waiting_approval",
            Self::Authorized => "authorized",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing can happen any more.
    pub const fn ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

impl fmt::Display for ActionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Asks {
    /// That it runs.
    #[default]
    Run,
    /// A permission for later requests; nothing runs.
    Permission,
    /// A decision on the loop's plan; nothing runs.
    Plan,
    /// A decision on what was made; nothing runs.
    Result,
}

impl Asks {
    /// Whether something runs once it is allowed: otherwise the answer is all
    /// that was asked for.
    pub fn runs(self) -> bool {
        self == Self::Run
    }

    pub(crate) fn is_run(&self) -> bool {
        self.runs()
    }
}

/// What an action is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Its id.
    pub id: Id,
    /// The session, in whose log it stands.
    pub session: Id,
    /// The task that it belongs to.
    pub task: Id,
    /// The turn of the task in which it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The version of the task's goal that it was asked, or asked again, for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<u32>,
    /// Who asks.
    pub principal: Principal,
    /// The capability.
    pub capability: CapabilityRef,
    /// What is asked for.
    #[serde(default, skip_serializing_if = "Asks::is_run")]
    pub asks: Asks,
    /// Which plan of it is the present one, counted from 1.
    pub revision: u32,
    /// Where it is.
    pub state: ActionState,
    /// How many events made it what it is: what compare-and-set compares.
    pub version: u64,
    /// The submission: a payload.
    pub submission: Digest,
    /// The other arguments or the narrower contract that a person gave: a
    /// payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<Digest>,
    /// The events or actions that caused it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<Id>,
    /// What the key of the request was claimed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyClaim>,
    /// Whether the door that took it goes on with it by itself once it was
    /// answered, also after a restart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// The plan: a payload. Absent: there is none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Digest>,
    /// What the plan lets it do to the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<DerivedEffects>,
    /// What policy last said about this plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<Verdict>,
    /// The digest of "the same thing again". Absent: nothing is bound yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Digest>,
    /// The digest of "this one, once".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The newest approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// What the tool's preview found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Previewed>,
    /// By what right it runs or ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<Right>,
    /// The process that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Id>,
    /// Somebody wants it to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopAsked>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// When it was asked for, in milliseconds since 1970.
    pub requested_ms: u64,
    /// When it last changed, in milliseconds since 1970.
    pub changed_ms: u64,
}

impl Action {
    /// The approval that waits for a person.
    pub fn pending(&self) -> Option<&Approval> {
        self.approval.as_ref().filter(|approval| approval.state == ApprovalState::Pending)
    }
}

/// The key of a request, claimed for an action: the same key with another
/// request is a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyClaim {
    /// The digest of tenant, user, agent, capability and key.
    pub scope: Digest,
    /// The digest of the canonical request.
    pub request: Digest,
}

/// By what right an action runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Right {
    /// A rule allows it.
    Policy,
    /// A person approved exactly this.
    Approval {
        /// Which approval.
        approval: Id,
    },
    /// A person allowed what this is one of.
    Grant {
        /// Which grant.
        grant: Id,
    },
}

/// Somebody wants an action to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopAsked {
    /// Who.
    pub by: Name,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Why, in a word of ours: `cancelled`, `task-stopped`, `halted`.
    pub why: Name,
    /// Until when it may end by itself, in milliseconds since 1970. Absent: it
    /// is stopped at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

/// How an action ended, without the words: those are in the Observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// The kind.
    pub kind: OutcomeKind,
    /// Which of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub which: Option<String>,
    /// The exit code of a command that completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<u32>,
    /// The error code. Absent: it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Whether the same request can succeed later unchanged.
    pub retryable: bool,
    /// The Observation: a payload.
    pub observation: Digest,
    /// Whether something outside the sandbox changed, as far as is known.
    pub side_effects: SideEffects,
    /// How long the tool ran, in microseconds.
    pub run_us: u64,
    /// Bytes of artifacts that it made.
    pub artifact_bytes: u64,
    /// Bytes that it wrote to standard output and error.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output_bytes: u64,
    /// Bytes that it sent and received outside.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub egress_bytes: u64,
    /// What it cost, in millionths of the operator's unit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost_micros: u64,
    /// How long it waited for people, in microseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting_us: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

impl End {
    /// The outcome without its words.
    pub fn of(outcome: &Outcome, observation: Digest, at_ms: u64) -> Self {
        Self {
            kind: outcome.kind,
            which: outcome.which.clone(),
            exit: outcome.exit,
            code: outcome.code,
            retryable: outcome.retryable,
            observation,
            side_effects: SideEffects::None,
            run_us: 0,
            artifact_bytes: 0,
            output_bytes: 0,
            egress_bytes: 0,
            cost_micros: 0,
            waiting_us: 0,
            at_ms,
        }
    }

    /// The state that an action is in after it.
    pub fn state(&self) -> ActionState {
        match (self.kind, self.code) {
            (_, None) => ActionState::Succeeded,
            (OutcomeKind::Interrupted, _) => ActionState::Cancelled,
            _ => ActionState::Failed,
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
