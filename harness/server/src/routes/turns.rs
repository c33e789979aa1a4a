//! Turns: the steps of a loop, and what it records and proposes in them.

use axum::extract::State;
use axum::routing::post;
use env_contracts::{Digest, Id, Name};
use glovebox_events::{Entry, Task, Told};
use glovebox_plane::{Asking, Interrupted, Made, OpenTurn, PlanProposal, ResultProposal, Target, Telling, TurnStart};
use schemars::JsonSchema;
use serde::Deserialize;

use super::actions::{self, Carry, Waited};
use super::sessions::{Stop, stopped};
use crate::auth::Caller;
use crate::extract::{Args, Body, In, Json};
use crate::problem::{Answered, usage};
use crate::state::App;
use crate::table::Answer::{Action as Runs, Json as Gives};
use crate::table::{ACTS, Route, schema};

pub(super) const ROUTES: &[Route] = &[
    Route::post("openTurn", "/v1/tasks/{task}/turns", ACTS, "Begins the next step of a loop, and tells it everything that was said meanwhile.", Gives(schema::<TurnStart>), || post(open)).body(schema::<Open>),
    Route::post("closeTurn", "/v1/tasks/{task}/turns/close", ACTS, "Ends a step without another.", Gives(schema::<Task>), || post(close)).body(schema::<Close>),
    Route::post("interruptTurn", "/v1/tasks/{task}/turns/interrupt", ACTS, "Stops the turn that a task is in: the loop goes on with another.", Gives(schema::<Interrupted>), || post(interrupt)).body(schema::<Stop>),
    Route::post("tellTask", "/v1/tasks/{task}/entries", ACTS, "Records something into the log of a task: words of a model, progress, a plan, a call of a model, what a verifier found.", Gives(schema::<Entry>), || post(tell)).body(schema::<Tell>),
    Route::post("submitPlan", "/v1/tasks/{task}/plan", ACTS, "Asks for a decision on what a loop plans. It gives no right to any step.", Runs(schema::<Waited>), || post(plan)).query(schema::<Carry>).body(schema::<Plan>),
    Route::post("submitResult", "/v1/tasks/{task}/result", ACTS, "Asks whether a result is accepted.", Runs(schema::<Waited>), || post(result)).query(schema::<Carry>).body(schema::<Outcome>),
];

/// The next step of a loop.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Open {
    /// The number of the turn that the task was in; 0: it had none.
    expected_turn: u64,
    /// The version of the goal that the loop works for.
    goal_version: u32,
    /// A name for this very call: with it, the answer to a call whose answer
    /// was lost can be had again.
    key: Option<Name>,
}

async fn open(caller: Caller, In(task): In<Id>, Body(open): Body<Open>) -> Answered<Json<TurnStart>> {
    let open = OpenTurn { task, expected_turn: open.expected_turn, goal_version: open.goal_version, key: open.key };
    Ok(Json(caller.service.open_turn(&caller.principal, open).await?))
}

/// Which step is over.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Close {
    /// Its number.
    turn: u64,
}

async fn close(caller: Caller, In(task): In<Id>, Body(close): Body<Close>) -> Answered<Json<Task>> {
    Ok(Json(caller.service.close_turn(&caller.principal, &task, close.turn).await?))
}

async fn interrupt(caller: Caller, In(task): In<Id>, Body(stop): Body<Stop>) -> Answered<Json<Interrupted>> {
    stopped(&caller, Target::Turn(task), stop).await
}

/// What is recorded.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Tell {
    /// In which turn.
    turn: Option<u64>,
    /// The entries, actions or questions that caused it.
    #[serde(default)]
    parents: Vec<Id>,
    /// What it is.
    what: Told,
    /// The words or the document.
    content: Option<String>,
}

async fn tell(caller: Caller, In(task): In<Id>, Body(tell): Body<Tell>) -> Answered<Json<Entry>> {
    let telling = Telling { turn: tell.turn, parents: tell.parents, what: tell.what, content: tell.content };
    Ok(Json(caller.service.tell(&caller.principal, &task, telling).await?))
}

/// What a loop plans.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Plan {
    /// In which turn.
    turn: Option<u64>,
    /// The plan.
    plan: PlanProposal,
}

async fn plan(
    State(app): State<App>,
    caller: Caller,
    In(task): In<Id>,
    Args(how): Args<Carry>,
    Body(body): Body<Plan>,
) -> Answered<actions::Reply> {
    let wait = how.wait()?;
    let context = actions::context_of(&caller, &task, body.turn)?;
    let (service, principal) = (caller.service.clone(), caller.principal.clone());
    let session = context.session.clone();
    let asking = how.asking.unwrap_or(Asking::Wait);
    let ride = app.carried.carry(&app, principal.clone(), session, None, move |watch, stop| async move {
        service.submit_plan(&principal, context, body.plan, asking, watch, &stop).await
    });
    actions::reply(&caller, ride, wait).await
}

/// What a loop made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Outcome {
    /// In which turn.
    turn: Option<u64>,
    /// What it made: the URI of an artifact.
    artifact: Option<String>,
    /// The sha256 of what it made, where that lies elsewhere.
    sha256: Option<Digest>,
    /// What it has to be like, in words.
    condition: String,
    /// What verifiers found: entries of the task's log.
    #[serde(default)]
    evidence: Vec<Id>,
}

async fn result(
    State(app): State<App>,
    caller: Caller,
    In(task): In<Id>,
    Args(how): Args<Carry>,
    Body(body): Body<Outcome>,
) -> Answered<actions::Reply> {
    let wait = how.wait()?;
    let context = actions::context_of(&caller, &task, body.turn)?;
    let artifact = match (body.artifact, body.sha256) {
        (Some(uri), None) => Made::Artifact(uri),
        (None, Some(sha256)) => Made::Content(sha256),
        _ => return Err(usage("a result is an artifact, or content of this sha256").into()),
    };
    let proposal = ResultProposal { artifact, condition: body.condition, evidence: body.evidence };
    let (service, principal) = (caller.service.clone(), caller.principal.clone());
    let session = context.session.clone();
    let asking = how.asking.unwrap_or(Asking::Wait);
    let ride = app.carried.carry(&app, principal.clone(), session, None, move |watch, stop| async move {
        service.submit_result(&principal, context, proposal, asking, watch, &stop).await
    });
    actions::reply(&caller, ride, wait).await
}
