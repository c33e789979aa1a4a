//! Where an action stands in its task: the turn, the goal, what was stopped.

use env_contracts::{Code, DerivedEffects, Id, OutcomeKind, Principal, Problem};
use glovebox_events::{ActionState, Budget, Session, Task, TaskState};
use glovebox_store::{Condition, Moved, TaskSeen, TaskUse, Thing};

use super::submission::TaskContext;
use super::tasks::{belongs, sees};
use super::{Parts, unknown_session, unknown_task};
use crate::machine::{Change, FIRST_GOAL, Pending, Then, after};
use crate::observe::Refusal;

/// What an action knows of its task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// The version of the goal. `None`: nobody opened the task.
    pub(super) goal: Option<u32>,
    /// The newest interrupt.
    pub(super) interrupt: Option<Id>,
    /// The newest interrupt of the session.
    pub(super) session: Option<Id>,
}

impl Standing {
    /// As a new request finds it. What the task's opener and the loop's
    /// credential said is put into the context.
    ///
    /// # Errors
    /// `task-closed`, `turn-conflict`, `session-conflict`; `task-unknown` for
    /// a task of others.
    pub(super) fn find(parts: &Parts, principal: &Principal, context: &mut TaskContext) -> Result<Self, Problem> {
        let seen = parts.store.task(&principal.tenant, &context.task)?;
        let session = parts.store.session(&principal.tenant, &context.session)?;
        if let Some(session) = &session {
            if !belongs(principal, &session.principal) {
                return Err(unknown_session(&session.id));
            }
            can_begin(session)?;
        }
        let Some(task) = seen.record else {
            if context.turn.is_some() {
                return Err(unknown_task(&context.task));
            }
            return Ok(Self { session: newest(session.as_ref()), ..Self::default() });
        };
        if !sees(principal, &task.principal) || task.session != context.session {
            return Err(unknown_task(&context.task));
        }
        open(&task)?;
        if task.stopping().is_some() {
            return Err(stopping(&format!("task `{}`", task.id)));
        }
        if let Some(turn) = context.turn
            && task.open_turn().is_none_or(|open| open.number != turn)
        {
            return Err(other_turn(&task, turn));
        }
        if context.turn.is_some() && !in_this_goal(&task) {
            return Err(another_goal(&task));
        }
        described(&task, context);
        Ok(Self::of(&task, session.as_ref()))
    }

    /// As task and session are now.
    pub(super) fn now(task: Option<&Task>, session: Option<&Session>) -> Self {
        match task {
            Some(task) => Self::of(task, session),
            None => Self { session: newest(session), ..Self::default() },
        }
    }

    /// As the task is now.
    pub(super) fn of(task: &Task, session: Option<&Session>) -> Self {
        Self {
            goal: Some(task.goal.version),
            interrupt: task.interrupt.as_ref().map(|known| known.id.clone()),
            session: newest(session),
        }
    }

    /// Whether the task has another goal than the one that an action was asked
    /// for.
    pub(super) fn outlived(&self, action: &glovebox_events::Action) -> bool {
        self.goal.is_some_and(|goal| action.goal.unwrap_or(FIRST_GOAL) < goal)
    }

    /// What has to hold of the task for something to begin in it. `turn`:
    /// whether the turn has to be open still.
    pub(super) fn conditions(&self, action: &glovebox_events::Action, turn: bool) -> [Condition; 2] {
        let task = Condition::TaskAt {
            task: action.task.clone(),
            goal: action.goal,
            turn: action.turn.filter(|_| turn),
            interrupt: self.interrupt.clone(),
        };
        [Condition::SessionGoing { interrupt: self.session.clone() }, task]
    }
}

/// The newest interrupt of a session.
fn newest(session: Option<&Session>) -> Option<Id> {
    session.and_then(|session| session.interrupt.as_ref()).map(|interrupt| interrupt.id.clone())
}

