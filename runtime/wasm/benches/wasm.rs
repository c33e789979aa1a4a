//! Our execution against bare wasmtime: the same engine, the same component,
//! the same folders, in the same run.
//!
//! "Bare" is the least that an embedder has to write: `wasmtime-wasi` with its
//! settings for speed, a fresh store and instance for each call, epochs on, no
//! limits on anything else, output discarded, no timer.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints a table and may end with a panic")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use glovebox_runtime::job::{End, UngrantedImports};
use glovebox_wasm::{Engine, EngineConfig, Executor, Loaded};
use wasmtime::Store;
use wasmtime::component::{Component, HasSelf, Linker, ResourceTable};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

mod common;

use common::{BARE, Case, Deaf, FOLDERS, Folders, Work, artefact, cache, percentile, read};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../tools/wit",
        world: "glovebox:tool/tool-component",
        exports: { default: async },
    });
}

use bindings::exports::glovebox::tool::tool::Context;
use bindings::{ToolComponentPre, glovebox::tool::host};

/// How long one side is measured before it is the other's turn: what else the
/// machine does hits both alike.
const SLICE: Duration = Duration::from_millis(250);
/// Turns of each side.
const TURNS: u32 = 10;
/// Threads of the throughput figures.
const THREADS: usize = 2;

fn main() {
    // `cargo test --benches` only wants to know that it links.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!(
        "{:<34} {:>12} {:>12} {:>7}   {:>12} {:>12} {:>7}",
        "", "bare p50", "ours p50", "ratio", "bare /s", "ours /s", "ratio"
    );
    for case in [&BARE, &FOLDERS] {
        let (bare, ours) = (Bare::new(case), Ours::new(case));
        let mut latency = [Vec::new(), Vec::new()];
        let mut calls = [0, 0];
        for _ in 0..TURNS {
            measure(&bare, &mut latency[0]);
            measure(&ours, &mut latency[1]);
            calls[0] += throughput(&bare);
            calls[1] += throughput(&ours);
        }
        let latency = latency.map(median);
        let rate = calls.map(|calls| calls as f64 / (SLICE * TURNS).as_secs_f64());
        println!(
            "{:<34} {:>9.1} us {:>9.1} us {:>7.2}   {:>12.0} {:>12.0} {:>7.2}",
            case.title,
            latency[0],
            latency[1],
            latency[1] / latency[0],
            rate[0],
            rate[1],
            rate[1] / rate[0],
        );
    }
}

/// One side of the comparison.
trait Side: Sync {
    fn call(&self) -> impl Future<Output = ()>;
}

/// Times single calls on one thread.
fn measure(side: &impl Side, times: &mut Vec<Duration>) {
    runtime().block_on(async {
        for _ in 0..100 {
            side.call().await;
        }
        let start = Instant::now();
        while start.elapsed() < SLICE {
            let start = Instant::now();
            side.call().await;
            times.push(start.elapsed());
        }
    });
}

/// In microseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    percentile(&mut times, 50).as_secs_f64() * 1e6
}

/// Calls on all threads together.
fn throughput(side: &impl Side) -> u64 {
    let (calls, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                runtime().block_on(async {
                    while !done.load(Ordering::Relaxed) {
                        side.call().await;
                        calls.fetch_add(1, Ordering::Relaxed);
                    }
                });
            });
        }
        std::thread::sleep(SLICE);
        done.store(true, Ordering::Relaxed);
    });
    calls.load(Ordering::Relaxed)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn config() -> EngineConfig {
    EngineConfig { slots: 16, ..EngineConfig::default() }
}

// === Bare ===

struct Bare {
    engine: Engine,
    tool: ToolComponentPre<BareState>,
    name: &'static str,
    args: &'static str,
    folders: Option<Folders>,
}

struct BareState {
    context: WasiCtx,
    table: ResourceTable,
}

impl WasiView for BareState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.context, table: &mut self.table }
    }
}

impl host::Host for BareState {
    fn log(&mut self, _level: host::Level, _message: String) {}
    fn progress(&mut self, _done: u64, _total: Option<u64>, _message: String) {}
}

impl Bare {
    fn new(case: &Case) -> Self {
        let engine = Engine::new(config()).unwrap();
        let raw = engine.raw();
        let component = Component::new(raw, read(case.component)).unwrap();
        let mut linker: Linker<BareState> = Linker::new(raw);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).unwrap();
        host::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state).unwrap();
        let tool = ToolComponentPre::new(linker.instantiate_pre(&component).unwrap()).unwrap();
        Self { engine, tool, name: case.tool, args: case.args, folders: case.folders.then(Folders::new) }
    }
}

impl Side for Bare {
    async fn call(&self) {
        let mut builder = WasiCtxBuilder::new();
        builder.allow_blocking_current_thread(true);
        if let Some(folders) = &self.folders {
            builder.preopened_dir(folders.path("workspace"), "/workspace", FsPerms::ReadOnly).unwrap();
            builder.preopened_dir(folders.path("outputs"), "/outputs", FsPerms::ReadWrite).unwrap();
        }
        let state = BareState { context: builder.build(), table: ResourceTable::new() };
        let mut store = Store::new(self.engine.raw(), state);
        store.set_epoch_deadline(1_000_000);
        let tool = self.tool.instantiate_async(&mut store).await.unwrap();
        let context = Context { request_id: "act-1".into(), deadline_ms: 60_000, locale: None, idempotency_key: None };
        let output =
            tool.glovebox_tool_tool().call_call(&mut store, self.name, self.args, &context).await.unwrap().unwrap();
        black_box(output);
    }
}

// === Ours ===

struct Ours {
    executor: Executor,
    loaded: Arc<Loaded>,
    work: Work,
}

impl Ours {
    fn new(case: &Case) -> Self {
        let executor = Executor::new(Engine::new(config()).unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let artefact = artefact(case, &cache(folder.path(), executor.engine()));
        let loaded = executor.load(&artefact, UngrantedImports::Refuse).unwrap();
        Self { executor, loaded, work: Work::new(case, artefact.component()) }
    }
}

impl Side for Ours {
    async fn call(&self) {
        let (job, fds) = (&self.work.job, self.work.descriptors());
        let report = self.executor.run(&self.loaded, job, fds, Box::new(Deaf), std::future::pending()).await;
        assert!(matches!(report.end, End::Returned { .. }), "{report:?}");
        black_box(report);
    }
}
