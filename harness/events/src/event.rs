//! What happened.

use env_contracts::{CapabilityRef, DerivedEffects, Digest, Id, Name, Principal, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Answer, Approval, Asks, End, EnvironmentEvent, Grant, Halt, KeyClaim, Previewed, QuestionEvent, Review, Right,
    SessionEvent, StopAsked, TaskEvent,
};

/// Whose log: one for each session of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogKey {
    /// The tenant.
    pub tenant: Name,
    /// The session.
    pub session: Id,
}

/// Something that happened, before the store gave it its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// To which action; absent for what belongs to no one action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Id>,
    /// What.
    pub what: What,
}

/// An event in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Logged {
    /// In whose log.
    pub log: LogKey,
    /// Its number there: from 1, without gaps.
    pub seq: u64,
    /// What happened.
    pub event: Event,
    /// The sha256 over this and the hash of the event before.
    pub hash: Digest,
}

/// At which step policy was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedAt {
    /// On the plan alone: no file was opened.
    Plan,
    /// With what binding found.
    Bound,
    /// Right before the run.
    Claim,
}

/// What can happen.
#[expect(clippy::large_enum_variant, reason = "an event is written down and gone; nobody holds many of them")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum What {
    /// An action was asked for.
    Requested {
        /// The task.
        task: Id,
        /// Who asks.
        principal: Principal,
        /// Which capability.
        capability: CapabilityRef,
        /// What is asked for.
        #[serde(default, skip_serializing_if = "Asks::is_run")]
        asks: Asks,
        /// The submission: a payload.
        submission: Digest,
        /// The events or actions that caused it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parents: Vec<Id>,
        /// The claimed key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<KeyClaim>,
        /// In which turn of the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u64>,
        /// For which version of the task's goal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<u32>,
        /// Whether the door goes on with it by itself once it was answered.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        held: bool,
    },
    /// The requester still wants it, now that the task has another goal.
    Reaffirmed {
        /// For which version of the goal.
        goal: u32,
        /// In which turn of the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u64>,
    },
    /// The tool's preview was looked at, and what it found became part of the
    /// request: a new plan.
    Previewed {
        /// What it found.
        preview: Previewed,
        /// The arguments with what it found: a payload.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edit: Option<Digest>,
    },
    /// A reviewer that is no person was asked.
    Reviewed {
        /// What came of it.
        review: Review,
    },
    /// There is a plan.
    Planned {
        /// Which, counted from 1.
        revision: u32,
        /// The plan: a payload.
        plan: Digest,
        /// What it lets the action do to the world.
        effects: DerivedEffects,
        /// The backend.
        backend: String,
    },
    /// Policy was asked.
    Decided {
        /// When.
        at: DecidedAt,
        /// What it said.
        verdict: Verdict,
        /// The rules that decided.
        rules: Vec<String>,
        /// The digest of the policy.
        policy: Digest,
    },
    /// Everything that the plan names was opened and hashed.
    Bound {
        /// The digest of "the same thing again".
        intent: Digest,
        /// The digest of "this one, once".
        digest: Digest,
        /// What was found: a payload.
        facts: Digest,
    },
    /// A person is asked.
    ApprovalOpened {
        /// The approval.
        approval: Box<Approval>,
    },
    /// Somebody answered.
    ApprovalAnswered {
        /// The answer.
        answer: Box<Answer>,
    },
    /// Nobody answered in time, or nobody used the answer in time.
    ApprovalExpired {
        /// Which approval.
        approval: Id,
    },
    /// It is no longer needed.
    ApprovalWithdrawn {
        /// Which approval.
        approval: Id,
        /// Why, in a word of ours.
        why: Name,
    },
    /// What was approved is not what would run now.
    Drifted {
        /// Which approval it was.
        approval: Id,
        /// What changed, for people.
        changed: Vec<String>,
    },
    /// The right was used up, and the run begins.
    Claimed {
        /// By what right.
        right: Right,
        /// For which plan.
        digest: Digest,
        /// The process that runs it.
        holder: Id,
    },
    /// Somebody wants it to stop.
    StopAsked {
        /// Who, when and why.
        stop: StopAsked,
    },
    /// The process that ran it is gone.
    HolderLost {
        /// Which process.
        holder: Id,
    },
    /// It ended.
    Ended {
        /// How.
        end: End,
    },
    /// A person allowed something for more than once.
    GrantMade {
        /// What.
        grant: Box<Grant>,
    },
    /// It was taken back.
    GrantRevoked {
        /// Which grant.
        grant: Id,
        /// Who.
        by: Name,
    },
    /// Something happened to the session.
    Session {
        /// What.
        event: SessionEvent,
    },
    /// Something happened to a task.
    Task {
        /// Which one.
        task: Id,
        /// What.
        event: TaskEvent,
    },
    /// Something happened to a question.
    Question {
        /// Which one.
        question: Id,
        /// Of which task.
        task: Id,
        /// What.
        event: QuestionEvent,
    },
    /// Something happened to an environment that actions share.
    Environment {
        /// Which one.
        environment: Id,
        /// Whose it is.
        owner: Box<Principal>,
        /// What.
        event: EnvironmentEvent,
    },
    /// The operator stopped everything.
    Halted {
        /// Who, when and why.
        halt: Halt,
    },
    /// The operator let things go on.
    Released {
        /// Who.
        by: Name,
    },
    /// Another policy is in force.
    PolicyLoaded {
        /// Its digest.
        policy: Digest,
    },
    /// A policy was refused, and the one before stays in force.
    PolicyRefused {
        /// The one in force.
        kept: Digest,
        /// Why.
        problem: String,
    },
    /// Words and contents of an action were erased.
    Erased {
        /// Who.
        by: Name,
    },
}

impl What {
    /// Its name, as it is stored and printed.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Requested { .. } => "requested",
            Self::Planned { .. } => "planned",
            Self::Decided { .. } => "decided",
            Self::Bound { .. } => "bound",
            Self::ApprovalOpened { .. } => "approval-opened",
            Self::ApprovalAnswered { .. } => "approval-answered",
            Self::ApprovalExpired { .. } => "approval-expired",
            Self::ApprovalWithdrawn { .. } => "approval-withdrawn",
            Self::Drifted { .. } => "drifted",
            Self::Claimed { .. } => "claimed",
            Self::StopAsked { .. } => "stop-asked",
            Self::HolderLost { .. } => "holder-lost",
            Self::Ended { .. } => "ended",
            Self::Reaffirmed { .. } => "reaffirmed",
            Self::Previewed { .. } => "previewed",
            Self::Reviewed { .. } => "reviewed",
            Self::Session { event } => event.name(),
            Self::Task { event, .. } => event.name(),
            Self::Question { event, .. } => event.name(),
            Self::Environment { event, .. } => event.name(),
            Self::GrantMade { .. } => "grant-made",
            Self::GrantRevoked { .. } => "grant-revoked",
            Self::Halted { .. } => "halted",
            Self::Released { .. } => "released",
            Self::PolicyLoaded { .. } => "policy-loaded",
            Self::PolicyRefused { .. } => "policy-refused",
            Self::Erased { .. } => "erased",
        }
    }
}
