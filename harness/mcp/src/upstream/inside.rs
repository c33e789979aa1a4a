//! Calls a tool of a server that runs here: each call has a server of its own,
//! which has seen nothing before and is gone after it.
//!
//! What it offers is asked of another run of it, before anybody decides: that
//! one is told nothing of the call. The one that is called is asked again, and
//! told the arguments if it says the same.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use env_contracts::{
    Clause, Code, Contract, Digest, Evidence, Limits, ManifestEntry, Persistence, Problem, Sharing, Snapshot, Source,
};
use glovebox_runtime::bind::Files;
use glovebox_runtime::job::{End, Frame, FrameSink, JobUsage, Limit};
use glovebox_runtime::{
    Backend, Bound, BoxFuture, Cleared, Enforcement, Found, Ports, Prepared, Registered, RunReport, Stop,
};
use rmcp::model::JsonObject;
use tokio::sync::Semaphore;

use super::answer::failure;
use super::calling::{Heard, answered, files, hear, pinned, refused, source};
use super::connection::{Connection, words};
use super::pinned::Pinned;
use super::place::{Place, drift, only};
use super::program::{Program, Programs, Running, Silent, listed};
use super::wire::Fault;

/// How many servers are asked at one time what they offer: these runs are not
/// admitted as actions are.
const LOOKS: usize = 4;

/// How long making a container, asking the server what it offers and ending it
/// step by step may take together, beside the call. Each step has its own,
/// shorter time.
const PATIENCE: Duration = Duration::from_secs(300);

/// Calls tools of servers that run in containers.
pub struct ProgramBackend {
    programs: Arc<dyn Programs>,
    looks: Semaphore,
}

/// A server that was asked, and what it said.
struct Ready {
    program: Program,
    tool: String,
    /// What it said of the tool: what it has to say when it is called.
    sha256: Digest,
    found: Found,
}

impl ProgramBackend {
    /// Runs servers there.
    pub fn new(programs: Arc<dyn Programs>) -> Self {
        Self { programs, looks: Semaphore::new(LOOKS) }
    }

    async fn ready(&self, registered: &Registered, contract: &Contract) -> Result<Ready, Problem> {
        let Some((program, tool)) = Program::of(&registered.entry, contract) else {
            return Err(Problem::new(
                Code::BackendError,
                "a tool of no server in a container was given to their backend",
            ));
        };
        let place = Place::Here(program.clone());
        let pinned = pinned(registered, &place, tool)?;
        let looking = self.looks.acquire().await;
        let listed = listed(&program, &*self.programs).await?;
        drop(looking);
        let drifted = drift(&place, tool, &pinned, &registered.digest, &listed)?;
        let sha256 = drifted.as_ref().map_or_else(|| registered.digest.clone(), |drifted| drifted.sha256.clone());
        let shown = env_contracts::text::escaped_line;
        let command = shown(&program.command.join(" "));
        let said = Evidence {
            subject: format!("`{}` of the MCP server `{command}`", shown(tool)),
            sha256: sha256.clone(),
            size: None,
        };
        let subject = format!("image:sha256:{}", program.image);
        let image = Evidence { subject, sha256: program.image.clone(), size: None };
        let found = Found { drifted, evidence: vec![said, image] };
        Ok(Ready { program, tool: tool.to_owned(), sha256, found })
    }
}

impl Backend for ProgramBackend {
    fn name(&self) -> &'static str {
        "mcp-container"
    }

    fn enforce(&self, clause: &Clause<'_>) -> Enforcement {
        match clause {
            Clause::Mount(mount) if mount.source == Source::Outputs => {
                Enforcement::By("files that the host makes of the answer")
            }
            Clause::Mount(_) => Enforcement::refused("no folder is shown to an MCP server", "leave it out"),
            Clause::Persistence(Persistence::Environment) => {
                Enforcement::refused("nothing is kept between calls of an MCP server", "`persistence = \"none\"`")
            }
            Clause::Snapshot(snapshot) if *snapshot != Snapshot::Never => {
                Enforcement::refused("nothing is kept that could be looked at again", "`snapshot = \"never\"`")
            }
            Clause::Sharing(sharing) if *sharing != Sharing::Action => {
                Enforcement::refused("each call has a server of its own", "`sharing = \"action\"`")
            }
            other => self.programs.enforce(other),
        }
    }

    fn takes(&self, entry: &ManifestEntry, contract: &Contract) -> bool {
        matches!(entry, ManifestEntry::McpStdio { .. }) && contract.platform.image.is_some()
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

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn run(&self, cleared: Cleared, ports: Ports) -> BoxFuture<'_, RunReport> {
        Box::pin(async move {
            let Bound { plan, prepared, files, .. } = cleared.into_bound();
            // The very bytes that were validated, shown and decided on.
            let arguments = serde_json::from_str(&plan.arguments);
            let (ready, arguments) = match (prepared.downcast::<Ready>(), arguments) {
                (Ok(ready), Ok(arguments)) => (*ready, arguments),
                (Err(_), _) => return failed("the plan was prepared by another backend".into()),
                (_, Err(error)) => return failed(format!("arguments that were accepted can't be read: {error}")),
            };
            let frames = Shared(Arc::new(Mutex::new(ports.frames)));
            let stderr = Box::new(frames.clone());
            let Running { said, told, life } = self.programs.start(Some(&plan.action_id), &ready.program, stderr);
            let at = ready.program.at();
            let opening = Connection::over(said, told, &at, ready.program.most());
            let came = match unless(&ports.stop, opening).await {
                None => Came::End(End::Interrupted),
                Some(Err(silent)) => Came::Nothing(silent),
                Some(Ok(connection)) => {
                    let ports = Ports { frames: Box::new(frames), stop: ports.stop };
                    let came =
                        Box::pin(called(&connection, &ready, arguments, (&plan.contract.limits, &files), ports)).await;
                    connection.close().await;
                    came
                }
            };
            let report = life.end().await;
            RunReport { end: came.with(report.end, &at), ..report }
        })
    }
}

