//! Spans for an OpenTelemetry collector: one a request, one an action.
//!
//! They are made beside the work and handed over by a thread of their own,
//! from a queue that drops what it has no room for: a collector that is slow or
//! gone slows nothing down and fails nothing. What was asked for, with what
//! arguments and what came of it is in no span: the log has it.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::{HeaderMap, Request, Response};
use bytes::{Bytes, BytesMut};
use env_contracts::{Code, Problem};
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracer, SdkTracerProvider, Span};
use prometheus_client::metrics::counter::Counter;
use tokio::runtime::Handle;

use super::genai;
use super::log::Logs;

/// How many spans wait to be handed over at most: some seconds of a busy
/// server, about 4 MiB.
const QUEUE: usize = 8192;

/// How many are handed over at one time: what collectors expect.
const BATCH: usize = 512;

/// How often they are handed over.
const EVERY: Duration = Duration::from_secs(2);

/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How much of a collector's answer is read, in bytes: it says how many spans
/// it refused.
const MAX_ANSWER: usize = 64 << 10;

/// Where a collector takes spans, below its address.
const PATH: &str = "/v1/traces";

/// An action that ended, as its span tells it.
pub(super) struct Deed<'a> {
    pub(super) tool: &'a str,
    pub(super) action: &'a str,
    pub(super) session: &'a str,
    pub(super) outcome: String,
    pub(super) code: Option<Code>,
    pub(super) asked_ms: u64,
    pub(super) ended_ms: u64,
    pub(super) waited_ms: u64,
    /// The request that brought it.
    pub(super) parent: Option<SpanContext>,
}

/// Who makes spans.
pub(super) struct Spans {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    traceparent: TraceContextPropagator,
}

impl Spans {
    /// Hands them to the collector at this address.
    ///
    /// # Errors
    /// `config-invalid` for an address that is none.
    pub(super) fn to(collector: &str, logs: Logs, lost: Counter<u64, AtomicU64>) -> Result<Self, Problem> {
        let invalid = |why: String| {
            Problem::new(Code::ConfigInvalid, format!("`serve.otlp`: {why}"))
                .with_help("name the HTTP address of a collector: `http://127.0.0.1:4318`")
        };
        let url = url::Url::parse(collector).map_err(|error| invalid(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid(format!("`{}` is neither http nor https", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid("an address has no credentials".to_owned())
                .with_help("put them into $OTEL_EXPORTER_OTLP_HEADERS"));
        }
        let handle = Handle::try_current().map_err(|error| invalid(error.to_string()))?;
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(PATIENCE)
            .build()
            .map_err(|error| Problem::new(Code::BackendError, format!("cannot call out: {error}")))?;
        let courier = Courier { client, handle, logs, lost, told: AtomicBool::new(false) };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(courier)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}{PATH}", collector.trim_end_matches('/')))
            .with_timeout(PATIENCE)
            .build()
            .map_err(|error| invalid(error.to_string()))?;
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(EVERY)
            .build();
        let batches = BatchSpanProcessor::builder(exporter).with_batch_config(config).build();
        let resource = Resource::builder_empty()
            .with_attribute(KeyValue::new(genai::SERVICE_NAME, genai::SCOPE))
            .with_attribute(KeyValue::new(genai::SERVICE_VERSION, env!("CARGO_PKG_VERSION")))
            .build();
        let provider = SdkTracerProvider::builder().with_span_processor(batches).with_resource(resource).build();
        let tracer = provider.tracer(genai::SCOPE);
        Ok(Self { provider, tracer, traceparent: TraceContextPropagator::new() })
    }

    /// A request began.
    pub(super) fn request(&self, method: &'static str, path: &'static str, headers: &HeaderMap) -> Span {
        let parent = self.traceparent.extract_with_context(&Context::new(), &HeaderExtractor(headers));
        SpanBuilder::from_name(format!("{method} {path}"))
            .with_kind(SpanKind::Server)
            .with_attributes([KeyValue::new(genai::HTTP_METHOD, method), KeyValue::new(genai::HTTP_ROUTE, path)])
            .start_with_context(&self.tracer, &parent)
    }

    /// It was answered.
    pub(super) fn answered(mut span: Span, status: u16, code: Option<Code>) {
        span.set_attribute(KeyValue::new(genai::HTTP_STATUS, i64::from(status)));
        if let Some(code) = code {
            span.set_attribute(KeyValue::new(genai::ERROR_TYPE, code.as_str()));
        }
        if status >= 500 {
            span.set_status(Status::error(""));
        }
        span.end();
    }

    /// An action ended.
    pub(super) fn action(&self, deed: Deed<'_>) {
        let parent = match deed.parent {
            Some(parent) => Context::new().with_remote_span_context(parent),
            None => Context::new(),
        };
        let mut attributes = vec![
            KeyValue::new(genai::OPERATION_NAME, genai::EXECUTE_TOOL),
            KeyValue::new(genai::TOOL_NAME, deed.tool.to_owned()),
            KeyValue::new(genai::TOOL_TYPE, genai::FUNCTION),
            KeyValue::new(genai::TOOL_CALL_ID, deed.action.to_owned()),
            KeyValue::new(genai::CONVERSATION_ID, deed.session.to_owned()),
            KeyValue::new(genai::OUTCOME, deed.outcome),
            KeyValue::new(genai::WAITED, i64::try_from(deed.waited_ms).unwrap_or(i64::MAX)),
        ];
        attributes.extend(deed.code.map(|code| KeyValue::new(genai::ERROR_TYPE, code.as_str())));
        let mut span = SpanBuilder::from_name(format!("{} {}", genai::EXECUTE_TOOL, deed.tool))
            .with_kind(SpanKind::Internal)
            .with_start_time(moment(deed.asked_ms))
            .with_attributes(attributes)
            .start_with_context(&self.tracer, &parent);
        if deed.code.is_some() {
            span.set_status(Status::error(""));
        }
        span.end_with_timestamp(moment(deed.ended_ms));
    }

    /// Hands over what there is, for a little while.
    pub(super) async fn close(&self) {
        let provider = self.provider.clone();
        let closing = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(PATIENCE));
        // What was not taken by then was told and counted.
        let _ = tokio::time::timeout(PATIENCE, closing).await;
    }
}

