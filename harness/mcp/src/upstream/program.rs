//! A server that runs here: a program in a container, spoken to over its
//! standard streams.

use std::collections::BTreeMap;

use env_contracts::text::escaped_line;
use env_contracts::{
    CapabilityName, Clause, Code, Contract, Digest, Drifted, Id, Limits, ManifestEntry, Name, Problem, Span,
};
use glovebox_runtime::job::{End, Frame, FrameSink, Limit, Timer};
use glovebox_runtime::{BoxFuture, Enforcement, RunReport};
use rmcp::model::Tool;
use tokio::io::{AsyncRead, AsyncWrite};

use super::adopt::{self, Adoption};
use super::connection::{Connection, OPENING, bytes, words};
use super::pinned::Pinned;
use super::place::{Place, drift};
use super::wire::Fault;

/// How much of a command stands in a message, in bytes; it is whole in the
/// manifest.
const SHOWN: usize = 80;

/// A server as an operator names it: what runs, where, and with what.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The image.
    pub image: Digest,
    /// The container runtime; none: the engine's own.
    pub runtime: Option<Name>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its environment, beside the image's.
    pub env: BTreeMap<String, String>,
    /// What it may use.
    pub limits: Limits,
}

/// Where programs run.
pub trait Programs: Send + Sync {
    /// Whether a clause holds for what runs there, and by what.
    fn enforce(&self, clause: &Clause<'_>) -> Enforcement;

    /// Starts one, for an action or to look at it. What goes wrong is in the
    /// report of its end. What it says on standard error goes to `stderr`.
    fn start(&self, action: Option<&Id>, program: &Program, stderr: Box<dyn FrameSink>) -> Running;
}

/// A program that runs, or is about to.
pub struct Running {
    /// What it says.
    pub said: Box<dyn AsyncRead + Send + Unpin>,
    /// What it is told.
    pub told: Box<dyn AsyncWrite + Send + Unpin>,
    /// The program itself.
    pub life: Box<dyn Life>,
}

/// The life of a program. Dropping it ends the program.
pub trait Life: Send {
    /// The last that it said on standard error.
    fn last_words(&self) -> String;

    /// Ends it, if it did not end by itself.
    fn end(self: Box<Self>) -> BoxFuture<'static, RunReport>;
}

impl Program {
    /// The server that a registered tool is at, and the tool's name there.
    pub(super) fn of<'a>(entry: &'a ManifestEntry, contract: &Contract) -> Option<(Self, &'a str)> {
        let ManifestEntry::McpStdio { command, tool, env } = entry else { return None };
        let program = Self {
            image: contract.platform.image.clone()?,
            runtime: contract.platform.runtime.clone(),
            command: command.clone(),
            env: env.clone(),
            limits: contract.limits.clone(),
        };
        Some((program, tool))
    }

    /// The same for a look at what it offers: it is told nothing of anybody's,
    /// and has the time that a server has to answer.
    fn looked_at(&self) -> Self {
        let wall = self.limits.wall.unwrap_or_default().0.min(OPENING);
        let limits = Limits { wall: Some(Span(wall)), idle: None, ..self.limits.clone() };
        Self { limits, ..self.clone() }
    }

    /// The longest answer that is read of it.
    pub(super) fn most(&self) -> usize {
        bytes(adopt::MAX_ANSWER.min(self.limits.output.unwrap_or_default().0))
    }

    /// What it is, for people.
    pub(super) fn at(&self) -> String {
        let command = self.command.join(" ");
        let cut = &command[..command.floor_char_boundary(SHOWN)];
        let more = if cut.len() < command.len() { " …" } else { "" };
        format!("run as `{}{more}` in image {}", escaped_line(cut), self.image.short())
    }
}

