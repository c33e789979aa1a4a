//! A server over the real service, store and policy, with a backend that does
//! what a test tells it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use env_contracts::{
    Access, ActionRequest, Assurance, ByteSize, Clause, Contract, Id, Name, Principal, Problem, Profiles,
};
use glovebox_artifacts::ArtifactStore;
use glovebox_events::{Action, ApprovalState};
use glovebox_identity::{Approvers, Credentials, New, Role, Signature, Statement};
use glovebox_plane::{
    ActionService, Asking, Builtin, LivePolicy, Operator, Parts, People, Registry, Settings, Submission, Submitted,
    TaskContext, TimeOrderedIds, Unwatched,
};
use glovebox_runtime::job::{End, JobUsage};
use glovebox_runtime::{
    Admission, Backend, Bound, BoxFuture, Budgets, Cleared, Clock, Enforcement, Instant, Ports, Prepared, Registered,
    RunReport, Runtime, Stop, default_ceiling,
};
use glovebox_server::{
    Front, Listeners, Logs, Parts as ServerParts, Server, Settings as ServerSettings, Tenants, Webhooks,
};
use glovebox_store::{Options, Sqlite, Store};

/// When these tests begin.
const START_MS: u64 = 1_800_000_000_000;

/// The passphrase of the approver `mira`.
pub(crate) const PASSPHRASE: &str = "four words that rhyme";

/// The start of every manifest here.
const HEAD: &str = "schema = \"glovebox/tool/v1\"\nversion = \"1.0.0\"\n";

/// Changes the workspace: an agent needs an approval for it.
const WRITE: &str = r#"
name = "notes.write"
title = "Write a note into the workspace"
description = "d"
entry = { kind = "tool" }
[input]
type = "object"
[contract]
schema = "glovebox/contract/v1"
filesystem = [
  { guest = "/workspace", source = "workspace", access = "write" },
  { guest = "/outputs", source = "outputs", access = "write" },
]
limits = { wall = "10s", memory = "64MiB", output = "1MiB" }
"#;

/// Sends something: only who proved to be a person may approve it.
const SEND: &str = r#"
name = "mail.send"
title = "Send a mail"
description = "d"
entry = { kind = "tool" }
effects = { side_effects = "certain", classes = ["message"] }
[input]
type = "object"
[contract]
schema = "glovebox/contract/v1"
filesystem = [{ guest = "/workspace", source = "workspace", access = "write" }]
limits = { wall = "10s", memory = "64MiB", output = "1MiB" }
"#;

type Script = dyn Fn(&Bound, &mut Ports) -> End + Send + Sync;

struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn now(&self) -> Instant {
        Instant { unix_millis: self.0.load(Ordering::SeqCst) }
    }
}

struct Scripted(Arc<Mutex<Arc<Script>>>);

