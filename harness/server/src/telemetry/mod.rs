//! What operators see of a running server: figures, lines, spans.
//!
//! Requests are seen by a layer around each route; actions by the events that
//! are recorded, whoever asked for them. Nothing here decides, and nothing that
//! is told here can fail a request.

mod doing;
mod genai;
mod log;
mod metrics;
mod spans;

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use env_contracts::{Code, Id, Name, Problem};
use opentelemetry::trace::{Span as _, SpanContext};
use tokio::time::Instant;

pub use log::{LogForm, LogLevel, Logs};
pub(crate) use metrics::{OPEN_METRICS, OpenStream, Standing};

use crate::state::App;
use crate::table::Route;
use doing::Doing;
use metrics::Metrics;
use spans::Spans;

/// Requests of these routes have no span: machines send them all day, and they
/// touch nothing.
const UNTRACED: [&str; 4] = ["health", "ready", "metrics", "asset"];

tokio::task_local! {
    /// The span of the request that a task works for.
    static REQUEST: SpanContext;
}

/// Everything that is seen of a server.
pub(crate) struct Telemetry {
    pub(crate) metrics: Metrics,
    pub(crate) logs: Logs,
    doing: Doing,
    spans: Option<Spans>,
}

/// Who asked, as the layer around a route gets to know it from the guard.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) credential: Name,
    pub(crate) tenant: Name,
}

/// A request that was answered.
struct Finished<'a> {
    method: &'static str,
    route: &'static str,
    status: u16,
    took: Duration,
    caller: Option<&'a Asker>,
    code: Option<Code>,
}

impl Telemetry {
    /// `otlp`: the address of a collector, or none.
    ///
    /// # Errors
    /// `config-invalid` for an address that is none.
    pub(crate) fn new(logs: Logs, otlp: Option<&str>) -> Result<Self, Problem> {
        let metrics = Metrics::new();
        let spans = otlp.map(|collector| Spans::to(collector, logs.clone(), metrics.lost())).transpose()?;
        Ok(Self { metrics, logs, doing: Doing::default(), spans })
    }

    /// Remembers which request brought an action, where this task works for
    /// one.
    pub(crate) fn origin(&self) -> Option<SpanContext> {
        self.spans.as_ref().and_then(|_| REQUEST.try_with(Clone::clone).ok())
    }

    /// An action began.
    pub(crate) fn begun(&self, action: &Id, origin: Option<&SpanContext>) {
        if let Some(origin) = origin {
            self.doing.parents.put(action.as_str(), origin.clone());
        }
    }

    /// Hands over what was not handed over yet.
    pub(crate) async fn close(&self) {
        if let Some(spans) = &self.spans {
            spans.close().await;
        }
    }
}

/// The layer around a route; around what there is no route for, with `None`.
pub(crate) async fn watch(
    State((app, route)): State<(App, Option<&'static Route>)>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let telemetry = &app.telemetry;
    let (id, path) = route.map_or(("none", ""), |route| (route.id, route.path));
    let method = known(request.method());
    let host = request.headers().get(header::HOST).cloned();
    let origin = request.headers().get(header::ORIGIN).cloned();
    let traced = telemetry.spans.as_ref().filter(|_| !UNTRACED.contains(&id));
    let span = traced.map(|spans| spans.request(method, path, request.headers()));
    let mut response = match &span {
        Some(span) => REQUEST.scope(span.span_context().clone(), next.run(request)).await,
        None => next.run(request).await,
    };
    let asker = response.extensions_mut().remove::<Asker>();
    let code = response.extensions().get::<Code>().copied();
    let status = response.status().as_u16();
    if let Some(span) = span {
        Spans::answered(span, status, code);
    }
    let done = Finished { method, route: id, status, took: began.elapsed(), caller: asker.as_ref(), code };
    telemetry.metrics.request(&done);
    telemetry.logs.request(&done);
    if code == Some(Code::OriginRefused) {
        telemetry.logs.foreign(
            id,
            host.as_ref().map(HeaderValue::as_bytes),
            origin.as_ref().map(HeaderValue::as_bytes),
        );
    }
    response
}

/// The name of a method. One that a stranger made up is none.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}
