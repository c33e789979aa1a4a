//! The clocks of a guest: the host's, or one that is the same in every run.
//!
//! The other one starts at a given moment and moves on by a fixed step with
//! each reading, so that a guest that reads it until something changes gets
//! there. A guest that waits does not really wait: where nothing else is ready,
//! the clock jumps to the earliest moment that somebody waits for. The limits
//! on real time hold as ever.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use env_contracts::Deterministic;
use wasmtime::component::Resource;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::clocks::{WasiClocksCtx, WasiClocksCtxView};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock::{self, Instant};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::{self, Datetime};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use crate::state::State;

/// How far a reading moves the clock, in nanoseconds: about what it takes.
const STEP: u64 = 1_000;

/// A moment that nobody lives to see: almost three hundred years.
const NEVER: u64 = u64::MAX / 2;

/// The clocks of one execution.
pub(crate) enum Clocks {
    Real(WasiClocksCtx),
    Even(Even),
}

impl Clocks {
    pub(crate) fn new(deterministic: Option<&Deterministic>) -> Self {
        match deterministic {
            None => Self::Real(WasiClocksCtx::default()),
            Some(wanted) => Self::Even(Even { start: Duration::from_secs(wanted.time.seconds()), now: Arc::default() }),
        }
    }

    /// The moment that every file seems to be from, where time is not the
    /// host's.
    pub(crate) fn file_time(&self) -> Option<Datetime> {
        match self {
            Self::Real(_) => None,
            Self::Even(even) => Some(datetime(even.start)),
        }
    }
}

/// A clock that is the same in every run. Cheap to clone; clones are one clock.
#[derive(Clone)]
pub(crate) struct Even {
    start: Duration,
    now: Arc<Mutex<Now>>,
}

#[derive(Default)]
struct Now {
    /// Nanoseconds since the start.
    elapsed: u64,
    /// Who waits for which moment.
    waiting: BTreeMap<u64, u64>,
    /// Waits begun so far.
    waits: u64,
}

impl Even {
    /// A reading: the time, which goes on.
    fn read(&self) -> u64 {
        let mut now = self.now();
        now.elapsed = now.elapsed.saturating_add(STEP);
        now.elapsed
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A moment that is waited for.
struct Moment {
    clock: Even,
    /// In nanoseconds since the start.
    at: u64,
}

/// An entry among those who wait, gone with it.
struct Waiting<'c> {
    clock: &'c Even,
    key: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.clock.now().waiting.remove(&self.key);
    }
}

#[async_trait]
impl Pollable for Moment {
    async fn ready(&mut self) {
        let at = self.at;
        if at >= NEVER {
            // Only a limit on real time ends that.
            return std::future::pending().await;
        }
        let waiting = {
            let mut now = self.clock.now();
            // Asking takes time too: who asks again and again gets there.
            now.elapsed = now.elapsed.saturating_add(STEP);
            if now.elapsed >= at {
                return;
            }
            now.waits += 1;
            let key = now.waits;
            now.waiting.insert(key, at);
            Waiting { clock: &self.clock, key }
        };
        // The first time, others have yet to say that they are ready, or what
        // they wait for. Whoever is asked again knows that nobody was.
        let mut asked = false;
        poll_fn(|context| {
            let mut now = waiting.clock.now();
            if now.elapsed >= at {
                return Poll::Ready(());
            }
            if asked && now.waiting.values().all(|other| *other >= at) {
                now.elapsed = at;
                return Poll::Ready(());
            }
            asked = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

impl wall_clock::Host for State {
    fn now(&mut self) -> wasmtime::Result<Datetime> {
        match &mut self.clocks {
            Clocks::Real(ctx) => WasiClocksCtxView { ctx, table: &mut self.table }.now(),
            Clocks::Even(even) => Ok(datetime(even.start + Duration::from_nanos(even.read()))),
        }
    }

    fn resolution(&mut self) -> wasmtime::Result<Datetime> {
        match &mut self.clocks {
            Clocks::Real(ctx) => wall_clock::Host::resolution(&mut WasiClocksCtxView { ctx, table: &mut self.table }),
            Clocks::Even(_) => Ok(datetime(Duration::from_nanos(STEP))),
        }
    }
}

impl monotonic_clock::Host for State {
    fn now(&mut self) -> wasmtime::Result<Instant> {
        match &mut self.clocks {
            Clocks::Real(ctx) => monotonic_clock::Host::now(&mut WasiClocksCtxView { ctx, table: &mut self.table }),
            Clocks::Even(even) => Ok(even.read()),
        }
    }

    fn resolution(&mut self) -> wasmtime::Result<Instant> {
        match &mut self.clocks {
            Clocks::Real(ctx) => {
                monotonic_clock::Host::resolution(&mut WasiClocksCtxView { ctx, table: &mut self.table })
            }
            Clocks::Even(_) => Ok(STEP),
        }
    }

    fn subscribe_instant(&mut self, when: Instant) -> wasmtime::Result<Resource<DynPollable>> {
        match &mut self.clocks {
            Clocks::Real(ctx) => WasiClocksCtxView { ctx, table: &mut self.table }.subscribe_instant(when),
            Clocks::Even(even) => {
                let moment = Moment { clock: even.clone(), at: when };
                let moment = self.table.push(moment)?;
                subscribe(&mut self.table, moment)
            }
        }
    }

    fn subscribe_duration(&mut self, span: monotonic_clock::Duration) -> wasmtime::Result<Resource<DynPollable>> {
        match &mut self.clocks {
            Clocks::Real(ctx) => WasiClocksCtxView { ctx, table: &mut self.table }.subscribe_duration(span),
            Clocks::Even(even) => {
                let moment = Moment { clock: even.clone(), at: even.now().elapsed.saturating_add(span) };
                let moment = self.table.push(moment)?;
                subscribe(&mut self.table, moment)
            }
        }
    }
}

fn datetime(since_1970: Duration) -> Datetime {
    Datetime { seconds: since_1970.as_secs(), nanoseconds: since_1970.subsec_nanos() }
}
