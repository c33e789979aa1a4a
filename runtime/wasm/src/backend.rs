//! The WebAssembly backend: plans in, reports out, in this process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use env_contracts::{
    Access, ByteSize, Clause, Code, Contract, Cpus, Delegation, Imports, ManifestEntry, Notice, Os, Persistence,
    Problem, Sharing, Snapshot, Source, Span, Stdin,
};
use glovebox_runtime::job::{
    Descriptors, Entry, FdIndex, Job, JobLimits, JobUsage, Mount, SealedFile, UngrantedImports,
};
use glovebox_runtime::{
    ArtifactBytes, Backend, Bound, BoxFuture, Cleared, Enforcement, Ports, Prepared, Registered, RunReport,
};

use crate::cache::{CompileCache, CompileEvent};
use crate::compile::Compiler;
use crate::component::Loaded;
use crate::engine::{Engine, EngineConfig, Ticks};
use crate::error::WasmError;
use crate::execute::Executor;

/// The name in plans and reports.
pub const NAME: &str = "wasm-in-process";

/// One thread runs a component, so this is what it can use at most and at
/// least.
const ONE_CPU: Cpus = Cpus { millis: 1000 };

/// What a 32-bit memory can't exceed.
const LARGEST_MEMORY: ByteSize = ByteSize::gib(2);

/// Executes WASI components and commands in this process.
///
/// It is for one trust domain: the wall around the guest is the engine's
/// alone. It refuses every clause that it can't enforce, secrets and network
/// among them.
pub struct WasmBackend {
    executor: Arc<Executor>,
    cache: Arc<CompileCache>,
}

/// A loaded component, and what its loading had to say.
struct Ready {
    loaded: Arc<Loaded>,
    notices: Vec<Notice>,
}

impl WasmBackend {
    /// A backend that runs so many components at once, and keeps compiled
    /// ones in a folder.
    ///
    /// # Errors
    /// `backend-unavailable` if the engine can't be set up here,
    /// `state-unavailable` if the folder can't be used.
    pub fn new(slots: u32, cache: &Path, compiler: Compiler) -> Result<Self, Problem> {
        let make = || -> Result<Self, WasmError> {
            let engine = Engine::new(EngineConfig { slots, ticks: Ticks::Thread })?;
            let cache = CompileCache::open(cache, &engine, compiler)?;
            Ok(Self { executor: Arc::new(Executor::new(engine)?), cache: Arc::new(cache) })
        };
        make().map_err(|error| Problem::of(&error))
    }

    /// The compiled components on disk.
    pub fn cache(&self) -> &CompileCache {
        &self.cache
    }

    fn load(
        executor: &Executor,
        cache: &CompileCache,
        registered: &Registered,
        imports: UngrantedImports,
        event: &mut dyn FnMut(CompileEvent<'_>),
    ) -> Result<Arc<Loaded>, WasmError> {
        let digest = registered.digest.as_str();
        if let Some(loaded) = executor.loaded(digest, imports) {
            return Ok(loaded);
        }
        let bytes = || match &registered.bytes {
            ArtifactBytes::Embedded(bytes) => Ok(bytes.to_vec()),
            ArtifactBytes::File(path) => fs_err::read(path).map_err(WasmError::cache(path)),
        };
        let artefact = cache.get_or_compile(digest, bytes, event)?;
        executor.load(&artefact, imports)
    }
}

impl Backend for WasmBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn enforce(&self, clause: &Clause<'_>) -> Enforcement {
        enforce(clause)
    }

    fn prepare<'a>(
        &'a self,
        registered: &'a Registered,
        contract: &'a Contract,
        progress: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Result<Prepared, Problem>> {
        let imports = contract.wasm.imports.into();
        Box::pin(async move {
            if let Some(loaded) = self.executor.loaded(registered.digest.as_str(), imports) {
                return Ok(Box::new(Ready { loaded, notices: Vec::new() }) as Prepared);
            }
            let (executor, cache) = (self.executor.clone(), self.cache.clone());
            let name = registered.name.clone();
            let registered = registered.clone();
            let (lines, mut received) = tokio::sync::mpsc::unbounded_channel::<String>();
            let notices = Arc::new(Mutex::new(Vec::new()));
            let noticed = notices.clone();
            let load = tokio::task::spawn_blocking(move || {
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
                Self::load(&executor, &cache, &registered, imports, &mut event)
            });
            while let Some(line) = received.recv().await {
                progress(&line);
            }
            let loaded = match load.await {
                Ok(loaded) => loaded.map_err(|error| Problem::of(&error))?,
                Err(error) => {
                    return Err(Problem::new(Code::BackendError, format!("loading the component panicked: {error}")));
                }
            };
            let notices = notices.lock().map(|mut notices| std::mem::take(&mut *notices)).unwrap_or_default();
            Ok(Box::new(Ready { loaded, notices }) as Prepared)
        })
    }

