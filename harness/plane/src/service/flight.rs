//! An action while somebody carries it.

use std::sync::Arc;

use env_contracts::{Digest, Id, Observation, Outcome, Plan, Principal, Problem};
use glovebox_events::{Action, ActionState, Asks, LogKey, PayloadRole};
use glovebox_runtime::Stop;

use super::companion::Companion;
use super::journal::{Journal, Requested};
use super::looking;
use super::standing::{self, Standing};
use super::submission::{Asking, Edit, Kept, Opening};
use super::{ActionService, Parts, Submitted};
use crate::live::Listed;
use crate::observe::{Refusal, Story};
use crate::registry::Tool;
use crate::watch::Watch;

/// An action while somebody carries it: what it is, what was asked, and its
/// Observation as it grows.
pub(super) struct Flight {
    pub(super) journal: Journal,
    pub(super) kept: Kept,
    pub(super) principal: Principal,
    /// The tool; or why there is none any more. What ends without it ends all
    /// the same.
    tool: Result<Arc<Tool>, Problem>,
    /// Where it stands in its task.
    pub(super) standing: Standing,
    pub(super) story: Story,
    pub(super) asking: Asking,
    /// What changed since it was approved, where that is why it is asked
    /// again.
    pub(super) drift: Vec<String>,
    /// Whether the door was told that a person is asked.
    pub(super) told: Option<Id>,
    /// Whether it is carried by somebody who changed it and must not run it.
    pub(super) proposing: bool,
    /// What it is to another action, where it belongs to one.
    pub(super) companion: Option<Companion>,
    /// Lists its run for whoever follows it, until its end is written down.
    pub(super) live: Option<Listed>,
}

/// What comes next.
pub(super) enum Step {
    /// Look at the state and go on.
    Again,
    /// It ended.
    Done(Box<Observation>),
    /// It waits for a person, and nobody waits here.
    Left,
}

/// Why a step did not go through.
pub(super) enum Halt {
    /// Somebody else changed the action: look again.
    Changed,
    /// It ends this way.
    Refused(Refusal),
    /// It can't be written down.
    Failed(Problem),
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Problem> for Halt {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem.into())
    }
}

impl Flight {
    /// Of a request that was just made.
    pub(super) fn begin(parts: &Parts, opening: Opening, tool: Arc<Tool>, asks: Asks) -> Result<Self, Problem> {
        let Opening { principal, mut kept, key, asking, held } = opening;
        let now = parts.clock.now();
        let id = kept.request.action_id.clone().unwrap_or_else(|| parts.ids.next(now));
        let standing = Standing::find(parts, &principal, &mut kept.context)?;
        let log = LogKey { tenant: principal.tenant.clone(), session: kept.context.session.clone() };
        let mut journal = Journal::new(log, id.clone());
        let requested = Requested {
            task: kept.context.task.clone(),
            principal: principal.clone(),
            capability: tool.manifest.capability(),
            asks,
            parents: kept.request.parents.clone(),
            key,
            turn: kept.context.turn,
            goal: standing.goal,
            held,
        };
        let payload = journal.payload(PayloadRole::Submission, &kept);
        journal.event(now.unix_millis, requested.event(payload))?;
        let story = Story::new(id, tool.manifest.capability(), tool.registered.digest.clone(), &principal);
        let tool = Ok(tool);
        Ok(Self {
            journal,
            kept,
            principal,
            tool,
            standing,
            story,
            asking,
            drift: Vec::new(),
            told: None,
            proposing: false,
            companion: None,
            live: None,
        })
    }

