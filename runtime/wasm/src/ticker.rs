//! The clock that interrupts guests: a thread that advances the epoch while
//! something runs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use wasmtime::EngineWeak;

/// How late a guest in a loop can be stopped.
pub(crate) const TICK: Duration = Duration::from_millis(5);
/// Ticks without anything running before the thread goes to sleep.
const IDLE_TICKS: u32 = 200;

pub(crate) struct Ticker {
    engine: EngineWeak,
    state: Arc<State>,
    thread: OnceLock<Option<Thread>>,
}

#[derive(Default)]
struct State {
    active: AtomicUsize,
    parked: AtomicBool,
    gone: AtomicBool,
}

impl Ticker {
    pub(crate) fn new(engine: EngineWeak) -> Self {
        Self { engine, state: Arc::default(), thread: OnceLock::new() }
    }

    /// Starts or wakes the thread.
    pub(crate) fn active(&self) -> Active<'_> {
        self.state.active.fetch_add(1, Ordering::SeqCst);
        let thread = self.thread.get_or_init(|| start(self.engine.clone(), Arc::clone(&self.state)));
        if self.state.parked.load(Ordering::SeqCst)
            && let Some(thread) = thread
        {
            thread.unpark();
        }
        Active { state: &self.state, running: thread.is_some() }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.state.gone.store(true, Ordering::SeqCst);
        if let Some(Some(thread)) = self.thread.get() {
            thread.unpark();
        }
    }
}

/// Something runs.
pub(crate) struct Active<'a> {
    state: &'a State,
    running: bool,
}

impl Active<'_> {
    /// Whether the thread could be started. Without it nothing would stop a
    /// guest that never calls the host, so nothing may run.
    pub(crate) fn is_ticking(&self) -> bool {
        self.running
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.state.active.fetch_sub(1, Ordering::SeqCst);
    }
}

fn start(engine: EngineWeak, state: Arc<State>) -> Option<Thread> {
    let thread = std::thread::Builder::new()
        .name("wasm-ticker".into())
        .stack_size(64 << 10)
        .spawn(move || run(&engine, &state))
        .ok()?;
    Some(thread.thread().clone())
}

fn run(engine: &EngineWeak, state: &State) {
    let mut idle = 0;
    while !state.gone.load(Ordering::SeqCst) {
        std::thread::sleep(TICK);
        match engine.upgrade() {
            Some(engine) => engine.increment_epoch(),
            None => return,
        }
        idle = if state.active.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
        if idle > IDLE_TICKS {
            state.parked.store(true, Ordering::SeqCst);
            // Looked at again after `parked` is visible: whoever became active
            // in between either is seen here or sees `parked` and wakes us.
            if state.active.load(Ordering::SeqCst) == 0 && !state.gone.load(Ordering::SeqCst) {
                std::thread::park();
            }
            state.parked.store(false, Ordering::SeqCst);
            idle = 0;
        }
    }
}
