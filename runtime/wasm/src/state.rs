//! What belongs to one execution and to nothing else.

use std::sync::Arc;

use env_contracts::Deterministic;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::sockets::WasiSocketsCtx;

use crate::cli::Surroundings;
use crate::clocks::Clocks;
use crate::fs::Files;
use crate::host::Chatter;
use crate::limits::MemoryLimit;
use crate::random::Random;
use crate::run::Run;

/// Handles that a guest may have open at once: files, folders, streams,
/// pollables. Each costs host memory and often a descriptor.
const HANDLES: usize = 1_000;

/// The data of a store.
pub(crate) struct State {
    pub(crate) table: ResourceTable,
    pub(crate) memory: MemoryLimit,
    pub(crate) run: Arc<Run>,
    pub(crate) surroundings: Surroundings,
    pub(crate) files: Files,
    pub(crate) chatter: Chatter,
    pub(crate) random: Random,
    pub(crate) clocks: Clocks,
    /// Denies everything by default, and is asked only in stub mode.
    pub(crate) sockets: Option<WasiSocketsCtx>,
}

impl State {
    pub(crate) fn new(
        run: Arc<Run>,
        memory: u64,
        files: Files,
        surroundings: Surroundings,
        deterministic: Option<&Deterministic>,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(HANDLES);
        Self {
            table,
            memory: MemoryLimit::new(memory),
            run,
            surroundings,
            files,
            chatter: if deterministic.is_some() { Chatter::counted() } else { Chatter::default() },
            random: Random::new(deterministic),
            clocks: Clocks::new(deterministic),
            sockets: None,
        }
    }
}
