//! Puts the parts together: the one place that names them all.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use env_contracts::{Code, Name, Observation, Problem, Profiles, Span};
use glovebox_artifacts::ArtifactStore;
use glovebox_container::Containers;
use glovebox_plane::{
    ActionService, Builtin, LivePolicy, Operator, OperatorSource, Parts, PolicySource, Registry, Settings, Submitted,
    TimeOrderedIds,
};
use glovebox_runtime::{Admission, Backend, Budgets, Runtime, SystemClock};
use glovebox_server::Tenants;
use glovebox_store::{Options, Sqlite};

use crate::config::{Config, Count, Origin, trusted};
use crate::native::{LetGo, Native};
use crate::nobody::Nobody;
use crate::operator::LiveOperator;
use crate::places::{Places, protect};
use crate::registered::Registered;
use crate::values::Ttl;
use crate::who::id;
use crate::{backends, builtin, ceiling};

/// The tenant of a person's own machine.
pub(crate) const TENANT: &str = "local";

/// The registry of this state folder.
pub(crate) fn registry(places: &Places) -> Registry {
    Registry::new(places.tools(), builtin::all())
}

/// The same with one tool more, which only this process has.
pub(crate) fn registry_with(places: &Places, tool: Builtin) -> Registry {
    let mut tools = builtin::all();
    tools.push(tool);
    Registry::new(places.tools(), tools)
}

/// The artifacts of this state folder.
///
/// # Errors
/// `state-unavailable`, `disk-full`.
pub(crate) fn artifacts(places: &Places) -> Result<ArtifactStore, Problem> {
    ArtifactStore::open(&places.artifacts(), TENANT).map_err(|error| Problem::of(&error))
}

/// The service over all parts, for a process that runs so many actions at one
/// time.
///
/// # Errors
/// Those of the parts.
pub(crate) fn service(config: &Config, slots: u32) -> Result<ActionService, Problem> {
    let places = Places::of(config);
    let registry = registry(&places);
    service_of(config, places, registry, slots)
}

/// The same with these tools.
///
/// # Errors
/// Those of the parts.
pub(crate) fn service_of(
    config: &Config,
    places: Places,
    registry: Registry,
    slots: u32,
) -> Result<ActionService, Problem> {
    places.make()?;
    places.set_aside();
    let policy = policy(config, &places, &registry)?;
    service_at(places, registry, config, slots, Arc::new(policy), LiveOperator::load(config)?)
}

/// The service that lets an agent go ahead with what it does by itself. It is the
/// only one with that backend: everywhere else nobody would go ahead. It runs
/// tools only where one of them reviews what people would be asked about.
///
/// # Errors
/// Those of the parts.
pub(crate) fn letting_go(config: &Config, let_go: LetGo) -> Result<ActionService, Problem> {
    let places = Places::of(config);
    let registry = registry(&places);
    places.make()?;
    places.set_aside();
    let policy = Arc::new(policy(config, &places, &registry)?);
    let mut backends: Vec<Arc<dyn Backend>> = vec![Arc::new(Native(let_go))];
    if !policy.current().reviewers().is_empty() {
        backends.push(Arc::new(backends::wasm(config, &places, 1)?));
    }
    let (operator, store) = (LiveOperator::load(config)?, open_store(&places)?);
    Assembly { places, registry, backends, operator, policy, store }.of(config, &tenant())
}

/// The same for what a person tries here, with the shipped policy.
///
/// # Errors
/// Those of the parts.
pub(crate) fn trial(config: &Config) -> Result<ActionService, Problem> {
    let places = Places::of(config);
    let registry = registry(&places);
    trial_at(places, registry, config, 1)
}

/// The same with its state at another place, with other tools, and with the
/// shipped policy: for what a person tries by themselves.
///
/// # Errors
/// Those of the parts.
pub(crate) fn trial_at(
    places: Places,
    registry: Registry,
    config: &Config,
    slots: u32,
) -> Result<ActionService, Problem> {
    places.make()?;
    let policy = LivePolicy::load(None, registry.clone(), None)?;
    let operator = Operator { ceiling: ceiling::read(config)?, profiles: Profiles::default() };
    service_at(places, registry, config, slots, Arc::new(policy), operator.fixed())
}

