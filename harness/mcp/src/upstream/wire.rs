//! What passes between here and a server: counted, and remembered where it
//! failed, so that what became of a call can be told.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// It never left: there was nobody to send it to.
    NotSent(String),
    /// The server took nothing of it: it leads elsewhere, or lets nobody in.
    NotTaken(String),
    /// More came than may come.
    TooMuch,
    /// It was sent, and then something broke.
    Broken(String),
    /// What came is not what the protocol has at this place.
    Wrong(String),
}

/// What failed first, which is what counts: others follow from it. Cloning
/// shares it.
#[derive(Clone, Default)]
pub(super) struct Faults(Arc<Mutex<Option<Fault>>>);

impl Faults {
    /// What failed first.
    pub(super) fn first(&self) -> Option<Fault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Something failed.
    pub(super) fn note(&self, fault: Fault) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
    }
}

/// A client that counts and remembers. Cloning shares both.
#[derive(Clone)]
pub(super) struct Wire {
    client: reqwest::Client,
    shared: Arc<Shared>,
}

struct Shared {
    /// Bytes that may still pass, in both directions.
    left: AtomicU64,
    faults: Faults,
}

type Answer = Result<StreamableHttpPostResponse, StreamableHttpError<reqwest::Error>>;
type Events = BoxStream<'static, Result<sse_stream::Sse, SseError>>;

impl Wire {
    /// Over this client; so many bytes may pass in all.
    pub(super) fn new(client: reqwest::Client, most: u64) -> Self {
        Self { client, shared: Arc::new(Shared { left: AtomicU64::new(most), faults: Faults::default() }) }
    }

    /// What fails from here on.
    pub(super) fn faults(&self) -> Faults {
        self.shared.faults.clone()
    }

    fn counted(&self, events: Events) -> Events {
        let shared = self.shared.clone();
        let counted = events.map(move |event| match event {
            Ok(event) => {
                let size = event.data.as_ref().map_or(0, String::len) as u64;
                shared.count(size.saturating_add(EVENT)).then_some(Ok(event))
            }
            Err(error) => {
                shared.note(of_stream(&error));
                Some(Err(error))
            }
        });
        // It ends where it is too much.
        counted.take_while(|event| std::future::ready(event.is_some())).filter_map(std::future::ready).boxed()
    }
}

/// What an event counts beside its data, so that empty ones have an end too.
const EVENT: u64 = 16;

impl Shared {
    fn note(&self, fault: Fault) {
        self.faults.note(fault);
    }

    /// Whether so many bytes more may pass.
    fn count(&self, size: u64) -> bool {
        let counted = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(size));
        if counted.is_err() {
            self.note(Fault::TooMuch);
        }
        counted.is_ok()
    }
}

fn of_stream(error: &SseError) -> Fault {
    let mut cause: &(dyn std::error::Error + 'static) = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = match error {
        SseError::Body(inner) => inner.to_string(),
        _ => cause.to_string(),
    };
    // The library says so and in no other way.
    if text.contains("exceeded the maximum size") { Fault::TooMuch } else { Fault::Broken(text) }
}

/// The status line of an answer, without what came with it.
fn status(text: &str) -> &str {
    text.split(':').next().unwrap_or_default()
}

/// Why a request was not answered.
fn of_request(error: &StreamableHttpError<reqwest::Error>) -> Fault {
    match error {
        StreamableHttpError::Client(error) if error.is_connect() || error.is_builder() => Fault::NotSent(cause(error)),
        StreamableHttpError::Client(error) if error.status().is_some() => {
            Fault::NotTaken(error.status().map(|status| status.to_string()).unwrap_or_default())
        }
        StreamableHttpError::Client(error) => Fault::Broken(cause(error)),
        StreamableHttpError::AuthRequired(_) => Fault::NotTaken("it lets nobody in without a credential (401)".into()),
        StreamableHttpError::InsufficientScope(_) => Fault::NotTaken("the credential is not enough (403)".into()),
        StreamableHttpError::ResponseBodyTooLarge { .. } => Fault::TooMuch,
        // The library's own words for a status that is neither success nor
        // trouble of the server's: nothing was begun.
        StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 3") => {
            Fault::NotTaken(format!("it leads elsewhere, where nothing is sent ({})", status(text)))
        }
        StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 4") => {
            Fault::NotTaken(status(text).to_owned())
        }
        other => Fault::Broken(other.to_string()),
    }
}

/// The innermost cause, without the address.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &(dyn std::error::Error + 'static) = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// What a message has on the wire, in bytes.
fn size(message: &impl serde::Serialize) -> u64 {
    serde_json::to_vec(message).map_or(0, |text| text.len() as u64)
}

/// Whether somebody waits for the answer. What is only told may fail.
fn waits(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(request) if !matches!(request.request, ClientRequest::PingRequest(_)))
}

impl StreamableHttpClient for Wire {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Answer {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, auth, headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Answer {
        let waits = waits(&message);
        if !self.shared.count(size(&message)) {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: 0 });
        }
        let answer = self.client.post_message_with_response_limits(uri, message, session, auth, headers, limits).await;
        match answer {
            Ok(StreamableHttpPostResponse::Sse(events, session)) => {
                Ok(StreamableHttpPostResponse::Sse(self.counted(events), session))
            }
            Ok(StreamableHttpPostResponse::Json(message, session)) => {
                if self.shared.count(size(&message)) {
                    Ok(StreamableHttpPostResponse::Json(message, session))
                } else {
                    Err(StreamableHttpError::ResponseBodyTooLarge { max_size: 0 })
                }
            }
            Ok(other) => Ok(other),
            Err(error) => {
                if waits {
                    self.shared.note(of_request(&error));
                }
                Err(error)
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), StreamableHttpError<Self::Error>> {
        self.client.delete_session(uri, session, auth, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, StreamableHttpError<Self::Error>> {
        Ok(self.counted(self.client.get_stream(uri, session, last, auth, headers).await?))
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        most: usize,
    ) -> Result<Events, StreamableHttpError<Self::Error>> {
        let events = self.client.get_stream_with_max_sse_event_size(uri, session, last, auth, headers, most).await?;
        Ok(self.counted(events))
    }
}
