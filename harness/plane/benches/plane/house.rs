//! A house around a backend that does nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use env_contracts::{ActionRequest, ByteSize, Clause, Contract, Digest, Id, Name, Principal, Problem, Profiles};
use glovebox_artifacts::ArtifactStore;
use glovebox_events::{Action, Approval, Grant, Halt, Logged, Owner, Question, Session, Task};
use glovebox_identity::{Signature, Statement};
use glovebox_plane::{
    ActionService, Asking, Builtin, LivePolicy, Operator, Parts, People, Registry, Settings, Submission, Submitted,
    TaskContext, TimeOrderedIds, Unwatched,
};
use glovebox_runtime::job::{End, JobUsage};
use glovebox_runtime::{
    Admission, Backend, BoxFuture, Budgets, Cleared, Enforcement, Ports, Prepared, Registered, RunReport, Runtime,
    Stop, SystemClock, default_ceiling,
};
use glovebox_store::*;

/// Runs nothing, at once.
pub(crate) struct Nothing;

impl Backend for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn enforce(&self, _: &Clause<'_>) -> Enforcement {
        Enforcement::By("the bench")
    }

    fn prepare<'a>(
        &'a self,
        _: &'a Registered,
        _: &'a Contract,
        _: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Result<Prepared, Problem>> {
        Box::pin(async { Ok(Box::new(()) as Prepared) })
    }

    fn run(&self, _: Cleared, _: Ports) -> BoxFuture<'_, RunReport> {
        Box::pin(async {
            let end = End::Returned { content: r#"{"ok":true}"#.into(), artifacts: Vec::new() };
            RunReport { end, usage: JobUsage::default(), notices: Vec::new() }
        })
    }

    /// As cells, which are where components run unless the operator says otherwise.
    fn never_blocks(&self) -> bool {
        true
    }
}

struct Nobody;

impl People for Nobody {
    fn known(&self) -> Result<Vec<(Name, env_contracts::Assurance)>, Problem> {
        Ok(Vec::new())
    }

    fn verify(&self, _: &Name, _: env_contracts::Assurance, _: &Statement, _: &Signature) -> Result<(), Problem> {
        unreachable!("nobody signs here")
    }
}

const MANIFEST: &str = r#"
schema = "glovebox/tool/v1"
name = "bench.none"
version = "1.0.0"
title = "t"
description = "d"
entry = { kind = "tool" }
[input]
type = "object"
additionalProperties = false
properties = { path = { type = "string" }, count = { type = "integer", minimum = 1 } }
[output]
type = "object"
required = ["ok"]
[contract]
schema = "glovebox/contract/v1"
limits = { wall = "10s", memory = "1MiB", output = "64KiB" }
"#;

/// The tool without effects, and one that changes a workspace.
pub(crate) fn registry(folder: &Path) -> Registry {
    let writes = MANIFEST.replace("bench.none", "bench.writes").replace(
        "[contract]\nschema = \"glovebox/contract/v1\"\n",
        "[contract]\nschema = \"glovebox/contract/v1\"\nfilesystem = [{ guest = \"/workspace\", source = \"workspace\", access = \"write\" }]\n",
    );
    let builtin = |manifest: String| Builtin { manifest: manifest.leak(), component: b"component" };
    Registry::new(folder.join("tools"), vec![builtin(MANIFEST.to_owned()), builtin(writes)])
}

/// A service, and what it writes.
pub(crate) struct House {
    pub(crate) service: ActionService,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) seen: Arc<Seen>,
}

impl House {
    pub(crate) fn new() -> Self {
        Self::filled(|_| {})
    }

