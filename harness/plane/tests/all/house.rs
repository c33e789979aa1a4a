//! A house around the scripted backend: the real service, store and policy,
//! with a clock that a test sets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use env_contracts::{
    Access, ActionRequest, ByteSize, Ceiling, Digest, Id, Name, Observation, Principal, Problem, Profiles, Scope,
};
use glovebox_artifacts::ArtifactStore;
use glovebox_events::Action;
use glovebox_plane::{
    ActionService, Answering, Asking, Builtin, Key, LivePolicy, Operator, OperatorSource, Parts, People, PolicySource,
    Registry, Reply, Settings, Settled, Signed, Submission, Submitted, TaskContext, TimeOrderedIds, Unwatched,
};
use glovebox_runtime::job::End;
use glovebox_runtime::{Admission, Bound, Budgets, Clock, Instant, Ports, Runtime, Stop, default_ceiling};
use glovebox_store::{Options, Sqlite, Store};

use crate::fake::{HEAD, Manners, Ran, Script, Scripted};

/// When these tests begin.
const START_MS: u64 = 1_800_000_000_000;

/// A clock that stands still until a test moves it.
pub(crate) struct TestClock(AtomicU64);

impl TestClock {
    pub(crate) fn ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn set(&self, ms: u64) {
        self.0.store(ms, Ordering::SeqCst);
    }

    pub(crate) fn forward(&self, span: Duration) {
        self.set(self.ms() + u64::try_from(span.as_millis()).unwrap());
    }
}

impl Clock for TestClock {
    fn now(&self) -> Instant {
        Instant { unix_millis: self.ms() }
    }
}

/// What outlives a process: the folder, the clock, what ran.
pub(crate) struct Ground {
    dir: PathBuf,
    _temporary: Option<tempfile::TempDir>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) tokio: tokio::runtime::Runtime,
    script: Arc<Mutex<Arc<Script>>>,
    /// What is prepared for runs.
    pub(crate) held: Arc<()>,
    pub(crate) manners: Arc<Manners>,
}

impl Ground {
    pub(crate) fn new() -> Arc<Self> {
        let temporary = tempfile::tempdir().unwrap();
        fs_err::create_dir(temporary.path().join("workspace")).unwrap();
        Self::over(temporary.path().to_owned(), Some(temporary))
    }

    /// The ground of another process.
    pub(crate) fn at(dir: &Path) -> Arc<Self> {
        Self::over(dir.to_owned(), None)
    }

    fn over(dir: PathBuf, temporary: Option<tempfile::TempDir>) -> Arc<Self> {
        let script: Arc<Mutex<Arc<Script>>> = Arc::new(Mutex::new(Arc::new(|_, _| panic!("nothing should run"))));
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let clock = Arc::new(TestClock(AtomicU64::new(START_MS)));
        Arc::new(Self {
            dir,
            _temporary: temporary,
            clock,
            tokio,
            script,
            held: Arc::default(),
            manners: Arc::default(),
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Every run that began, in any process.
    pub(crate) fn runs(&self) -> Vec<Ran> {
        let text = fs_err::read_to_string(self.path("ran")).unwrap_or_default();
        let ran = |line: &str| {
            let (action, digest) = line.split_once(' ').unwrap();
            Ran { action: id(action), digest: digest.parse().unwrap() }
        };
        text.lines().map(ran).collect()
    }

    /// How often an action ran.
    pub(crate) fn ran(&self, action: &Id) -> usize {
        self.runs().iter().filter(|ran| ran.action == *action).count()
    }
}

/// How a house is furnished.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) manifests: Vec<String>,
    pub(crate) component: &'static [u8],
    pub(crate) ceiling: Ceiling,
    pub(crate) profiles: Profiles,
    /// A policy in place of the shipped one.
    pub(crate) rules: Option<String>,
    pub(crate) approvers: String,
    /// Who can log in.
    pub(crate) known: Vec<Name>,
    /// In place of those who can log in.
    pub(crate) people: Option<Arc<dyn People>>,
    /// Whether the backend has private layers.
    pub(crate) overlay: bool,
    /// Whether the backend keeps environments.
    pub(crate) keeps: bool,
    pub(crate) settings: Settings,
}

/// The classes of the shipped policy.
pub(crate) const CLASSES: &str = "[classes.owner]\nsubjects = [\"*\"]\nassurance = \"same-user\"\n\
     [classes.person]\nsubjects = [\"*\"]\nassurance = \"console-login\"\n";

impl Setup {
    /// These tools, and a workspace that may be written.
    pub(crate) fn of(manifests: &[&str]) -> Self {
        let mut ceiling = default_ceiling();
        ceiling.install.filesystem[0].access = Access::Write;
        Self {
            manifests: manifests.iter().map(|&manifest| manifest.to_owned()).collect(),
            component: b"component",
            ceiling,
            profiles: Profiles::default(),
            rules: None,
            approvers: CLASSES.to_owned(),
            known: vec![name("mira")],
            people: None,
            overlay: false,
            keeps: false,
            settings: Settings::new(id("operator")),
        }
    }

    pub(crate) fn rules(mut self, rules: &str) -> Self {
        self.rules = Some(rules.to_owned());
        self
    }
}

/// A process with a service of its own.
pub(crate) struct House {
    pub(crate) ground: Arc<Ground>,
    pub(crate) service: ActionService,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) policy: Arc<LivePolicy>,
    pub(crate) operator: Arc<Changing>,
}

/// What an operator changes while everything runs.
pub(crate) struct Changing(Mutex<Arc<Operator>>);

impl Changing {
    pub(crate) fn change(&self, how: impl FnOnce(&mut Operator)) {
        how(Arc::make_mut(&mut self.0.lock().unwrap()));
    }
}

impl OperatorSource for Changing {
    fn current(&self) -> Result<Arc<Operator>, Problem> {
        Ok(self.0.lock().unwrap().clone())
    }
}

impl House {
    pub(crate) fn new(manifest: &str) -> Self {
        Self::with(manifest, default_ceiling())
    }

