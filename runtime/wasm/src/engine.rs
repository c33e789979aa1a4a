//! One wasmtime engine with its pool of instances.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::error::WasmError;
use crate::ticker::{Active, Ticker};

/// Address space reserved for each linear memory. With all that a 32-bit index
/// can reach reserved, compiled code needs no bounds checks.
const MEMORY_RESERVATION: u64 = 4 << 30;
/// Unmapped space behind each memory, so that constant offsets need no checks.
const MEMORY_GUARD: u64 = 32 << 20;
/// What a single memory may hold at most. The contract's limit is smaller; this
/// one bounds how long a single bulk instruction, which no epoch interrupts,
/// can take.
const MAX_MEMORY: usize = 2 << 30;
/// Memories of one component. Real ones have one.
const MEMORIES_PER_COMPONENT: u32 = 4;
/// Tables of one component. Components linked from shared libraries have some.
const TABLES_PER_COMPONENT: u32 = 16;
/// Core instances of one component. An adapted module has four; interpreters
/// linked from shared libraries some dozens.
const CORE_INSTANCES_PER_COMPONENT: u32 = 64;
/// Elements of one table. CPython's has some 10 000.
const TABLE_ELEMENTS: usize = 64 << 10;
/// Host memory for the bookkeeping of one component instance and its parts.
const COMPONENT_INSTANCE_BYTES: usize = 4 << 20;
/// Host memory for the bookkeeping of one core instance.
const CORE_INSTANCE_BYTES: usize = 2 << 20;
/// What a slot keeps mapped between two uses: enough for small tools to meet
/// no page fault, little enough that resetting it is cheap.
const MEMORY_KEPT: usize = 256 << 10;
/// The same for tables and stacks.
const TABLE_KEPT: usize = 64 << 10;
const STACK_KEPT: usize = 64 << 10;
/// Slots given back to the kernel together, to save system calls.
const DECOMMIT_BATCH: usize = 16;
/// Idle slots that keep their pages.
const WARM_SLOTS: u32 = 100;
/// Stack of the guest's own code. Recursion beyond it is the guest's end.
const GUEST_STACK: usize = 512 << 10;
/// Stack of a fiber: the guest's, and room for host calls on top of it.
const FIBER_STACK: usize = 2 << 20;

/// How an [`Engine`] is sized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineConfig {
    /// How many components run at once; more wait. Each slot reserves address
    /// space, not memory.
    pub slots: u32,
    /// Who advances the clock that interrupts guests.
    pub ticks: Ticks,
    /// Whether slots are used again: then they keep their pages.
    pub reuse: bool,
}

impl EngineConfig {
    /// For a process that runs one component once.
    pub(crate) fn cell() -> Self {
        Self { slots: 1, ticks: Ticks::Caller, reuse: false }
    }
}

/// Who advances the clock that interrupts guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ticks {
    /// A thread of the engine, started with the first execution.
    Thread,
    /// Whoever calls [`Engine::tick`], for example from a timer signal in a
    /// process that must not have threads.
    Caller,
}

impl Default for EngineConfig {
    /// Enough for a command line that runs one action.
    fn default() -> Self {
        Self { slots: 4, ticks: Ticks::Thread, reuse: true }
    }
}

/// A wasmtime engine, its pool, and the clock that interrupts guests. Cheap to
/// clone. Everything it loads and runs stays with it; nothing is ever shared
/// between two engines.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    engine: wasmtime::Engine,
    slots: Semaphore,
    ticker: Option<Ticker>,
    compatibility: String,
    reuse: bool,
}

