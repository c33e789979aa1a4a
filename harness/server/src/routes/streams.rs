//! Streams of events.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use env_contracts::{Id, Problem};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::auth::Caller;
use crate::events;
use crate::extract::{Args, In};
use crate::problem::{Answered, usage};
use crate::state::App;
use crate::table::{Answer, LOOKS, Route, SchemaOf, schema};

pub(super) const ROUTES: &[Route] = &[
    Route::get("streamSession", "/v1/sessions/{session}/events", LOOKS, "What happens in a session, from an event on (`after`, or the header `last-event-id`). Ids are the dense numbers of its log.", Answer::Events, || get(session)).query(schema::<After>).headers(LAST),
    Route::get("streamAction", "/v1/actions/{action}/events", LOOKS, "What happens to an action, in the same form.", Answer::Events, || get(action)).query(schema::<After>).headers(LAST),
];

/// As browsers send it.
const LAST: &[(&str, SchemaOf, &str)] =
    &[("last-event-id", schema::<u64>, "The number of the last event that is known. It counts more than `after`.")];

/// Where to begin.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct After {
    /// The number of the last event that is known; 0: none.
    after: Option<u64>,
}

impl After {
    /// What a browser sends when it comes back counts more than the address
    /// that it came to first.
    fn number(&self, headers: &HeaderMap) -> Result<u64, Problem> {
        match headers.get("last-event-id") {
            Some(id) => id
                .to_str()
                .ok()
                .and_then(|id| id.trim().parse().ok())
                .ok_or_else(|| usage("last-event-id: it is no number of an event")),
            None => Ok(self.after.unwrap_or_default()),
        }
    }
}

async fn session(
    State(app): State<App>,
    caller: Caller,
    In(id): In<Id>,
    Args(after): Args<After>,
    headers: HeaderMap,
) -> Answered<Response> {
    let after = after.number(&headers)?;
    Ok(events::of_session(&app, caller, id, after).await?)
}

async fn action(
    State(app): State<App>,
    caller: Caller,
    In(id): In<Id>,
    Args(after): Args<After>,
    headers: HeaderMap,
) -> Answered<Response> {
    let after = after.number(&headers)?;
    let action = caller.service.action(&caller.principal, &id)?.action;
    Ok(events::of_action(&app, caller, action, after).await?)
}
