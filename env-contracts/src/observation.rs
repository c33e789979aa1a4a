//! The Observation: what came back.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Artifact, CapabilityRef, ClausePath, Code, DerivedEffects, Digest, Id, NextStep, Principal, SharedEnvironment,
    SideEffects, Verification,
};

/// The version tag of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ObservationSchema {
    /// The first.
    #[default]
    #[serde(rename = "glovebox/observation/v1")]
    V1,
}

/// What came back from an action. Everything in it that a tool had a hand in
/// is untrusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// The version of this format.
    pub schema: ObservationSchema,
    /// The action.
    pub action_id: Id,
    /// What was done.
    pub capability: CapabilityRef,
    /// The intent digest: equal for "the same thing again". Absent where the
    /// action ended before its inputs were bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Digest>,
    /// The plan digest: this one, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Digest>,
    /// How it ended.
    pub outcome: Outcome,
    /// The typed result; `null` where there is none.
    pub data: Value,
    /// The result and what else matters, compact, for a model.
    pub text: String,
    /// What it wrote to its standard streams.
    pub output: Output,
    /// What it made.
    pub artifacts: Vec<Artifact>,
    /// What it may have changed.
    pub effects: Effects,
    /// What it used.
    pub usage: Usage,
    /// Where the time went.
    pub times: Times,
    /// Each clause of the effective contract and what enforced it.
    pub enforcement: Vec<Enforced>,
    /// The environment whose folders it found and left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<SharedEnvironment>,
    /// Facts for a verifier.
    pub evidence: Vec<Evidence>,
    /// What the tool's verify capability found. Absent: it names none, or
    /// nothing can have changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// What there is to do now, where it did not end as it should have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<NextStep>,
    /// A change of the task's state that the tool proposes; never applied by
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_patch: Option<Value>,
    /// What a reader should know besides.
    pub notices: Vec<Notice>,
    /// Where all this comes from.
    pub provenance: Provenance,
    /// How far the content can be trusted.
    pub trust: Trust,
}

/// How an action ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The kind; kinds are never merged.
    pub kind: OutcomeKind,
    /// Which of its kind, where there are several: the timer, the limit, the
    /// clause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub which: Option<String>,
    /// The exit code of a command that completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<u32>,
    /// The error code. Absent: it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// What went wrong. May hold a tool's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The way out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Whether the same request can succeed later unchanged.
    pub retryable: bool,
}

impl Outcome {
    /// It completed and succeeded.
    pub fn succeeded(exit: Option<u32>) -> Self {
        Self {
            kind: OutcomeKind::Completed,
            which: None,
            exit,
            code: None,
            message: None,
            help: None,
            retryable: false,
        }
    }

    /// It ended this way, for this reason.
    pub fn failed(kind: OutcomeKind, problem: crate::Problem) -> Self {
        Self {
            kind,
            which: None,
            exit: None,
            code: Some(problem.code),
            message: Some(problem.message),
            help: Some(problem.help),
            retryable: problem.retryable,
        }
    }

    /// The same, saying which of its kind.
    #[must_use]
    pub fn which(mut self, which: impl Into<String>) -> Self {
        self.which = Some(which.into());
        self
    }

    /// The exit code of the CLI.
    pub fn exit_code(&self) -> u8 {
        self.code.map_or(0, Code::exit_code)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        match (&self.which, self.exit) {
            (Some(which), _) => write!(f, "({which})"),
            (None, Some(exit)) => write!(f, "({exit})"),
            (None, None) => Ok(()),
        }
    }
}

/// The kinds of end of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeKind {
    /// It ran to its end, well or with a failure of its own.
    Completed,
    /// Some of the work was done and some was not.
    Partial,
    /// Whether it took effect is not known.
    Unknown,
    /// The arguments or the result break the schema.
    SchemaRejected,
    /// A clause of the contract can't be met.
    ContractUnsatisfied,
    /// Policy denied it.
    PolicyDenied,
    /// A person declined.
    Declined,
    /// The decision was not made in time.
    Expired,
    /// Nobody is there to decide.
    Unattended,
    /// The front end can't do what is needed.
    Unsupported,
    /// Too many questions were asked.
    AskLimited,
    /// It was interrupted.
    Interrupted,
    /// A timer ran out.
    TimedOut,
    /// A limit was hit.
    LimitHit,
    /// What would run is not what was decided upon.
    Drift,
    /// The tool tried to leave the sandbox.
    SandboxViolation,
    /// There was no room.
    Busy,
    /// The worker is gone.
    WorkerLost,
    /// The backend does not answer.
    BackendUnavailable,
    /// The backend failed.
    BackendError,
}