    fn run(&self, cleared: Cleared, ports: Ports) -> BoxFuture<'_, RunReport> {
        Box::pin(async move {
            let (job, fds, prepared) = job(cleared.into_bound());
            let Ok(ready) = prepared.downcast::<Ready>() else {
                let end = glovebox_runtime::job::End::HostFailed("the plan was prepared by another backend".into());
                return RunReport { end, usage: JobUsage::default(), notices: Vec::new() };
            };
            let stop = ports.stop;
            let report =
                self.executor.run(&ready.loaded, &job, fds, ports.frames, async move { stop.requested().await }).await;
            RunReport { end: report.end, usage: report.usage, notices: ready.notices }
        })
    }
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
        ManifestEntry::Command { argv, stdin, env, .. } => Entry::Command {
            argv: if argv.is_empty() { vec![name] } else { argv },
            args_on_stdin: stdin == Stdin::Args,
            env: env.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect(),
        },
    }
}

/// What this backend enforces, clause by clause.
fn enforce(clause: &Clause<'_>) -> Enforcement {
    let by = Enforcement::By;
    let no = |reason: &str, remedy: &str| Enforcement::refused(reason, remedy);
    match clause {
        Clause::Os(Os::Wasi) => by("WASI 0.2 interfaces"),
        Clause::Os(Os::Linux) => {
            no("a component sees WASI, not Linux", "`os = \"wasi\"`, or a tool that is a container image")
        }
        Clause::Arch(archs) => {
            if archs.iter().any(|arch| arch == "wasm32" || arch == std::env::consts::ARCH) {
                by("host processor")
            } else {
                no("this host has another processor", "a host with one of them, or `wasm32`")
            }
        }
        Clause::Image(_) | Clause::Runtime(_) => no("a component has no image", "a tool that is a container image"),
        Clause::Mount(mount) => match (&mount.source, mount.access) {
            (_, Access::Overlay) => {
                no("there is no overlay here", "`access = \"read\"`, or `\"write\"` where the ceiling allows it")
            }
            (Source::Input(_) | Source::Artifact(_), _) => by("copy hashed when bound, read-only preopen"),
            (Source::Outputs | Source::Scratch, _) => by("private folder, preopen by descriptor"),
            (_, Access::Read) => by("read-only preopen by descriptor"),
            (_, Access::Write) => by("preopen by descriptor"),
        },
        Clause::Hide(_) => by("path filter in the WASI host, on resolved paths"),
        Clause::Egress(_) => no("there is no network here", "leave `network.egress` out"),
        Clause::Ingress(_) => no("there is no network here", "leave `network.ingress` out"),
        Clause::Secret(_) => no("there is no network to insert secrets into", "leave `secrets` out"),
        Clause::Delegation(identity) if identity.delegation == Delegation::None => by("no identity is passed on"),
        Clause::Delegation(_) => no("no identity can be passed on here", "`delegation = \"none\"`"),
        Clause::Package(_) => {
            no("a component has no packages", "leave `packages` out, or a tool that is a container image")
        }
        Clause::NeedMemory(size) if *size <= LARGEST_MEMORY => by("admission"),
        Clause::NeedMemory(_) => no("a component's memory has 2 GiB at most", "`needs.memory = \"2GiB\"` or less"),
        Clause::NeedCpus(cpus) if *cpus <= ONE_CPU => by("one thread"),
        Clause::NeedCpus(_) => no("a component runs on one thread", "`needs.cpus = \"1\"` or less"),
        Clause::NeedStorage(_) => no("no space is set aside here", "leave `needs.storage` out"),
        Clause::NeedGpu(0) => by("no devices exist"),
        Clause::NeedGpu(_) => no("a component reaches no devices", "leave `needs.gpu` out"),
        Clause::Wall(Span(_)) => by("timeout around the call, epochs inside it"),
        Clause::Idle(_) => by("timeout since the last output"),
        Clause::Cpu(_) => by("thread clock, checked at epochs"),
        Clause::Cpus(cpus) if *cpus >= ONE_CPU => by("one thread"),
        Clause::Cpus(_) => no(
            "a thread can't be given part of a processor here",
            "`limits.cpus = \"1\"` or more, or `limits.cpu` for its time",
        ),
        Clause::Memory(_) => by("store limiter over memories and tables"),
        Clause::Pids(_) => by("no processes exist"),
        Clause::Storage(_) => by("quota in the WASI host"),
        Clause::Inodes(_) => by("quota in the WASI host"),
        Clause::Gpu(_) => by("no devices exist"),
        Clause::Output(_) => by("counted in the stream"),
        Clause::Concurrency(_) => by("locks in the state folder"),
        Clause::Persistence(Persistence::None) => by("fresh instance for each action"),
        Clause::Persistence(Persistence::Environment) => no("no environment is kept here", "`persistence = \"none\"`"),
        Clause::Snapshot(Snapshot::Never) => by("none is taken"),
        Clause::Snapshot(_) => no("no snapshots are taken here", "`snapshot = \"never\"`"),
        Clause::Sharing(Sharing::Action) => by("fresh instance for each action"),
        Clause::Sharing(_) => no("no environment is kept between actions here", "`sharing = \"action\"`"),
        Clause::Label(_) => by("label on every artifact"),
        Clause::Audit(_) => by("artifact store"),
        Clause::Retain(_) => by("artifact store"),
        Clause::CleanScratch(_) => by("run folder"),
        Clause::Imports(Imports::Refuse) => by("only granted interfaces are linked"),
        Clause::Imports(Imports::Stub) => by("what is not granted answers access-denied or traps"),
    }
}
