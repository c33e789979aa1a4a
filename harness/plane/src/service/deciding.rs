//! Asking policy, with all that it may see.

use std::path::PathBuf;
use std::sync::Arc;

use env_contracts::{ApprovalNeed, BoundFacts, Code, Label, Name, OutcomeKind, Principal, Problem, Verdict};
use glovebox_events::{Answer, DecidedAt, Grant, GrantScope, What};
use glovebox_policy::{
    BudgetFacts, Decision, DeltaFact, Facts, Given, GivenScope, LabelFacts, Live, PastFacts, Policy, Reason, Source,
    TaskFacts, ToolFacts,
};
use glovebox_store::TaskSeen;

use super::flight::{Flight, Halt};
use super::reviewing::is_reviewer;
use super::submission::Asking;
use super::{ActionService, binding};
use crate::observe::Refusal;
use crate::planning::Planned;
use crate::registry::{Registry, Tool};

/// Where policy comes from: it can change while the service runs.
pub trait PolicySource: Send + Sync {
    /// The one in force.
    fn current(&self) -> Arc<dyn Policy>;

    /// Looks whether another is to be in force. A bad one is not taken: the
    /// one before stays, and the problem says so.
    fn refresh(&self) -> Option<Problem>;
}

/// A policy in files, for the tools of a registry.
pub struct LivePolicy {
    live: Live,
    registry: Registry,
}

impl LivePolicy {
    /// Loads the policy of a folder, or the shipped one where there is none.
    /// `stamps` is a folder that remembers which policies were checked.
    ///
    /// # Errors
    /// `policy-invalid` with every problem, and those of the registry.
    pub fn load(dir: Option<PathBuf>, registry: Registry, stamps: Option<PathBuf>) -> Result<Self, Problem> {
        let tools = registry.manifests()?;
        let live = Live::load(dir, tools.iter(), stamps).map_err(|error| Problem::of(&error))?;
        Ok(Self { live, registry })
    }

    /// The files that it was read from: whoever can write them decides what
    /// runs.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.live.current().paths().to_vec()
    }
}

impl PolicySource for LivePolicy {
    fn current(&self) -> Arc<dyn Policy> {
        self.live.current()
    }

    fn refresh(&self) -> Option<Problem> {
        let tools = match self.registry.manifests() {
            Ok(tools) => tools,
            Err(problem) => return Some(problem),
        };
        self.live.reload(tools.iter()).err().map(|error| self.live.problem().unwrap_or_else(|| Problem::of(&error)))
    }
}

impl ActionService {
    /// Asks policy, and writes down what it said. A refusal ends the action.
    pub(super) fn decide(
        &self,
        flight: &mut Flight,
        planned: &Planned,
        bound: Option<&BoundFacts>,
        at: DecidedAt,
        approval: Option<(&Answer, &[Name])>,
    ) -> Result<Decision, Halt> {
        let sight = self.sight(flight, planned, bound)?;
        let facts = sight.facts(approval.map(|(answer, classes)| given(answer, classes)));
        let decision = self.parts.policy.current().decide(&facts);
        flight.journal.event(self.now_ms(), decided(at, &decision))?;
        match decision.verdict {
            Verdict::Deny => Err(denied(&decision, &flight.principal).into()),
            Verdict::Allow | Verdict::Ask => Ok(decision),
        }
    }

    /// Looks whether another policy is to be in force by now, and writes down
    /// what came of it.
    pub(super) async fn refresh_policy(&self, flight: &mut Flight) -> Result<(), Problem> {
        let source = &self.parts.policy;
        let before = source.current().revision();
        let refused = source.refresh();
        let now = source.current().revision();
        let what = match refused {
            Some(problem) => {
                flight.story.notice("policy-kept", format!("a changed policy was not taken: {}", problem.message));
                What::PolicyRefused { kept: now, problem: problem.message }
            }
            None if now != before => What::PolicyLoaded { policy: now },
            None => return Ok(()),
        };
        self.operate(&flight.principal.tenant, vec![what], Vec::new()).await
    }

    /// What people said to the same before, once it is known what the same is.
    pub(super) fn past(&self, flight: &Flight) -> Result<PastFacts, Problem> {
        let action = flight.action();
        let Some(intent) = &action.intent else { return Ok(PastFacts::default()) };
        let tally = self.parts.store.tally(&flight.principal.tenant, &action.task, intent)?;
        Ok(PastFacts { approvals: tally.approved, declines: tally.declined, grants: 0 })
    }

    /// What policy may see of an action now.
    pub(super) fn sight<'a>(
        &self,
        flight: &'a Flight,
        planned: &'a Planned,
        bound: Option<&'a BoundFacts>,
    ) -> Result<Sight<'a>, Problem> {
        let tenant = &flight.principal.tenant;
        let context = &flight.kept.context;
        Ok(Sight {
            tool: flight.tool()?,
            accepted: self.parts.registry.accepted(flight.tool()?),
            planned,
            delta: delta(planned),
            task: TaskFacts {
                session: &context.session,
                task: &context.task,
                purpose: context.purpose.as_deref(),
                stage: context.stage.as_deref(),
            },
            used: self.parts.store.task(tenant, &context.task)?,
            past: self.past(flight)?,
            attended: flight.asking != Asking::Never,
            // Whoever allowed it, by a rule, allowed something else.
            always_ask: flight.kept.request.approval == ApprovalNeed::Always
                || bound.is_some_and(|facts| facts.drifted.is_some()),
            inputs: binding::labels(&flight.kept, planned, tenant),
            bound,
        })
    }
}

