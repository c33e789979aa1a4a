//! A connection to a server: opened, asked what there is, closed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use env_contracts::text::escaped_line;
use env_contracts::{Code, Problem};
use rmcp::ClientHandler;
use rmcp::model::{
    ClientConfig, Implementation, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, NotificationContext, Peer, RoleClient,
    RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::NeverRetry;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::headers::headers;
use super::pipe::Pipe;
use super::program::Silent;
use super::wire::{Fault, Faults, Wire};
use super::{Outside, Server};

/// How long it may take to open a connection and to list what there is: an
/// action waits for it before it is decided on.
pub(super) const OPENING: Duration = Duration::from_secs(20);

/// The same for a program, with what it may take to make a container for it.
const STARTING: Duration = Duration::from_secs(120);

/// Pages of a list, and tools in all: more is no list of tools that an operator
/// would read.
const MAX_PAGES: usize = 64;
const MAX_TOOLS: usize = 1024;

/// Bytes of one page of a list.
const MAX_PAGE: u64 = 4 << 20;

/// How long is waited for a server to take note that the connection ends.
const CLOSING: Duration = Duration::from_secs(2);

/// What of a server's own words stands in a message, in bytes.
const WORDS: usize = 300;

/// Reports of progress that wait to be passed on: what is slower is left out.
const QUEUE: usize = 16;

/// An open connection.
pub(super) struct Connection {
    service: RunningService<RoleClient, Listener>,
    faults: Faults,
    /// What stands after "the MCP server".
    at: String,
}

/// Hears what a server says meanwhile. It is asked for nothing: what it wants
/// of its client is refused, because the client declares that it has nothing.
#[derive(Clone, Default)]
struct Listener {
    progress: Arc<Mutex<Option<mpsc::Sender<ProgressNotificationParam>>>>,
}

impl ClientHandler for Listener {
    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let sender = self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(sender) = sender {
            // Whoever hears of it late hears of what comes next.
            let _ = sender.try_send(params);
        }
    }

    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.client_info = Implementation::new("glovebox", env!("CARGO_PKG_VERSION"));
        config
    }
}

impl Connection {
    /// Opens one, over which an answer may have so many bytes, and all that
    /// passes so many.
    ///
    /// # Errors
    /// `upstream-address`, `upstream-header`, `upstream-unreachable`,
    /// `upstream-invalid`.
    pub(super) async fn open(server: &Server, most: u64, total: u64, outside: &dyn Outside) -> Result<Self, Problem> {
        let at = format!("at {}", server.host()?);
        let wire = Wire::new(outside.client(&server.url, server.private)?, total);
        let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str())
            // One call, one connection: nothing is sent again by itself.
            .reinit_on_expired_session(false)
            .max_concurrent_requests(1)
            .custom_headers(headers(server, outside)?)
            .max_json_response_size(bytes(most))
            .max_sse_event_size(bytes(most))
            .max_error_response_size(WORDS);
        config.retry_config = Arc::new(NeverRetry::default());
        let transport = StreamableHttpClientTransport::with_client(wire.clone(), config);
        let serving = Box::pin(Listener::default().serve_with_lifecycle(transport, lifecycle()));
        let faults = wire.faults();
        match tokio::time::timeout(OPENING, serving).await {
            Ok(Ok(service)) => Ok(Self { service, faults, at }),
            Ok(Err(error)) => Err(unopened(&at, faults.first(), &error)),
            Err(_) => Err(slow(&at)),
        }
    }

    /// Opens one to a program over its standard streams, where an answer may
    /// have so many bytes. It may not have begun yet.
    ///
    /// # Errors
    /// [`Silent`]: what it means is not known before it is known what became of
    /// the program.
    pub(super) async fn over(
        said: impl AsyncRead + Send + Unpin + 'static,
        told: impl AsyncWrite + Send + Unpin + 'static,
        at: &str,
        most: usize,
    ) -> Result<Self, Silent> {
        let faults = Faults::default();
        let pipe = Pipe::new(said, told, most, faults.clone());
        let serving = Box::pin(Listener::default().serve_with_lifecycle(pipe, lifecycle()));
        let problem = match tokio::time::timeout(STARTING, serving).await {
            Ok(Ok(service)) => return Ok(Self { service, faults, at: at.to_owned() }),
            Ok(Err(error)) => unopened(at, faults.first(), &error),
            Err(_) => slow(at),
        };
        Err(Silent { fault: faults.first(), problem })
    }

    /// All that the server lists.
    ///
    /// # Errors
    /// As of [`Connection::open`].
    pub(super) async fn tools(&self) -> Result<Vec<Tool>, Problem> {
        let listed = tokio::time::timeout(OPENING, self.pages()).await;
        listed.unwrap_or_else(|_| Err(slow(&self.at)))
    }

    async fn pages(&self) -> Result<Vec<Tool>, Problem> {
        let mut tools = Vec::new();
        let mut seen = BTreeSet::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let page = self.service.list_tools(Some(page)).await;
            let page = page.map_err(|error| self.failed(&error, "list its tools"))?;
            let size: usize = page.tools.iter().map(|tool| serde_json::to_vec(tool).map_or(0, |text| text.len())).sum();
            tools.extend(page.tools);
            if tools.len() > MAX_TOOLS || size as u64 > MAX_PAGE {
                return Err(self.invalid(&format!("lists more than {MAX_TOOLS} tools, or {MAX_PAGE} bytes at once")));
            }
            match page.next_cursor {
                Some(next) if !seen.insert(next.clone()) => return Err(self.invalid("lists the same page for ever")),
                Some(next) => cursor = Some(next),
                None => return Ok(tools),
            }
        }
        Err(self.invalid(&format!("lists more than {MAX_PAGES} pages of tools")))
    }

    /// Whom to call.
    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// What went wrong on the way since then.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.faults.first()
    }

    /// What tells the server from others: what stands after "the MCP server".
    pub(super) fn at(&self) -> &str {
        &self.at
    }

    /// What the server reports of its progress from now on.
    pub(super) fn progress(&self) -> mpsc::Receiver<ProgressNotificationParam> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        *self.service.service().progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    /// Says that it is over, as far as the server listens.
    pub(super) async fn close(self) {
        let _ = tokio::time::timeout(CLOSING, self.service.cancel()).await;
    }

    fn invalid(&self, what: &str) -> Problem {
        Problem::new(Code::UpstreamInvalid, format!("the MCP server {} {what}", self.at))
    }

    fn failed(&self, error: &ServiceError, what: &str) -> Problem {
        match error {
            ServiceError::McpError(error) => self.invalid(&format!("did not {what}: {}", words(&error.message))),
            error => of_fault(&self.at, self.fault(), &error.to_string()),
        }
    }
}

