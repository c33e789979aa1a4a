//! The WebAssembly backend: plans in, reports out.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use env_contracts::{Clause, Code, Contract, ManifestEntry, Notice, Problem};
use glovebox_runtime::job::{
    Descriptors, End, Entry, FdIndex, Frame, FrameSink, Job, JobLimits, JobReport, JobUsage, Mount, SealedFile,
    UngrantedImports,
};
use glovebox_runtime::{
    ArtifactBytes, Backend, Bound, BoxFuture, Cleared, Enforcement, Ports, Prepared, Registered, RunReport,
};

use crate::cache::{CompileCache, CompileEvent};
use crate::cell::{Cells, Errand, Helper};
use crate::compile::{CompileLimits, Compiler};
use crate::component::{Artefact, Loaded};
use crate::enforce::enforce;
use crate::engine::{Engine, EngineConfig};
use crate::error::WasmError;
use crate::execute::Executor;

/// Where components run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Each in a process of its own, shut in by the kernel: two walls.
    Cell,
    /// In this process: the engine is the only wall. For one trust domain.
    InProcess,
}

impl std::str::FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "cell" => Ok(Self::Cell),
            "in-process" => Ok(Self::InProcess),
            _ => Err(format!("`{text}` is neither `cell` nor `in-process`")),
        }
    }
}

impl Placement {
    /// The backend's name in plans and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cell => "wasm-cell",
            Self::InProcess => "wasm-in-process",
        }
    }
}

/// Executes WASI components and commands. It refuses every clause that it
/// can't enforce, secrets and network among them.
pub struct WasmBackend {
    place: Place,
    cache: Arc<CompileCache>,
}

enum Place {
    Cell(Cells),
    InProcess(Arc<Executor>),
}

/// What is ready to run, and what making it ready had to say.
struct Ready {
    what: What,
    notices: Vec<Notice>,
}

enum What {
    /// A template of it stood when it was made ready.
    Artefact(Arc<Artefact>, UngrantedImports),
    Loaded(Arc<Loaded>),
}

