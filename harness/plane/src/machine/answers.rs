//! What an answer does to an approval.

use glovebox_events::{ActionState, Answer, Answered, Approval, ApprovalState, Asks, GrantScope, Review, Reviewed};

use super::REVIEWER;

/// Records an answer, if it is one of those that were offered, to what was on
/// the screen, in time.
pub(super) fn answered(approval: &mut Approval, answer: &Answer, asks: Asks, at_ms: u64) -> Result<(), &'static str> {
    if answer.seen != approval.digest {
        return Err("it answers another plan");
    }
    if approval.expires_ms.is_some_and(|expires| at_ms >= expires) {
        return Err("it comes too late");
    }
    if answer.answer == Answered::Edit && matches!(asks, Asks::Plan | Asks::Result) {
        return Err("it is accepted as it is, or not at all");
    }
    // A reviewer says yes by a review that was recorded, and by nothing else.
    let stands = |review: &Review| review.class == answer.by.name && review.verdict == Reviewed::Approved;
    if answer.by.channel.as_str() == REVIEWER && !approval.reviews.iter().any(stands) {
        return Err("no review stands behind it");
    }
    let said = |verdict| approval.reviews.iter().any(|review| review.verdict == verdict);
    if answer.answer == Answered::Approve && said(Reviewed::Denied) && answer.scope != GrantScope::Once {
        return Err("a reviewer denied it, and more than this one is approved");
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
