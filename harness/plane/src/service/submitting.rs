//! The two levels of approval above an action: a loop's plan, and a result
//! that it wants accepted. Nothing runs; a decision is all that is asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use env_contracts::{
    ActionRequest, BoundFacts, Code, DerivedEffects, Digest, Id, Name, Observation, Outcome, Principal, Problem, Scope,
    Verdict, Wanted,
};
use glovebox_events::{Action, ActionState, AskedFor, Asks, Entry, PayloadRole, TaskEvent, Told, What};
use glovebox_policy::Decision;
use glovebox_runtime::Stop;
use glovebox_store::{ActionFilter, EventFilter, EventsOf};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::flight::{Flight, Halt, Step};
use super::{ActionService, ActionView, Asking, Submission, Submitted, TaskContext, asking, offers};
use crate::machine::FIRST_GOAL;
use crate::planning::Planned;
use crate::registry::{PLAN, RESULT};
use crate::watch::Watch;

/// What a loop plans to do.
#[derive(Debug, Clone, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanProposal {
    /// All of it, in a few sentences.
    pub summary: String,
    /// Its steps, in their order.
    pub steps: Vec<PlanStep>,
}

/// One step of a plan. That the plan is accepted gives no right to it.
#[derive(Debug, Clone, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanStep {
    /// What is done.
    pub title: String,
    /// With which capability, where that is known.
    #[serde(default)]
    pub capability: Option<Wanted>,
    /// With what rights, where that is known.
    #[serde(default)]
    pub scope: Option<Scope>,
    /// What it does to the world.
    pub effects: DerivedEffects,
}

/// What a loop made and wants accepted.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultProposal {
    /// What it made.
    pub artifact: Made,
    /// What it has to be like, in words.
    pub condition: String,
    /// What verifiers found: entries of the task's log. Each has to be about
    /// this very artifact and this very condition.
    pub evidence: Vec<Id>,
}

/// Something that was made.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Made {
    /// A stored artifact, by its URI.
    Artifact(String),
    /// Content that lies elsewhere, by its sha256.
    Content(Digest),
}

impl ResultProposal {
    /// The digest of the condition: what evidence has to name.
    pub fn condition_digest(&self) -> Digest {
        Digest::of(self.condition.as_bytes())
    }
}

impl ActionService {
    /// Asks for a decision on a loop's plan. The Observation's data says
    /// whether it was accepted, by whom and with what words. It holds for the
    /// goal that the task has now, and gives no right to any step.
    ///
    /// # Errors
    /// As of [`ActionService::submit`].
    pub async fn submit_plan(
        &self,
        principal: &Principal,
        context: TaskContext,
        proposal: PlanProposal,
        asking: Asking,
        watch: Arc<dyn Watch>,
        stop: &Stop,
    ) -> Result<Submitted, Problem> {
        let step = |step: &PlanStep| {
            let mut shown = json!({ "title": step.title, "effects": step.effects });
            if let Some(capability) = &step.capability {
                shown["capability"] = json!(capability);
            }
            if let Some(scope) = &step.scope {
                shown["scope"] = json!(scope);
            }
            shown
        };
        let steps: Vec<Value> = proposal.steps.iter().map(step).collect();
        let arguments = json!({ "summary": proposal.summary, "steps": steps });
        self.put_forward(principal, context, (Asks::Plan, PLAN, arguments), asking, watch, stop).await
    }

    /// Asks whether a result is accepted, as [`ActionService::submit_plan`]
    /// does for a plan.
    ///
    /// # Errors
    /// As of [`ActionService::submit`]; `artifact-unknown`; `evidence-stale`
    /// for what is about something else, or is none.
    pub async fn submit_result(
        &self,
        principal: &Principal,
        context: TaskContext,
        proposal: ResultProposal,
        asking: Asking,
        watch: Arc<dyn Watch>,
        stop: &Stop,
    ) -> Result<Submitted, Problem> {
        let artifact = match &proposal.artifact {
            Made::Artifact(uri) => {
                let unknown = |why: String| Problem::new(Code::ArtifactUnknown, why);
                let parsed = uri.parse().map_err(|_| unknown(format!("`{}` is no artifact", uri.escape_debug())))?;
                let record = self.parts.artifacts.record(&parsed).await.map_err(|error| Problem::of(&error))?;
                json!({ "uri": uri, "sha256": record.sha256 })
            }
            Made::Content(sha256) => json!({ "sha256": sha256 }),
        };
        let condition = proposal.condition_digest();
        let revision = artifact["sha256"].as_str().unwrap_or_default().to_owned();
        let entries = self.entries(principal, &context.task, &proposal.evidence)?;
        let mut evidence = Vec::new();
        for id in &proposal.evidence {
            let entry = entries.get(id);
            let holds = entry.and_then(|entry| counts(entry, &revision, &condition)).ok_or_else(|| stale(id, entry))?;
            let by = entry.map(|entry| entry.by.clone());
            evidence.push(json!({ "entry": id, "by": by, "holds": holds }));
        }
        let arguments = json!({
            "artifact": artifact,
            "condition": { "sha256": condition, "text": proposal.condition },
            "evidence": evidence,
        });
        self.put_forward(principal, context, (Asks::Result, RESULT, arguments), asking, watch, stop).await
    }

