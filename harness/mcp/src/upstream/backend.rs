//! Calls a server's tool as an action: what it says of it is compared before,
//! and how the call ended is told after, whatever the server does.

use std::sync::Arc;
use std::time::Instant;

use env_contracts::{ByteSize, Clause, Code, Contract, Drifted, Evidence, ManifestEntry, Problem};
use glovebox_runtime::job::{End, JobUsage, Limit};
use glovebox_runtime::{Backend, BoxFuture, Cleared, Enforcement, Found, Ports, Prepared, Registered, RunReport};
use rmcp::service::ServiceError;

use super::calling::{Heard, answered, files, hear, pinned, refused, source};
use super::connection::{Connection, words};
use super::place::{Place, drift};
use super::wire::Fault;
use super::{Outside, Server, adopt, enforce};

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
        let place = Place::Elsewhere(server.clone());
        let pinned = pinned(registered, &place, tool)?;
        let output = contract.limits.output.unwrap_or_default().0;
        let connection = Connection::open(&server, adopt::MAX_ANSWER.min(output), total, &*self.outside).await?;
        let listed = match connection.tools().await {
            Ok(listed) => listed,
            Err(problem) => {
                connection.close().await;
                return Err(problem);
            }
        };
        let drifted = match drift(&place, tool, &pinned, &registered.digest, &listed) {
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
    let source = source(&tool, &connection);
    let heard = hear(&connection, tool, arguments, limits, &mut ports).await;
    let end = match heard {
        Heard::TimedOut(timer) => End::TimedOut(timer),
        Heard::Unwanted => End::Interrupted,
        Heard::Answer(answer) => match *answer {
            Ok(answer) => answered(answer, files(&bound.files, limits, &source), &mut *ports.frames),
            Err(error) => unanswered(&connection, &error),
        },
    };
    connection.close().await;
    end
}

/// How a call ended that has no answer. What was sent may have been done.
fn unanswered(connection: &Connection, error: &ServiceError) -> End {
    let at = connection.at();
    if let Some(end) = refused(error) {
        return end;
    }
    match connection.fault() {
        Some(Fault::NotSent(why)) => {
            let message = format!("the MCP server {at} can't be reached any more: {}", words(&why));
            End::Refused(Problem::new(Code::UpstreamUnreachable, message))
        }
        Some(Fault::NotTaken(why)) => {
            let message = format!("the MCP server {at} did not take the call: {}", words(&why));
            End::Refused(Problem::new(Code::UpstreamUnreachable, message))
        }
        Some(Fault::TooMuch) => End::LimitHit(Limit::Output),
        Some(Fault::Broken(why) | Fault::Wrong(why)) => End::Lost(lost(at, &why)),
        None => End::Lost(lost(at, &error.to_string())),
    }
}

fn lost(at: &str, why: &str) -> String {
    format!(
        "the call was sent to the MCP server {at}, which did not answer ({}); whether it did it is not known",
        words(why)
    )
}