fn service_at(
    places: Places,
    registry: Registry,
    config: &Config,
    slots: u32,
    policy: Arc<dyn PolicySource>,
    operator: Arc<dyn OperatorSource>,
) -> Result<ActionService, Problem> {
    // What processes left that were killed. What can't go now, `gc` tells of.
    let _ = glovebox_runtime::bind::sweep(&places.runs(), false);
    // An engine that can't be spoken to is missed by whoever needs one.
    let containers = backends::containers(config, &places).ok().map(Arc::new);
    let backends = backends::all(config, &places, slots, containers)?;
    let store = open_store(&places)?;
    Assembly { places, registry, backends, operator, policy, store }.of(config, &tenant())
}

fn open_store(places: &Places) -> Result<Arc<Sqlite>, Problem> {
    Ok(Arc::new(Sqlite::open(&places.state, &Options::default())?))
}

/// The tenant of whoever sits here.
pub(crate) fn tenant() -> Name {
    TENANT.parse().unwrap_or_else(|error| unreachable!("a word of ours: {error}"))
}

/// The parts in which services differ, and which those of several tenants
/// share.
struct Assembly {
    places: Places,
    registry: Registry,
    backends: Vec<Arc<dyn Backend>>,
    operator: Arc<dyn OperatorSource>,
    policy: Arc<dyn PolicySource>,
    store: Arc<Sqlite>,
}

impl Assembly {
    /// The service of a tenant.
    fn of(&self, config: &Config, tenant: &Name) -> Result<ActionService, Problem> {
        let places = &self.places;
        let (runtime, authority) = Runtime::new(self.backends.clone());
        let people = Registered {
            approvers: approvers_path(config),
            credentials: credentials_path(config),
            witness: places.witness(),
        };
        let artifacts = ArtifactStore::open(&places.artifacts(), tenant.as_str());
        Ok(ActionService::new(Parts {
            registry: self.registry.clone(),
            operator: self.operator.clone(),
            policy: self.policy.clone(),
            people: Arc::new(people),
            store: self.store.clone(),
            holders: self.store.clone(),
            runtime,
            authority,
            admission: Admission::shared(budgets(config), places.room()),
            artifacts: artifacts.map_err(|error| Problem::of(&error))?,
            clock: Arc::new(SystemClock),
            ids: Arc::new(TimeOrderedIds),
            run_root: places.runs(),
            environments: places.environments(),
            protect: protect(config, places),
            max_sealed: config.get("limits.sealed"),
            settings: settings(config),
        }))
    }
}

/// The services of all tenants, for a process that serves them: each is made
/// when it is first asked for.
pub(crate) struct AllTenants {
    assembly: Assembly,
    /// Kept standing for the next action.
    containers: Option<Arc<Containers>>,
    config: Config,
    made: Mutex<BTreeMap<Name, ActionService>>,
}

impl AllTenants {
    /// None is made yet.
    ///
    /// # Errors
    /// Those of the parts.
    pub(crate) fn new(config: Config, slots: u32) -> Result<Self, Problem> {
        let places = Places::of(&config);
        let registry = registry(&places);
        places.make()?;
        places.set_aside();
        let warm = config.get::<Count>("container.warm").0;
        let containers = backends::containers(&config, &places).ok().map(|containers| Arc::new(containers.warm(warm)));
        let assembly = Assembly {
            policy: Arc::new(policy(&config, &places, &registry)?),
            operator: LiveOperator::load(&config)?,
            backends: backends::all(&config, &places, slots, containers.clone())?,
            store: open_store(&places)?,
            places,
            registry,
        };
        Ok(Self { assembly, containers, config, made: Mutex::default() })
    }

    /// The containers of this process.
    pub(crate) fn containers(&self) -> Option<Arc<Containers>> {
        self.containers.clone()
    }
}

impl Tenants for AllTenants {
    fn service(&self, tenant: &Name) -> Result<ActionService, Problem> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(service) = made.get(tenant) {
            return Ok(service.clone());
        }
        let service = self.assembly.of(&self.config, tenant)?;
        made.insert(tenant.clone(), service.clone());
        Ok(service)
    }
}

