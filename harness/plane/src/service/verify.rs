//! After a run: whether it took effect, and what there is to do where it did
//! not.

use env_contracts::{
    CapabilityRef, Code, Manifest, NextKind, NextStep, Observation, Outcome, OutcomeKind, Problem, SideEffects,
    Verification, Verified,
};
use glovebox_runtime::Stop;
use serde_json::Value;

use super::ActionService;
use super::companion::{Companion, Errand, named};
use super::flight::Flight;

/// The longest evidence that stands in the Observation itself, in bytes of
/// JSON: what a model reads of a result. It is whole in its own Observation.
const MAX_EVIDENCE: usize = 16 << 10;

/// The longest reason of a verify capability that is handed on, in bytes.
const MAX_WHY: usize = 2000;

impl ActionService {
    /// Runs the verify capability of a tool that may have changed something.
    /// The action runs until it was verified: a process that dies in between
    /// leaves it `unknown`.
    pub(super) async fn verify(&self, flight: &mut Flight, arguments: &Value, outcome: &mut Outcome, stop: &Stop) {
        let Ok(tool) = flight.tool().cloned() else { return };
        let manifest = &tool.manifest;
        if matches!(outcome.kind, OutcomeKind::Interrupted | OutcomeKind::Unknown) {
            if outcome.kind == OutcomeKind::Unknown {
                flight.story.0.next = after_unknown(manifest);
            }
            return;
        }
        let changed = flight.story.0.effects.side_effects != SideEffects::None;
        let Some(capability) = manifest.verify.clone().filter(|_| changed && flight.companion.is_none()) else {
            return;
        };
        let seen = self.look_after(flight, &capability, arguments, stop).await;
        let verification = judged(capability, seen);
        match verification.verdict {
            Verified::Held => {}
            Verified::NotRun => {
                let why = verification.why.clone().unwrap_or_default();
                flight.story.notice("not-verified", format!("whether it took effect was not verified: {why}"));
            }
            Verified::Failed => {
                flight.story.0.next = after_failed(manifest);
                if outcome.code.is_none() {
                    *outcome = failed(&verification);
                }
            }
        }
        flight.story.0.verification = Some(verification);
    }

    async fn look_after(
        &self,
        flight: &Flight,
        capability: &CapabilityRef,
        arguments: &Value,
        stop: &Stop,
    ) -> Result<Observation, Problem> {
        let tool = self.companion(capability)?;
        let mut taken = named(&tool, arguments);
        if tool.input.names("result") {
            taken.insert("result".to_owned(), flight.story.0.data.clone());
        }
        let errand = Errand {
            role: Companion::Verify,
            capability: capability.clone(),
            principal: flight.principal.clone(),
            arguments: Value::Object(taken),
            limit: None,
        };
        self.send_out(flight, errand, stop).await
    }
}

/// What a verify capability's Observation says. Only its result does: one that
/// fails, or that says neither yes nor no, found nothing out.
fn judged(capability: CapabilityRef, seen: Result<Observation, Problem>) -> Verification {
    let not_run = |action, why: String| Verification {
        capability: capability.clone(),
        action,
        verdict: Verified::NotRun,
        why: Some(cut(&why)),
        evidence: Value::Null,
    };
    let seen = match seen {
        Ok(seen) => seen,
        Err(problem) => return not_run(None, problem.message),
    };
    if seen.outcome.code.is_some() {
        let why = seen.outcome.message.unwrap_or_else(|| seen.outcome.kind.to_string());
        return not_run(Some(seen.action_id), why);
    }
    let Some(holds) = seen.data.get("holds").and_then(Value::as_bool) else {
        let why = "its result has no `holds` that is true or false".to_owned();
        return not_run(Some(seen.action_id), why);
    };
    let why = seen.data.get("why").and_then(Value::as_str).map(cut);
    let short = seen.data.to_string().len() <= MAX_EVIDENCE;
    Verification {
        action: Some(seen.action_id),
        verdict: if holds { Verified::Held } else { Verified::Failed },
        why,
        evidence: if short { seen.data } else { Value::Null },
        capability,
    }
}

/// A tool's words as one line: they can't pass for a line of ours.
fn cut(text: &str) -> String {
    let text = text.replace(char::is_control, " ");
    let mut end = text.len().min(MAX_WHY);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end < text.len() { format!("{} […]", &text[..end]) } else { text }
}

/// The end of an action that did not do what it was to do.
fn failed(verification: &Verification) -> Outcome {
    let why = verification.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    let message =
        format!("it ran to its end, and `{}` found that it did not take effect{why}", verification.capability);
    Outcome::failed(OutcomeKind::Completed, Problem::new(Code::VerifyFailed, message)).which("verify-failed")
}

/// What there is to do where it did not take effect as it should have.
fn after_failed(manifest: &Manifest) -> Vec<NextStep> {
    let step = |kind, capability: Option<CapabilityRef>, why: &str| NextStep { kind, capability, why: why.to_owned() };
    let mut next = Vec::new();
    if let Some(repair) = &manifest.repair {
        next.push(step(NextKind::Repair, Some(repair.clone()), "it puts right what is half done"));
    }
    if let Some(compensate) = &manifest.compensate {
        next.push(step(NextKind::Compensate, Some(compensate.clone()), "it undoes what was done"));
    }
    next.push(step(NextKind::Escalate, None, "a person can look at what is there now"));
    next
}

/// What there is to do where nobody knows whether it took effect.
pub(super) fn after_unknown(manifest: &Manifest) -> Vec<NextStep> {
    let why = "whether it took effect is not known".to_owned();
    vec![match &manifest.verify {
        Some(verify) => NextStep { kind: NextKind::Verify, capability: Some(verify.clone()), why },
        None => NextStep { kind: NextKind::Escalate, capability: None, why },
    }]
}
