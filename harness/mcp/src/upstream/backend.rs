//! Calls a server's tool as an action: what it says of it is compared before,
//! and how the call ended is told after, whatever the server does.

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use env_contracts::{ByteSize, Clause, Code, Contract, Drifted, Evidence, ManifestEntry, Problem};
use glovebox_runtime::job::{End, Frame, FrameSink, JobUsage, Limit, Timer};
use glovebox_runtime::{
    ArtifactBytes, Backend, BoxFuture, Cleared, Enforcement, Found, Ports, Prepared, Registered, RunReport, read_plain,
};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, ClientRequest, ProgressNotificationParam, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use tokio::time::Instant as Moment;

use super::answer::{Files, end, failure};
use super::connection::{Connection, words};
use super::pinned::Pinned;
use super::wire::Fault;
use super::{Outside, Server, adopt, drift, enforce};

/// The longest document of a tool that is read: a list's page is no longer.
const MAX_PINNED: u64 = 4 << 20;

/// How long is waited for a server to take note that a call is not wanted any
/// more.
const CANCELLING: Duration = Duration::from_secs(2);

/// A year: no contract lets a call be quiet for longer.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Calls tools of servers elsewhere.
pub struct UpstreamBackend {
    outside: Arc<dyn Outside>,
}

/// A connection over which the tool was compared, ready for the call.
struct Ready {
    connection: Connection,
    tool: String,
    found: Found,
}

impl UpstreamBackend {
    /// Reaches servers this way.
    pub fn new(outside: Arc<dyn Outside>) -> Self {
        Self { outside }
    }

    async fn ready(&self, registered: &Registered, contract: &Contract) -> Result<Ready, Problem> {
        let Some((server, tool)) = Server::of(&registered.entry) else {
            return Err(Problem::new(Code::BackendError, "a tool that no MCP server has was given to their backend"));
        };
        let total = allowed(&server, contract)?;
        let document = match &registered.bytes {
            ArtifactBytes::File(path) => read_plain(path, MAX_PINNED)
                .map_err(|error| glovebox_runtime::io_problem("cannot read the tool", Code::StateUnavailable, &error))?
                .into_bytes(),
            ArtifactBytes::Memory(bytes) => bytes.to_vec(),
            ArtifactBytes::Embedded(bytes) => bytes.to_vec(),
        };
        let pinned = Pinned::read(&document, &registered.digest)?;
        if pinned.url != server.url || pinned.tool != tool {
            let message = format!("`{}` was registered as another tool than it calls", registered.name);
            return Err(Problem::new(Code::ManifestInvalid, message));
        }
        let output = contract.limits.output.unwrap_or_default().0;
        let connection = Connection::open(&server, adopt::MAX_ANSWER.min(output), total, &*self.outside).await?;
        let listed = match connection.tools().await {
            Ok(listed) => listed,
            Err(problem) => {
                connection.close().await;
                return Err(problem);
            }
        };
        let drifted = match drift(&server, tool, &pinned, &registered.digest, &listed) {
            Ok(drifted) => drifted,
            Err(problem) => {
                connection.close().await;
                return Err(problem);
            }
        };
        let sha256 =
            drifted.as_ref().map_or_else(|| registered.digest.clone(), |drifted: &Drifted| drifted.sha256.clone());
        let subject = format!("`{}` of {}", env_contracts::text::escaped_line(tool), server.url);
        let evidence = vec![Evidence { subject, sha256, size: None }];
        Ok(Ready { connection, tool: tool.to_owned(), found: Found { drifted, evidence } })
    }
}

/// The bytes that may pass, where the contract in force lets the server be
/// reached at all: a request may have narrowed it.
fn allowed(server: &Server, contract: &Contract) -> Result<u64, Problem> {
    let (host, port) = server.place()?;
    let mut rules = contract.network.egress.iter();
    match rules.find(|rule| rule.host.covers(&host) && rule.ports.contains(&port)) {
        Some(rule) => Ok(rule.max.map_or(adopt::MAX_PASSING, |ByteSize(most)| most.min(adopt::MAX_PASSING))),
        None => {
            let message = format!("the contract in force does not let {host} be reached on port {port}");
            Err(Problem::new(Code::ContractUnsatisfied, message)
                .with_help("leave `network` out of the request's scope"))
        }
    }
}

impl Backend for UpstreamBackend {
    fn name(&self) -> &'static str {
        "mcp-upstream"
    }

    fn enforce(&self, clause: &Clause<'_>) -> Enforcement {
        enforce::enforce(clause)
    }

    fn takes(&self, entry: &ManifestEntry, _contract: &Contract) -> bool {
        matches!(entry, ManifestEntry::Mcp { .. })
    }

    fn prepare<'a>(
        &'a self,
        registered: &'a Registered,
        contract: &'a Contract,
        progress: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Result<Prepared, Problem>> {
        Box::pin(async move {
            progress("asking the server what it offers");
            Ok(Box::new(self.ready(registered, contract).await?) as Prepared)
        })
    }

    fn found(&self, prepared: &Prepared) -> Found {
        prepared.downcast_ref::<Ready>().map(|ready| ready.found.clone()).unwrap_or_default()
    }

    fn run(&self, cleared: Cleared, ports: Ports) -> BoxFuture<'_, RunReport> {
        Box::pin(async move {
            let began = Instant::now();
            let end = call(cleared, ports).await;
            let usage = JobUsage { run: began.elapsed(), ..JobUsage::default() };
            RunReport { end, usage, notices: Vec::new() }
        })
    }
}

