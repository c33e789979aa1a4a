//! One execution: a store of its own, made for it and dropped after it.

use std::future::{Future, poll_fn};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use env_contracts::{Code, Problem};
use glovebox_runtime::job::{
    Descriptors, End, Entry, Frame, FrameSink, Job, JobLimits, JobReport, JobUsage, Timer, ToolFailure,
    UngrantedImports,
};
use tokio::time::Sleep;
use wasmtime::{Store, UpdateDeadline};

use crate::bindings::tool::exports::glovebox::tool::tool::{Context, Output, ToolError};
use crate::cli::Surroundings;
use crate::component::{Artefact, Library, Loaded};
use crate::engine::Engine;
use crate::error::WasmError;
use crate::fs::{Files, FilesError, HiddenLists};
use crate::outcome::{self, Facts};
use crate::run::Run;
use crate::state::State;
use crate::typed;

/// Bytes that pass from the guest to the host in a single call: a result, a
/// write, a list of strings. They become host memory before anyone sees them.
const HOST_CALL_BYTES: usize = 16 << 20;
/// Resource handles of a store, in the engine's own tables.
const COMPONENT_HANDLES: usize = 4_000;
/// Ticks until a guest that computes is looked at.
const TICKS: u64 = 1;

/// Runs components.
///
/// Needs a tokio runtime with its timer enabled; files are read and written on
/// the thread that polls.
pub struct Executor {
    engine: Engine,
    library: Library,
    hidden: HiddenLists,
}

/// What is called.
enum Call<'a> {
    Describe,
    Job(&'a Job),
}

/// What a call answers by itself.
pub(crate) enum Answer {
    Described(String),
    Tool(Result<Output, ToolError>),
    Command(Result<(), ()>),
    /// The result as JSON, or the failure that it says.
    Export(Result<String, ToolFailure>),
    /// The function can't be called with these arguments.
    Refused(Problem),
}

/// How the host saw it end.
pub(crate) enum Ended {
    Done(wasmtime::Result<Answer>),
    Expired(Timer),
    Interrupted,
    Panicked(String),
}

impl Executor {
    /// Makes the imports that every component may have.
    ///
    /// # Errors
    /// [`WasmError::Load`] if the engine refuses them, which is a bug.
    pub fn new(engine: Engine) -> Result<Self, WasmError> {
        Ok(Self { library: Library::new(engine.clone())?, hidden: HiddenLists::default(), engine })
    }

