//! Permission requests: more than a tool's contract gives, asked for by
//! itself. Nothing runs; what is granted counts for later requests.

use std::sync::Arc;

use env_contracts::{ApprovalNeed, Code, Contract, Limits, OutcomeKind, Principal, Problem, Scope, Verdict, Wanted};
use glovebox_events::{AskedFor, Asks, Matcher, PayloadRole, What};
use glovebox_policy::Decision;
use glovebox_runtime::Stop;
use glovebox_runtime::algebra;

use super::flight::{Flight, Halt, Step};
use super::{ActionService, Asking, Submission, Submitted, TaskContext, asking, offers};
use crate::observe::Refusal;
use crate::planning::Planned;
use crate::watch::Watch;

/// What somebody wants to be allowed.
pub struct PermissionRequest {
    /// Who asks, as the channel knows it.
    pub principal: Principal,
    /// What it belongs to.
    pub context: TaskContext,
    /// For which tool.
    pub capability: Wanted,
    /// What it is to have: the sections that are named, in place of its own.
    pub scope: Scope,
    /// Why, in the requester's words. Shown, never matched.
    pub reason: Option<String>,
    /// Whether the answer is waited for.
    pub asking: Asking,
}

impl ActionService {
    /// Asks for more than a tool's contract gives. The Observation says what
    /// was granted.
    ///
    /// # Errors
    /// As of [`ActionService::submit`]; `usage` where the tool has all of it
    /// already.
    pub async fn request_permission(
        &self,
        request: PermissionRequest,
        watch: Arc<dyn Watch>,
        stop: &Stop,
    ) -> Result<Submitted, Problem> {
        let tool = self.capability(&request.principal, &request.capability)?;
        if algebra::delta(&tool.manifest.contract, &request.scope).is_empty() {
            let message = format!("the contract of `{}` gives all of that already", tool.manifest.capability());
            return Err(Problem::new(Code::Usage, message));
        }
        let mut asked = env_contracts::ActionRequest::new(request.capability, serde_json::Value::Null);
        asked.arguments = serde_json::json!({});
        asked.purpose = request.reason;
        asked.scope = Some(request.scope);
        asked.approval = ApprovalNeed::Policy;
        asked.validate().map_err(|error| Problem::of(&error))?;
        let submission = Submission {
            principal: request.principal,
            context: request.context,
            request: asked,
            received: None,
            workspace: None,
            inputs: std::collections::BTreeMap::new(),
            asking: request.asking,
            held: false,
        };
        let flight = Flight::begin(&self.parts, submission.opening()?, tool, Asks::Permission)?;
        watch.begun(flight.journal.id());
        Box::pin(self.go_on(flight, watch, stop)).await
    }

    /// Opens the approval of a permission request. Policy was asked whether
    /// anybody may grant it at all.
    pub(super) async fn ask_for_permission(
        &self,
        flight: &mut Flight,
        planned: &Planned,
        decision: &Decision,
    ) -> Result<Step, Halt> {
        if self.nobody_decides(flight, decision) {
            return Err(asking::unattended(decision).into());
        }
        if decision.verdict != Verdict::Ask {
            let problem = Problem::new(Code::Usage, "a rule gives all of that already");
            return Err(Refusal::new(OutcomeKind::Completed, problem).into());
        }
        let scope = flight.kept.request.scope.clone().unwrap_or_default();
        let plan = &planned.plan;
        let matcher = Matcher::Permission {
            capability: plan.capability.clone(),
            artifact: plan.artifact.clone(),
            scope: Box::new(scope),
        };
        // Nothing is opened for it: the plan alone is what is asked for.
        let facts = env_contracts::BoundFacts::default();
        let intent = plan.intent(&facts);
        let digest = plan.digest(&intent);
        let payload = flight.journal.payload(PayloadRole::Facts, &facts);
        let what = What::Bound { intent: intent.clone(), digest: digest.clone(), facts: payload };
        flight.journal.event(self.now_ms(), what)?;
        let offers = offers::permissions(&matcher);
        let approval = self.new_approval(flight, decision, (intent, digest), AskedFor::Delta, offers);
        self.put_question(flight, approval).await
    }
}