    /// Of an action that was left.
    pub(super) fn of(parts: &Parts, action: Action, asking: Asking) -> Result<Self, Problem> {
        let mut kept: Kept = looking::payload(parts, &action, &action.submission)?;
        if let Some(edit) = &action.edit {
            kept = kept.edited(looking::payload::<Edit>(parts, &action, edit)?);
        }
        let wanted = env_contracts::Wanted {
            name: action.capability.name.clone(),
            version: Some(action.capability.version.clone()),
        };
        let tool = parts.registry.get(&wanted);
        let principal = action.principal.clone();
        let artifact = match (&tool, &action.plan) {
            (Ok(tool), _) => tool.registered.digest.clone(),
            (Err(_), Some(plan)) => looking::payload::<Plan>(parts, &action, plan)?.artifact,
            (Err(_), None) => Digest::of(b""),
        };
        let story = Story::new(action.id.clone(), action.capability.clone(), artifact, &principal);
        let task = parts.store.task(&principal.tenant, &action.task)?.record;
        let session = parts.store.session(&principal.tenant, &action.session)?;
        let standing = Standing::now(task.as_ref(), session.as_ref());
        if let Some(task) = &task {
            // Policy sees where the task is now.
            standing::described(task, &mut kept.context);
        }
        let journal = Journal::of(action);
        Ok(Self {
            journal,
            kept,
            principal,
            tool,
            standing,
            story,
            asking,
            drift: Vec::new(),
            told: None,
            proposing: false,
            companion: None,
            live: None,
        })
    }

    /// Its state, with what the store does not know yet.
    pub(super) fn state(&self) -> ActionState {
        self.journal.action().map_or(ActionState::Requested, |action| action.state)
    }

    /// The tool.
    pub(super) fn tool(&self) -> Result<&Arc<Tool>, Problem> {
        self.tool.as_ref().map_err(Clone::clone)
    }

    pub(super) fn action(&self) -> &Action {
        match self.journal.action() {
            Some(action) => action,
            None => unreachable!("a flight begins with its request"),
        }
    }

    /// Looks at what the store has of it now.
    pub(super) fn reload(&mut self, parts: &Parts) -> Result<(), Problem> {
        let known = parts.store.action(&self.principal.tenant, self.journal.id())?;
        let Some(action) = known else { return Ok(()) };
        let told = self.told.take();
        let drift = std::mem::take(&mut self.drift);
        let (proposing, companion, live) = (self.proposing, self.companion, self.live.take());
        *self = Self { told, drift, proposing, companion, live, ..Self::of(parts, action, self.asking)? };
        Ok(())
    }
}

impl ActionService {
    /// Carries an action on from wherever it is.
    pub(super) async fn go_on(
        &self,
        mut flight: Flight,
        watch: Arc<dyn Watch>,
        stop: &Stop,
    ) -> Result<Submitted, Problem> {
        loop {
            let step = match flight.state() {
                ActionState::Requested | ActionState::Validated => self.propose(&mut flight, &watch, stop).await,
                ActionState::WaitingApproval => self.wait(&mut flight, &*watch, stop).await,
                ActionState::Authorized => Box::pin(self.approved(&mut flight, &watch, stop)).await,
                ActionState::Running => self.join(&mut flight, stop).await,
                ActionState::Succeeded | ActionState::Failed | ActionState::Cancelled => {
                    return self.observation(flight.action()).map(Submitted::Done);
                }
            };
            match step {
                Ok(Step::Again) => {}
                Ok(Step::Done(observation)) => return Ok(Submitted::Done(*observation)),
                Ok(Step::Left) => return Ok(Submitted::Waiting(flight.action().clone())),
                Err(Halt::Changed) => {
                    if !flight.journal.is_recorded() && self.unknown(&flight)? {
                        return Err(self.lost(super::journal::Lost::Changed));
                    }
                    flight.reload(&self.parts)?;
                }
                Err(Halt::Refused(refusal)) => match self.refuse(&mut flight, refusal.0).await {
                    Ok(observation) => return Ok(Submitted::Done(observation)),
                    Err(Halt::Failed(problem)) => return Ok(Submitted::Done(unrecorded(flight, problem))),
                    Err(Halt::Changed | Halt::Refused(_)) => flight.reload(&self.parts)?,
                },
                Err(Halt::Failed(problem)) => return Ok(Submitted::Done(unrecorded(flight, problem))),
            }
        }
    }

    /// Whether the id of an action that is not written down is another's.
    fn unknown(&self, flight: &Flight) -> Result<bool, Problem> {
        Ok(self.parts.store.action(&flight.principal.tenant, flight.journal.id())?.is_some())
    }
}

/// The Observation of an action that can't be written down.
fn unrecorded(flight: Flight, problem: Problem) -> Observation {
    let outcome: Outcome = Refusal::from(problem).0;
    flight.story.finish(outcome)
}