/// What came of waiting.
enum Heard {
    Answer(Box<Result<ServerResult, ServiceError>>),
    TimedOut(Timer),
    Unwanted,
}

async fn call(cleared: Cleared, mut ports: Ports) -> End {
    let bound = cleared.into_bound();
    let Ok(ready) = bound.prepared.downcast::<Ready>() else {
        return End::HostFailed("the plan was prepared by another backend".into());
    };
    let Ready { connection, tool, .. } = *ready;
    // The very bytes that were validated, shown and decided on.
    let arguments = match serde_json::from_str(&bound.plan.arguments) {
        Ok(arguments) => arguments,
        Err(error) => return End::HostFailed(format!("arguments that were accepted can't be read: {error}")),
    };
    let limits = &bound.plan.contract.limits;
    let source = format!("{} at {}", env_contracts::text::escaped_line(&tool), connection.host());
    let heard = hear(&connection, tool, arguments, limits, &mut ports).await;
    let end = match heard {
        Heard::TimedOut(timer) => End::TimedOut(timer),
        Heard::Unwanted => End::Interrupted,
        Heard::Answer(answer) => match *answer {
            Ok(answer) => {
                let files = Files {
                    dir: bound.files.outputs.as_ref().map(|dir| dir.as_fd()),
                    storage: limits.storage.unwrap_or_default().0,
                    inodes: limits.inodes.unwrap_or_default(),
                    source: &source,
                };
                answered(answer, files, &mut *ports.frames)
            }
            Err(error) => unanswered(&connection, &error),
        },
    };
    connection.close().await;
    end
}

/// Calls, and listens until there is an answer or no time left.
async fn hear(
    connection: &Connection,
    tool: String,
    arguments: rmcp::model::JsonObject,
    limits: &env_contracts::Limits,
    ports: &mut Ports,
) -> Heard {
    let mut progress = connection.progress();
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let sent = connection.peer().send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let mut handle = match sent {
        Ok(handle) => handle,
        Err(error) => return Heard::Answer(Box::new(Err(error))),
    };
    let quiet = limits.idle.map_or(NEVER, |span| span.0);
    let wall = tokio::time::sleep(limits.wall.unwrap_or_default().0);
    let idle = tokio::time::sleep(quiet);
    tokio::pin!(wall, idle);
    let stop = ports.stop.clone();
    let mut unwanted = std::pin::pin!(stop.requested());
    let heard = loop {
        tokio::select! {
            biased;
            answer = &mut handle.rx => {
                return Heard::Answer(Box::new(answer.unwrap_or(Err(ServiceError::TransportClosed))));
            }
            () = &mut unwanted => break Heard::Unwanted,
            () = &mut wall => break Heard::TimedOut(Timer::Wall),
            Some(report) = progress.recv() => {
                idle.as_mut().reset(Moment::now() + quiet);
                told(&report, &mut *ports.frames);
            }
            () = &mut idle => break Heard::TimedOut(Timer::Idle),
        }
    };
    let cancelled = handle.cancel(Some("it is not wanted any more".into()));
    let _ = tokio::time::timeout(CANCELLING, cancelled).await;
    heard
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "progress of a stranger: any number will do"
)]
fn told(report: &ProgressNotificationParam, frames: &mut dyn FrameSink) {
    let message = report.message.as_deref().map(words).unwrap_or_default();
    let total = report.total.map(|total| total as u64);
    frames.frame(Frame::Progress { done: report.progress as u64, total, message: &message });
}

fn answered(answer: ServerResult, files: Files<'_>, frames: &mut dyn FrameSink) -> End {
    let response = match answer {
        ServerResult::CallToolResult(result) => CallToolResponse::Complete(result),
        ServerResult::InputRequiredResult(result) => CallToolResponse::InputRequired(result),
        ServerResult::CreateTaskResult(result) => CallToolResponse::Task(result),
        _ => return failure("bad-answer", "the server answered with what is no result of a call"),
    };
    end(response, files, frames)
}

/// How a call ended that has no answer. What was sent may have been done.
fn unanswered(connection: &Connection, error: &ServiceError) -> End {
    let host = connection.host();
    if let ServiceError::McpError(error) = error {
        return failure("upstream", &format!("the server refused the call: {}", words(&error.message)));
    }
    match connection.fault() {
        Some(Fault::NotSent(why)) => {
            let message = format!("the MCP server at {host} can't be reached any more: {}", words(&why));
            End::Refused(Problem::new(Code::UpstreamUnreachable, message))
        }
        Some(Fault::NotTaken(why)) => {
            let message = format!("the MCP server at {host} did not take the call: {}", words(&why));
            End::Refused(Problem::new(Code::UpstreamUnreachable, message))
        }
        Some(Fault::TooMuch) => End::LimitHit(Limit::Output),
        Some(Fault::Broken(why)) => End::Lost(lost(host, &why)),
        None => End::Lost(lost(host, &error.to_string())),
    }
}

fn lost(host: &str, why: &str) -> String {
    format!(
        "the call was sent to the MCP server at {host}, which did not answer ({}); whether it did it is not known",
        words(why)
    )
}
