//! A backend that does what a test tells it, and the tools of these tests.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use env_contracts::{Access, Clause, Contract, Digest, Id, Persistence, Problem};
use glovebox_runtime::job::{End, Frame, JobUsage};
use glovebox_runtime::{Backend, Bound, BoxFuture, Cleared, Enforcement, Ports, Prepared, Registered, RunReport};

/// What a run does: it sees the bound plan and its ports, and says how it ends.
pub(crate) type Script = dyn Fn(&Bound, &mut Ports) -> End + Send + Sync;

/// A run that began: whatever claims to have run is held against these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) action: Id,
    pub(crate) digest: Digest,
}

pub(crate) struct Scripted {
    pub(crate) script: Arc<Mutex<Arc<Script>>>,
    /// A file with a line for each run that began: it outlives the process.
    pub(crate) ran: PathBuf,
    /// Whether there are private layers over a workspace here.
    pub(crate) overlay: bool,
    /// Whether environments are kept here.
    pub(crate) keeps: bool,
    /// Whatever is prepared for a run has one of these: cells, members of a
    /// pool.
    pub(crate) held: Arc<()>,
    pub(crate) manners: Arc<Manners>,
}

/// How the runs of a backend behave towards who polls them.
#[derive(Default)]
pub(crate) struct Manners {
    /// Whether the script holds the thread that polls.
    pub(crate) blocks: AtomicBool,
    /// How many runs were polled to their end.
    pub(crate) over: AtomicU32,
}

impl Backend for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn enforce(&self, clause: &Clause<'_>) -> Enforcement {
        match clause {
            Clause::Egress(_) => Enforcement::refused("there is no network here", "leave it out"),
            Clause::Persistence(Persistence::Environment) if !self.keeps => {
                Enforcement::refused("nothing is kept", "`none`")
            }
            Clause::Mount(mount) if mount.access == Access::Overlay && !self.overlay => {
                Enforcement::refused("no overlay", "`read`")
            }
            _ => Enforcement::By("the test"),
        }
    }

    fn prepare<'a>(
        &'a self,
        _: &'a Registered,
        _: &'a Contract,
        _: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Result<Prepared, Problem>> {
        let held = self.held.clone();
        Box::pin(async move { Ok(Box::new(held) as Prepared) })
    }

    fn run(&self, cleared: Cleared, mut ports: Ports) -> BoxFuture<'_, RunReport> {
        let script = self.script.lock().unwrap().clone();
        let line = format!("{} {}\n", cleared.plan.action_id, cleared.digest);
        let (ran, manners) = (self.ran.clone(), self.manners.clone());
        Box::pin(async move {
            let note = move || {
                let mut file = fs_err::OpenOptions::new().append(true).create(true).open(ran).unwrap();
                file.write_all(line.as_bytes()).unwrap();
            };
            note();
            let end = if manners.blocks.load(Ordering::SeqCst) {
                script(&cleared, &mut ports)
            } else {
                let script = tokio::task::spawn_blocking(move || script(&cleared, &mut ports));
                script.await.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
            };
            manners.over.fetch_add(1, Ordering::SeqCst);
            RunReport { end, usage: JobUsage::default(), notices: Vec::new() }
        })
    }

    fn never_blocks(&self) -> bool {
        !self.manners.blocks.load(Ordering::SeqCst)
    }
}

/// The start of every manifest here.
pub(crate) const HEAD: &str =
    "schema = \"glovebox/tool/v1\"\nversion = \"1.0.0\"\ntitle = \"t\"\ndescription = \"d\"\n";

/// A tool with the interface, a workspace and outputs.
pub(crate) const TOOL: &str = r#"
name = "fake.tool"
entry = { kind = "tool" }
[input]
type = "object"
additionalProperties = false
properties = { path = { type = "string", x-glovebox-path = "/workspace" }, count = { type = "integer", minimum = 1 } }
[output]
type = "object"
required = ["ok"]
[[errors]]
kind = "not-found"
when = "the path names nothing"
then = "fix-arguments"
[contract]
schema = "glovebox/contract/v1"
filesystem = [
  { guest = "/workspace", source = "workspace", access = "read" },
  { guest = "/outputs", source = "outputs", access = "write" },
]
limits = { wall = "10s", memory = "64MiB", output = "1MiB" }
"#;

/// A tool that changes the real workspace: for an agent it needs an approval.
pub(crate) const WRITE: &str = r#"
name = "fake.write"
entry = { kind = "tool" }
[input]
type = "object"
additionalProperties = false
properties = { path = { type = "string", x-glovebox-path = "/workspace" }, text = { type = "string" }, count = { type = "integer" }, tags = { type = "array" } }
[contract]
schema = "glovebox/contract/v1"
filesystem = [{ guest = "/workspace", source = "workspace", access = "write" }]
limits = { wall = "10s", memory = "64MiB", output = "1MiB" }
"#;

/// A command whose standard output is its result.
pub(crate) const COMMAND: &str = r#"
name = "fake.command"
entry = { kind = "command", argv = ["prog", "{path}"], result = "json" }
input = { type = "object", properties = { path = { type = "string" } } }
[contract]
schema = "glovebox/contract/v1"
"#;

/// A tool interface's result.
pub(crate) fn returned(content: &str) -> End {
    End::Returned { content: content.into(), artifacts: Vec::new() }
}

/// Standard output, then an exit code.
pub(crate) fn printed(ports: &mut Ports, text: &str, code: u32) -> End {
    ports.frames.frame(Frame::Stdout(text.as_bytes()));
    End::Exited { code }
}