impl Backend for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn enforce(&self, _: &Clause<'_>) -> Enforcement {
        Enforcement::By("the test")
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

/// Those in the file of approvers.
struct Known(PathBuf);

impl People for Known {
    fn known(&self) -> Result<Vec<(Name, Assurance)>, Problem> {
        let approvers = Approvers::load(&self.0).map_err(|error| Problem::of(&error))?;
        Ok(approvers.list().iter().map(|one| (one.name.clone(), Assurance::ConsoleLogin)).collect())
    }

    fn verify(&self, name: &Name, _: Assurance, statement: &Statement, signature: &Signature) -> Result<(), Problem> {
        let approvers = Approvers::load(&self.0).map_err(|error| Problem::of(&error))?;
        approvers.verify(name, statement, signature).map_err(|error| Problem::of(&error))
    }
}

struct One(ActionService);

impl Tenants for One {
    fn service(&self, _: &Name) -> Result<ActionService, Problem> {
        Ok(self.0.clone())
    }
}

/// A server that serves.
pub(crate) struct House {
    dir: tempfile::TempDir,
    clock: Arc<TestClock>,
    script: Arc<Mutex<Arc<Script>>>,
    pub(crate) service: ActionService,
    store: Arc<dyn Store>,
    pub(crate) address: SocketAddr,
    /// A code of whoever runs it.
    pub(crate) code: String,
    _ending: tokio::sync::oneshot::Sender<()>,
}

impl House {
    pub(crate) async fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        fs_err::create_dir_all(&state).unwrap();
        fs_err::create_dir(dir.path().join("workspace")).unwrap();
        let clock = Arc::new(TestClock(AtomicU64::new(START_MS)));
        let script: Arc<Mutex<Arc<Script>>> = Arc::new(Mutex::new(Arc::new(|_, _| End::Returned {
            content: r#"{"ok":1}"#.into(),
            artifacts: Vec::new(),
        })));
        let (runtime, authority) = Runtime::new(vec![Arc::new(Scripted(script.clone()))]);
        let tools = [WRITE, SEND]
            .map(|manifest| Builtin { manifest: format!("{HEAD}{manifest}").leak(), component: b"component" });
        let registry = Registry::new(state.join("tools"), tools.into());
        let policy = Arc::new(LivePolicy::load(None, registry.clone(), None).unwrap());
        let sqlite = Arc::new(Sqlite::open(&state, &Options::default()).unwrap());
        let mut ceiling = default_ceiling();
        ceiling.install.filesystem[0].access = Access::Write;
        let approvers = dir.path().join("approvers.toml");
        let service = ActionService::new(Parts {
            registry,
            operator: Operator { ceiling, profiles: Profiles::default() }.fixed(),
            policy,
            people: Arc::new(Known(approvers.clone())),
            store: sqlite.clone(),
            holders: sqlite.clone(),
            runtime,
            authority,
            admission: Admission::new(Budgets::for_host(ByteSize::gib(1), 2)),
            artifacts: ArtifactStore::open(&state.join("artifacts"), "local").unwrap(),
            clock: clock.clone(),
            ids: Arc::new(TimeOrderedIds),
            run_root: state.join("run"),
            environments: state.join("environments"),
            protect: vec![state],
            max_sealed: ByteSize::mib(1),
            settings: Settings::new(id("operator")),
        });
        let server = Server::new(ServerParts {
            tenants: Arc::new(One(service.clone())),
            own: person("u"),
            credentials: dir.path().join("credentials.toml"),
            logins: dir.path().join("logins.toml"),
            approvers,
            witness: dir.path().join("witness-key.toml"),
            webhooks: Webhooks {
                list: dir.path().join("webhooks.toml"),
                state: dir.path().join("webhooks"),
                first_retry: Duration::from_millis(20),
            },
            mcp_key: [7; 32],
            clock: clock.clone(),
            ids: Arc::new(TimeOrderedIds),
            settings: ServerSettings {
                workspaces: BTreeMap::new(),
                url: "http://127.0.0.1".to_owned(),
                hosts: Vec::new(),
                rate: NonZeroU32::new(1000).unwrap(),
                connections: 64,
                grace: Duration::from_millis(100),
                logs: Logs::default(),
                otlp: None,
            },
        })
        .unwrap();
        let code = server.login_code().unwrap();
        let listeners =
            Listeners::open(Some(SocketAddr::from(([127, 0, 0, 1], 0))), None, false, Front::Plain).await.unwrap();
        let address = listeners.address().unwrap();
        let (ending, ended) = tokio::sync::oneshot::channel();
        tokio::spawn(server.serve(listeners, async {
            let _ = ended.await;
        }));
        Self { dir, clock, script, service, store: sqlite, address, code, _ending: ending }
    }

    pub(crate) fn forward(&self, span: Duration) {
        self.clock.0.fetch_add(u64::try_from(span.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// What the next runs do.
    pub(crate) fn on_run(&self, script: impl Fn(&Bound, &mut Ports) -> End + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Arc::new(script);
    }

    /// Registers the approver `mira`.
    pub(crate) async fn with_mira(&self) {
        let path = self.dir.path().join("approvers.toml");
        let add = move || Approvers::load(&path).unwrap().add(&name("mira"), PASSPHRASE, 1).map(drop).unwrap();
        tokio::task::spawn_blocking(add).await.unwrap();
    }

    /// A token for somebody with this role.
    pub(crate) fn token(&self, user: &str, role: Role) -> String {
        let mut credentials = Credentials::load(&self.dir.path().join("credentials.toml")).unwrap();
        let new = New {
            name: name(&format!("{user}-{}", role.as_str())),
            role,
            tenant: name("local"),
            user: name(user),
            agent: (role == Role::Agent).then(|| name("coder")),
            agent_version: None,
            on_behalf: false,
            stage: None,
            expires_ms: None,
        };
        credentials.add_token(new, START_MS).unwrap().1.reveal().to_owned()
    }

    /// A request of the agent `coder`, which comes back for the answer.
    pub(crate) async fn ask(&self, tool: &str, arguments: &str, purpose: Option<&str>) -> Action {
        let mut request = ActionRequest::new(tool.parse().unwrap(), serde_json::Value::Null);
        request.purpose = purpose.map(str::to_owned);
        let submission = Submission {
            principal: Principal { chain: vec![name("planner")], ..agent("u", "coder") },
            context: TaskContext { session: id("s1"), task: id("t1"), turn: None, purpose: None, stage: None },
            request,
            received: Some(arguments.as_bytes().to_vec()),
            workspace: Some(self.dir.path().join("workspace")),
            inputs: BTreeMap::new(),
            asking: Asking::Leave,
            held: false,
        };
        match self.service.submit(submission, Arc::new(Unwatched), &Stop::default()).await.unwrap() {
            Submitted::Waiting(action) => action,
            Submitted::Done(observation) => panic!("it ended: {:?}", observation.outcome),
        }
    }

    /// Goes on with an action, as who asked.
    pub(crate) async fn go_on(&self, action: &Action) -> Submitted {
        let stop = Stop::default();
        self.service.resume(&action.principal, &action.id, Asking::Leave, Arc::new(Unwatched), &stop).await.unwrap()
    }

    /// What became of the newest approval of an action.
    pub(crate) fn state(&self, action: &Action) -> ApprovalState {
        self.store.action(&name("local"), &action.id).unwrap().unwrap().approval.unwrap().state
    }
}

/// The approval that an action waits for.
pub(crate) fn approval(action: &Action) -> String {
    action.approval.as_ref().unwrap().id.to_string()
}

/// The plan of it, as it is shown.
pub(crate) fn plan(action: &Action) -> String {
    action.digest.as_ref().unwrap().short().to_owned()
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn id(text: &str) -> Id {
    text.parse().unwrap()
}

pub(crate) fn person(user: &str) -> Principal {
    Principal { tenant: name("local"), user: name(user), agent: None, agent_version: None, chain: Vec::new() }
}

pub(crate) fn agent(user: &str, agent: &str) -> Principal {
    Principal { agent: Some(name(agent)), ..person(user) }
}
