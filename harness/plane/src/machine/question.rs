//! The state machine of a question.

use env_contracts::Id;
use glovebox_events::{AskedOf, LogKey, Question, QuestionEvent, QuestionState};

use super::Illegal;

/// What a question is after an event of its own.
///
/// # Errors
/// [`Illegal`] for an event that must not follow.
pub fn question_step(
    state: Option<Question>,
    log: &LogKey,
    id: &Id,
    at_ms: u64,
    event: &QuestionEvent,
) -> Result<Question, Illegal> {
    let Some(mut question) = state else { return begin(log, id, at_ms, event) };
    let from = question.state;
    let illegal = |why| Illegal { event: event.name(), state: from.as_str(), why };
    let require = |holds: bool, why| if holds { Ok(()) } else { Err(illegal(why)) };
    require(question.id == *id && question.session == log.session, "it is another question's")?;
    let told = matches!(event, QuestionEvent::Told { .. });
    require(told || from == QuestionState::Pending, "it does not wait")?;
    match event {
        QuestionEvent::Opened { .. } => return Err(illegal("it was asked already")),
        QuestionEvent::Answered { answer } => {
            require(answer.option.is_some() || answer.text.is_some(), "it says nothing")?;
            let known = answer.option.as_ref().is_none_or(|option| question.options.contains(option));
            require(known, "there is no such option")?;
            require(question.expires_ms.is_none_or(|expires| at_ms < expires), "it comes too late")?;
            require(!answer.agent || question.to == AskedOf::Root, "a person is asked")?;
            question.state = QuestionState::Answered;
            question.answer = Some(answer.clone());
        }
        QuestionEvent::Expired => question.state = QuestionState::Expired,
        QuestionEvent::Withdrawn { .. } => question.state = QuestionState::Withdrawn,
        QuestionEvent::Unsupported { .. } => question.state = QuestionState::Unsupported,
        QuestionEvent::PassedOn { .. } => {
            require(question.to == AskedOf::Root, "a person is asked already")?;
            question.to = AskedOf::Person;
        }
        QuestionEvent::Merged { into, .. } => {
            require(question.to == AskedOf::Root, "a person is asked")?;
            require(into != id, "it can't stand for itself")?;
            question.state = QuestionState::Merged;
            question.merged_into = Some(into.clone());
        }
        QuestionEvent::Told { turn } => {
            require(from != QuestionState::Pending, "it waits")?;
            require(question.told.is_none(), "it was told already")?;
            question.told = Some(*turn);
        }
    }
    question.version += 1;
    question.changed_ms = question.changed_ms.max(at_ms);
    Ok(question)
}

fn begin(log: &LogKey, id: &Id, at_ms: u64, event: &QuestionEvent) -> Result<Question, Illegal> {
    let illegal = |why| Illegal { event: event.name(), state: "none", why };
    let QuestionEvent::Opened { asked } = event else { return Err(illegal("nobody asked it yet")) };
    let fresh = asked.state == QuestionState::Pending
        && asked.answer.is_none()
        && asked.merged_into.is_none()
        && asked.told.is_none()
        && asked.version == 1;
    if !fresh || asked.opened_ms != at_ms || asked.changed_ms != at_ms {
        return Err(illegal("it is not as a question begins"));
    }
    if asked.id != *id || asked.session != log.session || asked.principal.tenant != log.tenant {
        return Err(illegal("it is another log's"));
    }
    if !asked.options.contains(&asked.recommended) {
        return Err(illegal("what it recommends is none of its options"));
    }
    Ok(asked.clone())
}
