//! From what happened to the Observation.

use env_contracts::{
    Artifact, BoundFacts, CapabilityRef, Code, Content, Contract, DerivedEffects, Digest, Effects, Enforced, Evidence,
    Id, Notice, Observation, ObservationSchema, Outcome, OutcomeKind, Output, Principal, Problem, Provenance,
    SideEffects, StreamOutput, Times, Trust, Usage,
};
use glovebox_capture::{Body, Captured};
use glovebox_runtime::job::{End, JobUsage, Limit, Timer};
use serde_json::Value;

use crate::registry::Tool;

/// What the result's text for a model has at most, in bytes: more belongs
/// into an artifact.
const MAX_TEXT: usize = 16 << 10;

/// An action that ended before or beside its run, with the outcome's kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub Outcome);

impl Refusal {
    /// It ended this way for this reason.
    pub fn new(kind: OutcomeKind, problem: Problem) -> Self {
        Self(Outcome::failed(kind, problem))
    }

    /// The same, saying which of its kind.
    #[must_use]
    pub fn which(self, which: impl Into<String>) -> Self {
        Self(self.0.which(which))
    }
}

impl From<Problem> for Refusal {
    /// The kind that goes with a problem's code.
    fn from(problem: Problem) -> Self {
        let kind = match problem.code {
            Code::SchemaRejected | Code::ArgumentsInvalid => OutcomeKind::SchemaRejected,
            Code::PolicyDenied | Code::Halted => OutcomeKind::PolicyDenied,
            Code::Drift => OutcomeKind::Drift,
            Code::Busy | Code::RateLimited => OutcomeKind::Busy,
            Code::LimitHit => OutcomeKind::LimitHit,
            Code::BackendUnavailable
            | Code::IsolationUnavailable
            | Code::UpstreamUnreachable
            | Code::UpstreamInvalid
            | Code::UpstreamAddress
            | Code::UpstreamHeader => OutcomeKind::BackendUnavailable,
            Code::Interrupted => OutcomeKind::Interrupted,
            Code::ContractUnsatisfied
            | Code::ContractInvalid
            | Code::ToolUnknown
            | Code::DependencyUnmet
            | Code::PathOutsideMounts
            | Code::WorkspaceUnavailable
            | Code::ArtifactUnknown
            | Code::FileUnreadable
            | Code::ComponentImports
            | Code::ComponentExports
            | Code::ComponentInvalid
            | Code::ComponentTooLarge
            | Code::ImageUnknown
            | Code::ImageInvalid
            | Code::ImageCommand
            | Code::CompileFailed => OutcomeKind::ContractUnsatisfied,
            _ => OutcomeKind::BackendError,
        };
        Self::new(kind, problem)
    }
}

/// The Observation as it grows. It is complete at any time: what has not
/// happened is empty.
pub(crate) struct Story(pub(crate) Observation);

impl Story {
    pub(crate) fn new(action_id: Id, capability: CapabilityRef, artifact: Digest, principal: &Principal) -> Self {
        Self(Observation {
            schema: ObservationSchema::V1,
            action_id,
            capability,
            intent: None,
            plan: None,
            outcome: Outcome::succeeded(None),
            data: Value::Null,
            text: String::new(),
            output: Output::default(),
            artifacts: Vec::new(),
            effects: Effects { derived: DerivedEffects::None, side_effects: SideEffects::None },
            usage: Usage::default(),
            times: Times::default(),
            enforcement: Vec::new(),
            environment: None,
            evidence: Vec::new(),
            verification: None,
            next: Vec::new(),
            state_patch: None,
            notices: Vec::new(),
            provenance: Provenance {
                runtime_version: env!("CARGO_PKG_VERSION").to_owned(),
                backend: String::new(),
                artifact,
                principal: principal.clone(),
                sources: Vec::new(),
            },
            trust: Trust::Untrusted,
        })
    }

    pub(crate) fn planned(&mut self, derived: DerivedEffects, backend: &str, enforcement: Vec<Enforced>) {
        self.0.effects.derived = derived;
        self.0.provenance.backend = backend.to_owned();
        self.0.enforcement = enforcement;
    }

    /// A tool that gets less of its folders than it asks for may fail because
    /// of it; then the reader should not look for the fault elsewhere.
    pub(crate) fn narrowed(&mut self, asked: &Contract, effective: &Contract) {
        for mount in &asked.filesystem {
            let given = effective.filesystem.iter().find(|given| given.guest == mount.guest);
            let (guest, wanted) = (&mount.guest, mount.access);
            match given.map(|given| given.access) {
                Some(access) if access < wanted => self.notice(
                    "narrowed",
                    format!("the tool asks for {wanted} access to `{guest}`; this request gives it {access}"),
                ),
                None => self.notice("narrowed", format!("the tool asks for `{guest}`; this request does not give it")),
                Some(_) => {}
            }
        }
    }

