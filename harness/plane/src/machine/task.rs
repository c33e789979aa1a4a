//! The state machine of a task.

use env_contracts::{Id, Name};
use glovebox_events::{LogKey, Task, TaskEvent, TaskState, Told};

use super::{FIRST_GOAL, Illegal};

/// What a task is after an event of its own.
///
/// # Errors
/// [`Illegal`] for an event that must not follow.
pub fn task_step(state: Option<Task>, log: &LogKey, id: &Id, at_ms: u64, event: &TaskEvent) -> Result<Task, Illegal> {
    let Some(mut task) = state else { return begin(log, id, at_ms, event) };
    let from = task.state;
    let illegal = |why| Illegal { event: event.name(), state: from.as_str(), why };
    let require = |holds: bool, why| if holds { Ok(()) } else { Err(illegal(why)) };
    require(task.id == *id && task.session == log.session, "it is another task's")?;
    require(from == TaskState::Open || may_follow_the_end(event), "the task is over")?;
    match event {
        TaskEvent::Opened { .. } => return Err(illegal("it was opened already")),
        TaskEvent::TurnOpened { turn, steers } => {
            require(task.open_turn().is_none(), "a turn is open")?;
            require(task.stopping().is_none(), "it is being stopped")?;
            let last = task.turn.as_ref().map_or(0, |turn| turn.number);
            require(turn.number == last + 1, "it is not the next turn")?;
            require(turn.goal == task.goal.version, "it is for another goal")?;
            require(turn.closed.is_none(), "it is closed already")?;
            let told = task.steers.iter().map(|steer| &steer.id).eq(steers);
            require(told, "it was not told all that was said")?;
            task.steers.clear();
            task.replan.clear();
            task.turn = Some(turn.clone());
        }
        TaskEvent::Noticed { steers, .. } => {
            require(task.turn.is_none(), "its loop has turns")?;
            let told = task.steers.iter().map(|steer| &steer.id).eq(steers);
            require(told, "it was not told all that was said")?;
            task.steers.clear();
            task.replan.clear();
        }
        TaskEvent::TurnClosed { turn, why } => {
            let open = task.turn.as_mut().filter(|open| open.number == *turn && open.closed.is_none());
            open.ok_or_else(|| illegal("that turn is not open"))?.closed = Some(why.clone());
        }
        TaskEvent::Steered { steer } => task.steers.push(steer.clone()),
        TaskEvent::Constrained { constraint } => {
            task.constraints.push(constraint.clone());
            replan(&mut task, "constrained");
        }
        TaskEvent::GoalChanged { goal } => {
            require(goal.version == task.goal.version + 1, "it is not the next version")?;
            task.goal = goal.clone();
            replan(&mut task, "goal-changed");
        }
        TaskEvent::StageSet { stage } => task.stage.clone_from(stage),
        TaskEvent::Told { entry } => {
            let now = task.turn.as_ref().map_or(0, |turn| turn.number);
            require(entry.turn.is_none_or(|turn| (1..=now).contains(&turn)), "there was no such turn")?;
            if let Told::ModelCall { input_tokens, output_tokens, cost_micros, .. } = &entry.what {
                task.spent.calls += 1;
                task.spent.input_tokens = task.spent.input_tokens.saturating_add(*input_tokens);
                task.spent.output_tokens = task.spent.output_tokens.saturating_add(*output_tokens);
                task.spent.cost_micros = task.spent.cost_micros.saturating_add(*cost_micros);
            }
            if let Told::Verified { goal, .. } = &entry.what {
                require((FIRST_GOAL..=task.goal.version).contains(goal), "there was no such goal")?;
            }
        }
        TaskEvent::Interrupted { interrupt } => {
            require(interrupt.stopped_ms.is_none(), "nothing was stopped yet")?;
            require(interrupt.grace_ms >= interrupt.at_ms, "the grace is over before it begins")?;
            task.interrupt = Some(interrupt.clone());
            replan(&mut task, "interrupted");
        }
        TaskEvent::Stopped { interrupt: id } => {
            let stopping = task.interrupt.as_mut().filter(|known| known.id == *id && known.stopped_ms.is_none());
            let stopping = stopping.ok_or_else(|| illegal("it is not being stopped"))?;
            stopping.stopped_ms = Some(at_ms.max(stopping.at_ms));
        }
        TaskEvent::Ended { end } => {
            require(end.state != TaskState::Open, "it does not end with that")?;
            require(task.open_turn().is_none(), "a turn is open")?;
            task.state = end.state;
            task.end = Some(end.clone());
        }
        // What was erased is beside the log.
        TaskEvent::Erased { .. } => return Ok(task),
    }
    task.version += 1;
    task.changed_ms = task.changed_ms.max(at_ms);
    Ok(task)
}

/// A person may still say what they think of it, a verifier what it found, and
/// what ran while it was cancelled stops later.
fn may_follow_the_end(event: &TaskEvent) -> bool {
    match event {
        TaskEvent::Told { entry } => matches!(entry.what, Told::Verified { .. } | Told::Outcome | Told::Feedback),
        TaskEvent::Stopped { .. } | TaskEvent::Erased { .. } => true,
        _ => false,
    }
}

fn replan(task: &mut Task, why: &str) {
    if task.replan.iter().all(|known| known.as_str() != why) {
        let why: Name = why.parse().unwrap_or_else(|error| unreachable!("a word of ours: {error}"));
        task.replan.push(why);
    }
}

fn begin(log: &LogKey, id: &Id, at_ms: u64, event: &TaskEvent) -> Result<Task, Illegal> {
    let illegal = |why| Illegal { event: event.name(), state: "none", why };
    let TaskEvent::Opened { principal, goal, purpose, stage, budget } = event else {
        return Err(illegal("nobody opened it yet"));
    };
    if principal.tenant != log.tenant {
        return Err(illegal("it is another tenant's"));
    }
    Ok(Task {
        id: id.clone(),
        session: log.session.clone(),
        principal: principal.clone(),
        state: TaskState::Open,
        version: 1,
        goal: glovebox_events::Goal {
            version: FIRST_GOAL,
            text: goal.clone(),
            by: principal.agent.clone().unwrap_or_else(|| principal.user.clone()),
            at_ms,
        },
        purpose: purpose.clone(),
        stage: stage.clone(),
        constraints: Vec::new(),
        steers: Vec::new(),
        replan: Vec::new(),
        turn: None,
        budget: *budget,
        spent: glovebox_events::Spent::default(),
        interrupt: None,
        end: None,
        opened_ms: at_ms,
        changed_ms: at_ms,
    })
}
