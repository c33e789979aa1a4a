//! Where an action stands in its task: the turn, the goal, what was stopped.

use env_contracts::{Code, OutcomeKind, Principal, Problem};
use glovebox_events::{Session, Task, TaskState};
use glovebox_store::{Condition, Moved};

use super::submission::TaskContext;
use super::tasks::sees;
use super::{Parts, unknown_task};
use crate::machine::FIRST_GOAL;
use crate::observe::Refusal;

/// What an action knows of its task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// The version of the goal. `None`: nobody opened the task.
    pub(super) goal: Option<u32>,
    /// The newest interrupt.
    pub(super) interrupt: Option<env_contracts::Id>,
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
        let Some(task) = seen.record else {
            if context.turn.is_some() {
                return Err(unknown_task(&context.task));
            }
            return Ok(Self::default());
        };
        if !sees(principal, &task.principal) || task.session != context.session {
            return Err(unknown_task(&context.task));
        }
        if let Some(session) = parts.store.session(&principal.tenant, &context.session)? {
            not_closed(&session)?;
        }
        open(&task)?;
        if let Some(turn) = context.turn
            && task.open_turn().is_none_or(|open| open.number != turn)
        {
            return Err(other_turn(&task, turn));
        }
        context.purpose.clone_from(&task.purpose);
        context.stage.clone_from(&task.stage);
        Ok(Self::of(&task))
    }

    /// As the task is now.
    pub(super) fn of(task: &Task) -> Self {
        Self { goal: Some(task.goal.version), interrupt: task.interrupt.as_ref().map(|known| known.id.clone()) }
    }

    /// Whether the task has another goal than the one that an action was asked
    /// for.
    pub(super) fn outlived(&self, action: &glovebox_events::Action) -> bool {
        self.goal.is_some_and(|goal| action.goal.unwrap_or(FIRST_GOAL) < goal)
    }

    /// What has to hold of the task for something to begin in it. `turn`:
    /// whether the turn has to be open still.
    pub(super) fn condition(&self, action: &glovebox_events::Action, turn: bool) -> Condition {
        Condition::TaskAt {
            task: action.task.clone(),
            goal: action.goal,
            turn: action.turn.filter(|_| turn),
            interrupt: self.interrupt.clone(),
        }
    }
}

/// Refuses what would begin in a session that was closed.
pub(super) fn not_closed(session: &Session) -> Result<(), Problem> {
    if session.closed {
        return Err(Problem::new(Code::SessionConflict, format!("session `{}` was closed", session.id)));
    }
    Ok(())
}

/// Refuses what would begin in a task that is over.
pub(super) fn open(task: &Task) -> Result<(), Problem> {
    if task.state == TaskState::Open {
        return Ok(());
    }
    Err(Problem::new(Code::TaskClosed, format!("task `{}` is {}", task.id, task.state.as_str())))
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
    let interrupted = |code, which: &str, why: &str| {
        Refusal::new(OutcomeKind::Interrupted, Problem::new(code, why)).which(which)
    };
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
            Refusal::new(OutcomeKind::LimitHit, Problem::new(Code::BudgetSpent, message)).which(format!("budget.{part}"))
        }
    }
}

/// Whether the goal that an action was asked for is the task's no longer.
pub(super) fn outlived(task: &Task, action: &glovebox_events::Action) -> bool {
    action.goal.unwrap_or(FIRST_GOAL) < task.goal.version
}

impl super::ActionService {
    /// The requester wants an action still, now that the task has another
    /// goal: it goes on for that one. Only what a person approved can; the
    /// claim compares that it is the same thing.
    pub(super) async fn reaffirmed(
        &self,
        mut action: glovebox_events::Action,
    ) -> Result<glovebox_events::Action, Problem> {
        loop {
            if action.state != glovebox_events::ActionState::Authorized {
                return Ok(action);
            }
            let task = self.parts.store.task(&action.principal.tenant, &action.task)?.record;
            let Some(task) = task.filter(|task| outlived(task, &action)) else { return Ok(action) };
            open(&task)?;
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