/// The service for looking and stopping: it runs nothing, and so it is there
/// whatever is wrong with policy, ceiling, profiles or this host. What is wrong
/// is said.
///
/// # Errors
/// Those of the state folder.
pub(crate) fn overseer(config: &Config) -> Result<ActionService, Problem> {
    let places = Places::of(config);
    let registry = registry(&places);
    places.make()?;
    let policy: Arc<dyn PolicySource> = match policy(config, &places, &registry) {
        Ok(policy) => Arc::new(policy),
        Err(problem) => {
            crate::print::problem(&problem);
            Arc::new(Nobody)
        }
    };
    let operator = Operator { ceiling: glovebox_runtime::default_ceiling(), profiles: Profiles::default() };
    let (operator, store) = (operator.fixed(), open_store(&places)?);
    Assembly { places, registry, backends: Vec::new(), operator, policy, store }.of(config, &tenant())
}

/// How people are asked.
fn settings(config: &Config) -> Settings {
    let mut settings = Settings::new(id("operator"));
    settings.ttl = config.get::<Ttl>("approvals.ttl").0.map(|span| span.0);
    settings.grace = config.get::<Span>("approvals.grace").0;
    settings.environments.idle = config.get::<Span>("environments.idle").0;
    settings.environments.age = config.get::<Span>("environments.age").0;
    settings.asks.most = config.get::<Count>("approvals.most").0;
    settings
}

/// The policy in force: the operator's, or the shipped one.
///
/// # Errors
/// `policy-invalid` with every problem.
pub(crate) fn policy(config: &Config, places: &Places, registry: &Registry) -> Result<LivePolicy, Problem> {
    let policy = LivePolicy::load(policy_dir(config)?, registry.clone(), Some(places.checked()))?;
    for path in policy.paths() {
        trusted(&path).map_err(distrusted)?;
    }
    Ok(policy)
}

fn distrusted(why: String) -> Problem {
    Problem::new(Code::PolicyInvalid, why).with_help("give it to yourself, and take the others' write permission away")
}

/// The folder of the operator's policy; `None`: there is none.
///
/// # Errors
/// `policy-invalid` where others could have written it, or a named one is not
/// there.
pub(crate) fn policy_dir(config: &Config) -> Result<Option<PathBuf>, Problem> {
    let (path, origin) = config.entry("policy");
    let folder = PathBuf::from(path);
    if !folder.is_dir() {
        return match origin {
            // Only the default place may be empty.
            Origin::Default => Ok(None),
            _ => {
                let message = format!("`policy` from {origin}: `{path}` is not a folder");
                Err(Problem::new(Code::PolicyInvalid, message)
                    .with_help("name the folder of a policy; `glovebox policy init DIR` makes one to start from"))
            }
        };
    }
    trusted(&folder).map_err(distrusted)?;
    Ok(Some(folder))
}

/// The file of those who approve by passphrase.
pub(crate) fn approvers_path(config: &Config) -> PathBuf {
    config.entry("approvers").0.into()
}

/// The file of those who are told of what waits for people.
pub(crate) fn webhooks_path(config: &Config) -> PathBuf {
    config.entry("webhooks").0.into()
}

/// The file of those who may call at a door.
pub(crate) fn credentials_path(config: &Config) -> PathBuf {
    config.entry("credentials").0.into()
}

/// What all actions of this state folder together may use.
fn budgets(config: &Config) -> Budgets {
    Budgets {
        memory: config.get("admission.memory"),
        actions: config.get::<Count>("admission.actions").0,
        queue: config.get::<Count>("admission.queue").0,
        wait: config.get::<Span>("admission.wait").0,
    }
}

/// The Observation of an action that nobody was asked about.
///
/// # Errors
/// `approval-pending` where somebody was.
pub(crate) fn done(submitted: Submitted) -> Result<Observation, Problem> {
    match submitted {
        Submitted::Done(observation) => Ok(observation),
        Submitted::Waiting(action) => {
            Err(Problem::new(Code::ApprovalPending, format!("action `{}` waits for a person", action.id)))
        }
    }
}

/// A tokio runtime of two threads: one for the action, one that keeps time
/// when the other is stuck.
///
/// # Errors
/// `backend-error` if the host gives no threads.
pub(crate) fn tokio_runtime() -> Result<tokio::runtime::Runtime, Problem> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .thread_keep_alive(Duration::from_secs(1))
        .build()
        .map_err(|error| Problem::new(Code::BackendError, format!("cannot start threads: {error}")))
}
