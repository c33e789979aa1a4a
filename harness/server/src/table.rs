//! The routes, as data: who may use them, what they take and give. The
//! router, the OpenAPI document and the table of roles are made from it.

use axum::Router;
use axum::handler::Handler as _;
use axum::middleware::from_fn_with_state;
use axum::routing::MethodRouter;
use glovebox_identity::Role;
use schemars::{Schema, SchemaGenerator};

use crate::auth;
use crate::routes;
use crate::state::App;
use crate::telemetry;

/// The schema of a type.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One thing that can be asked.
pub(crate) struct Route {
    /// Its name in the OpenAPI document.
    pub(crate) id: &'static str,
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// The roles that may use it. Empty: anybody, without a credential.
    pub(crate) who: &'static [Role],
    /// What it does, in a sentence.
    pub(crate) does: &'static str,
    /// What can stand behind the question mark.
    pub(crate) query: Option<SchemaOf>,
    /// Headers that mean something to it: name, type, meaning.
    pub(crate) headers: &'static [(&'static str, SchemaOf, &'static str)],
    pub(crate) body: Option<SchemaOf>,
    pub(crate) answer: Answer,
    /// Whether it is a page for people, who are sent to the login.
    pub(crate) page: bool,
    pub(crate) handler: fn() -> MethodRouter<App>,
}

impl Route {
    const fn new(
        method: &'static str,
        id: &'static str,
        path: &'static str,
        who: &'static [Role],
        does: &'static str,
        answer: Answer,
        handler: fn() -> MethodRouter<App>,
    ) -> Self {
        Self { id, method, path, who, does, query: None, headers: &[], body: None, answer, page: false, handler }
    }

    /// Something to look at.
    pub(crate) const fn get(
        id: &'static str,
        path: &'static str,
        who: &'static [Role],
        does: &'static str,
        answer: Answer,
        handler: fn() -> MethodRouter<App>,
    ) -> Self {
        Self::new("get", id, path, who, does, answer, handler)
    }

    /// Something to do.
    pub(crate) const fn post(
        id: &'static str,
        path: &'static str,
        who: &'static [Role],
        does: &'static str,
        answer: Answer,
        handler: fn() -> MethodRouter<App>,
    ) -> Self {
        Self::new("post", id, path, who, does, answer, handler)
    }

    /// With a query.
    pub(crate) const fn query(self, query: SchemaOf) -> Self {
        Self { query: Some(query), ..self }
    }

    /// With headers of its own.
    pub(crate) const fn headers(self, headers: &'static [(&'static str, SchemaOf, &'static str)]) -> Self {
        Self { headers, ..self }
    }

    /// With a body.
    pub(crate) const fn body(self, body: SchemaOf) -> Self {
        Self { body: Some(body), ..self }
    }

    /// A page for people.
    pub(crate) const fn page(self) -> Self {
        Self { page: true, ..self }
    }
}

/// What comes back where all went well.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    /// JSON.
    Json(SchemaOf),
    /// JSON, with 202 where the action has not ended.
    Action(SchemaOf),
    /// `text/event-stream`; 204 where nothing will come any more.
    Events,
    /// Bytes.
    Bytes,
    /// Bytes, also parts of them.
    Ranges,
    /// Text of this media type.
    Text(&'static str),
    /// Messages of the Model Context Protocol.
    Messages,
}

/// Everybody who looks at things.
pub(crate) const LOOKS: &[Role] = &[Role::Agent, Role::Observer, Role::Approver, Role::Operator];
/// Everybody who sees objects, and not only that they are there.
pub(crate) const SEES: &[Role] = &[Role::Agent, Role::Approver, Role::Operator];
/// Whoever runs loops and asks for actions.
pub(crate) const ACTS: &[Role] = &[Role::Agent, Role::Operator];
/// People who decide.
pub(crate) const DECIDES: &[Role] = &[Role::Approver, Role::Operator];
/// People who look at what waits.
pub(crate) const WATCHES: &[Role] = &[Role::Observer, Role::Approver, Role::Operator];
/// Who runs this.
pub(crate) const OPERATES: &[Role] = &[Role::Operator];
/// Anybody, without a credential.
pub(crate) const ANYBODY: &[Role] = &[];

/// Every route.
pub(crate) fn all() -> impl Iterator<Item = &'static Route> {
    routes::ALL.iter().flat_map(|part| part.iter())
}

/// The router over all of them.
pub(crate) fn router(app: &App) -> Router {
    let mut router = Router::new();
    for route in all() {
        let guarded = (route.handler)()
            .route_layer(from_fn_with_state((app.clone(), route), auth::guard))
            .route_layer(from_fn_with_state((app.clone(), Some(route)), telemetry::watch));
        router = router.route(route.path, guarded);
    }
    let watched = from_fn_with_state((app.clone(), None), telemetry::watch);
    router
        // Bodies are bounded before (`body.rs`).
        .layer(axum::extract::DefaultBodyLimit::disable())
        .fallback(routes::unknown.layer(watched.clone()))
        .method_not_allowed_fallback(routes::not_this_way.layer(watched))
        .with_state(app.clone())
}

/// The schema of a type, as a field of the table.
pub(crate) fn schema<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}