fn moment(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

/// Carries batches to the collector, on the runtime of the server.
struct Courier {
    client: reqwest::Client,
    handle: Handle,
    logs: Logs,
    lost: Counter<u64, AtomicU64>,
    /// Whether it was told that the collector takes nothing.
    told: AtomicBool,
}

impl fmt::Debug for Courier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Courier")
    }
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Courier {
    fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> Sending<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            // The thread that waits here has no reactor.
            let sent = self.handle.spawn(send(self.client.clone(), request)).await;
            let sent = sent.unwrap_or_else(|error| Err(error.into()));
            let why = match &sent {
                Ok(answer) if answer.status().is_success() => None,
                Ok(answer) => Some(format!("the collector answered {}", answer.status())),
                Err(error) => Some(error.to_string()),
            };
            match why {
                None => self.told.store(false, Ordering::Relaxed),
                Some(why) => {
                    self.lost.inc();
                    if !self.told.swap(true, Ordering::Relaxed) {
                        self.logs.traces(&why);
                    }
                }
            }
            sent
        })
    }
}

async fn send(client: reqwest::Client, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let request = reqwest::Request::try_from(request)?;
    let mut answer = client.execute(request).await.map_err(reqwest::Error::without_url)?;
    let status = answer.status();
    let mut body = BytesMut::new();
    while let Some(part) = answer.chunk().await? {
        if body.len() + part.len() > MAX_ANSWER {
            return Err("the collector's answer has no end".into());
        }
        body.extend_from_slice(&part);
    }
    Ok(Response::builder().status(status).body(body.freeze())?)
}

/// Which request brought which action.
#[derive(Default)]
pub(super) struct Parents(Mutex<Newest>);

/// The newest of them.
#[derive(Default)]
struct Newest {
    of: HashMap<String, SpanContext>,
    order: VecDeque<String>,
}

/// How many are known: each has some hundred bytes. The oldest go; their spans
/// have no parent then.
const MOST_PARENTS: usize = 16_384;

impl Parents {
    pub(super) fn put(&self, action: &str, parent: SpanContext) {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.order.len() >= MOST_PARENTS
            && let Some(oldest) = newest.order.pop_front()
        {
            newest.of.remove(&oldest);
        }
        newest.order.push_back(action.to_owned());
        newest.of.insert(action.to_owned(), parent);
    }

    pub(super) fn take(&self, action: &str) -> Option<SpanContext> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).of.remove(action)
    }
}
