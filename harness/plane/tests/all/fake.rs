//! A house around a scripted backend.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use env_contracts::{
    Access, ActionRequest, ByteSize, Ceiling, Clause, Contract, Observation, Persistence, Principal, Problem, Scope,
};
use glovebox_artifacts::ArtifactStore;
use glovebox_plane::{ActionService, Builtin, Parts, Registry, Submission, TimeOrderedIds, Unwatched};
use glovebox_runtime::job::{End, Frame, JobUsage};
use glovebox_runtime::{
    Admission, Backend, Bound, BoxFuture, Budgets, Cleared, Enforcement, Ports, Prepared, Registered, RunReport,
    Runtime, Stop, SystemClock, default_ceiling,
};

/// What a run does: it sees the bound plan and its ports, and says how it ends.
type Script = dyn Fn(&Bound, &mut Ports) -> End + Send + Sync;

struct Scripted(Arc<Mutex<Arc<Script>>>);

impl Backend for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn enforce(&self, clause: &Clause<'_>) -> Enforcement {
        match clause {
            Clause::Egress(_) => Enforcement::refused("there is no network here", "leave it out"),
            Clause::Persistence(Persistence::Environment) => Enforcement::refused("nothing is kept", "`none`"),
            Clause::Mount(mount) if mount.access == Access::Overlay => Enforcement::refused("no overlay", "`read`"),
            _ => Enforcement::By("the test"),
        }
    }

    fn prepare<'a>(
        &'a self,
        _: &'a Registered,
        _: &'a Contract,
        _: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Result<Prepared, Problem>> {
        Box::pin(async { Ok(Box::new(()) as Prepared) })
    }

    fn run(&self, cleared: Cleared, mut ports: Ports) -> BoxFuture<'_, RunReport> {
        let script = self.0.lock().unwrap().clone();
        Box::pin(async move {
            let end = tokio::task::spawn_blocking(move || script(&cleared, &mut ports)).await.unwrap();
            RunReport { end, usage: JobUsage::default(), notices: Vec::new() }
        })
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

/// A command whose standard output is its result.
pub(crate) const COMMAND: &str = r#"
name = "fake.command"
entry = { kind = "command", argv = ["prog", "{path}"], result = "json" }
input = { type = "object", properties = { path = { type = "string" } } }
[contract]
schema = "glovebox/contract/v1"
"#;

pub(crate) struct House {
    pub(crate) dir: Arc<tempfile::TempDir>,
    pub(crate) service: ActionService,
    script: Arc<Mutex<Arc<Script>>>,
    tokio: tokio::runtime::Runtime,
}

impl House {
    pub(crate) fn new(manifest: &str) -> Self {
        Self::with(manifest, default_ceiling())
    }

    pub(crate) fn with(manifest: &str, ceiling: Ceiling) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("workspace")).unwrap();
        Self::over(Arc::new(dir), manifest, ceiling)
    }

    /// Another tool over the same state.
    pub(crate) fn again(&self, manifest: &str, ceiling: Ceiling) -> Self {
        Self::over(self.dir.clone(), manifest, ceiling)
    }

    /// The index entry of an artifact.
    pub(crate) fn record(&self, uri: &str) -> glovebox_artifacts::ArtifactRecord {
        self.tokio.block_on(self.service.artifacts().record(&uri.parse().unwrap())).unwrap()
    }

    fn over(dir: Arc<tempfile::TempDir>, manifest: &str, ceiling: Ceiling) -> Self {
        let script: Arc<Mutex<Arc<Script>>> = Arc::new(Mutex::new(Arc::new(|_, _| panic!("nothing should run"))));
        let (runtime, authority) = Runtime::new(vec![Arc::new(Scripted(script.clone()))]);
        let manifest: &'static str = format!("{HEAD}{manifest}").leak();
        let state = dir.path().join("state");
        let service = ActionService::new(Parts {
            registry: Registry::new(state.join("tools"), vec![Builtin { manifest, component: b"component" }]),
            ceiling,
            runtime,
            authority,
            admission: Admission::new(Budgets::for_host(ByteSize::gib(1), 2)),
            artifacts: ArtifactStore::open(&state.join("artifacts"), "local").unwrap(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(TimeOrderedIds),
            run_root: state.join("run"),
            protect: vec![state],
            max_sealed: ByteSize::mib(1),
        });
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        Self { dir, service, script, tokio }
    }

    /// What the next runs do.
    pub(crate) fn on_run(&self, script: impl Fn(&Bound, &mut Ports) -> End + Send + Sync + 'static) -> &Self {
        *self.script.lock().unwrap() = Arc::new(script);
        self
    }

    pub(crate) fn run(&self, tool: &str, args: &str) -> Observation {
        self.submit(tool, args, |_| {}).unwrap()
    }

    pub(crate) fn scoped(&self, tool: &str, scope: &str) -> Observation {
        let scope = Scope::from_toml(scope).unwrap();
        self.submit(tool, "{}", |submission| submission.request.scope = Some(scope)).unwrap()
    }

    pub(crate) fn submit(
        &self,
        tool: &str,
        args: &str,
        change: impl FnOnce(&mut Submission),
    ) -> Result<Observation, Problem> {
        let mut submission = Submission {
            principal: Principal {
                tenant: "local".parse().unwrap(),
                user: "u".parse().unwrap(),
                agent: None,
                agent_version: None,
                chain: Vec::new(),
            },
            request: ActionRequest::new(tool.parse().unwrap(), serde_json::Value::Null),
            received: Some(args.as_bytes().to_vec()),
            workspace: Some(self.dir.path().join("workspace")),
            inputs: BTreeMap::<_, OwnedFd>::new(),
        };
        change(&mut submission);
        let observation = self.tokio.block_on(self.service.run(submission, Arc::new(Unwatched), &Stop::default()))?;
        let left = fs_err::read_dir(self.dir.path().join("state/run")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "a run folder was left behind");
        Ok(observation)
    }
}

/// A tool interface's result.
pub(crate) fn returned(content: &str) -> End {
    End::Returned { content: content.into(), artifacts: Vec::new() }
}

/// Standard output, then an exit code.
pub(crate) fn printed(ports: &mut Ports, text: &str, code: u32) -> End {
    ports.frames.frame(Frame::Stdout(text.as_bytes()));
    End::Exited { code }
}
