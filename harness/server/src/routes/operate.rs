//! What operators do, and how the server is.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use env_contracts::{Code, Id, Name, Principal, Problem};
use glovebox_events::{Action, ActionState, ApprovalState, QuestionState};
use glovebox_identity::Role;
use glovebox_plane::Halted;
use glovebox_store::{ActionFilter, QuestionFilter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Paged, Paging, limit};
use crate::auth::{Caller, Identity};
use crate::extract::{Args, Body, Json};
use crate::openapi;
use crate::problem::{Answered, Failure};
use crate::state::App;
use crate::table::Answer::{Json as Gives, Text};
use crate::table::{ANYBODY, DECIDES, LOOKS, OPERATES, Route, WATCHES, schema};
use crate::telemetry::{OPEN_METRICS, Standing};

pub(super) const ROUTES: &[Route] = &[
    Route::get("health", "/health", ANYBODY, "Whether the server answers.", Gives(schema::<Health>), || get(health)),
    Route::get(
        "ready",
        "/ready",
        ANYBODY,
        "Whether it takes new work: its store can be read, and it is not stopping.",
        Gives(schema::<Health>),
        || get(ready),
    ),
    Route::get(
        "metrics",
        "/metrics",
        OPERATES,
        "Figures for Prometheus, of the whole server: for the operators of its own tenant.",
        Text(OPEN_METRICS),
        || get(metrics),
    ),
    Route::get("openapi", "/openapi.json", ANYBODY, "This document.", Text("application/json"), || get(document)),
    Route::get("whoAmI", "/v1/whoami", LOOKS, "Who a credential says that one is.", Gives(schema::<Who>), || get(who)),
    Route::get("listRunning", "/v1/running", WATCHES, "What runs now.", Gives(schema::<Paged<Running>>), || {
        get(running)
    })
    .query(schema::<Paging>),
    Route::post(
        "makeLoginCode",
        "/v1/login-codes",
        WATCHES,
        "A code that logs one browser in as whoever asks, once, within ten minutes.",
        Gives(schema::<LoginCode>),
        || post(code),
    ),
    Route::post(
        "stopAll",
        "/v1/stop",
        DECIDES,
        "The kill switch: nothing is let past, what runs is told to stop, what waits is ended, grants are taken back.",
        Gives(schema::<Halted>),
        || post(stop),
    )
    .body(schema::<Why>),
    Route::post("release", "/v1/release", OPERATES, "Lets things go on after a stop.", Gives(schema::<Health>), || {
        post(release)
    }),
];

/// How the server is.
#[derive(Serialize, JsonSchema)]
struct Health {
    /// Whether all is well.
    ok: bool,
    /// The version of the program.
    version: &'static str,
}

const WELL: Health = Health { ok: true, version: env!("CARGO_PKG_VERSION") };

async fn health() -> Json<Health> {
    Json(WELL)
}

async fn ready(State(app): State<App>) -> Answered<Json<Health>> {
    let not = |why: &str| Failure(Problem::new(Code::BackendUnavailable, why));
    if app.ending.is_cancelled() {
        return Err(not("the server stops"));
    }
    if app.store_answers() { Ok(Json(WELL)) } else { Err(not("the store can't be read")) }
}

/// How many approvals and questions are counted: more than people look at.
const COUNTED: u32 = 1000;

async fn metrics(State(app): State<App>, caller: Caller) -> Answered<Response> {
    if caller.principal.tenant != app.own().tenant {
        let message = "figures of all tenants are for the operators of the server's own";
        return Err(Failure(Problem::new(Code::RoleForbidden, message)));
    }
    let (service, principal) = (&caller.service, &caller.principal);
    let pending = QuestionFilter { states: vec![QuestionState::Pending], limit: COUNTED, ..QuestionFilter::default() };
    app.telemetry.metrics.now(&Standing {
        carried: app.carried.count(),
        approvals: service.approvals(principal, vec![ApprovalState::Pending], None, COUNTED)?.items.len(),
        questions: service.questions(principal, &pending)?.items.len(),
    });
    let headers = [(header::CONTENT_TYPE, OPEN_METRICS), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, app.telemetry.metrics.text()).into_response())
}

async fn document() -> Response {
    let text = serde_json::to_vec(&openapi::document()).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// Who somebody is here.
#[derive(Serialize, JsonSchema)]
struct Who {
    /// Who it is.
    principal: Principal,
    /// What they may do.
    role: Role,
    /// The name of the credential.
    credential: Name,
    /// At which stage the work of this loop is.
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<String>,
}

async fn who(caller: Caller) -> Json<Who> {
    let stage = caller.stage();
    Json(Who { principal: caller.principal, role: caller.credential.role, credential: caller.credential.name, stage })
}

/// Something that runs.
#[derive(Serialize, JsonSchema)]
struct Running {
    /// The action.
    action: Id,
    /// The session.
    session: Id,
    /// What it is.
    capability: String,
    /// For whom.
    principal: Principal,
    /// Since when, in milliseconds since 1970.
    since_ms: u64,
}

async fn running(caller: Caller, Args(paging): Args<Paging>) -> Answered<Json<Paged<Running>>> {
    let limit = limit(paging.limit)?;
    let filter =
        ActionFilter { states: vec![ActionState::Running], after: paging.after, limit, ..ActionFilter::default() };
    let each = |action: Action| Running {
        action: action.id,
        session: action.session,
        capability: action.capability.to_string(),
        principal: action.principal,
        since_ms: action.changed_ms,
    };
    Ok(Json(Paged::of(caller.service.actions(&caller.principal, filter)?, each)))
}

/// A code for a browser.
#[derive(Serialize, JsonSchema)]
struct LoginCode {
    /// What is typed on the page `/login`.
    code: String,
    /// How long it can be used, in milliseconds.
    lasts_ms: u64,
}

async fn code(State(app): State<App>, caller: Caller) -> Answered<Json<LoginCode>> {
    let who = Identity::of(&caller.credential);
    Ok(Json(LoginCode { code: app.login_code(who)?, lasts_ms: crate::auth::CODE_MS }))
}

/// Why everything stops.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Why {
    /// In words.
    reason: Option<String>,
}

async fn stop(caller: Caller, Body(why): Body<Why>) -> Answered<Json<Halted>> {
    Ok(Json(caller.service.stop_all(&caller.principal, why.reason).await?))
}

async fn release(caller: Caller) -> Answered<Json<Health>> {
    caller.service.release(&caller.principal).await?;
    Ok(Json(WELL))
}