    pub(crate) fn with(manifest: &str, ceiling: Ceiling) -> Self {
        Self::open(&Ground::new(), &Setup { ceiling, ..Setup::of(&[manifest]) })
    }

    /// Another tool over the same state.
    pub(crate) fn again(&self, manifest: &str, ceiling: Ceiling) -> Self {
        Self::open(&self.ground, &Setup { ceiling, ..Setup::of(&[manifest]) })
    }

    pub(crate) fn of(setup: &Setup) -> Self {
        Self::open(&Ground::new(), setup)
    }

    pub(crate) fn open(ground: &Arc<Ground>, setup: &Setup) -> Self {
        Self::open_over(ground, setup, |store| store)
    }

    /// With something between the service and its store.
    pub(crate) fn open_over(
        ground: &Arc<Ground>,
        setup: &Setup,
        between: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
    ) -> Self {
        let state = ground.path("state");
        fs_err::create_dir_all(&state).unwrap();
        let (script, ran) = (ground.script.clone(), ground.path("ran"));
        let (overlay, keeps) = (setup.overlay, setup.keeps);
        let scripted =
            Scripted { script, ran, overlay, keeps, held: ground.held.clone(), manners: ground.manners.clone() };
        let (runtime, authority) = Runtime::new(vec![Arc::new(scripted)]);
        let builtin =
            |manifest: &String| Builtin { manifest: format!("{HEAD}{manifest}").leak(), component: setup.component };
        let registry = Registry::new(state.join("tools"), setup.manifests.iter().map(builtin).collect());
        let rules = setup.rules.as_ref().map(|rules| {
            let folder = ground.path("policy");
            put_policy(ground, rules, &setup.approvers);
            folder
        });
        let policy = Arc::new(LivePolicy::load(rules, registry.clone(), None).unwrap());
        let sqlite = Arc::new(Sqlite::open(&state, &Options::default()).unwrap());
        let store = between(sqlite.clone());
        let operator = Operator { ceiling: setup.ceiling.clone(), profiles: setup.profiles.clone() };
        let operator = Arc::new(Changing(Mutex::new(Arc::new(operator))));
        let service = ActionService::new(Parts {
            registry,
            operator: operator.clone(),
            policy: policy.clone() as Arc<dyn PolicySource>,
            people: setup.people.clone().unwrap_or_else(|| Arc::new(crate::people::Known(setup.known.clone()))),
            store: store.clone(),
            holders: sqlite,
            runtime,
            authority,
            admission: Admission::new(Budgets::for_host(ByteSize::gib(1), 2)),
            artifacts: ArtifactStore::open(&state.join("artifacts"), "local").unwrap(),
            clock: ground.clock.clone(),
            ids: Arc::new(TimeOrderedIds),
            run_root: state.join("run"),
            environments: state.join("environments"),
            protect: vec![state],
            max_sealed: ByteSize::mib(1),
            settings: setup.settings.clone(),
        });
        Self { ground: ground.clone(), service, store, policy, operator }
    }

    /// What the next runs do.
    pub(crate) fn on_run(&self, script: impl Fn(&Bound, &mut Ports) -> End + Send + Sync + 'static) -> &Self {
        *self.ground.script.lock().unwrap() = Arc::new(script);
        self
    }

