//! A call over a connection, whoever is at its other end.

use std::os::fd::AsFd as _;
use std::time::Duration;

use env_contracts::text::escaped_line;
use env_contracts::{Code, Limits, Problem};
use glovebox_runtime::bind;
use glovebox_runtime::job::{End, Frame, FrameSink, Timer};
use glovebox_runtime::{ArtifactBytes, Ports, Registered, read_plain};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, ClientRequest, ProgressNotificationParam, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use tokio::time::Instant as Moment;

use super::answer::{Files, end, failure};
use super::connection::{Connection, words};
use super::pinned::Pinned;
use super::place::Place;

/// The longest document of a tool that is read: a list's page is no longer.
const MAX_PINNED: u64 = 4 << 20;

/// How long is waited for a server to take note that a call is not wanted any
/// more.
const CANCELLING: Duration = Duration::from_secs(2);

/// A year: no contract lets a call be quiet for longer.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// What a server said of a tool when it was registered.
///
/// # Errors
/// `state-unavailable`; `manifest-invalid` for what was registered as another.
pub(super) fn pinned(registered: &Registered, place: &Place, tool: &str) -> Result<Pinned, Problem> {
    let document = match &registered.bytes {
        ArtifactBytes::File(path) => read_plain(path, MAX_PINNED)
            .map_err(|error| glovebox_runtime::io_problem("cannot read the tool", Code::StateUnavailable, &error))?
            .into_bytes(),
        ArtifactBytes::Memory(bytes) => bytes.to_vec(),
        ArtifactBytes::Embedded(bytes) => bytes.to_vec(),
    };
    let pinned = Pinned::read(&document, &registered.digest)?;
    if !pinned.is_of(place, tool) {
        let message = format!("`{}` was registered as another tool than it calls", registered.name);
        return Err(Problem::new(Code::ManifestInvalid, message));
    }
    Ok(pinned)
}

/// Who answers, for what is said of files.
pub(super) fn source(tool: &str, connection: &Connection) -> String {
    format!("{} of the MCP server {}", escaped_line(tool), connection.at())
}

/// Where the files of an answer go.
pub(super) fn files<'a>(bound: &'a bind::Files, limits: &Limits, source: &'a str) -> Files<'a> {
    Files {
        dir: bound.outputs.as_ref().map(|dir| dir.as_fd()),
        storage: limits.storage.unwrap_or_default().0,
        inodes: limits.inodes.unwrap_or_default(),
        source,
    }
}

/// What came of waiting.
pub(super) enum Heard {
    Answer(Box<Result<ServerResult, ServiceError>>),
    TimedOut(Timer),
    Unwanted,
}

/// Calls, and listens until there is an answer or no time left.
pub(super) async fn hear(
    connection: &Connection,
    tool: String,
    arguments: rmcp::model::JsonObject,
    limits: &Limits,
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

pub(super) fn answered(answer: ServerResult, files: Files<'_>, frames: &mut dyn FrameSink) -> End {
    let response = match answer {
        ServerResult::CallToolResult(result) => CallToolResponse::Complete(result),
        ServerResult::InputRequiredResult(result) => CallToolResponse::InputRequired(result),
        ServerResult::CreateTaskResult(result) => CallToolResponse::Task(result),
        _ => return failure("bad-answer", "the server answered with what is no result of a call"),
    };
    end(response, files, frames)
}

/// How a call ended that the server refused.
pub(super) fn refused(error: &ServiceError) -> Option<End> {
    let ServiceError::McpError(error) = error else { return None };
    Some(failure("upstream", &format!("the server refused the call: {}", words(&error.message))))
}
