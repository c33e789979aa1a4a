//! Actions: asked for, waited for, gone on with, stopped.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use env_contracts::{ActionRequest, Code, Id, Name, Observation, Problem};
use glovebox_events::{Action, ActionState};
use glovebox_plane::{ActionView, Asking, Interrupted, Submission, Target, TaskContext, limit_workspace};
use glovebox_store::ActionFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::sessions::{Stop, stopped};
use super::{Paged, limit, workspace};
use crate::auth::Caller;
use crate::carry::{Ride, Told};
use crate::extract::{self, Args, Body, In, Json};
use crate::problem::{Answered, Failure, usage};
use crate::state::App;
use crate::table::Answer::{Action as Runs, Json as Gives};
use crate::table::{ACTS, LOOKS, OPERATES, Route, SEES, SchemaOf, schema};

pub(super) const ROUTES: &[Route] = &[
    Route::post("submitAction", "/v1/actions", ACTS, "Asks for an action, and waits for its end or for the question that it needs a person for.", Runs(schema::<Waited>), || post(submit)).query(schema::<Carry>).headers(KEY).body(schema::<Submit>),
    Route::get("listActions", "/v1/actions", LOOKS, "Actions, newest first.", Gives(schema::<Paged<Outline>>), || get(list)).query(schema::<List>),
    Route::get("getAction", "/v1/actions/{action}", SEES, "An action with its Observation, once it ended.", Gives(schema::<ActionView>), || get(one)),
    Route::post("resumeAction", "/v1/actions/{action}/resume", ACTS, "Goes on with an action that was left, as its requester: runs what was approved, waits for the answer or the end.", Runs(schema::<Waited>), || post(resume)).query(schema::<Carry>),
    Route::post("cancelAction", "/v1/actions/{action}/cancel", ACTS, "Stops an action: ends one that waits, tells one that runs.", Gives(schema::<Interrupted>), || post(cancel)).body(schema::<Stop>),
    Route::post("eraseAction", "/v1/actions/{action}/erase", OPERATES, "Erases the words and contents of an action that ended; its events stay.", Gives(schema::<Erased>), || post(erase)),
];

/// The key of the body, where clients and proxies look for it.
const KEY: &[(&str, SchemaOf, &str)] =
    &[("idempotency-key", schema::<Name>, "A name for this very request: the same again gives the same action.")];

/// How long it waits where nobody says.
const WAIT: u32 = 30;

/// How often an action that runs is looked for until it is written down.
const RECORDED: Duration = Duration::from_millis(50);

/// How an action is carried.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Carry {
    /// How many seconds this request waits for the end at most.
    #[schemars(range(min = 0, max = 50))]
    wait: Option<u32>,
    /// What happens where a person has to decide: `wait` (the default: the
    /// server goes on with it when it is answered, whether or not anybody
    /// waits), `leave` (whoever asked comes back for it), `never` (it ends).
    pub(super) asking: Option<Asking>,
}

impl Carry {
    pub(super) fn wait(&self) -> Result<Duration, Problem> {
        super::wait(self.wait.unwrap_or(WAIT))
    }
}

/// An action that is asked for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Submit {
    /// The session. Absent: the one of this credential.
    session: Option<Id>,
    /// The turn of the task, where the loop has turns.
    turn: Option<u64>,
    /// The name of a folder that the operator gave this server.
    workspace: Option<Name>,
    /// What is asked.
    #[serde(flatten)]
    request: ActionRequest,
}

/// The arguments of the same body as their bytes: they are parsed once and
/// strictly, further in.
#[derive(Deserialize)]
struct Received<'a> {
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// What a request got to know.
#[derive(Serialize, JsonSchema)]
pub(super) struct Waited {
    /// The action, with its Observation if it ended.
    #[serde(flatten)]
    view: ActionView,
}

/// An answer with its status.
pub(super) struct Reply(ActionView);

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let ended = self.0.action.state.ended();
        let place = HeaderValue::from_str(&format!("/v1/actions/{}", self.0.action.id)).ok();
        let mut response = Json(Waited { view: self.0 }).into_response();
        if !ended {
            *response.status_mut() = StatusCode::ACCEPTED;
        }
        if let Some(place) = place {
            response.headers_mut().insert(header::LOCATION, place);
        }
        response
    }
}

/// Waits beside an action, and answers what is known then.
pub(super) async fn reply(caller: &Caller, mut ride: Ride, wait: Duration) -> Answered<Reply> {
    let view = |id: &Id| caller.service.action(&caller.principal, id);
    let mut told = ride.wait(wait).await;
    loop {
        let id = match told {
            Told::Failed(problem) => return Err(problem.into()),
            Told::Done(observation) => {
                // One that could not be written down: what came of it is all there is.
                let unrecorded = unrecorded(&observation);
                let known = caller.service.action_after(&caller.principal, *observation);
                return known.map(Reply).map_err(|_| unrecorded.into());
            }
            Told::Begun(id) | Told::Left(id) => id,
        };
        match view(&id) {
            // It runs, and was not written down yet: what can change nothing
            // is, with its end or once it takes a while.
            Err(problem) if problem.code == Code::ActionUnknown => told = ride.wait(RECORDED).await,
            known => return Ok(Reply(known?)),
        }
    }
}

/// The error of an action that is nowhere.
fn unrecorded(observation: &Observation) -> Problem {
    let outcome = &observation.outcome;
    let problem = Problem::new(outcome.code.unwrap_or(Code::NotRecorded), outcome.message.clone().unwrap_or_default());
    match &outcome.help {
        Some(help) => problem.with_help(help),
        None => problem,
    }
}