/// What policy may know of a task, as its opener and the loop's credential
/// said. What they did not say, the channel may.
pub(super) fn described(task: &Task, context: &mut TaskContext) {
    context.purpose = task.purpose.clone().or(context.purpose.take());
    context.stage = task.stage.clone().or(context.stage.take());
}

/// Refuses what would begin in a session that was closed, or is being stopped.
pub(super) fn can_begin(session: &Session) -> Result<(), Problem> {
    if session.closed {
        return Err(Problem::new(Code::SessionConflict, format!("session `{}` was closed", session.id)));
    }
    if session.stopping().is_some() {
        return Err(stopping(&format!("session `{}`", session.id)));
    }
    Ok(())
}

/// That somebody stops this, and nothing begins until it has stopped.
pub(super) fn stopping(what: &str) -> Problem {
    Problem::new(Code::Interrupted, format!("{what} is being stopped"))
        .with_help("try again once nothing of it runs any more")
}

/// What an action is that has not ended, for the table.
pub(super) fn pending(action: &glovebox_events::Action) -> Option<Pending> {
    match action.state {
        ActionState::Requested | ActionState::Validated => Some(Pending::Proposal),
        ActionState::WaitingApproval => Some(Pending::Approval),
        ActionState::Authorized => Some(Pending::Approved),
        ActionState::Running => Some(run(action.effects)),
        ActionState::Succeeded | ActionState::Failed | ActionState::Cancelled => None,
    }
}

/// What a run is, for the table. What is not known may be anything.
pub(super) fn run(effects: Option<DerivedEffects>) -> Pending {
    match effects.unwrap_or(DerivedEffects::External) {
        DerivedEffects::External => Pending::ExternalRun,
        DerivedEffects::None | DerivedEffects::Workspace => Pending::Run,
    }
}

/// Why something ended, in a word of ours.
pub(super) const fn why(change: Change) -> &'static str {
    match change {
        Change::Restart => "worker-lost",
        Change::Time => "expired",
        Change::Turn => "turn-closed",
        Change::Goal => "goal-changed",
        Change::End => "task-ended",
        Change::Interrupt => "interrupted",
        Change::Subject => "drift",
        Change::Policy => "policy-changed",
    }
}

/// Refuses what would begin in a task that is over.
pub(super) fn open(task: &Task) -> Result<(), Problem> {
    if task.state == TaskState::Open {
        return Ok(());
    }
    Err(Problem::new(Code::TaskClosed, format!("task `{}` is {}", task.id, task.state.as_str())))
}

/// Whether the loop is in a turn that it opened for the goal of now.
fn in_this_goal(task: &Task) -> bool {
    task.open_turn().is_some_and(|turn| turn.goal == task.goal.version)
}

/// That the loop works for a goal that is no more.
fn another_goal(task: &Task) -> Problem {
    let message = format!("task `{}` has goal {} by now, and no turn was opened for it", task.id, task.goal.version);
    Problem::new(Code::GoalChanged, message)
}

/// That another turn is open, or none.
pub(super) fn other_turn(task: &Task, turn: u64) -> Problem {
    let now = match &task.turn {
        Some(open) if open.closed.is_none() => format!("it is in turn {}", open.number),
        Some(closed) => format!("turn {} was its last, and is over", closed.number),
        None => "it has no turn yet".to_owned(),
    };
    Problem::new(Code::TurnConflict, format!("task `{}` is not in turn {turn}: {now}", task.id))
}

/// How an action ends whose task moved on before it began.
pub(super) fn moved(moved: &Moved) -> Refusal {
    let interrupted =
        |code, which: &str, why: &str| Refusal::new(OutcomeKind::Interrupted, Problem::new(code, why)).which(which);
    match moved {
        Moved::Ended => interrupted(Code::TaskClosed, "task-ended", "the task was over before the action began"),
        Moved::Interrupted => {
            interrupted(Code::Interrupted, "interrupted", "the task was interrupted before the action began")
        }
        Moved::Goal => {
            interrupted(Code::GoalChanged, "goal-changed", "the task got another goal before the action began")
        }
        Moved::Turn => interrupted(Code::TurnConflict, "turn-closed", "the turn was over before the action began"),
        Moved::Budget(part) => {
            let message = format!("the task has used up its budget: `{part}`");
            Refusal::new(OutcomeKind::LimitHit, Problem::new(Code::BudgetSpent, message))
                .which(format!("budget.{part}"))
        }
    }
}