/// The refusal of a policy that denies, with its reasons for whoever asked.
pub(super) fn denied(decision: &Decision, by: &Principal) -> Refusal {
    let reasons = if by.agent.is_none() { &decision.for_people } else { &decision.for_model };
    let message = if decision.errors.is_empty() {
        format!("policy denies it: {}", reasons.join("; "))
    } else {
        format!("policy could not be evaluated, and so denies it: {}", decision.errors.join("; "))
    };
    let problem = Problem::new(Code::PolicyDenied, message);
    let refusal = Refusal::new(
        OutcomeKind::PolicyDenied,
        match decision.reason {
            Reason::Forbidden => problem.with_help(
                "do not ask for the same again: no approval changes it; `glovebox policy explain` shows the rule, \
                 and the operator can change it",
            ),
            _ => problem,
        },
    );
    match decision.rules.first() {
        Some(rule) => refusal.which(rule.id.clone()),
        None => refusal,
    }
}

/// All that policy may see of an action, owned.
pub(super) struct Sight<'a> {
    pub(super) tool: &'a Tool,
    /// Whether its claims count.
    pub(super) accepted: bool,
    pub(super) planned: &'a Planned,
    pub(super) delta: Vec<DeltaFact>,
    pub(super) task: TaskFacts<'a>,
    pub(super) used: TaskSeen,
    pub(super) past: PastFacts,
    pub(super) attended: bool,
    pub(super) always_ask: bool,
    /// The highest label of its inputs, and the tenants that they are of.
    pub(super) inputs: (Label, Vec<Name>),
    pub(super) bound: Option<&'a BoundFacts>,
}

impl Sight<'_> {
    /// As policy takes it, with an approval or without.
    pub(super) fn facts<'b>(&'b self, approval: Option<Given<'b>>) -> Facts<'b> {
        let plan = &self.planned.plan;
        Facts {
            principal: &plan.principal,
            tool: ToolFacts {
                manifest: &self.tool.manifest,
                artifact: &self.tool.registered.digest,
                builtin: self.tool.builtin,
                accepted: self.accepted,
            },
            arguments: self.planned.arguments.value(),
            contract: &plan.contract,
            effects: plan.effects,
            delta: &self.delta,
            backend: &plan.backend,
            task: self.task,
            budget: budget(&self.used),
            past: self.past,
            attended: self.attended,
            bound: self.bound,
            labels: LabelFacts { inputs: self.inputs.0, tenants: &self.inputs.1 },
            secrets: &[],
            always_ask: self.always_ask,
            approval,
        }
    }
}

/// What the task has used so far, as policy takes it: tools and models.
fn budget(seen: &TaskSeen) -> BudgetFacts {
    let spent = seen.record.as_ref().map_or(0, |task| task.spent.cost_micros);
    BudgetFacts {
        actions: seen.used.actions,
        run_ms: seen.used.run_us / 1000,
        cost_micros: seen.used.cost_micros.saturating_add(spent),
        artifact_bytes: seen.used.artifact_bytes,
    }
}

/// What the plan asks beyond the tool's contract, as policy takes it.
pub(super) fn delta(planned: &Planned) -> Vec<DeltaFact> {
    let fact = |delta: &glovebox_runtime::algebra::Delta| DeltaFact {
        clause: delta.clause.clone(),
        asked: delta.asked.clone(),
        had: delta.had.clone(),
    };
    planned.delta.iter().map(fact).collect()
}

/// A person's answer, as policy takes it.
pub(super) fn given<'a>(answer: &'a Answer, classes: &'a [Name]) -> Given<'a> {
    Given {
        approver: answer.by.name.as_str(),
        assurance: answer.by.assurance,
        classes,
        source: if is_reviewer(answer) { Source::Reviewer } else { Source::Person },
        scope: scope(answer.scope),
    }
}

/// A grant, as policy takes it.
pub(super) fn granted(grant: &Grant) -> Given<'_> {
    Given {
        approver: grant.by.name.as_str(),
        assurance: grant.by.assurance,
        classes: &grant.classes,
        source: Source::Grant,
        scope: scope(grant.scope),
    }
}

fn scope(scope: GrantScope) -> GivenScope {
    match scope {
        GrantScope::Once => GivenScope::Once,
        GrantScope::Turn => GivenScope::Turn,
        GrantScope::Task => GivenScope::Task,
        GrantScope::Session => GivenScope::Session,
        GrantScope::Rule => GivenScope::Rule,
    }
}

/// The event of a decision.
pub(super) fn decided(at: DecidedAt, decision: &Decision) -> What {
    What::Decided {
        at,
        verdict: decision.verdict,
        rules: decision.rules.iter().map(|rule| rule.id.clone()).collect(),
        policy: decision.revision.clone(),
    }
}