/// What an approver gives of a permission: what was asked and what they named,
/// as far as both have it. What they did not name is not given.
///
/// # Errors
/// `usage` where nothing is left, or there is no permission to narrow.
pub(super) fn narrowed(matcher: &Matcher, to: &Scope, own: &Contract) -> Result<Matcher, Problem> {
    let Matcher::Permission { capability, artifact, scope } = matcher else {
        return Err(Problem::new(Code::Usage, "only a permission can be narrowed; edit the request instead"));
    };
    let both = algebra::narrow(&algebra::widen(own, scope), to);
    // A section that was not asked for is the tool's own, which it has anyway.
    let scope = Scope {
        schema: scope.schema,
        filesystem: named(&scope.filesystem, &to.filesystem, both.filesystem),
        network: named(&scope.network, &to.network, both.network),
        secrets: named(&scope.secrets, &to.secrets, both.secrets),
        identity: named(&scope.identity, &to.identity, both.identity),
        limits: named_limits(scope.limits.as_ref(), to.limits.as_ref(), both.limits),
        state: named(&scope.state, &to.state, both.state),
        isolation: named(&scope.isolation, &to.isolation, both.isolation),
        data: named(&scope.data, &to.data, both.data),
        audit: named(&scope.audit, &to.audit, both.audit),
        cleanup: named(&scope.cleanup, &to.cleanup, both.cleanup),
        wasm: named(&scope.wasm, &to.wasm, both.wasm),
    };
    if algebra::delta(own, &scope).is_empty() {
        return Err(Problem::new(Code::Usage, "of what was asked, nothing is left")
            .with_help("give a part of what is asked, or decline"));
    }
    Ok(Matcher::Permission { capability: capability.clone(), artifact: artifact.clone(), scope: Box::new(scope) })
}

fn named<T>(asked: &Option<T>, given: &Option<T>, both: T) -> Option<T> {
    (asked.is_some() && given.is_some()).then_some(both)
}

/// Each limit by itself: one that was not named stays the tool's own.
fn named_limits(asked: Option<&Limits>, given: Option<&Limits>, both: Limits) -> Option<Limits> {
    let (asked, given) = (asked?, given?);
    let mut out = Limits::default();
    macro_rules! each {
        ($($field:ident)+) => {
            $( if asked.$field.is_some() && given.$field.is_some() { out.$field = both.$field; } )+
        };
    }
    each!(wall idle cpu cpus memory pids storage inodes gpu output concurrency);
    Some(out)
}

#[cfg(test)]
mod tests {
    use env_contracts::Digest;

    use super::*;

    fn scope(text: &str) -> Scope {
        Scope::from_toml(text).unwrap()
    }

    #[test]
    fn what_is_given_is_never_more_than_what_was_asked() {
        let own = Contract::default();
        let asked =
            scope("[network]\negress = [{ host = \"a.example.com\", ports = [443] }]\n[limits]\nmemory = \"64MiB\"\n");
        let matcher = Matcher::Permission {
            capability: "a.b@1.0.0".parse().unwrap(),
            artifact: Digest::of(b"x"),
            scope: Box::new(asked.clone()),
        };
        let given = |to: &str| match narrowed(&matcher, &scope(to), &own) {
            Ok(Matcher::Permission { scope, .. }) => Some(*scope),
            _ => None,
        };
        let part = given("[network]\negress = [{ host = \"a.example.com\", ports = [443] }]\n").unwrap();
        assert!(part.limits.is_none(), "what was not named was given");
        let wider = given("[network]\negress = [{ host = \"**.example.com\", ports = [443] }]\n").unwrap();
        assert!(algebra::delta(&algebra::widen(&own, &asked), &wider).is_empty(), "{wider:?}");
        assert!(given("[network]\negress = [{ host = \"b.example.com\", ports = [443] }]\n").is_none());
        assert!(given("").is_none());
    }
}
