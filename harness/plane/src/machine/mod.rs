//! The state machine of an action.
//!
//! [`step`] is pure: state and event in, state out. Time and ids stand in the
//! events. What has to be done follows from the state: the service runs what
//! it brought to [`ActionState::Running`], and whoever waits for a change is
//! woken by the store. Nothing else changes an [`Action`]; what the store
//! keeps and what a replay of the log yields are both sums of `step`.
//!
//! It is also what refuses: an event that must not follow is
//! [`Illegal`], so that no mistake in a door, a service or a restored database
//! can make an action run without a right, or twice.

mod answers;
mod question;
mod replay;
mod resume;
mod session;
mod task;

pub use question::question_step;
pub use replay::{Live, ReplayError, replay};
pub use resume::{Change, Pending, Then, after, table};
pub use session::session_step;
pub use task::task_step;

use env_contracts::{Digest, Id, Verdict};
use glovebox_events::{Action, ActionState, Approval, ApprovalState, Event, LogKey, Right, What};

/// Through which door a reviewer that is no person answers.
pub(crate) const REVIEWER: &str = "reviewer";

/// The version of a goal that nobody changed.
pub(crate) const FIRST_GOAL: u32 = 1;

/// An event that must not follow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{event}` can't follow in state `{state}`: {why}")]
pub struct Illegal {
    /// The event.
    pub event: &'static str,
    /// The state that the action was in; `none` before it was asked for.
    pub state: &'static str,
    /// What is wrong with it.
    pub why: &'static str,
}

/// What an action is after an event.
///
/// # Errors
/// [`Illegal`] for an event that must not follow.
pub fn step(state: Option<Action>, log: &LogKey, event: &Event) -> Result<Action, Illegal> {
    let Some(mut action) = state else { return begin(log, event) };
    let from = action.state;
    let illegal = |why| Illegal { event: event.what.name(), state: from.as_str(), why };
    let require = |holds: bool, why| if holds { Ok(()) } else { Err(illegal(why)) };
    require(event.action.as_ref() == Some(&action.id), "it is another action's")?;
    require(!from.ended() || matches!(event.what, What::Erased { .. }), "the action has ended")?;
    match &event.what {
        What::Requested { .. } => return Err(illegal("it was asked for already")),
        What::Reaffirmed { goal, turn } => {
            require(from != ActionState::Running, "it runs already")?;
            require(action.goal.unwrap_or(FIRST_GOAL) < *goal, "it is for that goal already")?;
            action.goal = Some(*goal);
            action.turn = *turn;
        }
        What::Previewed { preview, edit } => {
            require(from == ActionState::Validated, "there is no plan to look at")?;
            require(action.asks.runs(), "nothing would be done")?;
            action.preview = Some(preview.clone());
            if let Some(edit) = edit {
                action.edit = Some(edit.clone());
                (action.decided, action.intent, action.digest) = (None, None, None);
                action.state = ActionState::Requested;
            }
        }
        What::Reviewed { review } => {
            let approval = waiting(&mut action, &review.approval).ok_or_else(|| illegal("it does not wait"))?;
            require(approval.classes.contains(&review.class), "it may not answer")?;
            let asked = approval.reviews.iter().any(|known| known.class == review.class);
            require(!asked, "it was asked already")?;
            approval.reviews.push(review.clone());
        }
        What::Planned { revision, plan, effects: derived, .. } => {
            require(from == ActionState::Requested, "a plan is made once for each revision")?;
            require(*revision == action.revision + u32::from(action.plan.is_some()), "it is not the next revision")?;
            action.revision = *revision;
            action.plan = Some(plan.clone());
            action.effects = Some(*derived);
            (action.decided, action.intent, action.digest) = (None, None, None);
            action.state = ActionState::Validated;
        }
        What::Decided { verdict, .. } => {
            require(matches!(from, ActionState::Validated | ActionState::Authorized), "there is nothing to decide")?;
            action.decided = Some(*verdict);
        }
        What::Bound { intent, digest, .. } => {
            require(from == ActionState::Validated, "there is nothing to bind")?;
            action.intent = Some(intent.clone());
            action.digest = Some(digest.clone());
        }
        What::ApprovalOpened { approval } => {
            require(from == ActionState::Validated, "there is no plan to approve")?;
            require(action.decided == Some(Verdict::Ask), "policy does not ask")?;
            require(approval.state == ApprovalState::Pending && approval.answer.is_none(), "it is not pending")?;
            require(approval.revision == action.revision, "it is for another plan")?;
            require(action.digest.as_ref() == Some(&approval.digest), "it is for another plan")?;
            require(action.intent.as_ref() == Some(&approval.intent), "it is for another intent")?;
            action.approval = Some((**approval).clone());
            action.state = ActionState::WaitingApproval;
        }
        What::ApprovalAnswered { answer } => {
            let asks = action.asks;
            let approval = waiting(&mut action, &answer.approval).ok_or_else(|| illegal("it does not wait"))?;
            answers::answered(approval, answer, asks, event.at_ms).map_err(illegal)?;
            action.state = answers::state_after(answer.answer, action.asks);
            if let Some(edit) = &answer.edit {
                action.edit = Some(edit.clone());
                // It was of other arguments.
                action.preview = None;
            }
        }
        What::ApprovalExpired { approval } => {
            close(&mut action, approval, ApprovalState::Expired).map_err(illegal)?;
        }
        What::ApprovalWithdrawn { approval, .. } => {
            close(&mut action, approval, ApprovalState::Withdrawn).map_err(illegal)?;
        }
        What::Drifted { approval, .. } => {
            require(from == ActionState::Authorized, "nothing was approved")?;
            close(&mut action, approval, ApprovalState::Drifted).map_err(illegal)?;
            (action.decided, action.intent, action.digest) = (None, None, None);
            // What would run now is another plan, and is looked at and asked about
            // as that.
            action.preview = None;
            action.state = ActionState::Requested;
        }
        What::Claimed { right, digest, holder } => {
            require(action.asks.runs(), "nothing was asked to run")?;
            require(action.stop.is_none(), "it is to stop")?;
            claim(&mut action, right, digest).map_err(illegal)?;
            action.right = Some(right.clone());
            action.holder = Some(holder.clone());
            action.state = ActionState::Running;
        }
        What::StopAsked { stop } => {
            // Whoever wants it sooner is heard.
            let until = |stop: &glovebox_events::StopAsked| stop.grace_ms.unwrap_or_default();
            if action.stop.as_ref().is_none_or(|known| until(stop) < until(known)) {
                action.stop = Some(stop.clone());
            }
        }
        What::HolderLost { holder } => {
            require(from == ActionState::Running, "it does not run")?;
            require(action.holder.as_ref() == Some(holder), "another process runs it")?;
        }
        What::Ended { end } => {
            require(action.pending().is_none(), "a person is still asked")?;
            require(from != ActionState::Authorized, "what was approved was not used or taken back")?;
            action.state = end.state();
            require(
                from == ActionState::Running || action.state != ActionState::Succeeded || !action.asks.runs(),
                "it succeeded without a run",
            )?;
            action.end = Some(end.clone());
        }
        // What was erased is beside the log; what the action is stays.
        What::Erased { .. } => return Ok(action),
        What::Session { .. }
        | What::Task { .. }
        | What::Question { .. }
        | What::GrantMade { .. }
        | What::GrantRevoked { .. }
        | What::Environment { .. }
        | What::Halted { .. }
        | What::Released { .. }
        | What::PolicyLoaded { .. }
        | What::PolicyRefused { .. } => return Err(illegal("it is no action's")),
    }
    action.version += 1;
    // A clock that jumps back does not make later things earlier.
    action.changed_ms = action.changed_ms.max(event.at_ms);
    Ok(action)
}