/// Lists a server's tools, and makes manifests of them under names that begin
/// with `prefix`. Its limits have to be complete. Nothing is registered by that.
///
/// # Errors
/// `upstream-program`, `upstream-invalid`, and what keeps it from being run.
pub async fn look(
    program: Program,
    prefix: &CapabilityName,
    limits: &Limits,
    programs: &dyn Programs,
) -> Result<Adoption, Problem> {
    let filled = Program { limits: limits.clone(), ..program.clone() };
    let listed = listed(&filled, programs).await?;
    Adoption::of(&Place::Here(program), prefix, &listed)
}

/// Whether a server says of a registered tool what it said then; `None` where
/// it does. The contract's limits have to be complete.
///
/// # Errors
/// As of [`look`]; `state-unavailable` where what was registered is not what it
/// was.
pub async fn compare(
    entry: &ManifestEntry,
    contract: &Contract,
    artifact: &[u8],
    digest: &Digest,
    programs: &dyn Programs,
) -> Result<Option<Drifted>, Problem> {
    let Some((program, tool)) = Program::of(entry, contract) else { return Ok(None) };
    let pinned = Pinned::read(artifact, digest)?;
    let listed = listed(&program, programs).await?;
    drift(&Place::Here(program), tool, &pinned, digest, &listed)
}

/// All that a server lists, from a run of its own that ends with that.
pub(super) async fn listed(program: &Program, programs: &dyn Programs) -> Result<Vec<Tool>, Problem> {
    let at = program.at();
    let Running { said, told, life } = programs.start(None, &program.looked_at(), Box::new(Unheard));
    let talked = async {
        let connection = Connection::over(said, told, &at, program.most()).await?;
        let listed = connection.tools().await;
        let fault = connection.fault();
        connection.close().await;
        listed.map_err(|problem| Silent { fault, problem })
    };
    let talked = talked.await;
    let last = life.last_words();
    let report = life.end().await;
    talked.map_err(|silent| silent.explained(&report.end, &at, &last))
}

/// Nobody listens: what matters of it is in its last words.
struct Unheard;

impl FrameSink for Unheard {
    fn frame(&mut self, _: Frame<'_>) {}
}

/// Why a server did not answer, as far as one hears it from outside.
pub(super) struct Silent {
    /// What was wrong with what it said.
    pub(super) fault: Option<Fault>,
    /// What that means by itself.
    pub(super) problem: Problem,
}

impl Silent {
    /// With what became of it.
    fn explained(self, end: &End, at: &str, last: &str) -> Problem {
        let program = |what: &str| {
            let last = if last.is_empty() { String::new() } else { format!("; its last words: {}", words(last)) };
            Problem::new(Code::UpstreamProgram, format!("the MCP server {at} {what}{last}"))
        };
        let host = |text: &str| Problem::new(Code::BackendError, format!("the MCP server {at}: {}", words(text)));
        match (&self.fault, end) {
            (_, End::Refused(problem)) => problem.clone(),
            (_, End::Violation(text)) => {
                Problem::new(Code::SandboxViolation, format!("the MCP server {at}: {}", words(text)))
            }
            // What it said comes first: it was ended because of that.
            (Some(Fault::TooMuch | Fault::Wrong(_)), _) => self.problem,
            (_, End::TimedOut(Timer::Cpu)) => program("used more processor time than `limits.cpu` before it answered"),
            (_, End::TimedOut(_)) => program("gave no answer in time"),
            (_, End::LimitHit(limit)) => program(&format!("ran into `limits.{}` before it answered", named(*limit))),
            (_, End::Exited { code }) => program(&format!("ended with exit code {code} before it answered")),
            (_, End::Trapped(text)) => program(&format!("{} before it answered", words(text))),
            (_, End::Lost(text) | End::HostFailed(text)) => host(text),
            (_, End::Interrupted | End::Returned { .. } | End::Failed(_)) => self.problem,
        }
    }
}

pub(super) fn named(limit: Limit) -> &'static str {
    match limit {
        Limit::Memory => "memory",
        Limit::Output => "output",
        Limit::Storage => "storage",
        Limit::Inodes => "inodes",
        Limit::Instances | Limit::Handles | Limit::Stack | Limit::HostCall => "instances",
    }
}
