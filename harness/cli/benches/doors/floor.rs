//! The floor of the figures: the same action at the service, without a door.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use env_contracts::{Access, ActionRequest, Assurance, ByteSize, Name, Principal, Problem, Profiles};
use glovebox_artifacts::ArtifactStore;
use glovebox_identity::{Signature, Statement};
use glovebox_plane::{
    ActionService, Asking, Builtin, LivePolicy, Operator, Parts, People, Registry, Settings, Submission, Submitted,
    TaskContext, TimeOrderedIds, Unwatched, limit_workspace,
};
use glovebox_runtime::{Admission, Budgets, Runtime, Stop, SystemClock, default_ceiling};
use glovebox_store::{Options, Sqlite};
use glovebox_wasm::{CompileLimits, Helper, WasmBackend};

/// Nobody has to decide on what is measured.
struct Nobody;

impl People for Nobody {
    fn known(&self) -> Result<Vec<(Name, Assurance)>, Problem> {
        Ok(Vec::new())
    }

    fn verify(&self, _: &Name, _: Assurance, _: &Statement, _: &Signature) -> Result<(), Problem> {
        Err(Problem::new(env_contracts::Code::SignatureInvalid, "nobody signs here"))
    }
}

/// The service with the tool that is measured.
pub(crate) struct Floor {
    service: ActionService,
    runtime: tokio::runtime::Runtime,
    submission: Submission,
}

impl Floor {
    pub(crate) fn new(state: &Path, workspace: &Path, capability: &str, arguments: &str) -> Self {
        fs_err::create_dir_all(state).unwrap();
        let registry = Registry::new(
            state.join("tools"),
            vec![Builtin {
                manifest: include_str!("../../../../tools/text-count/tool.toml"),
                component: include_bytes!("../../../../tools/dist/text.count.wasm"),
            }],
        );
        let backend =
            WasmBackend::in_process(16, &state.join("compiled"), Helper::this_program(), CompileLimits::default());
        let (runtime, authority) = Runtime::new(vec![Arc::new(backend.unwrap())]);
        let store = Arc::new(Sqlite::open(state, &Options::default()).unwrap());
        let service = ActionService::new(Parts {
            operator: Operator { ceiling: default_ceiling(), profiles: Profiles::default() }.fixed(),
            policy: Arc::new(LivePolicy::load(None, registry.clone(), None).unwrap()),
            registry,
            people: Arc::new(Nobody),
            store: store.clone(),
            holders: store,
            runtime,
            authority,
            admission: Admission::shared(Budgets::for_host(ByteSize::gib(4), 16), state.join("room")),
            artifacts: ArtifactStore::open(&state.join("artifacts"), "local").unwrap(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(TimeOrderedIds),
            run_root: state.join("run"),
            environments: state.join("environments"),
            protect: vec![state.to_owned()],
            max_sealed: ByteSize::mib(64),
            settings: Settings::new("operator".parse().unwrap()),
        });
        let name = |text: &str| text.parse::<Name>().unwrap();
        let text = format!("{{\"capability\":\"{capability}\",\"arguments\":{arguments}}}");
        let mut request: ActionRequest = serde_json::from_str(&text).unwrap();
        let principal = Principal {
            tenant: name("local"),
            user: name("u"),
            agent: Some(name("coder")),
            agent_version: None,
            chain: Vec::new(),
        };
        let tool = service.capability(&principal, &request.capability).unwrap();
        limit_workspace(&mut request.scope, &tool.manifest.contract, Access::Read);
        let submission = Submission {
            principal,
            context: TaskContext {
                session: "floor".parse().unwrap(),
                task: "floor".parse().unwrap(),
                turn: None,
                purpose: None,
                stage: None,
            },
            request,
            received: Some(arguments.as_bytes().to_vec()),
            workspace: Some(workspace.to_owned()),
            inputs: BTreeMap::new(),
            asking: Asking::Wait,
            held: true,
        };
        Self { service, runtime: tokio::runtime::Runtime::new().unwrap(), submission }
    }

    /// How long one action takes.
    pub(crate) fn once(&self) -> Duration {
        let begin = Instant::now();
        let (service, submission) = (self.service.clone(), self.submission.clone());
        let submitted = async move { service.submit(submission, Arc::new(Unwatched), &Stop::default()).await };
        let task = self.runtime.spawn(submitted);
        let submitted = self.runtime.block_on(task).unwrap().unwrap();
        assert!(matches!(submitted, Submitted::Done(seen) if seen.outcome.code.is_none()));
        begin.elapsed()
    }
}