    pub(crate) fn bound(&mut self, intent: &Digest, plan: &Digest, evidence: Vec<Evidence>) {
        self.0.intent = Some(intent.clone());
        self.0.plan = Some(plan.clone());
        self.0.provenance.sources = evidence.iter().map(|fact| fact.subject.clone()).collect();
        self.0.evidence = evidence;
    }

    /// Files in live folders whose content was fixed: part of the enforcement
    /// report, since it differs from their folder's.
    pub(crate) fn sealed(&mut self, facts: &BoundFacts) {
        let sealed = facts.paths.iter().filter_map(|(path, digest)| {
            Some(Enforced {
                clause: format!("filesystem[{path}]").parse().ok()?,
                value: format!("sha256 {}", digest.short()),
                enforced_by: "copy hashed when bound, read in place of the file".into(),
                content: Some(Content::Sealed),
            })
        });
        self.0.enforcement.extend(sealed);
    }

    /// What a run used; and, now that it ran, what it may have changed.
    pub(crate) fn ran(&mut self, usage: &JobUsage, tool: &Tool) {
        let micros = |span: std::time::Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        self.0.usage.wall_us = micros(usage.setup + usage.run + usage.teardown);
        self.0.usage.cpu_us = micros(usage.cpu);
        self.0.usage.memory_peak = usage.memory_peak;
        self.0.usage.bytes_read = usage.bytes_read;
        self.0.usage.bytes_written = usage.bytes_written;
        self.0.times.setup_us += micros(usage.setup);
        self.0.times.run_us = micros(usage.run);
        self.0.times.teardown_us = micros(usage.teardown);
        // A tool that goes on without what it was refused may still be wrong
        // because of it.
        for (denied, what) in [(usage.denied_memory, "memory"), (usage.denied_storage, "storage or entries")] {
            if denied > 0 {
                self.notice("limit-refused", format!("{denied} requests for more {what} were refused"));
            }
        }
        self.0.effects.side_effects = match self.0.effects.derived {
            DerivedEffects::None => SideEffects::None,
            _ if tool.manifest.effects.side_effects == SideEffects::Certain => SideEffects::Certain,
            _ => SideEffects::Possible,
        };
    }

    pub(crate) fn notice(&mut self, kind: &str, message: impl Into<String>) {
        self.0.notices.push(Notice::new(kind, message));
    }

    /// The finished Observation, with its text for a model.
    pub(crate) fn finish(mut self, mut outcome: Outcome) -> Observation {
        outcome.help = outcome.help.map(|help| with_name(help, self.0.capability.name.as_str()));
        // What ran and was cut off may have changed something: doing it again
        // may do it twice.
        if outcome.code.is_some() && self.0.effects.side_effects != SideEffects::None {
            outcome.retryable = false;
        }
        self.0.outcome = outcome;
        self.0.text = text(&self.0);
        self.0
    }
}

/// The general ways out say NAME where the tool's name belongs.
fn with_name(help: String, name: &str) -> String {
    ["glovebox tool show", "glovebox tool check"]
        .iter()
        .fold(help, |help, command| help.replace(&format!("`{command} NAME`"), &format!("`{command} {name}`")))
}

/// How a run's end is called. What the guest says comes along as data.
pub(crate) fn outcome(end: &End, tool: &Tool) -> Outcome {
    let failed = |kind, code, message: String| Outcome::failed(kind, Problem::new(code, message));
    match end {
        End::Returned { .. } => Outcome::succeeded(None),
        End::Exited { code: 0 } => Outcome::succeeded(Some(0)),
        End::Exited { code } => {
            let mut outcome =
                failed(OutcomeKind::Completed, Code::ToolFailed, format!("the tool ended with exit code {code}"));
            advise(&mut outcome, tool, &format!("exit:{code}"));
            outcome.exit = Some(*code);
            outcome
        }
        End::Failed(failure) => {
            let mut outcome =
                failed(OutcomeKind::Completed, Code::ToolFailed, failure.message.clone()).which(failure.kind.clone());
            outcome.retryable = failure.retryable;
            advise(&mut outcome, tool, &failure.kind);
            outcome
        }
        End::TimedOut(timer) => {
            let (which, message) = match timer {
                Timer::Wall => ("wall", "the action took longer than `limits.wall`"),
                Timer::Idle => ("idle", "the action said nothing for longer than `limits.idle`"),
                Timer::Cpu => ("cpu", "the action used more processor time than `limits.cpu`"),
            };
            failed(OutcomeKind::TimedOut, Code::TimedOut, message.to_owned()).which(which)
        }
        End::LimitHit(limit) => limit_hit(*limit),
        End::Trapped(text) => failed(OutcomeKind::Completed, Code::ToolTrapped, text.clone()).which("trap"),
        End::Interrupted => {
            failed(OutcomeKind::Interrupted, Code::Interrupted, "the action was interrupted".into()).which("run")
        }
        End::Refused(problem) => Refusal::from(problem.clone()).0,
        End::Lost(text) => {
            let problem = Problem::new(Code::Unknown, text.clone())
                .with_help("look whether it took effect, before it is done again");
            Outcome::failed(OutcomeKind::Unknown, problem).which("lost")
        }
        End::HostFailed(text) => failed(OutcomeKind::BackendError, Code::BackendError, text.clone()),
        End::Violation(text) => failed(OutcomeKind::SandboxViolation, Code::SandboxViolation, text.clone()),
    }
}