/// What happens while something is made ready.
type OnEvent<'a> = &'a mut dyn FnMut(CompileEvent<'_>);

impl WasmBackend {
    /// A backend that runs each component in a cell, and keeps compiled ones
    /// in a folder.
    ///
    /// # Errors
    /// `backend-unavailable` if this host can't shut processes in,
    /// `state-unavailable` if the folder can't be used.
    pub fn in_cells(cache: &Path, helper: Helper, limits: CompileLimits) -> Result<Self, Problem> {
        let make = || -> Result<Self, WasmError> {
            // Never runs anything: it knows what artefacts have to be like.
            let engine = Engine::new(EngineConfig::cell())?;
            let cache = CompileCache::open(cache, &engine, Compiler::new(helper.clone(), limits))?;
            let cache = Arc::new(cache);
            Ok(Self { place: Place::Cell(Cells::new(helper)?.warmed_by(Arc::clone(&cache))), cache })
        };
        make().map_err(|error| Problem::of(&error))
    }

    /// A backend that runs up to `slots` components at once in this process,
    /// and keeps compiled ones in a folder.
    ///
    /// # Errors
    /// `backend-unavailable` if the engine can't be set up here,
    /// `state-unavailable` if the folder can't be used.
    pub fn in_process(slots: u32, cache: &Path, helper: Helper, limits: CompileLimits) -> Result<Self, Problem> {
        let make = || -> Result<Self, WasmError> {
            let engine = Engine::new(EngineConfig { slots, ..EngineConfig::default() })?;
            let cache = CompileCache::open(cache, &engine, Compiler::new(helper, limits))?;
            Ok(Self { place: Place::InProcess(Arc::new(Executor::new(engine)?)), cache: Arc::new(cache) })
        };
        make().map_err(|error| Problem::of(&error))
    }

    /// Where components run.
    pub fn placement(&self) -> Placement {
        match self.place {
            Place::Cell(_) => Placement::Cell,
            Place::InProcess(_) => Placement::InProcess,
        }
    }

    /// The compiled components on disk.
    pub fn cache(&self) -> &CompileCache {
        &self.cache
    }

    /// Asks a tool for its manifest, in an empty sandbox.
    ///
    /// # Errors
    /// Those of [`Backend::prepare`].
    pub async fn describe(&self, prepared: Prepared, limits: &JobLimits) -> JobReport {
        let deaf = Box::new(Deaf);
        match (&self.place, prepared.downcast::<Ready>().map(|ready| ready.what)) {
            (Place::Cell(cells), Ok(What::Artefact(artefact, imports))) => {
                let never = std::future::pending();
                cells.run(&artefact, imports, Errand::Describe(limits), Vec::new(), deaf, never).await.0
            }
            (Place::InProcess(executor), Ok(What::Loaded(loaded))) => executor.describe(&loaded, limits).await,
            _ => foreign(),
        }
    }

    /// Tries to break out of a cell, in one of the ways that
    /// [`Attempt`](glovebox_jail::Attempt) names, from inside one that was
    /// made for this component: exited with 0 is a success, with another code
    /// the kernel's answer. In this process, nothing is tried.
    pub async fn attempt(&self, prepared: Prepared, name: &str) -> JobReport {
        match (&self.place, prepared.downcast::<Ready>().map(|ready| ready.what)) {
            (Place::Cell(cells), Ok(What::Artefact(artefact, imports))) => {
                let never = std::future::pending();
                cells.run(&artefact, imports, Errand::Attempt(name), Vec::new(), Box::new(Deaf), never).await.0
            }
            _ => foreign(),
        }
    }

    fn artefact(cache: &CompileCache, registered: &Registered, event: OnEvent<'_>) -> Result<Artefact, WasmError> {
        let bytes = || match &registered.bytes {
            ArtifactBytes::Embedded(bytes) => Ok(bytes.to_vec()),
            ArtifactBytes::Memory(bytes) => Ok(bytes.to_vec()),
            ArtifactBytes::File(path) => fs_err::read(path).map_err(WasmError::cache(path)),
        };
        cache.get_or_compile(registered.digest.as_str(), bytes, event)
    }

    /// What is in memory already.
    fn ready(&self, digest: &str, imports: UngrantedImports) -> Option<What> {
        match &self.place {
            Place::Cell(cells) => cells.known(digest, imports).map(|artefact| What::Artefact(artefact, imports)),
            Place::InProcess(executor) => executor.loaded(digest, imports).map(What::Loaded),
        }
    }

    /// Fetches the artefact, compiled if need be, away from the threads that
    /// others wait for.
    async fn fetch(
        &self,
        registered: &Registered,
        imports: UngrantedImports,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Ready, Problem> {
        let cache = Arc::clone(&self.cache);
        let executor = match &self.place {
            Place::InProcess(executor) => Some(Arc::clone(executor)),
            Place::Cell(_) => None,
        };
        let registered = registered.clone();
        let (lines, mut received) = tokio::sync::mpsc::unbounded_channel::<String>();
        let notices = Arc::new(Mutex::new(Vec::new()));
        let noticed = notices.clone();
        let load = tokio::task::spawn_blocking(move || {
            let name = &registered.name;
            let mut event = |event: CompileEvent<'_>| {
                let line = match event {
                    CompileEvent::Waiting => format!("waiting for another process that compiles {name}"),
                    CompileEvent::Compiling(_) => format!("compiling {name}, once"),
                    CompileEvent::Rebuilding(problem) => {
                        if let Ok(mut notices) = noticed.lock() {
                            notices.push(Notice::new(problem.code.as_str(), problem.message.clone()));
                        }
                        problem.message.clone()
                    }
                };
                let _ = lines.send(line);
            };
            let artefact = Self::artefact(&cache, &registered, &mut event)?;
            match executor {
                Some(executor) => executor.load(&artefact, imports).map(What::Loaded),
                None => Ok(What::Artefact(Arc::new(artefact), imports)),
            }
        });
        while let Some(line) = received.recv().await {
            progress(&line);
        }
        let what = match load.await {
            Ok(loaded) => loaded.map_err(|error: WasmError| Problem::of(&error))?,
            Err(error) => {
                return Err(Problem::new(Code::BackendError, format!("loading the component panicked: {error}")));
            }
        };
        let notices = notices.lock().map(|mut notices| std::mem::take(&mut *notices)).unwrap_or_default();
        Ok(Ready { what, notices })
    }
}

impl Backend for WasmBackend {
    fn name(&self) -> &'static str {
        self.placement().name()
    }

    fn enforce(&self, clause: &Clause<'_>) -> Enforcement {
        enforce(self.placement(), clause)
    }

    fn prepare<'a>(
        &'a self,
        registered: &'a Registered,
        contract: &'a Contract,
        progress: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Result<Prepared, Problem>> {
        let imports = contract.wasm.imports.into();
        Box::pin(async move {
            if let Some(what) = self.ready(registered.digest.as_str(), imports) {
                return Ok(Box::new(Ready { what, notices: Vec::new() }) as Prepared);
            }
            let ready = self.fetch(registered, imports, progress).await?;
            if let (Place::Cell(cells), What::Artefact(artefact, imports)) = (&self.place, &ready.what) {
                // Loads and links it, so that what it lacks is known now.
                cells.warm(artefact, *imports).await?;
            }
            Ok(Box::new(ready) as Prepared)
        })
    }

    fn run(&self, cleared: Cleared, ports: Ports) -> BoxFuture<'_, RunReport> {
        Box::pin(async move {
            let (job, fds, prepared) = job(cleared.into_bound());
            let Ok(ready) = prepared.downcast::<Ready>() else {
                let JobReport { end, usage } = foreign();
                return RunReport { end, usage, notices: Vec::new() };
            };
            let Ready { what, notices } = *ready;
            let stop = ports.stop;
            let stop = async move { stop.requested().await };
            let report = match (&self.place, &what) {
                (Place::Cell(cells), What::Artefact(artefact, imports)) => {
                    cells.run(artefact, *imports, Errand::Job(&job), fds, ports.frames, stop).await.0
                }
                (Place::InProcess(executor), What::Loaded(loaded)) => {
                    executor.run(loaded, &job, fds, ports.frames, stop).await
                }
                _ => foreign(),
            };
            RunReport { end: report.end, usage: report.usage, notices }
        })
    }

    /// A cell is another process; here, its guest's calls of the kernel are
    /// ours.
    fn never_blocks(&self) -> bool {
        matches!(self.place, Place::Cell(_))
    }
}