/// Whether the goal that an action was asked for is the task's no longer.
pub(super) fn outlived(task: &Task, action: &glovebox_events::Action) -> bool {
    action.goal.unwrap_or(FIRST_GOAL) < task.goal.version
}

impl super::ActionService {
    /// Refuses what would begin in a task whose session was closed or is being
    /// stopped.
    pub(super) async fn in_open_session(&self, task: &Task) -> Result<(), Problem> {
        let known = || self.parts.store.session(&task.principal.tenant, &task.session);
        let Some(session) = known()? else { return Ok(()) };
        if session.stopping().is_some() {
            // Whoever stops it may be gone, and what ran over by now.
            Box::pin(self.go_on_stopping_session(&session)).await?;
        }
        known()?.as_ref().map_or(Ok(()), can_begin)
    }

    /// Refuses what nobody would ever hear, because the session was closed.
    pub(super) fn not_closed(&self, task: &Task) -> Result<(), Problem> {
        let session = self.parts.store.session(&task.principal.tenant, &task.session)?;
        match session.filter(|session| session.closed) {
            Some(session) => Err(Problem::new(Code::SessionConflict, format!("session `{}` was closed", session.id))),
            None => Ok(()),
        }
    }

    /// Why an answer can't let an action go on: its task is elsewhere by now,
    /// and whoever was to end it did not come to that. What is answered holds
    /// only while the task stays as it is.
    pub(super) fn answerable(&self, flight: &mut super::flight::Flight) -> Result<Option<Refusal>, Problem> {
        let action = flight.action();
        let Some(task) = self.parts.store.task(&action.principal.tenant, &action.task)?.record else {
            return Ok(None);
        };
        let (of, version) = (Thing::Task(task.id.clone()), task.version);
        // What is left of the budget is looked at when it runs.
        let seen = TaskSeen { record: Some(Task { budget: Budget::default(), ..task }), used: TaskUse::default() };
        let moved = seen.moved(action.goal, action.turn, flight.standing.interrupt.as_ref());
        flight.journal.condition(Condition::Version { of, version });
        Ok(moved.as_ref().map(self::moved))
    }

    /// The requester wants an action still, now that the task has another
    /// goal: it goes on for that one. Only what a person approved can; the
    /// claim compares that it is the same thing.
    pub(super) async fn reaffirmed(
        &self,
        mut action: glovebox_events::Action,
    ) -> Result<glovebox_events::Action, Problem> {
        loop {
            if pending(&action).is_none_or(|pending| after(pending, Change::Goal) != Then::AskRequester) {
                return Ok(action);
            }
            let task = self.parts.store.task(&action.principal.tenant, &action.task)?.record;
            let Some(task) = task.filter(|task| outlived(task, &action)) else { return Ok(action) };
            open(&task)?;
            // A loop that has turns says so in one that it opened for the new
            // goal: before that it has not read it.
            if task.turn.is_some() && !in_this_goal(&task) {
                return Err(another_goal(&task));
            }
            let mut journal = super::journal::Journal::of(action.clone());
            let turn = task.open_turn().map(|turn| turn.number);
            let what = glovebox_events::What::Reaffirmed { goal: task.goal.version, turn };
            journal.event(self.now_ms(), what)?;
            match journal.commit(&*self.parts.store).await {
                Ok(_) => return Ok(journal.action().cloned().unwrap_or(action)),
                Err(super::journal::Lost::Changed) => {
                    let known = self.parts.store.action(&action.principal.tenant, &action.id)?;
                    action = known.ok_or_else(|| super::unknown_action(&action.id))?;
                }
                Err(lost) => return Err(self.lost(lost)),
            }
        }
    }
}