fn begin(log: &LogKey, event: &Event) -> Result<Action, Illegal> {
    let illegal = |why| Illegal { event: event.what.name(), state: "none", why };
    let What::Requested { task, principal, capability, asks, submission, parents, key, turn, goal, held } = &event.what
    else {
        return Err(illegal("nothing was asked for yet"));
    };
    if principal.tenant != log.tenant {
        return Err(illegal("it is another tenant's"));
    }
    Ok(Action {
        id: event.action.clone().ok_or_else(|| illegal("it names no action"))?,
        session: log.session.clone(),
        task: task.clone(),
        turn: *turn,
        goal: *goal,
        principal: principal.clone(),
        capability: capability.clone(),
        asks: *asks,
        revision: 1,
        state: ActionState::Requested,
        version: 1,
        submission: submission.clone(),
        edit: None,
        parents: parents.clone(),
        key: key.clone(),
        held: *held,
        plan: None,
        effects: None,
        decided: None,
        intent: None,
        digest: None,
        approval: None,
        preview: None,
        right: None,
        holder: None,
        stop: None,
        end: None,
        requested_ms: event.at_ms,
        changed_ms: event.at_ms,
    })
}

/// The approval that waits, if it is this one.
fn waiting<'a>(action: &'a mut Action, id: &Id) -> Option<&'a mut Approval> {
    if action.state != ActionState::WaitingApproval {
        return None;
    }
    action.approval.as_mut().filter(|approval| approval.id == *id && approval.state == ApprovalState::Pending)
}

/// An approval that nobody can use any more.
fn close(action: &mut Action, id: &Id, state: ApprovalState) -> Result<(), &'static str> {
    let open = |approval: &&mut Approval| {
        approval.id == *id && matches!(approval.state, ApprovalState::Pending | ApprovalState::Approved)
    };
    let approval = action.approval.as_mut().filter(open).ok_or("it is not open")?;
    approval.state = state;
    action.state = ActionState::Validated;
    Ok(())
}

/// Uses up the right to run this plan.
fn claim(action: &mut Action, right: &Right, digest: &Digest) -> Result<(), &'static str> {
    if action.digest.as_ref() != Some(digest) {
        return Err("it is for another plan");
    }
    if action.decided != Some(Verdict::Allow) {
        return Err("policy does not allow it");
    }
    match (right, action.state) {
        (Right::Policy | Right::Grant { .. }, ActionState::Validated) => Ok(()),
        (Right::Approval { approval: id }, ActionState::Authorized) => {
            let approved = |approval: &&mut Approval| {
                approval.id == *id && approval.state == ApprovalState::Approved && approval.digest == *digest
            };
            let approval = action.approval.as_mut().filter(approved).ok_or("it was not approved")?;
            approval.state = ApprovalState::Consumed;
            Ok(())
        }
        _ => Err("the right does not fit the state"),
    }
}