impl fmt::Display for OutcomeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Completed => "completed",
            Self::Partial => "partial",
            Self::Unknown => "unknown",
            Self::SchemaRejected => "schema-rejected",
            Self::ContractUnsatisfied => "contract-unsatisfied",
            Self::PolicyDenied => "policy-denied",
            Self::Declined => "declined",
            Self::Expired => "expired",
            Self::Unattended => "unattended",
            Self::Unsupported => "unsupported",
            Self::AskLimited => "ask-limited",
            Self::Interrupted => "interrupted",
            Self::TimedOut => "timed-out",
            Self::LimitHit => "limit-hit",
            Self::Drift => "drift",
            Self::SandboxViolation => "sandbox-violation",
            Self::Busy => "busy",
            Self::WorkerLost => "worker-lost",
            Self::BackendUnavailable => "backend-unavailable",
            Self::BackendError => "backend-error",
        })
    }
}

/// The standard streams.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Standard output.
    pub stdout: StreamOutput,
    /// Standard error, the tool's log.
    pub stderr: StreamOutput,
}

/// What was kept of a stream: its beginning and its end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamOutput {
    /// The kept bytes, where they are UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The kept bytes in base64, where they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// The length of the whole stream in bytes.
    pub total: u64,
    /// How many bytes lie between the kept beginning and the kept end.
    pub omitted: u64,
    /// Where in the kept bytes they are left out, as a byte offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted_at: Option<u64>,
    /// The URI of the whole stream, where something was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
}

/// What an action may have changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Effects {
    /// Derived from the effective contract.
    pub derived: DerivedEffects,
    /// Whether something outside the sandbox changed, as far as can be known:
    /// `none` where nothing could.
    pub side_effects: SideEffects,
}

/// What an action used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Wall-clock time, in microseconds.
    pub wall_us: u64,
    /// Processor time, in microseconds.
    pub cpu_us: u64,
    /// The most memory held at once, in bytes.
    pub memory_peak: u64,
    /// Bytes read from files.
    pub bytes_read: u64,
    /// Bytes written to files.
    pub bytes_written: u64,
    /// Bytes of standard output and error.
    pub bytes_output: u64,
    /// What it cost, where it costs something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// What an action cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// The currency, such as `EUR`.
    pub currency: String,
    /// Millionths of it.
    pub micros: u64,
}

/// Where the time went, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// Waiting for room.
    pub queued_us: u64,
    /// Waiting for people.
    pub waiting_us: u64,
    /// Binding, loading, instantiating.
    pub setup_us: u64,
    /// The tool itself.
    pub run_us: u64,
    /// Collecting outputs and taking everything down.
    pub teardown_us: u64,
}

/// A clause and what enforced it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Enforced {
    /// Which clause.
    pub clause: ClausePath,
    /// What it asks for.
    pub value: String,
    /// The mechanism, or `dropped` where the contract let it degrade.
    pub enforced_by: String,
    /// For a folder: whether its content was fixed when the plan was bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
}

/// Whether content was fixed when the plan was bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// It is what it is when it is read.
    Live,
    /// It is what it was when the plan was bound.
    Sealed,
    /// It starts empty.
    Empty,
}

/// A fact for a verifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// What it is about, such as `input:table` or `/workspace/README.md`.
    pub subject: String,
    /// The sha256 that was bound or made.
    pub sha256: Digest,
    /// Its length in bytes, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// Something that a reader should know besides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Notice {
    /// A short stable name, such as `output-skipped` or `deprecated`.
    pub kind: String,
    /// What there is to know.
    pub message: String,
}

impl Notice {
    /// A notice of this kind.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into() }
    }
}

/// Where an observation comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The version of Glovebox.
    pub runtime_version: String,
    /// The backend.
    pub backend: String,
    /// The sha256 of the component or image.
    pub artifact: Digest,
    /// Who asked.
    pub principal: Principal,
    /// What the result was made from, by subject.
    pub sources: Vec<String>,
}

/// How far content can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Not at all: it is data, whatever it says.
    #[default]
    Untrusted,
}
