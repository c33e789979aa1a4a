//! The state machine of a session.

use glovebox_events::{LogKey, Session, SessionEvent};

use super::Illegal;

/// What a session is after an event of its own.
///
/// # Errors
/// [`Illegal`] for an event that must not follow.
pub fn session_step(
    state: Option<Session>,
    log: &LogKey,
    at_ms: u64,
    event: &SessionEvent,
) -> Result<Session, Illegal> {
    let Some(mut session) = state else { return begin(log, at_ms, event) };
    let from = if session.closed { "closed" } else { "open" };
    let illegal = |why| Illegal { event: event.name(), state: from, why };
    let require = |holds: bool, why| if holds { Ok(()) } else { Err(illegal(why)) };
    require(session.id == log.session, "it is another session's")?;
    match event {
        SessionEvent::Opened { .. } => return Err(illegal("it was opened already")),
        SessionEvent::Interrupted { interrupt } => {
            require(interrupt.stopped_ms.is_none(), "nothing was stopped yet")?;
            require(interrupt.grace_ms >= interrupt.at_ms, "the grace is over before it begins")?;
            session.interrupt = Some(interrupt.clone());
        }
        SessionEvent::Stopped { interrupt: id } => {
            let stopping = session.interrupt.as_mut().filter(|known| known.id == *id && known.stopped_ms.is_none());
            let stopping = stopping.ok_or_else(|| illegal("it is not being stopped"))?;
            stopping.stopped_ms = Some(at_ms.max(stopping.at_ms));
        }
        SessionEvent::Closed { .. } => {
            require(!session.closed, "it was closed already")?;
            session.closed = true;
        }
    }
    session.version += 1;
    session.changed_ms = session.changed_ms.max(at_ms);
    Ok(session)
}

fn begin(log: &LogKey, at_ms: u64, event: &SessionEvent) -> Result<Session, Illegal> {
    let illegal = |why| Illegal { event: event.name(), state: "none", why };
    let SessionEvent::Opened { principal, parent, root } = event else {
        return Err(illegal("nobody opened it yet"));
    };
    if principal.tenant != log.tenant {
        return Err(illegal("it is another tenant's"));
    }
    // The root of a tree is the only one without a parent.
    if parent.is_none() != (*root == log.session) || parent.as_ref() == Some(&log.session) {
        return Err(illegal("it has no place in a tree"));
    }
    Ok(Session {
        id: log.session.clone(),
        principal: principal.clone(),
        parent: parent.clone(),
        root: root.clone(),
        closed: false,
        version: 1,
        interrupt: None,
        opened_ms: at_ms,
        changed_ms: at_ms,
    })
}