    /// The newest plan of a task that was accepted for the goal that the task
    /// has now. A plan for another goal is none any more.
    ///
    /// # Errors
    /// `task-unknown`, and those of the store.
    pub fn accepted_plan(&self, principal: &Principal, task: &Id) -> Result<Option<ActionView>, Problem> {
        let task = self.known_task(principal, task)?;
        let mut filter = ActionFilter {
            session: Some(task.session.clone()),
            task: Some(task.id.clone()),
            states: vec![ActionState::Succeeded],
            ..ActionFilter::default()
        };
        let holds =
            |action: &Action| action.asks == Asks::Plan && action.goal.unwrap_or(FIRST_GOAL) == task.goal.version;
        loop {
            let page = self.parts.store.actions(&principal.tenant, &filter)?;
            if let Some(found) = page.items.into_iter().find(holds) {
                return self.view(found).map(Some);
            }
            match page.next {
                Some(next) => filter.after = Some(next),
                None => return Ok(None),
            }
        }
    }

    async fn put_forward(
        &self,
        principal: &Principal,
        context: TaskContext,
        (asks, name, mut arguments): (Asks, &str, Value),
        asking: Asking,
        watch: Arc<dyn Watch>,
        stop: &Stop,
    ) -> Result<Submitted, Problem> {
        let wanted: Wanted = name.parse().unwrap_or_else(|error| unreachable!("a name of ours: {error}"));
        let tool = self.capability(principal, &wanted)?;
        let flight = loop {
            let task = self.parts.store.task(&principal.tenant, &context.task)?.record;
            let goal = task.map_or(FIRST_GOAL, |task| task.goal.version);
            arguments["goal"] = json!(goal);
            let submission = Submission {
                principal: principal.clone(),
                context: context.clone(),
                request: ActionRequest::new(wanted.clone(), arguments.clone()),
                received: None,
                workspace: None,
                inputs: BTreeMap::new(),
                asking,
                held: false,
            };
            let flight = Flight::begin(&self.parts, submission.opening()?, tool.clone(), asks)?;
            watch.begun(flight.journal.id());
            // The goal may have become another in between.
            if flight.standing.goal.is_none_or(|now| now == goal) {
                break flight;
            }
        };
        Box::pin(self.go_on(flight, watch, stop)).await
    }

    /// What is about a plan or a result: policy was asked, and a person is
    /// where it says so.
    pub(super) async fn ask_for_decision(
        &self,
        flight: &mut Flight,
        planned: &Planned,
        decision: &Decision,
    ) -> Result<Step, Halt> {
        // Nothing is opened for it: what is decided on stands in the arguments.
        let facts = BoundFacts::default();
        let intent = planned.plan.intent(&facts);
        let digest = planned.plan.digest(&intent);
        let payload = flight.journal.payload(PayloadRole::Facts, &facts);
        let what = What::Bound { intent: intent.clone(), digest: digest.clone(), facts: payload };
        flight.journal.event(self.now_ms(), what)?;
        flight.story.bound(&intent, &digest, Vec::new());
        if decision.verdict == Verdict::Allow {
            let by = super::halting::word("policy");
            return self.accepted(flight, &by, None).await.map(|observation| Step::Done(Box::new(observation)));
        }
        self.declined_before(flight, &intent)?;
        if self.nobody_decides(flight, decision) {
            return Err(asking::unattended(decision).into());
        }
        let approval = self.new_approval(flight, decision, (intent, digest), AskedFor::Policy, offers::decisions());
        self.put_question(flight, approval).await
    }

    /// Ends what was accepted: for the goal that it was asked for, or not at
    /// all.
    pub(super) async fn accepted(
        &self,
        flight: &mut Flight,
        by: &Name,
        words: Option<&str>,
    ) -> Result<Observation, Halt> {
        flight.story.0.data = verdict(true, by, words);
        flight.journal.mark();
        for standing in flight.standing.conditions(flight.action(), true) {
            flight.journal.condition(standing);
        }
        flight.journal.condition(glovebox_store::Condition::NotHalted);
        self.end(flight, Outcome::succeeded(None)).await
    }

    /// Of these entries of a task's log those that there are.
    fn entries(&self, principal: &Principal, task: &Id, ids: &[Id]) -> Result<BTreeMap<Id, Entry>, Problem> {
        let mut found = BTreeMap::new();
        if ids.is_empty() {
            return Ok(found);
        }
        let task = self.known_task(principal, task)?;
        let mut after = 0;
        loop {
            let filter = EventFilter { of: EventsOf::Task(task.id.clone()), after, limit: 0 };
            let page = self.parts.store.events(&principal.tenant, &filter)?;
            let Some(last) = page.last() else { return Ok(found) };
            after = last.seq;
            for logged in page {
                if let What::Task { event: TaskEvent::Told { entry }, .. } = logged.event.what
                    && ids.contains(&entry.id)
                {
                    found.insert(entry.id.clone(), entry);
                }
            }
        }
    }
}

/// What the Observation of a decision says.
pub(super) fn verdict(accepted: bool, by: &Name, words: Option<&str>) -> Value {
    json!({ "accepted": accepted, "by": by, "words": words })
}

/// What an entry found of this very revision, held against this very
/// condition. `None`: it is about something else.
fn counts(entry: &Entry, revision: &str, condition: &Digest) -> Option<bool> {
    match &entry.what {
        Told::Verified { holds, revision: Some(of), condition: Some(against), .. }
            if of == revision && against == condition =>
        {
            Some(*holds)
        }
        _ => None,
    }
}

fn stale(id: &Id, entry: Option<&Entry>) -> Problem {
    let message = match entry {
        Some(entry) if matches!(entry.what, Told::Verified { .. }) => {
            format!("entry `{id}` is about another revision of the result, or was held against another condition")
        }
        Some(entry) => format!("entry `{id}` is `{}`, and no verifier's", entry.what.name()),
        None => format!("the task has no entry `{id}`"),
    };
    Problem::new(Code::EvidenceStale, message)
}
