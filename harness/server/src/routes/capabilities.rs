//! What can be done here, and what policy says of it.

use axum::extract::{Request, State};
use axum::routing::{get, post};
use env_contracts::{Contract, Manifest, Wanted};
use glovebox_plane::{Explained, Found, Health};
use glovebox_runtime::ContractReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Paged;
use super::actions::{Submit, submission};
use crate::auth::Caller;
use crate::extract::{Args, Body, In, Json};
use crate::problem::Answered;
use crate::state::App;
use crate::table::Answer::Json as Gives;
use crate::table::{ACTS, LOOKS, Route, schema};

pub(super) const ROUTES: &[Route] = &[
    Route::get(
        "listCapabilities",
        "/v1/capabilities",
        LOOKS,
        "What is disclosed to whoever asks, or what a search finds of it.",
        Gives(schema::<Paged<Found>>),
        || get(list),
    )
    .query(schema::<Search>),
    Route::get(
        "getCapability",
        "/v1/capabilities/{capability}",
        LOOKS,
        "A capability: what it takes, gives, needs and may do.",
        Gives(schema::<Capability>),
        || get(one),
    ),
    Route::post(
        "checkEnvironment",
        "/v1/environments/check",
        LOOKS,
        "What this host can enforce of a contract: each clause, by what, or why not.",
        Gives(schema::<ContractReport>),
        || post(check),
    )
    .body(schema::<Contract>),
    Route::post(
        "explainPolicy",
        "/v1/policy/explain",
        ACTS,
        "What policy says of a request, by which rules, and what would be permitted. Nothing runs.",
        Gives(schema::<Explained>),
        || post(explain),
    )
    .body(schema::<Submit>),
];

/// What to look for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// Words, each of which stands in a name, title or description.
    search: Option<String>,
}

async fn list(caller: Caller, Args(search): Args<Search>) -> Answered<Json<Paged<Found>>> {
    let text = search.search.unwrap_or_default();
    Ok(Json(Paged::whole(caller.service.search(&caller.principal, &text)?)))
}

/// A capability.
#[derive(Serialize, JsonSchema)]
struct Capability {
    /// Its manifest: schemas, contract, examples.
    manifest: Manifest,
    /// What it may do to the world: derived from its contract.
    effects: env_contracts::DerivedEffects,
    /// Whether it came with Glovebox.
    builtin: bool,
    /// Whether it can be called at all.
    health: Health,
}

async fn one(caller: Caller, In(wanted): In<Wanted>) -> Answered<Json<Capability>> {
    let tool = caller.service.runnable(&caller.principal, &wanted)?;
    let effects = tool.manifest.effects_under(&tool.manifest.contract);
    let health = caller.service.registry().health(&tool);
    Ok(Json(Capability { manifest: tool.manifest.clone(), effects, builtin: tool.builtin, health }))
}

async fn check(caller: Caller, Body(contract): Body<Contract>) -> Answered<Json<ContractReport>> {
    Ok(Json(caller.service.check_contract(&caller.principal, &contract)?))
}

async fn explain(State(app): State<App>, caller: Caller, request: Request) -> Answered<Json<Explained>> {
    let submission = submission(&app, &caller, request, glovebox_plane::Asking::Wait).await?;
    Ok(Json(caller.service.explain(submission).await?))
}