/// The newest way to speak first, and the one before where it is not known.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}

fn unopened(at: &str, fault: Option<Fault>, error: &ClientInitializeError) -> Problem {
    match error {
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).take(8).collect();
            let versions = words(&versions.join(", "));
            let message = format!("the MCP server {at} speaks no revision that is spoken here: {versions}");
            Problem::new(Code::UpstreamInvalid, message)
        }
        ClientInitializeError::JsonRpcError(error) => {
            let message = format!("the MCP server {at} refused to begin: {}", words(&error.message));
            Problem::new(Code::UpstreamInvalid, message)
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => unopened(at, fault, fallback),
        error => of_fault(at, fault, &error.to_string()),
    }
}

/// What became of a request that has no answer, before anything was called.
fn of_fault(at: &str, fault: Option<Fault>, otherwise: &str) -> Problem {
    match fault {
        Some(Fault::NotSent(why)) => {
            Problem::new(Code::UpstreamUnreachable, format!("the MCP server {at} can't be reached: {}", words(&why)))
        }
        Some(Fault::NotTaken(why)) => {
            Problem::new(Code::UpstreamUnreachable, format!("the MCP server {at} took nothing: {}", words(&why)))
        }
        Some(Fault::TooMuch) => {
            Problem::new(Code::UpstreamInvalid, format!("the MCP server {at} says more than is listened to"))
        }
        Some(Fault::Wrong(why)) => wrong(at, &why),
        Some(Fault::Broken(why)) => {
            Problem::new(Code::UpstreamUnreachable, format!("the MCP server {at} gave no answer: {}", words(&why)))
        }
        None => wrong(at, otherwise),
    }
}

fn wrong(at: &str, why: &str) -> Problem {
    let message = format!("the MCP server {at} does not keep to the protocol: {}", words(why));
    Problem::new(Code::UpstreamInvalid, message)
}

fn slow(at: &str) -> Problem {
    let message = format!("the MCP server {at} gave no answer within {} s", OPENING.as_secs());
    Problem::new(Code::UpstreamUnreachable, message)
}

/// A stranger's words in a message of ours.
pub(super) fn words(text: &str) -> String {
    let cut = &text[..text.floor_char_boundary(WORDS)];
    format!("{}{}", escaped_line(cut), if cut.len() < text.len() { " …" } else { "" })
}

pub(super) fn bytes(most: u64) -> usize {
    usize::try_from(most).unwrap_or(usize::MAX)
}