fn failed(why: String) -> RunReport {
    RunReport { end: End::HostFailed(why), usage: JobUsage::default(), notices: Vec::new() }
}

/// What came of a conversation, as far as it tells.
enum Came {
    /// This is its end.
    End(End),
    /// There was no answer.
    Nothing(Silent),
}

/// Asks once more what the server says of the tool, and calls it.
async fn called(
    connection: &Connection,
    ready: &Ready,
    arguments: JsonObject,
    (limits, outputs): (&Limits, &Files),
    mut ports: Ports,
) -> Came {
    let Ready { program, tool, sha256, .. } = ready;
    let silent = |problem| Came::Nothing(Silent { fault: connection.fault(), problem });
    let listed = match unless(&ports.stop, connection.tools()).await {
        None => return Came::End(End::Interrupted),
        Some(Err(problem)) => return silent(problem),
        Some(Ok(listed)) => listed,
    };
    let place = Place::Here(program.clone());
    let now = only(&place, tool, &listed).and_then(|found| Pinned::of(&place, found).bytes());
    match now {
        Ok(now) if Digest::of(&now) == *sha256 => {}
        Ok(_) => {
            let message = format!("the MCP server {} says something else of the tool than a moment ago", program.at());
            let problem = Problem::new(Code::Drift, message)
                .with_help("it was not called; such a server can be called when it says the same each time");
            return Came::End(End::Refused(problem));
        }
        Err(problem) => return Came::End(End::Refused(problem)),
    }
    let source = source(tool, connection);
    match hear(connection, tool.clone(), arguments, limits, &mut ports).await {
        Heard::TimedOut(timer) => Came::End(End::TimedOut(timer)),
        Heard::Unwanted => Came::End(End::Interrupted),
        Heard::Answer(answer) => match *answer {
            Ok(answer) => Came::End(answered(answer, files(outputs, limits, &source), &mut *ports.frames)),
            Err(error) => refused(&error)
                .map_or_else(|| silent(Problem::new(Code::UpstreamInvalid, words(&error.to_string()))), Came::End),
        },
    }
}

impl Came {
    /// With how the server itself ended.
    fn with(self, own: End, at: &str) -> End {
        let silent = match (self, own) {
            // Whatever it said, it was not alone.
            (_, End::Violation(text)) => return End::Violation(text),
            (Self::End(end), _) => return end,
            (Self::Nothing(silent), own) => (silent, own),
        };
        match silent {
            (Silent { fault: Some(Fault::TooMuch), .. }, _) => End::LimitHit(Limit::Output),
            (Silent { fault: Some(Fault::Wrong(why)), .. }, _) => {
                failure("bad-answer", &format!("the MCP server {at} does not keep to the protocol: {}", words(&why)))
            }
            (_, End::Exited { code }) => {
                End::Trapped(format!("the MCP server {at} ended with exit code {code} before it answered"))
            }
            (_, End::Trapped(text)) => End::Trapped(format!("the MCP server {at} {text} before it answered")),
            // It was there until it was ended.
            (Silent { problem, .. }, End::Interrupted | End::Returned { .. } | End::Failed(_)) => {
                failure("bad-answer", &problem.message)
            }
            (_, end) => end,
        }
    }
}

/// What comes of something; `None` where it is not wanted any more.
async fn unless<T>(stop: &Stop, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = stop.requested() => None,
        done = work => Some(done),
    }
}

/// The frames of an action: what its server says beside goes there, and what
/// comes of the call.
#[derive(Clone)]
struct Shared(Arc<Mutex<Box<dyn FrameSink>>>);

impl FrameSink for Shared {
    fn frame(&mut self, frame: Frame<'_>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).frame(frame);
    }
}

#[cfg(test)]
#[path = "inside_tests.rs"]
mod tests;