/// The manifest knows better what helps after a failure of this kind.
fn advise(outcome: &mut Outcome, tool: &Tool, kind: &str) {
    use env_contracts::Then;
    if let Some(known) = tool.manifest.errors.iter().find(|known| known.kind == kind) {
        let then = match known.then {
            Then::Retry => "try again later",
            Then::FixArguments => "correct the arguments",
            Then::Escalate => "ask a person",
        };
        outcome.help = Some(format!("{then}: {}", known.when));
        outcome.retryable |= known.then == Then::Retry;
    }
}

fn limit_hit(limit: Limit) -> Outcome {
    let (which, clause) = match limit {
        Limit::Memory => ("memory", true),
        Limit::Output => ("output", true),
        Limit::Storage => ("storage", true),
        Limit::Inodes => ("inodes", true),
        Limit::Instances => ("instances", false),
        Limit::Handles => ("handles", false),
        Limit::Stack => ("stack", false),
        Limit::HostCall => ("host-call", false),
    };
    let problem = if clause {
        Problem::new(Code::LimitHit, format!("the action ran into `limits.{which}`"))
            .with_help(format!("raise `limits.{which}` in the contract, within the ceiling, or give it less to do"))
    } else {
        Problem::new(
            Code::LimitHit,
            format!("the action ran into the limit on {which}, which is the same for all tools"),
        )
        .with_help("give it less to do at once; large data travels as files, with --input and /outputs")
    };
    Outcome::failed(OutcomeKind::LimitHit, problem).which(which)
}

/// A captured stream in its wire form.
pub(crate) fn stream<W>(captured: &Captured<W>, artifact: Option<&Artifact>) -> StreamOutput {
    let rendered = captured.render();
    let (text, base64) = match rendered.body {
        Body::Text(text) => (Some(text), None),
        Body::Base64(base64) => (None, Some(base64)),
    };
    StreamOutput {
        text,
        base64,
        total: rendered.total,
        omitted: rendered.omitted,
        omitted_at: (rendered.omitted > 0).then_some(rendered.cut as u64),
        artifact: artifact.map(|artifact| artifact.uri.clone()),
    }
}

/// The compact text for a model: how it ended, the result, what there is to
/// fetch. It says where something was left out.
fn text(observation: &Observation) -> String {
    let mut out = String::new();
    let outcome = &observation.outcome;
    if let Some(code) = outcome.code {
        out.push_str(&format!("{outcome} [{code}]: {}\n", outcome.message.as_deref().unwrap_or_default()));
        if let Some(help) = &outcome.help {
            out.push_str(&format!("what helps: {help}\n"));
        }
    }
    match &observation.data {
        Value::Null => {}
        Value::String(text) => push_cut(&mut out, text),
        data => push_cut(&mut out, &data.to_string()),
    }
    for artifact in &observation.artifacts {
        let name = artifact.name.escape_debug();
        out.push_str(&format!(
            "artifact {} ({name}, {} bytes, {})\n",
            artifact.uri, artifact.size, artifact.media_type
        ));
    }
    if let Some(verification) = &observation.verification {
        let why = verification.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        out.push_str(&format!("verification by {}: {}{why}\n", verification.capability, verification.verdict));
    }
    for step in &observation.next {
        let with = step.capability.as_ref().map_or_else(String::new, |capability| format!(" with {capability}"));
        out.push_str(&format!("next: {}{with}: {}\n", step.kind, step.why));
    }
    for notice in &observation.notices {
        out.push_str(&format!("notice: {}\n", notice.message));
    }
    out.truncate(out.trim_end().len());
    out
}

fn push_cut(out: &mut String, text: &str) {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.push_str(&text[..end]);
    if end < text.len() {
        out.push_str(&format!("\n[{} more bytes in `data`]", text.len() - end));
    }
    out.push('\n');
}