    /// The same over a file that somebody filled before.
    pub(crate) fn filled(fill: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        fs_err::create_dir_all(&state).unwrap();
        drop(Sqlite::open(&state, &Options::default()).unwrap());
        fill(&state);
        fs_err::create_dir(folder.path().join("workspace")).unwrap();
        let store = Arc::new(Sqlite::open(&state, &Options::default()).unwrap());
        let seen = Arc::new(Seen { store: store.clone(), kept: Mutex::default() });
        let (runtime, authority) = Runtime::new(vec![Arc::new(Nothing)]);
        let registry = registry(&state);
        let mut ceiling = default_ceiling();
        for mount in &mut ceiling.install.filesystem {
            mount.access = env_contracts::Access::Write;
        }
        let service = ActionService::new(Parts {
            policy: Arc::new(LivePolicy::load(None, registry.clone(), None).unwrap()),
            registry,
            operator: Operator { ceiling, profiles: Profiles::default() }.fixed(),
            people: Arc::new(Nobody),
            store: seen.clone(),
            holders: store,
            runtime,
            authority,
            admission: Admission::new(Budgets::for_host(ByteSize::gib(8), 64)),
            artifacts: ArtifactStore::open(&state.join("artifacts"), "local").unwrap(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(TimeOrderedIds),
            run_root: state.join("run"),
            environments: state.join("environments"),
            protect: vec![state],
            max_sealed: ByteSize::mib(1),
            settings: Settings::new("operator".parse().unwrap()),
        });
        Self { service, folder, seen }
    }

    pub(crate) async fn action(&self, tool: &str, session: usize) {
        let submission = self.submission(tool, session);
        match self.service.submit(submission, Arc::new(Unwatched), &Stop::default()).await.unwrap() {
            Submitted::Done(observation) => assert!(observation.outcome.code.is_none(), "{:?}", observation.outcome),
            Submitted::Waiting(action) => panic!("somebody is asked: {action:?}"),
        }
    }

    pub(crate) fn submission(&self, tool: &str, session: usize) -> Submission {
        let session: Id = format!("session-{session}").parse().unwrap();
        let task = session.clone();
        Submission {
            principal: principal(),
            context: TaskContext { session, task, turn: None, purpose: None, stage: None },
            request: ActionRequest::new(tool.parse().unwrap(), serde_json::Value::Null),
            received: Some(br#"{"path": "src/lib.rs", "count": 3}"#.to_vec()),
            workspace: Some(self.folder.path().join("workspace")),
            inputs: BTreeMap::new(),
            asking: Asking::Never,
            held: false,
        }
    }
}

pub(crate) fn principal() -> Principal {
    Principal {
        tenant: "local".parse().unwrap(),
        user: "ann".parse().unwrap(),
        agent: None,
        agent_version: None,
        chain: Vec::new(),
    }
}

/// The store, and on request what is written to it: the rows of the floor.
pub(crate) struct Seen {
    store: Arc<Sqlite>,
    pub(crate) kept: Mutex<Option<Vec<Commit>>>,
}

impl Store for Seen {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Vec<u64>, StoreError>> {
        if let Some(kept) = &mut *self.kept.lock().unwrap() {
            kept.push(commit.clone());
        }
        self.store.commit(commit)
    }

    fn action(&self, tenant: &Name, id: &Id) -> Result<Option<Action>, Problem> {
        self.store.action(tenant, id)
    }

    fn by_approval(&self, tenant: &Name, approval: &Id) -> Result<Option<Action>, Problem> {
        self.store.by_approval(tenant, approval)
    }

    fn key(&self, scope: &Digest) -> Result<Option<(Digest, Id)>, Problem> {
        self.store.key(scope)
    }

    fn actions(&self, tenant: &Name, filter: &ActionFilter) -> Result<Page<Action>, Problem> {
        self.store.actions(tenant, filter)
    }

    fn approvals(&self, tenant: &Name, filter: &ApprovalFilter) -> Result<Page<(Action, Approval)>, Problem> {
        self.store.approvals(tenant, filter)
    }

    fn grant(&self, tenant: &Name, id: &Id) -> Result<Option<Grant>, Problem> {
        self.store.grant(tenant, id)
    }

    fn grants(&self, tenant: &Name, filter: &GrantFilter) -> Result<Vec<Grant>, Problem> {
        self.store.grants(tenant, filter)
    }

    fn declined(&self, tenant: &Name, task: &Id, intent: &Digest) -> Result<Option<Action>, Problem> {
        self.store.declined(tenant, task, intent)
    }

    fn tally(&self, tenant: &Name, task: &Id, intent: &Digest) -> Result<ApprovalTally, Problem> {
        self.store.tally(tenant, task, intent)
    }

    fn session(&self, tenant: &Name, id: &Id) -> Result<Option<Session>, Problem> {
        self.store.session(tenant, id)
    }

    fn sessions(&self, tenant: &Name, filter: &SessionFilter) -> Result<Page<Session>, Problem> {
        self.store.sessions(tenant, filter)
    }

    fn task(&self, tenant: &Name, task: &Id) -> Result<TaskSeen, Problem> {
        self.store.task(tenant, task)
    }

    fn tasks(&self, tenant: &Name, filter: &TaskFilter) -> Result<Page<Task>, Problem> {
        self.store.tasks(tenant, filter)
    }

    fn stopping(&self, limit: u32) -> Result<Vec<Task>, Problem> {
        self.store.stopping(limit)
    }

    fn stopping_sessions(&self, limit: u32) -> Result<Vec<Session>, Problem> {
        self.store.stopping_sessions(limit)
    }

    fn question(&self, tenant: &Name, id: &Id) -> Result<Option<Question>, Problem> {
        self.store.question(tenant, id)
    }

    fn questions(&self, tenant: &Name, filter: &QuestionFilter) -> Result<Page<Question>, Problem> {
        self.store.questions(tenant, filter)
    }

    fn expiring(&self, now_ms: u64, limit: u32) -> Result<Vec<Due>, Problem> {
        self.store.expiring(now_ms, limit)
    }

    fn running(&self, limit: u32) -> Result<Vec<Action>, Problem> {
        self.store.running(limit)
    }

    fn requested(&self, limit: u32) -> Result<Vec<Action>, Problem> {
        self.store.requested(limit)
    }

    fn held(&self, limit: u32) -> Result<Vec<(Principal, Id)>, Problem> {
        self.store.held(limit)
    }

    fn payload(&self, tenant: &Name, of: &Owner, sha256: &Digest) -> Result<Option<Content>, Problem> {
        self.store.payload(tenant, of, sha256)
    }

    fn events(&self, tenant: &Name, filter: &EventFilter) -> Result<Vec<Logged>, Problem> {
        self.store.events(tenant, filter)
    }

    fn recorded(&self, after: u64, limit: u32) -> Result<Vec<Recorded>, Problem> {
        self.store.recorded(after, limit)
    }

    fn head(&self, tenant: &Name, session: &Id) -> Result<u64, Problem> {
        self.store.head(tenant, session)
    }

    fn database(&self) -> Result<Id, Problem> {
        self.store.database()
    }

    fn last_recorded(&self) -> Result<u64, Problem> {
        self.store.last_recorded()
    }

    fn halted(&self) -> Result<Option<Halt>, Problem> {
        self.store.halted()
    }

    fn changes(&self) -> Result<tokio::sync::watch::Receiver<u64>, Problem> {
        self.store.changes()
    }

    fn erase(
        &self,
        tenant: &Name,
        of: &Owner,
        by: &Name,
        at_ms: u64,
    ) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        self.store.erase(tenant, of, by, at_ms)
    }
}
