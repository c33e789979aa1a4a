//! What people say to a task: a direction, a constraint, another goal, another
//! stage. The verb says which it is; no model does.

use env_contracts::{Code, Id, Observation, Outcome, Principal, Problem};
use glovebox_events::{Goal, PayloadRole, Remark, Task, TaskEvent, What};
use glovebox_store::{ActionFilter, Condition, Record, TaskFilter, Thing};

use super::deed::Deed;
use super::flight::{Flight, Halt};
use super::journal::Lost;
use super::tasks::{bounded, log_of, speaker, words};
use super::{ActionService, NewTask, standing, unknown_session, unknown_task};
use crate::machine::{Change, task_step};
use crate::observe::Story;

/// The most remarks that wait for a turn, and the most constraints: a loop that
/// never comes back must not fill the store.
const MAX_REMARKS: usize = 200;

/// What somebody says to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saying<'a> {
    /// A direction: it reaches the loop at its next step.
    Steer(&'a str),
    /// Something that has to hold besides the goal: the loop has to plan anew.
    Constrain(&'a str),
    /// Another goal: plans are void, and what a person approved and nobody ran
    /// yet has to be asked for again by the loop.
    Goal(&'a str),
    /// Another stage: a fact for policy.
    Stage(Option<&'a str>),
}

impl ActionService {
    /// Says something to a task. For people, and for whoever runs the loop;
    /// an agent directs nobody.
    ///
    /// # Errors
    /// `not-eligible` for an agent, `task-unknown`, `task-closed`, `usage` for
    /// words that are too long or too many.
    pub async fn say(&self, principal: &Principal, id: &Id, saying: Saying<'_>) -> Result<Task, Problem> {
        directs(principal)?;
        let (what, text) = match saying {
            Saying::Steer(text) => ("steer", Some(text)),
            Saying::Constrain(text) => ("constraint", Some(text)),
            Saying::Goal(text) => ("goal", Some(text)),
            Saying::Stage(text) => ("stage", text),
        };
        bounded(what, text)?;
        let task = loop {
            let task = self.known_task(principal, id)?;
            standing::open(&task)?;
            self.not_closed(&task)?;
            match saying {
                Saying::Steer(_) if task.steers.len() >= MAX_REMARKS => {
                    let message = format!("there are {MAX_REMARKS} remarks that no turn read yet");
                    return Err(Problem::new(Code::Usage, message));
                }
                Saying::Constrain(_) if task.constraints.len() >= MAX_REMARKS => {
                    return Err(Problem::new(Code::Usage, format!("there are {MAX_REMARKS} constraints"))
                        .with_help("say another goal, in which they are contained"));
                }
                _ => {}
            }
            let mut deed = Deed::new(log_of(&task), self.now_ms().max(task.changed_ms));
            let at_ms = deed.at_ms();
            let remark = |deed: &mut Deed, text: &str| Remark {
                id: self.parts.ids.next(self.parts.clock.now()),
                text: deed.text(id, PayloadRole::Remark, text),
                by: speaker(principal),
                at_ms,
            };
            let event = match saying {
                Saying::Steer(text) => TaskEvent::Steered { steer: remark(&mut deed, text) },
                Saying::Constrain(text) => TaskEvent::Constrained { constraint: remark(&mut deed, text) },
                Saying::Goal(text) => {
                    let version = task.goal.version + 1;
                    let text = deed.text(id, PayloadRole::Goal, text);
                    TaskEvent::GoalChanged { goal: Goal { version, text, by: speaker(principal), at_ms } }
                }
                Saying::Stage(stage) => TaskEvent::StageSet { stage: stage.map(str::to_owned) },
            };
            let said = deed.task(Some(task), id, event)?;
            if matches!(saying, Saying::Goal(_)) {
                self.withdraw_questions(&mut deed, &said, Change::Goal, "goal-changed")?;
            }
            match deed.commit(&*self.parts.store).await {
                Ok(()) => break said,
                Err(Lost::Changed) => {}
                Err(lost) => return Err(self.lost(lost)),
            }
        };
        if matches!(saying, Saying::Goal(_)) {
            self.void(&task, &speaker(principal), Change::Goal, |action| standing::outlived(&task, action)).await?;
        }
        Ok(task)
    }

    /// Steers what is done in a session: the named task, or the one that is
    /// meant.
    ///
    /// # Errors
    /// As of [`ActionService::say`] and [`ActionService::task_of`];
    /// `task-unknown` for a task of another session.
    pub async fn steer(
        &self,
        principal: &Principal,
        session: &Id,
        task: Option<&Id>,
        text: &str,
    ) -> Result<Task, Problem> {
        // Before anything is opened for it.
        directs(principal)?;
        bounded("steer", Some(text))?;
        let task = match task {
            Some(id) => self.task_in(principal, session, id)?,
            None => self.task_of(principal, session).await?,
        };
        self.say(principal, &task.id, Saying::Steer(text)).await
    }

    /// A task of this very session.
    ///
    /// # Errors
    /// `task-unknown`, also for one of another session.
    pub fn task_in(&self, principal: &Principal, session: &Id, id: &Id) -> Result<Task, Problem> {
        let task = self.known_task(principal, id)?;
        if task.session == *session { Ok(task) } else { Err(unknown_task(id)) }
    }

    /// The task of a session that is meant where none is named: the only one
    /// that is open, or the one that a client without tasks works in, which is
    /// opened here if nobody did.
    ///
    /// # Errors
    /// `session-unknown` where nothing was ever asked in it; `usage` where there
    /// are several.
    pub async fn task_of(&self, principal: &Principal, session: &Id) -> Result<Task, Problem> {
        let filter = TaskFilter { session: Some(session.clone()), open: true, ..TaskFilter::default() };
        let mut open = self.tasks(principal, &filter)?.items;
        match (open.pop(), open.is_empty()) {
            (Some(task), true) => Ok(task),
            (Some(_), false) => Err(Problem::new(Code::Usage, format!("session `{session}` has several open tasks"))
                .with_help("name one with --task; `glovebox task list` shows them")),
            (None, _) => {
                // One that nobody opened is known by what was asked in it.
                let filter = ActionFilter { session: Some(session.clone()), limit: 1, ..ActionFilter::default() };
                let opened = self.parts.store.session(&principal.tenant, session)?.map(|opened| opened.principal);
                let works = match opened.filter(|opened| self.looks_at(principal, opened)) {
                    Some(opened) => Some(opened),
                    None => self.actions(principal, filter)?.items.pop().map(|action| action.principal),
                };
                let Some(works) = works else { return Err(unknown_session(session)) };
                // Who looks over the tenant opens it for whoever works there:
                // in a task of others nobody could go on.
                let user = Principal { user: works.user, ..principal.clone() };
                let principal = if self.oversees(principal) { &user } else { principal };
                let new = NewTask {
                    id: Some(session.clone()),
                    session: session.clone(),
                    goal: IMPLICIT_GOAL.to_owned(),
                    purpose: None,
                    stage: None,
                    budget: glovebox_events::Budget::default(),
                };
                let task = self.open_task(principal, new).await;
                task.map_err(|problem| match problem.code {
                    Code::TaskConflict => {
                        Problem::new(Code::TaskUnknown, format!("session `{session}` has no open task"))
                            .with_help("`glovebox task new` opens one")
                    }
                    _ => problem,
                })
            }
        }
    }
}

impl ActionService {
    /// Ends an action that did not run, before the eyes of its requester: who
    /// has no turns is told with it what was said meanwhile.
    pub(super) async fn refuse(&self, flight: &mut Flight, outcome: Outcome) -> Result<Observation, Halt> {
        if flight.proposing {
            return self.end(flight, outcome).await;
        }
        let before = flight.story.0.clone();
        loop {
            flight.journal.mark();
            let mut story = Story(before.clone());
            self.said_since(flight, &mut story)?;
            flight.story = story;
            match self.end(flight, outcome.clone()).await {
                Err(Halt::Changed) if !self.overtaken(flight)? => flight.journal.back(),
                ended => return ended,
            }
        }
    }

    /// Whether somebody else changed the action itself.
    fn overtaken(&self, flight: &Flight) -> Result<bool, Problem> {
        let known = self.parts.store.action(&flight.principal.tenant, flight.journal.id())?;
        Ok(known.map_or(0, |action| action.version) != flight.journal.recorded())
    }

    /// What people said to a task whose loop has no turns: it is told with the
    /// next Observation, once.
    pub(super) fn said_since(&self, flight: &mut Flight, story: &mut Story) -> Result<(), Problem> {
        if flight.standing.goal.is_none() || flight.action().turn.is_some() {
            return Ok(());
        }
        let id = flight.action().task.clone();
        let Some(task) = self.parts.store.task(&flight.principal.tenant, &id)?.record else { return Ok(()) };
        // Of a task that is over there is nothing left to say.
        let over = task.state != glovebox_events::TaskState::Open;
        if over || task.turn.is_some() || (task.steers.is_empty() && task.replan.is_empty()) {
            return Ok(());
        }
        let said = |by: &env_contracts::Name, text: &env_contracts::Digest| -> Result<String, Problem> {
            Ok(format!("`{by}` says: {}", words(&self.parts, &task, text)?.unwrap_or_else(|| "(erased)".to_owned())))
        };
        for why in &task.replan {
            match why.as_str() {
                "goal-changed" => story.notice("goal", said(&task.goal.by, &task.goal.text)?),
                "constrained" => {
                    for constraint in &task.constraints {
                        story.notice("constraint", said(&constraint.by, &constraint.text)?);
                    }
                }
                other => {
                    let mut text = format!("plan anew: the task was {other}");
                    if let Some(interrupt) = task.interrupt.as_ref().filter(|_| other == "interrupted") {
                        text = format!("{text} by `{}`", interrupt.by);
                        if let Some(reason) = &interrupt.reason {
                            text = format!("{text}; {}", said(&interrupt.by, reason)?);
                        }
                    }
                    story.notice("replan", text);
                }
            }
        }
        for steer in &task.steers {
            story.notice("steer", said(&steer.by, &steer.text)?);
        }
        let steers = task.steers.iter().map(|steer| steer.id.clone()).collect();
        let event = TaskEvent::Noticed { action: flight.action().id.clone(), steers };
        let (now, version) = (self.now_ms(), task.version);
        let log = log_of(&task);
        let next = task_step(Some(task), &log, &id, now, &event)
            .map_err(|illegal| Problem::new(Code::BackendError, illegal.to_string()))?;
        flight.journal.condition(Condition::Version { of: Thing::Task(id.clone()), version });
        flight.journal.beside(now, What::Task { task: id, event }, Some(Record::Task(Box::new(next))));
        Ok(())
    }
}

/// Whether somebody may say where to go: people, and whoever runs the loop.
fn directs(principal: &Principal) -> Result<(), Problem> {
    if principal.agent.is_none() && principal.chain.is_empty() {
        return Ok(());
    }
    Err(Problem::new(Code::NotEligible, "an agent neither steers a task nor sets its goal")
        .with_help("a person does: without --agent and $GLOVEBOX_AGENT"))
}

/// The goal of the task that a client without tasks works in.
const IMPLICIT_GOAL: &str = "(nobody said)";