    /// The next runs succeed.
    pub(crate) fn runs_well(&self) -> &Self {
        self.on_run(|_, _| crate::fake::returned(r#"{"ok":1}"#))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.ground.path(name)
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.ground.tokio.block_on(future)
    }

    /// The index entry of an artifact.
    pub(crate) fn record(&self, uri: &str) -> glovebox_artifacts::ArtifactRecord {
        self.block_on(self.service.artifacts().record(&uri.parse().unwrap())).unwrap()
    }

    pub(crate) fn run(&self, tool: &str, args: &str) -> Observation {
        self.submit(tool, args, |_| {}).unwrap()
    }

    pub(crate) fn scoped(&self, tool: &str, scope: &str) -> Observation {
        let scope = Scope::from_toml(scope).unwrap();
        self.submit(tool, "{}", |submission| submission.request.scope = Some(scope)).unwrap()
    }

    /// A request by a user, where nobody can be asked.
    pub(crate) fn submit(
        &self,
        tool: &str,
        args: &str,
        change: impl FnOnce(&mut Submission),
    ) -> Result<Observation, Problem> {
        let mut submission = self.asked(tool, args);
        submission.principal = person("u");
        submission.asking = Asking::Never;
        change(&mut submission);
        let observation = self.send(submission).map(done)?;
        let left = fs_err::read_dir(self.path("state/run")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "a run folder was left behind");
        Ok(observation)
    }

    /// A request of the agent `coder`, which comes back for the answer.
    pub(crate) fn asked(&self, tool: &str, args: &str) -> Submission {
        Submission {
            principal: agent("u", "coder"),
            context: TaskContext { session: id("s1"), task: id("t1"), turn: None, purpose: None, stage: None },
            request: ActionRequest::new(tool.parse().unwrap(), serde_json::Value::Null),
            received: Some(args.as_bytes().to_vec()),
            workspace: Some(self.path("workspace")),
            inputs: BTreeMap::new(),
            asking: Asking::Leave,
            held: false,
        }
    }

    pub(crate) fn send(&self, submission: Submission) -> Result<Submitted, Problem> {
        self.block_on(self.service.submit(submission, Arc::new(Unwatched), &Stop::default()))
    }

    /// The same, for what has to wait for a person.
    pub(crate) fn waits(&self, tool: &str, args: &str) -> Action {
        waiting(self.send(self.asked(tool, args)).unwrap())
    }

    pub(crate) fn resume(&self, action: &Action) -> Submitted {
        self.resume_as(&action.principal, &action.id, Asking::Leave).unwrap()
    }

    pub(crate) fn resume_as(&self, principal: &Principal, action: &Id, asking: Asking) -> Result<Submitted, Problem> {
        self.block_on(self.service.resume(principal, action, asking, Arc::new(Unwatched), &Stop::default()))
    }

    /// The user's answer, as any program of theirs could give it.
    pub(crate) fn answer(&self, approval: &Id, offer: &str, words: Option<&str>) -> Result<Settled, Problem> {
        self.reply(&person("u"), None, offered(approval, offer, words))
    }

    pub(crate) fn approve(&self, action: &Action) -> Settled {
        self.answer(approval(action), "once", None).unwrap()
    }

    pub(crate) fn reply(
        &self,
        principal: &Principal,
        key: Option<&glovebox_identity::Approver>,
        reply: Reply,
    ) -> Result<Settled, Problem> {
        self.reply_with(principal, key.map(Into::into), reply)
    }

    pub(crate) fn reply_with(
        &self,
        principal: &Principal,
        key: Option<Key<'_>>,
        reply: Reply,
    ) -> Result<Settled, Problem> {
        self.block_on(self.service.answer(Signed { principal, key, channel: name("test") }, reply))
    }

    pub(crate) fn edit(&self, action: &Action, arguments: &str) -> Result<Settled, Problem> {
        let answer = Answering::Edit { arguments: Some(arguments.to_owned()), scope: None };
        let reply = Reply { approval: approval(action).clone(), seen: None, answer, words: None };
        self.reply(&person("u"), None, reply)
    }

    /// What an action is now.
    pub(crate) fn now(&self, action: &Id) -> Action {
        self.store.action(&name("local"), action).unwrap().unwrap()
    }
}

/// Writes a policy where a house looks for it.
pub(crate) fn put_policy(ground: &Ground, rules: &str, approvers: &str) {
    let folder = ground.path("policy");
    fs_err::create_dir_all(&folder).unwrap();
    fs_err::write(folder.join("rules.cedar"), rules).unwrap();
    fs_err::write(folder.join("approvers.toml"), approvers).unwrap();
}

pub(crate) fn offered(approval: &Id, offer: &str, words: Option<&str>) -> Reply {
    Reply {
        approval: approval.clone(),
        seen: None,
        answer: Answering::Offer { id: id(offer), narrowed: None },
        words: words.map(str::to_owned),
    }
}

pub(crate) fn done(submitted: Submitted) -> Observation {
    match submitted {
        Submitted::Done(observation) => observation,
        Submitted::Waiting(action) => panic!("it waits: {action:?}"),
    }
}

pub(crate) fn waiting(submitted: Submitted) -> Action {
    match submitted {
        Submitted::Waiting(action) => action,
        Submitted::Done(observation) => panic!("it ended: {:?}", observation.outcome),
    }
}

pub(crate) fn approval(action: &Action) -> &Id {
    &action.approval.as_ref().unwrap().id
}

pub(crate) fn digest(action: &Action) -> &Digest {
    action.digest.as_ref().unwrap()
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
