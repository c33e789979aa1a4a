//! Says to open pages when something changed. What changed they fetch: so each
//! sees what its login may see now, and no more.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;

use super::visitor::Visitor;
use crate::auth::{self, Caller};
use crate::state::App;

/// Changes that follow on each other this fast are told as one.
const MERGE: Duration = Duration::from_millis(100);

/// How often a comment shows that the stream lives.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a browser waits before it comes back.
const RETRY: Duration = Duration::from_secs(2);

/// Waits until a login is over.
async fn logged_out(app: &App, caller: &Caller) {
    while auth::still(app, caller) {
        tokio::time::sleep(HEARTBEAT).await;
    }
}

pub(super) async fn events(State(app): State<App>, visitor: Visitor) -> Response {
    let ticks = app.feed.inbox(&visitor.caller.principal.tenant);
    let counted = app.telemetry.metrics.stream();
    // The first one says that whatever changed before is to be fetched.
    let start = (app, visitor.caller, ticks, true, counted);
    let events = stream::unfold(start, |(app, caller, mut ticks, first, counted)| async move {
        if !first {
            tokio::select! {
                () = app.ending.cancelled() => return None,
                () = logged_out(&app, &caller) => return None,
                changed = ticks.changed() => changed.ok()?,
            }
            tokio::time::sleep(MERGE).await;
            if !auth::still(&app, &caller) {
                return None;
            }
        }
        let count = *ticks.borrow_and_update();
        let event = Event::default().event("changed").retry(RETRY).data(count.to_string());
        Some((Ok::<_, Infallible>(event), (app, caller, ticks, false, counted)))
    });
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
