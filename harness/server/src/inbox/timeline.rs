//! The story of a session, one line for each event.

use env_contracts::text::escaped_line;
use env_contracts::{Id, Problem};
use maud::{Markup, html};

use super::layout::moment;
use super::value::json;
use super::visitor::Visitor;
use crate::events::{Wire, project};

/// How many events a page shows: the newest.
const MOST: u64 = 200;

/// The events after one, or the newest.
pub(super) fn events(visitor: &Visitor, session: &Id, after: Option<u64>, head: u64) -> Result<Markup, Problem> {
    let (service, principal) = (&visitor.caller.service, &visitor.caller.principal);
    let from = after.unwrap_or(head.saturating_sub(MOST));
    let limit = u32::try_from(MOST).unwrap_or(u32::MAX);
    let all = service.session_events(principal, session, from, limit)?;
    let last = all.last().map_or(from, |logged| logged.seq);
    let lines = all.iter().flat_map(|logged| project(logged, None, visitor.caller.sight()));
    let earlier = from.saturating_sub(MOST);
    Ok(html! {
        @if from > 0 { p { a href=(format!("/sessions/{session}?after={earlier}")) { "Earlier" } } }
        ol #timeline data-last=(last) aria-label="Events" { @for wire in lines { (line(&wire)) } }
        @if last < head { p #later { a href=(format!("/sessions/{session}?after={last}")) { "Later" } } }
    })
}

fn line(wire: &Wire) -> Markup {
    html! {
        li class=(wire.kind.as_str()) data-seq=[wire.seq] {
            @if let Some(at) = wire.at_ms { (moment(at)) " " }
            strong { (wire.name.replace('-', " ")) }
            @if let Some(action) = &wire.action { " " code .faint { (action.as_str()) } }
            @if let Some(task) = wire.task.as_ref().filter(|_| wire.action.is_none()) { " " code .faint { (task.as_str()) } }
            @if let Some(line) = wire.data.as_ref().and_then(said) { " " span { (escaped_line(&line)) } }
            @if let Some(data) = &wire.data { details { summary { "more" } pre .value { (json(data)) } } }
        }
    }
}

/// What an event says in a few words, where it does.
fn said(data: &serde_json::Value) -> Option<String> {
    let names = ["capability", "outcome", "verdict", "reason", "message"];
    let part = names.iter().find_map(|name| data.get(name).filter(|part| !part.is_null()));
    Some(match part? {
        serde_json::Value::String(text) => text.clone(),
        other => other.get("kind").or_else(|| other.get("name")).and_then(|kind| kind.as_str())?.to_owned(),
    })
}
