//! A state folder with a service over one backend, for one row.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use env_contracts::{ByteSize, Ceiling, Observation, Problem, Profiles};
use glovebox_artifacts::ArtifactStore;
use glovebox_plane::{
    ActionService, Builtin, Operator, Parts, Registry, Settings, Submission, Submitted, TimeOrderedIds, Watch,
};
use glovebox_runtime::{Admission, Backend, Budgets, Runtime, Stop, SystemClock};
use glovebox_store::{Options, Sqlite};
use serde_json::{Value, json};

use crate::act::Act;
use crate::allowing::Allowing;
use crate::columns::{Column, Kind};
use crate::engine;
use crate::guests::{Guest, builtin};

/// The tenant of all rows.
pub(crate) const TENANT: &str = "local";

/// What these guests may be given at most: so much that it is always the
/// backend that refuses, and never the ceiling.
pub(crate) const CEILING: &str = include_str!("ceiling.toml");

/// The tokio runtime of all rows: a guest that computes holds a thread.
pub(crate) static TOKIO: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(8).max_blocking_threads(16).thread_keep_alive(KEEP_ALIVE);
    builder.enable_all().build().unwrap()
});

/// How long a thread that has nothing to do stays: so short that the threads
/// can be counted.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_millis(200);

static BUILTINS: LazyLock<Vec<Builtin>> = LazyLock::new(|| {
    vec![builtin("fs-read", "fs.read"), builtin("fs-search", "fs.search"), builtin("text-count", "text.count")]
});

/// A state folder, a workspace and a service over one backend.
pub(crate) struct House {
    dir: tempfile::TempDir,
    cache: PathBuf,
    acts: AtomicU32,
    ends: Mutex<BTreeSet<String>>,
    pub(crate) column: &'static Column,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) service: ActionService,
}

impl House {
    /// Fresh folders around a backend that keeps what it prepares in `cache`.
    pub(crate) fn new(column: &'static Column, backend: Arc<dyn Backend>, cache: &Path) -> Self {
        let dir = tempfile::Builder::new().prefix("glovebox-promise-").tempdir().unwrap();
        fs_err::create_dir(dir.path().join("workspace")).unwrap();
        let state = dir.path().join("state");
        fs_err::create_dir(&state).unwrap();
        let store = Arc::new(Sqlite::open(&state, &Options::default()).unwrap());
        let (runtime, authority) = Runtime::new(vec![backend.clone()]);
        let service = ActionService::new(Parts {
            registry: Registry::new(state.join("tools"), BUILTINS.clone()),
            operator: Operator { ceiling: ceiling(), profiles: Profiles::default() }.fixed(),
            policy: Arc::new(Allowing),
            people: Arc::new(Allowing),
            store: store.clone(),
            holders: store,
            runtime,
            authority,
            admission: Admission::new(Budgets {
                memory: ByteSize::gib(16),
                actions: 64,
                queue: 64,
                wait: Duration::from_secs(60),
            }),
            artifacts: ArtifactStore::open(&state.join("artifacts"), TENANT).unwrap(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(TimeOrderedIds),
            run_root: state.join("run"),
            environments: state.join("environments"),
            protect: vec![state],
            max_sealed: ByteSize::mib(16),
            settings: Settings::new("operator".parse().unwrap()),
        });
        let (acts, ends) = (AtomicU32::new(0), Mutex::default());
        Self { dir, cache: cache.to_owned(), acts, ends, column, backend, service }
    }

    /// Carries an action to its Observation.
    pub(crate) async fn run(
        &self,
        submission: Submission,
        watch: Arc<dyn Watch>,
        stop: &Stop,
    ) -> Result<Observation, Problem> {
        match self.service.submit(submission, watch, stop).await? {
            Submitted::Done(observation) => Ok(observation),
            Submitted::Waiting(action) => panic!("somebody is asked: {action:?}"),
        }
    }

    /// Another one, over a backend of its own that keeps what it prepares there.
    pub(crate) fn beside(&self, cache: &Path) -> Self {
        Self::new(self.column, (self.column.backend)(cache).unwrap(), cache)
    }

    /// A path in the folder of this row.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// The workspace.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    /// Writes a file of the workspace.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.workspace().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, content).unwrap();
    }