/// Nobody listens to what a tool says while it describes itself.
pub(crate) struct Deaf;

impl FrameSink for Deaf {
    fn frame(&mut self, _frame: Frame<'_>) {}
}

fn foreign() -> JobReport {
    JobReport { end: End::HostFailed("the plan was prepared by another backend".into()), usage: JobUsage::default() }
}

/// A bound plan as a job and its descriptors.
fn job(bound: Bound) -> (Job, Descriptors, Prepared) {
    let Bound { plan, registered, prepared, files, .. } = bound;
    let mut fds = Descriptors::new();
    let mut push = |fd| {
        fds.push(fd);
        FdIndex(u32::try_from(fds.len() - 1).unwrap_or(u32::MAX))
    };
    let mounts = files
        .mounts
        .into_iter()
        .map(|mount| Mount {
            guest: mount.guest,
            dir: push(mount.dir),
            writable: mount.writable,
            counted: mount.writable,
            hide: mount.hide,
        })
        .collect();
    let sealed = files
        .sealed
        .into_iter()
        .map(|file| SealedFile {
            mount: file.mount,
            path: file.path,
            spelled: file.spelled,
            identity: file.identity,
            content: push(file.content),
        })
        .collect();
    let limits = &plan.contract.limits;
    let job = Job {
        action: plan.action_id.to_string(),
        component: plan.artifact.to_string(),
        entry: entry(registered.entry, registered.name),
        imports: plan.contract.wasm.imports.into(),
        deterministic: plan.contract.wasm.deterministic,
        args: plan.arguments,
        mounts,
        sealed,
        // Planning filled every limit in; a missing one would be nothing at all.
        limits: JobLimits {
            wall: limits.wall.unwrap_or_default().0,
            idle: limits.idle.map(|span| span.0),
            cpu: limits.cpu.map(|span| span.0),
            memory: limits.memory.unwrap_or_default().0,
            output: limits.output.unwrap_or_default().0,
            storage: limits.storage.unwrap_or_default().0,
            inodes: limits.inodes.unwrap_or_default(),
        },
    };
    (job, fds, prepared)
}

fn entry(entry: ManifestEntry, name: String) -> Entry {
    match entry {
        ManifestEntry::Tool { name: own } => Entry::Tool { name: own.unwrap_or(name) },
        // They have no component: nothing plans a run of them here, and no tool
        // of this name answers.
        ManifestEntry::Decision
        | ManifestEntry::Native
        | ManifestEntry::Mcp { .. }
        | ManifestEntry::McpStdio { .. } => Entry::Tool { name },
        ManifestEntry::Export { interface, function } => Entry::Export { interface, function },
        ManifestEntry::Command { argv, stdin, env, .. } => Entry::Command {
            argv: if argv.is_empty() { vec![name] } else { argv },
            stdin,
            env: env.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect(),
        },
    }
}