    /// Gets ready for what most jobs hide, so that those forked from this
    /// process need not.
    pub(crate) fn know_hidden(&self) {
        self.hidden.know(env_contracts::DEFAULT_HIDE);
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Loads a compiled component, or finds it among those in memory.
    ///
    /// # Errors
    /// [`WasmError::Imports`] lists everything that is imported and not
    /// granted; [`WasmError::Exports`] says that nothing can be called;
    /// [`WasmError::Load`] that the artefact is not for this engine.
    pub fn load(&self, artefact: &Artefact, imports: UngrantedImports) -> Result<Arc<Loaded>, WasmError> {
        self.library.load(artefact, imports)
    }

    /// A component that is in memory already, by its digest.
    pub fn loaded(&self, component: &str, imports: UngrantedImports) -> Option<Arc<Loaded>> {
        self.library.get(component, imports)
    }

    /// Executes a job. However it ends, the guest is gone when this returns;
    /// what it said until then has been handed to `sink`.
    ///
    /// `stop` interrupts: it may complete at any time or never. Dropping the
    /// future ends the guest as well, without a report.
    pub async fn run(
        &self,
        loaded: &Loaded,
        job: &Job,
        fds: Descriptors,
        sink: Box<dyn FrameSink>,
        stop: impl Future<Output = ()>,
    ) -> JobReport {
        if job.component != loaded.component() {
            return without_run(End::HostFailed("the job is for another component than the one loaded".into()));
        }
        let missing = match &job.entry {
            Entry::Tool { .. } => (!loaded.is_tool()).then(|| "glovebox:tool/tool".to_owned()),
            Entry::Command { .. } => (!loaded.is_command()).then(|| "wasi:cli/run".to_owned()),
            Entry::Export { interface, function } => {
                (!loaded.exports(interface.as_deref(), function)).then(|| typed::place(interface.as_deref(), function))
            }
        };
        if let Some(missing) = missing {
            let message = format!("the component does not export `{missing}`");
            return without_run(End::Refused(Problem::new(Code::ComponentExports, message)));
        }
        let files = match Files::new(job, fds, &self.hidden) {
            Ok(files) => files,
            Err(FilesError::Hide(why)) => return without_run(End::Refused(Problem::new(Code::ContractInvalid, why))),
            Err(error) => return without_run(End::HostFailed(error.to_string())),
        };
        execute(loaded, Call::Job(job), &job.limits, Surroundings::of(job), files, sink, stop).await
    }

    /// Asks a tool for its manifest, in an empty sandbox: no folders, no
    /// arguments. The answer comes as the content of [`End::Returned`].
    pub async fn describe(&self, loaded: &Loaded, limits: &JobLimits) -> JobReport {
        if !loaded.is_tool() {
            let problem = Problem::new(Code::ComponentExports, "the component does not export `glovebox:tool/tool`");
            return without_run(End::Refused(problem));
        }
        struct Deaf;
        impl FrameSink for Deaf {
            fn frame(&mut self, _frame: Frame<'_>) {}
        }
        let files = Files::none();
        let never = std::future::pending();
        execute(loaded, Call::Describe, limits, Surroundings::default(), files, Box::new(Deaf), never).await
    }
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor").field("engine", &self.engine).finish_non_exhaustive()
    }
}

async fn execute(
    loaded: &Loaded,
    what: Call<'_>,
    limits: &JobLimits,
    surroundings: Surroundings,
    files: Files,
    sink: Box<dyn FrameSink>,
    stop: impl Future<Output = ()>,
) -> JobReport {
    let mut stop = pin!(stop);
    // The pool answers with an error when it is empty; who comes here waits.
    let slots = loaded.engine.slots();
    let _slot = match slots.try_acquire() {
        Ok(slot) => slot,
        Err(_) => {
            let waiting = pin!(slots.acquire());
            match either(waiting, stop.as_mut()).await {
                Some(Ok(slot)) => slot,
                Some(Err(_)) => return without_run(End::HostFailed("the engine is shutting down".into())),
                None => return without_run(End::Interrupted),
            }
        }
    };
    let active = loaded.engine.active();
    if active.as_ref().is_some_and(|active| !active.is_ticking()) {
        return without_run(End::HostFailed("the clock that interrupts guests can't be started".into()));
    }

    let run = Arc::new(Run::new(sink, limits));
    let deterministic = match &what {
        Call::Job(job) => job.deterministic.as_ref(),
        Call::Describe => None,
    };
    let state = State::new(Arc::clone(&run), limits.memory, files, surroundings, deterministic);
    let mut store = Store::new(loaded.engine.raw(), state);
    store.limiter(|state| &mut state.memory);
    store.set_hostcall_fuel(HOST_CALL_BYTES);
    store.set_max_component_handles(COMPONENT_HANDLES);
    store.set_epoch_deadline(TICKS);
    store.epoch_deadline_callback(|context| match context.data().run.expired() {
        Some(timer) => Err(wasmtime::Error::new(crate::run::Stop::Time(timer))),
        None => Ok(UpdateDeadline::Yield(TICKS)),
    });

    let command = matches!(what, Call::Job(Job { entry: Entry::Command { .. }, .. }));
    let ended = drive(&run, call(&mut store, &run, loaded, what), stop).await;

    let (setup, spent) = run.times();
    let state = store.data();
    let totals = state.files.totals();
    let facts = Facts {
        entered: run.has_entered(),
        command,
        denied_memory: state.memory.denied(),
        denied_storage: totals.limit,
    };
    if let Some(notice) = state.chatter.notice() {
        run.frame(Frame::Log { level: "warn", message: &notice });
    }
    let mut usage = JobUsage {
        setup,
        run: spent,
        teardown: Duration::ZERO,
        cpu: run.cpu(),
        memory_peak: state.memory.peak(),
        bytes_read: totals.read,
        bytes_written: totals.written,
        denied_memory: facts.denied_memory,
        denied_storage: totals.denied,
    };
    let end = outcome::end(ended, &facts, &run);
    let teardown = Instant::now();
    // Never used again, whatever happened in it. A process that ends with it
    // leaves the taking apart to the kernel.
    if loaded.engine.is_reused() {
        drop(store);
    } else {
        std::mem::forget(store);
    }
    usage.teardown = teardown.elapsed();
    JobReport { end, usage }
}

async fn call(store: &mut Store<State>, run: &Run, loaded: &Loaded, what: Call<'_>) -> wasmtime::Result<Answer> {
    let missing = || wasmtime::format_err!("the entry is not exported");
    match what {
        Call::Describe => {
            let tool = loaded.tool.as_ref().ok_or_else(missing)?.instantiate_async(&mut *store).await?;
            run.enter();
            tool.glovebox_tool_tool().call_describe(store).await.map(Answer::Described)
        }
        Call::Job(job) => match &job.entry {
            Entry::Tool { name } => {
                let tool = loaded.tool.as_ref().ok_or_else(missing)?.instantiate_async(&mut *store).await?;
                run.enter();
                let context = Context {
                    request_id: match &job.deterministic {
                        // An action's id differs from run to run.
                        Some(chosen) => format!("seed-{}", chosen.seed),
                        None => job.action.clone(),
                    },
                    deadline_ms: u64::try_from(job.limits.wall.as_millis()).unwrap_or(u64::MAX),
                    locale: None,
                    idempotency_key: None,
                };
                tool.glovebox_tool_tool().call_call(store, name, &job.args, &context).await.map(Answer::Tool)
            }
            Entry::Export { interface, function } => {
                typed::call(store, run, &loaded.plain, interface.as_deref(), function, &job.args).await
            }
            Entry::Command { .. } => {
                let command = loaded.command.as_ref().ok_or_else(missing)?.instantiate_async(&mut *store).await?;
                run.enter();
                command.wasi_cli_run().call_run(store).await.map(Answer::Command)
            }
        },
    }
}

/// Polls the call until it ends, a clock runs out or someone stops it. Epochs
/// end a guest that computes; this ends one that waits in a host call.
async fn drive(
    run: &Run,
    call: impl Future<Output = wasmtime::Result<Answer>>,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Ended {
    let mut call = pin!(call);
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    poll_fn(|context| {
        if stop.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ended::Interrupted);
        }
        run.resume();
        // A panic in a host call is our bug, met by a hostile guest: it ends
        // this execution and no other.
        let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context)));
        run.pause();
        match polled {
            Ok(Poll::Ready(result)) => return Poll::Ready(Ended::Done(result)),
            Err(panic) => return Poll::Ready(Ended::Panicked(panic_text(&*panic))),
            Ok(Poll::Pending) => {}
        }
        loop {
            if let Some(expired) = run.expired() {
                return Poll::Ready(Ended::Expired(expired));
            }
            let Some(deadline) = run.deadline() else { return Poll::Pending };
            let deadline = tokio::time::Instant::from_std(deadline);
            // Made only by those that wait: most never do.
            let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
            if timer.deadline() != deadline {
                timer.as_mut().reset(deadline);
            }
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// What `first` answers, unless `stop` comes before.
async fn either<T>(
    mut first: Pin<&mut impl Future<Output = T>>,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Option<T> {
    poll_fn(|context| {
        if stop.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        first.as_mut().poll(context).map(Some)
    })
    .await
}

fn without_run(end: End) -> JobReport {
    JobReport { end, usage: JobUsage::default() }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a host call panicked: {}", text.unwrap_or("no message"))
}

#[expect(dead_code, reason = "checked by the compiler alone: executions may move between threads")]
fn assert_send(executor: &Executor, loaded: &Loaded, job: &Job, fds: Vec<OwnedFd>, sink: Box<dyn FrameSink>) {
    fn send(_: impl Send) {}
    send(executor.run(loaded, job, fds, sink, std::future::pending()));
}
