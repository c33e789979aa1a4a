//! A connection to a server: opened, asked what there is, closed.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use env_contracts::text::escaped_line;
use env_contracts::{Code, Problem};
use http::{HeaderName, HeaderValue};
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
use tokio::sync::mpsc;

use super::wire::{Fault, Wire};
use super::{Outside, Server};

/// How long it may take to open a connection and to list what there is: an
/// action waits for it before it is decided on.
const OPENING: Duration = Duration::from_secs(20);

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

/// Headers that say where a message belongs, and so are not an operator's to
/// choose.
const RESERVED: [&str; 6] = ["host", "content-length", "content-type", "accept", "connection", "transfer-encoding"];

/// An open connection.
pub(super) struct Connection {
    service: RunningService<RoleClient, Listener>,
    wire: Wire,
    host: String,
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
        let host = server.host()?;
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
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        let serving = Box::pin(Listener::default().serve_with_lifecycle(transport, lifecycle));
        match tokio::time::timeout(OPENING, serving).await {
            Ok(Ok(service)) => Ok(Self { service, wire, host }),
            Ok(Err(error)) => Err(unopened(&host, wire.fault(), &error)),
            Err(_) => Err(slow(&host)),
        }
    }

    /// All that the server lists.
    ///
    /// # Errors
    /// As of [`Connection::open`].
    pub(super) async fn tools(&self) -> Result<Vec<Tool>, Problem> {
        let listed = tokio::time::timeout(OPENING, self.pages()).await;
        listed.unwrap_or_else(|_| Err(slow(&self.host)))
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
        self.wire.fault()
    }

    /// The server's name.
    pub(super) fn host(&self) -> &str {
        &self.host
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
        Problem::new(Code::UpstreamInvalid, format!("the MCP server at {} {what}", self.host))
    }

    fn failed(&self, error: &ServiceError, what: &str) -> Problem {
        match error {
            ServiceError::McpError(error) => self.invalid(&format!("did not {what}: {}", words(&error.message))),
            error => of_fault(&self.host, self.fault(), &error.to_string()),
        }
    }
}

/// What is sent along with every request.
fn headers(server: &Server, outside: &dyn Outside) -> Result<HashMap<HeaderName, HeaderValue>, Problem> {
    let mut headers = HashMap::new();
    // Never with what was read: it is a secret.
    let wrong = |path: &Path, why: &str| Problem::new(Code::UpstreamHeader, format!("`{}`: {why}", path.display()));
    let value = |path: &Path, text: &str| {
        let mut value = HeaderValue::from_str(text).map_err(|_| wrong(path, "a value holds what no header can"))?;
        value.set_sensitive(true);
        Ok::<_, Problem>(value)
    };
    if let Some(path) = &server.bearer_file {
        let text = outside.secret(path)?;
        let token = text.trim();
        if token.is_empty() || token.contains(char::is_whitespace) {
            return Err(wrong(path, "a token is one word"));
        }
        headers.insert(http::header::AUTHORIZATION, value(path, &format!("Bearer {token}"))?);
    }
    if let Some(path) = &server.header_file {
        let text = outside.secret(path)?;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (name, content) = line.split_once(':').ok_or_else(|| wrong(path, "a line is not `NAME: VALUE`"))?;
            let name = HeaderName::from_str(name.trim()).map_err(|_| wrong(path, "a name is none of a header"))?;
            let ours = RESERVED.contains(&name.as_str()) || name.as_str().starts_with("mcp-");
            if ours || headers.insert(name, value(path, content.trim())?).is_some() {
                return Err(wrong(path, "a header stands there twice, or is one that the protocol sets"));
            }
        }
    }
    Ok(headers)
}

fn unopened(host: &str, fault: Option<Fault>, error: &ClientInitializeError) -> Problem {
    match error {
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).take(8).collect();
            let versions = words(&versions.join(", "));
            let message = format!("the MCP server at {host} speaks no revision that is spoken here: {versions}");
            Problem::new(Code::UpstreamInvalid, message)
        }
        ClientInitializeError::JsonRpcError(error) => {
            let message = format!("the MCP server at {host} refused to begin: {}", words(&error.message));
            Problem::new(Code::UpstreamInvalid, message)
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => unopened(host, fault, fallback),
        error => of_fault(host, fault, &error.to_string()),
    }
}

/// What became of a request that has no answer, before anything was called.
fn of_fault(host: &str, fault: Option<Fault>, otherwise: &str) -> Problem {
    match fault {
        Some(Fault::NotSent(why)) => Problem::new(
            Code::UpstreamUnreachable,
            format!("the MCP server at {host} can't be reached: {}", words(&why)),
        ),
        Some(Fault::NotTaken(why)) => {
            Problem::new(Code::UpstreamUnreachable, format!("the MCP server at {host} took nothing: {}", words(&why)))
        }
        Some(Fault::TooMuch) => {
            Problem::new(Code::UpstreamInvalid, format!("the MCP server at {host} says more than is listened to"))
        }
        Some(Fault::Broken(why)) => {
            Problem::new(Code::UpstreamUnreachable, format!("the MCP server at {host} gave no answer: {}", words(&why)))
        }
        None => {
            let message = format!("the MCP server at {host} does not keep to the protocol: {}", words(otherwise));
            Problem::new(Code::UpstreamInvalid, message)
        }
    }
}

fn slow(host: &str) -> Problem {
    let message = format!("the MCP server at {host} gave no answer within {} s", OPENING.as_secs());
    Problem::new(Code::UpstreamUnreachable, message)
}

/// A stranger's words in a message of ours.
pub(super) fn words(text: &str) -> String {
    let cut = &text[..text.floor_char_boundary(WORDS)];
    format!("{}{}", escaped_line(cut), if cut.len() < text.len() { " …" } else { "" })
}

fn bytes(most: u64) -> usize {
    usize::try_from(most).unwrap_or(usize::MAX)
}