    /// A request to the command that does what it is told.
    pub(crate) fn command(&self, told: &Value) -> Act<'_> {
        self.act(&Guest::Built("hostile"), told)
    }

    /// A request to the tool that does what it is told.
    pub(crate) fn tool(&self, told: &Value) -> Act<'_> {
        self.act(&Guest::Built("hostile-tool"), told).entry("kind = \"tool\", name = \"hostile\"")
    }

    /// A request to a guest.
    pub(crate) fn act(&self, guest: &Guest, args: &Value) -> Act<'_> {
        Act::new(self, Some(guest.clone()), args)
    }

    /// A request to a built-in tool.
    pub(crate) fn builtin(&self, name: &str, args: &Value) -> Act<'_> {
        Act::new(self, None, args).named(name)
    }

    /// Whether tools are components here, and not images.
    pub(crate) fn has_components(&self) -> bool {
        self.column.kind == Kind::Component
    }

    /// The guest's own name on its command line, as its manifest has to say it.
    pub(crate) fn program(&self) -> &'static str {
        if self.has_components() { "tool" } else { engine::PROGRAM }
    }

    /// What every contract says of the platform, with some of it said otherwise.
    pub(crate) fn platform(&self, otherwise: &[(&'static str, String)]) -> String {
        let mut all = BTreeMap::new();
        if !self.has_components() {
            all.extend([("os", "\"linux\"".to_owned()), ("image", format!("\"{}\"", engine::image().image))]);
            all.extend(self.column.runtime.map(|runtime| ("runtime", format!("\"{runtime}\""))));
        }
        all.extend(otherwise.iter().cloned());
        if all.is_empty() {
            return String::new();
        }
        let all: Vec<_> = all.into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
        format!("platform = {{ {} }}\n", all.join(", "))
    }

    /// What is registered of a guest: a component, or the record of an image.
    pub(crate) fn artifact(&self, guest: &Guest) -> Vec<u8> {
        match (self.column.kind, guest) {
            (Kind::Component, guest) => guest.component(),
            (Kind::Image, Guest::Built("hostile")) => engine::image().to_bytes(),
            (Kind::Image, _) => panic!("this guest is in no image: the row is none for containers"),
        }
    }

    /// The folder in which the backend keeps what it prepares.
    pub(crate) fn cache(&self) -> &Path {
        &self.cache
    }

    /// A name that no other guest of this house has.
    pub(crate) fn next_name(&self) -> String {
        format!("guest.a{}", self.acts.fetch_add(1, Ordering::Relaxed))
    }

    /// An action that goes well does so: whatever came before left nothing broken.
    pub(crate) fn still_works(&self) {
        let seen = self.command(&json!({ "do": "nothing" })).run();
        assert_eq!(seen.outcome.to_string(), "completed(0)", "after a hostile action a good one fails: {seen:?}");
    }

    /// What holds after every action, however it ended.
    pub(crate) fn after(&self, received: &[u8], seen: &Observation) {
        let runs = fs_err::read_dir(self.path("state/run")).map_or(0, Iterator::count);
        assert_eq!(runs, 0, "a run folder was left behind: {seen:?}");
        // Whoever had to be given up from outside was not ended by its backend.
        assert!(seen.notices.iter().all(|notice| notice.kind != "thread-left"), "{seen:?}");
        let wire = serde_json::to_string(seen).unwrap();
        for path in [self.dir.path(), &self.cache] {
            let path = path.display().to_string();
            // What the request itself named is no news.
            let known = String::from_utf8_lossy(received).contains(&path);
            assert!(known || !wire.contains(&path), "a path of the host came back: {wire}");
        }
    }

    /// Notes how an action ended, for the table.
    pub(crate) fn note(&self, outcome: &str) {
        self.ends.lock().unwrap().insert(outcome.to_owned());
    }

    /// How the actions of this row ended, other than well.
    pub(crate) fn ends(&self) -> Vec<String> {
        let well = |end: &&String| matches!(end.as_str(), "completed" | "completed(0)");
        let ends = self.ends.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        ends.iter().filter(|end| !well(end)).cloned().collect()
    }
}

/// The ceiling of all rows.
pub(crate) fn ceiling() -> Ceiling {
    Ceiling::from_toml(CEILING).unwrap()
}