async fn submit(State(app): State<App>, caller: Caller, Args(how): Args<Carry>, request: Request) -> Answered<Reply> {
    let wait = how.wait()?;
    let submission = submission(&app, &caller, request, how.asking.unwrap_or(Asking::Wait)).await?;
    let ride = app.carried.submit(&app, caller.service.clone(), submission);
    reply(&caller, ride, wait).await
}

/// What a request asks for.
pub(super) async fn submission(
    app: &App,
    caller: &Caller,
    request: Request,
    asking: Asking,
) -> Result<Submission, Failure> {
    let header = request.headers().get("idempotency-key").cloned();
    let (bytes, Submit { session, turn, workspace, mut request }) = extract::received(request, app).await?;
    let received = serde_json::from_slice::<Received<'_>>(&bytes);
    let received = received.map_err(|error| usage(format!("body: {error}")))?.arguments;
    let received = received.map(|raw| raw.get().as_bytes().to_vec());
    if let Some(key) = header {
        let key = key.to_str().ok().and_then(|key| key.parse::<Name>().ok());
        let key = key.ok_or_else(|| usage("idempotency-key: it is no name"))?;
        if request.idempotency_key.as_ref().is_some_and(|own| *own != key) {
            return Err(usage("the key of the header is not that of the body").into());
        }
        request.idempotency_key = Some(key);
    }
    let mut folder = None;
    if let Some(name) = &workspace {
        let (path, access) = workspace::named(app, name)?;
        let tool = caller.service.capability(&caller.principal, &request.capability)?;
        limit_workspace(&mut request.scope, &tool.manifest.contract, access);
        folder = Some(path);
    }
    Ok(Submission {
        context: context(caller, session, request.task_id.clone(), turn)?,
        principal: caller.principal.clone(),
        request,
        received,
        workspace: folder,
        // Files of this host a request can't name: artifacts come by URI.
        inputs: BTreeMap::new(),
        asking,
        held: asking == Asking::Wait,
    })
}

/// What an action belongs to.
pub(super) fn context(
    caller: &Caller,
    session: Option<Id>,
    task: Option<Id>,
    turn: Option<u64>,
) -> Result<TaskContext, Problem> {
    if let (None, Some(task)) = (&session, &task) {
        return context_of(caller, task, turn);
    }
    let session = match session {
        Some(session) => session,
        None => own_session(caller)?,
    };
    let task = task.unwrap_or_else(|| session.clone());
    Ok(TaskContext { session, task, turn, purpose: None, stage: caller.stage() })
}

/// The same for a task that was opened: it knows its session.
pub(super) fn context_of(caller: &Caller, task: &Id, turn: Option<u64>) -> Result<TaskContext, Problem> {
    let view = caller.service.task(&caller.principal, task)?;
    let session = view.task.session;
    Ok(TaskContext { session, task: task.clone(), turn, purpose: None, stage: caller.stage() })
}

/// The session of a client that names none: one for each credential.
fn own_session(caller: &Caller) -> Result<Id, Problem> {
    format!("http-{}", caller.credential.name).parse().map_err(|error: String| usage(error))
}

/// Which actions.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Of this session.
    session: Option<Id>,
    /// Of this task.
    task: Option<Id>,
    /// In this state.
    state: Option<ActionState>,
    /// Those after this one: `next` of the page before.
    after: Option<Id>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// An action as everybody may know it who sees that it is there.
#[derive(Serialize, JsonSchema)]
struct Outline {
    /// Its id.
    id: Id,
    /// The session.
    session: Id,
    /// The task.
    task: Id,
    /// The capability.
    capability: String,
    /// Where it is.
    state: ActionState,
    /// Who asked.
    principal: env_contracts::Principal,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<env_contracts::OutcomeKind>,
    /// When it was asked for, in milliseconds since 1970.
    requested_ms: u64,
    /// When it last changed, in milliseconds since 1970.
    changed_ms: u64,
}

impl From<Action> for Outline {
    fn from(action: Action) -> Self {
        Self {
            capability: action.capability.to_string(),
            outcome: action.end.map(|end| end.kind),
            id: action.id,
            session: action.session,
            task: action.task,
            state: action.state,
            principal: action.principal,
            requested_ms: action.requested_ms,
            changed_ms: action.changed_ms,
        }
    }
}

async fn list(caller: Caller, Args(list): Args<List>) -> Answered<Json<Paged<Outline>>> {
    let filter = ActionFilter {
        session: list.session,
        task: list.task,
        states: list.state.into_iter().collect(),
        after: list.after,
        limit: limit(list.limit)?,
        ..ActionFilter::default()
    };
    Ok(Json(Paged::of(caller.service.actions(&caller.principal, filter)?, Outline::from)))
}

async fn one(caller: Caller, In(id): In<Id>) -> Answered<Json<ActionView>> {
    Ok(Json(caller.service.action(&caller.principal, &id)?))
}

async fn resume(State(app): State<App>, caller: Caller, In(id): In<Id>, Args(how): Args<Carry>) -> Answered<Reply> {
    let wait = how.wait()?;
    let action = caller.service.action(&caller.principal, &id)?.action;
    let asking = how.asking.unwrap_or(Asking::Wait);
    let ride = app.carried.resume(&app, caller.service.clone(), caller.principal.clone(), &action, asking);
    reply(&caller, ride, wait).await
}

async fn cancel(caller: Caller, In(id): In<Id>, Body(stop): Body<Stop>) -> Answered<Json<Interrupted>> {
    stopped(&caller, Target::Action(id), stop).await
}

/// What was erased.
#[derive(Serialize, JsonSchema)]
struct Erased {
    /// How many texts and contents.
    erased: u64,
}

async fn erase(caller: Caller, In(id): In<Id>) -> Answered<Json<Erased>> {
    Ok(Json(Erased { erased: caller.service.erase(&caller.principal, &id).await? }))
}
