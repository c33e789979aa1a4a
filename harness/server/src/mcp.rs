//! MCP over HTTP: the door of `harness/mcp`, behind the guard of this one.
//!
//! Who asks is the caller's credential, as everywhere here; a client of the
//! older revisions gets no session of the transport, because nothing is kept
//! between its requests that the store does not have.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use env_contracts::{Code, Id, Name, Problem};
use glovebox_mcp::{Door, DoorParts, Party, Received, StateKey, WAIT, Workspace};
use glovebox_plane::{Asking, TaskContext};
use http_body_util::Full;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use schemars::JsonSchema;
use serde::Deserialize;
use tower::ServiceExt as _;

use crate::auth::Caller;
use crate::body::MAX_BODY;
use crate::extract::{is_json, not_json};
use crate::problem::{Answered, Failure, usage};
use crate::routes::workspace;
use crate::state::App;
use crate::table::{Answer, Route, schema};

/// The longest refusal of the transport, in bytes: it is a sentence.
const MAX_REFUSAL: usize = 64 << 10;

pub(crate) const ROUTES: &[Route] = &[Route::post(
    "mcp",
    "/mcp",
    &[glovebox_identity::Role::Agent],
    "The Model Context Protocol, for agents: a message in, its answer out, as the protocol has it.",
    Answer::Messages,
    handler,
)
.query(schema::<Asked>)
.body(schema::<serde_json::Map<String, serde_json::Value>>)];

fn handler() -> MethodRouter<App> {
    post(serve)
}

/// How a client is configured, in its address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// The name of a folder that the operator gave this server: what tools work
    /// on.
    workspace: Option<Name>,
    /// The session that its actions belong to. Absent: one for the credential.
    session: Option<Id>,
}

type Service = StreamableHttpService<Door, NeverSessionManager>;

/// The doors of all tenants.
pub(crate) struct Doors {
    key: [u8; 32],
    made: Mutex<BTreeMap<Name, (Door, Service)>>,
}

impl Doors {
    /// `key` seals what clients carry from round to round.
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self { key, made: Mutex::default() }
    }

    fn of(&self, app: &App, tenant: &Name) -> Result<Service, Problem> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, service)) = made.get(tenant) {
            return Ok(service.clone());
        }
        let url = app.settings.url.clone();
        let door = Door::new(DoorParts {
            service: app.service(tenant)?,
            clock: app.clock.clone(),
            key: StateKey::new(self.key),
            inbox_url: Arc::new(move |approval: &Id| Some(format!("{url}/inbox/approvals/{approval}"))),
            wait: WAIT,
        });
        let handler = door.clone();
        let service = StreamableHttpService::new(
            move || Ok(handler.clone()),
            Arc::new(NeverSessionManager::default()),
            // Hosts and origins were checked by the guard, by its own list.
            StreamableHttpServerConfig::default()
                .with_legacy_session_mode(false)
                .with_allowed_hosts(Vec::<String>::new())
                .with_cancellation_token(app.ending.clone()),
        );
        made.insert(tenant.clone(), (door, service.clone()));
        Ok(service)
    }

    /// Tells what runs through them to stop, and waits for it.
    pub(crate) async fn close(&self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        for (door, _) in made.into_values() {
            door.close().await;
        }
    }
}

async fn serve(State(app): State<App>, caller: Caller, request: Request) -> Answered<Response> {
    let Query(asked) = Query::<Asked>::try_from_uri(request.uri()).map_err(Failure::from)?;
    let folder = asked.workspace.map(|name| workspace::named(&app, &name)).transpose()?;
    let session = match asked.session {
        Some(session) => session,
        None => format!("mcp-{}", caller.credential.name).parse().map_err(|error: String| usage(error))?,
    };
    let task = session.clone();
    let context = TaskContext { session, task, turn: None, purpose: None, stage: caller.stage() };
    let folder = folder.map(|(dir, access)| Workspace { dir, access });
    let party = Arc::new(Party::new(caller.principal.clone(), context, folder, Asking::Leave));
    let service = app.doors.of(&app, &caller.principal.tenant)?;
    let (mut parts, body) = request.into_parts();
    if !is_json(&parts.headers) {
        return Err(not_json().into());
    }
    let bytes = axum::body::to_bytes(body, MAX_BODY).await.map_err(|error| usage(error.to_string()))?;
    parts.extensions.insert(party);
    if let Some(received) = Received::of(&bytes) {
        parts.extensions.insert(received);
    }
    let answer = service.oneshot(Request::from_parts(parts, Full::new(bytes))).await;
    let answer = answer.map_err(|error| Failure(Problem::new(Code::BackendError, error.to_string())))?;
    said(answer.map(Body::new).into_response()).await
}

/// An answer of the protocol as it is; what the transport refuses in words of
/// its own, as every error here is said.
async fn said(answer: Response) -> Answered<Response> {
    let status = answer.status();
    if !(status.is_client_error() || status.is_server_error()) || answer.headers().contains_key(header::CONTENT_TYPE) {
        return Ok(answer);
    }
    let text = axum::body::to_bytes(answer.into_body(), MAX_REFUSAL).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    Err(match status {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::new(Code::BodyTooLarge, text).into(),
        _ if status.is_client_error() => usage(text).into(),
        _ => Problem::new(Code::BackendError, text).into(),
    })
}
