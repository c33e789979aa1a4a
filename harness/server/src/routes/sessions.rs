//! Sessions.

use std::time::Duration;

use axum::routing::{get, post};
use env_contracts::{Id, Span};
use glovebox_events::{Session, Task};
use glovebox_plane::{Attention, Interrupted, Interrupting, NewSession, Target};
use glovebox_store::SessionFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Paged, Paging, limit};
use crate::auth::Caller;
use crate::extract::{Args, Body, In, Json};
use crate::problem::Answered;
use crate::table::Answer::Json as Gives;
use crate::table::{ACTS, LOOKS, OPERATES, Route, SEES, schema};

pub(super) const ROUTES: &[Route] = &[
    Route::post(
        "openSession",
        "/v1/sessions",
        ACTS,
        "Opens a session. The same again gives the same session.",
        Gives(schema::<Session>),
        || post(open),
    )
    .body(schema::<Open>),
    Route::get(
        "listSessions",
        "/v1/sessions",
        LOOKS,
        "Sessions that were opened, newest first.",
        Gives(schema::<Paged<Session>>),
        || get(list),
    )
    .query(schema::<Paging>),
    Route::get("getSession", "/v1/sessions/{session}", LOOKS, "A session.", Gives(schema::<Session>), || get(one)),
    Route::post(
        "closeSession",
        "/v1/sessions/{session}/close",
        ACTS,
        "Closes a session: nothing new begins in it, and what waits is ended.",
        Gives(schema::<Session>),
        || post(close),
    ),
    Route::get(
        "getAttention",
        "/v1/sessions/{session}/attention",
        SEES,
        "What a session asked of people, and why.",
        Gives(schema::<Attention>),
        || get(attention),
    ),
    Route::post(
        "steerSession",
        "/v1/sessions/{session}/steer",
        OPERATES,
        "Steers what is done in a session: its loop is told at its next step.",
        Gives(schema::<Task>),
        || post(steer),
    )
    .body(schema::<Steer>),
    Route::post(
        "interruptSession",
        "/v1/sessions/{session}/interrupt",
        ACTS,
        "Stops what is done in a session.",
        Gives(schema::<Interrupted>),
        || post(interrupt),
    )
    .body(schema::<Interrupt>),
];

/// A session that somebody opens.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Open {
    /// Its name. Absent: one is made.
    id: Option<Id>,
    /// The session that it is called from.
    parent: Option<Id>,
}

async fn open(caller: Caller, Body(open): Body<Open>) -> Answered<Json<Session>> {
    let new = NewSession { id: open.id, parent: open.parent };
    Ok(Json(caller.service.open_session(&caller.principal, new).await?))
}

async fn list(caller: Caller, Args(page): Args<Paging>) -> Answered<Json<Paged<Session>>> {
    let filter = SessionFilter { after: page.after, limit: limit(page.limit)?, ..SessionFilter::default() };
    Ok(Json(Paged::of(caller.service.sessions(&caller.principal, filter)?, |session| session)))
}

async fn one(caller: Caller, In(id): In<Id>) -> Answered<Json<Session>> {
    Ok(Json(caller.service.session(&caller.principal, &id)?))
}

async fn close(caller: Caller, In(id): In<Id>) -> Answered<Json<Session>> {
    Ok(Json(caller.service.close_session(&caller.principal, &id).await?))
}

async fn attention(caller: Caller, In(id): In<Id>) -> Answered<Json<Attention>> {
    Ok(Json(caller.service.attention(&caller.principal, &id)?))
}

/// A direction.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Steer {
    /// What the loop is told.
    text: String,
    /// Which task of the session. Absent: the one that is meant.
    task: Option<Id>,
}

async fn steer(caller: Caller, In(id): In<Id>, Body(steer): Body<Steer>) -> Answered<Json<Task>> {
    Ok(Json(caller.service.steer(&caller.principal, &id, steer.task.as_ref(), &steer.text).await?))
}

/// How far an interrupt of a session reaches.
#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Reach {
    /// Everything in the session.
    #[default]
    Session,
    /// Everything in it and in those below it.
    Tree,
}

/// Somebody wants work to stop.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Stop {
    /// How long what runs may go on to end by itself. Absent: not at all.
    pub(super) grace: Option<Span>,
    /// Why. The loop is told.
    pub(super) reason: Option<String>,
}

/// The same for a session.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Interrupt {
    /// How far it reaches.
    #[serde(default)]
    reach: Reach,
    /// How long what runs may go on to end by itself. Absent: not at all.
    grace: Option<Span>,
    /// Why. The loop is told.
    reason: Option<String>,
}

async fn interrupt(caller: Caller, In(id): In<Id>, Body(asked): Body<Interrupt>) -> Answered<Json<Interrupted>> {
    let target = match asked.reach {
        Reach::Session => Target::Session(id),
        Reach::Tree => Target::Tree(id),
    };
    stopped(&caller, target, Stop { grace: asked.grace, reason: asked.reason }).await
}

/// Interrupts, and says what became of it.
pub(super) async fn stopped(caller: &Caller, target: Target, stop: Stop) -> Answered<Json<Interrupted>> {
    let grace: Option<Duration> = stop.grace.map(|grace| grace.0);
    let asked = Interrupting { target, grace, reason: stop.reason };
    Ok(Json(caller.service.interrupt(&caller.principal, asked).await?))
}
