//! What an answer does to an approval.

use glovebox_events::{ActionState, Answer, Answered, Approval, ApprovalState, Asks};

/// Records an answer, if it is one of those that were offered, to what was on
/// the screen, in time.
pub(super) fn answered(approval: &mut Approval, answer: &Answer, asks: Asks, at_ms: u64) -> Result<(), &'static str> {
    if answer.seen != approval.digest {
        return Err("it answers another plan");
    }
    if approval.expires_ms.is_some_and(|expires| at_ms >= expires) {
        return Err("it comes too late");
    }
    // Other arguments are always possible: they are a new plan.
    if answer.answer != Answered::Edit {
        let offered = |offer: &&glovebox_events::Offer| {
            offer.id == answer.offer
                && offer.answer == answer.answer
                && offer.scope == answer.scope
                && offer.control == answer.control
        };
        approval.offers.iter().find(offered).ok_or("it was not offered")?;
    } else if answer.edit.is_none() {
        return Err("it gives nothing else");
    }
    approval.state = match (answer.answer, asks) {
        (Answered::Approve, asks) if asks.runs() => ApprovalState::Approved,
        // What was asked for is given with the answer: there is nothing left to
        // use.
        (Answered::Approve, _) => ApprovalState::Consumed,
        (Answered::Decline, _) => ApprovalState::Declined,
        (Answered::Edit, _) => ApprovalState::Edited,
    };
    approval.answer = Some(answer.clone());
    Ok(())
}

/// Where an action is after an answer.
pub(super) fn state_after(answer: Answered, asks: Asks) -> ActionState {
    match (answer, asks) {
        (Answered::Approve, asks) if asks.runs() => ActionState::Authorized,
        // What was asked for is given with the answer, and nothing runs; a
        // decline is followed by the end.
        (Answered::Approve | Answered::Decline, _) => ActionState::Validated,
        (Answered::Edit, _) => ActionState::Requested,
    }
}