impl Engine {
    /// Reserves the pool.
    ///
    /// # Errors
    /// [`WasmError::Engine`] when this host can't reserve that much address
    /// space, or its processor lacks something.
    pub fn new(config: EngineConfig) -> Result<Self, WasmError> {
        let slots = config.slots.max(1);
        let mut settings = settings();
        settings.allocation_strategy(if config.reuse {
            InstanceAllocationStrategy::Pooling(pool(slots))
        } else {
            InstanceAllocationStrategy::OnDemand
        });
        let failed = |error: wasmtime::Error| WasmError::Engine { slots, reason: format!("{error:#}") };
        let engine = wasmtime::Engine::new(&settings).map_err(failed)?;
        let ticker = match config.ticks {
            Ticks::Thread => Some(Ticker::new(engine.weak())),
            Ticks::Caller => None,
        };
        let compatibility = compatibility(&engine);
        Ok(Self {
            shared: Arc::new(Shared {
                engine,
                slots: Semaphore::new(slots as usize),
                ticker,
                compatibility,
                reuse: config.reuse,
            }),
        })
    }

    /// Whether slots are used again.
    pub(crate) fn is_reused(&self) -> bool {
        self.shared.reuse
    }

    /// Advances the clock that interrupts guests. Only atomic, so it may be
    /// called from a signal handler.
    pub fn tick(&self) {
        self.shared.engine.increment_epoch();
    }

    /// Names everything that a compiled artefact depends on: the version, the
    /// settings, the target and its features. In lower-case hex.
    pub fn compatibility(&self) -> &str {
        &self.shared.compatibility
    }

    /// The wasmtime engine itself, for measurements against it.
    pub fn raw(&self) -> &wasmtime::Engine {
        &self.shared.engine
    }

    pub(crate) fn slots(&self) -> &Semaphore {
        &self.shared.slots
    }

    /// Keeps the clock going while the guard lives.
    pub(crate) fn active(&self) -> Option<Active<'_>> {
        self.shared.ticker.as_ref().map(Ticker::active)
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("compatibility", &self.shared.compatibility).finish_non_exhaustive()
    }
}

/// An engine that only compiles: same code, no pool.
pub(crate) fn compiling() -> wasmtime::Result<wasmtime::Engine> {
    wasmtime::Engine::new(&settings())
}

fn settings() -> Config {
    let mut config = Config::new();
    config
        .memory_reservation(MEMORY_RESERVATION)
        .memory_guard_size(MEMORY_GUARD)
        .memory_init_cow(true)
        .parallel_compilation(true)
        .epoch_interruption(true)
        .concurrency_support(false)
        .max_wasm_stack(GUEST_STACK)
        .async_stack_size(FIBER_STACK)
        .shared_memory(false)
        .wasm_memory64(false)
        .wasm_component_model(true);
    config
}

fn pool(slots: u32) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_stacks(slots)
        .total_core_instances(slots.saturating_mul(CORE_INSTANCES_PER_COMPONENT))
        .total_memories(slots.saturating_mul(MEMORIES_PER_COMPONENT))
        .total_tables(slots.saturating_mul(TABLES_PER_COMPONENT))
        .max_core_instances_per_component(CORE_INSTANCES_PER_COMPONENT)
        .max_memories_per_component(MEMORIES_PER_COMPONENT)
        .max_tables_per_component(TABLES_PER_COMPONENT)
        .max_memories_per_module(MEMORIES_PER_COMPONENT)
        .max_tables_per_module(TABLES_PER_COMPONENT)
        .max_memory_size(MAX_MEMORY)
        .table_elements(TABLE_ELEMENTS)
        .max_component_instance_size(COMPONENT_INSTANCE_BYTES)
        .max_core_instance_size(CORE_INSTANCE_BYTES)
        .linear_memory_keep_resident(MEMORY_KEPT)
        .table_keep_resident(TABLE_KEPT)
        .async_stack_keep_resident(STACK_KEPT)
        .decommit_batch_size(DECOMMIT_BATCH)
        .pagemap_scan(Enabled::Auto)
        .max_unused_warm_slots(WARM_SLOTS);
    pool
}

fn compatibility(engine: &wasmtime::Engine) -> String {
    struct Sink(Sha256);
    impl Hasher for Sink {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0 // Only the sha256 is read.
        }
    }
    let mut sink = Sink(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut sink);
    crate::hex(&sink.0.finalize())
}
