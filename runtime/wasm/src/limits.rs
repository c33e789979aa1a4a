//! Memory of a store: linear memories and tables, summed.

use wasmtime::ResourceLimiter;

/// Core instances of one store. The pool takes twice as many, so that a
/// component beyond this is answered with the limit and not with an error.
const INSTANCES: usize = 32;
/// Memories of one store.
const MEMORIES: usize = 4;
/// Tables of one store.
const TABLES: usize = 16;
/// What one table element costs the host.
const ELEMENT_BYTES: usize = size_of::<usize>();

/// Counts what a store holds and refuses what goes beyond the limit. The
/// engine's own limiter looks at each memory by itself; a component with many
/// memories would get the limit many times.
///
/// A growth that is allowed here and then fails in the engine stays counted.
/// Giving it back would be wrong: the engine also reports failures of growths
/// that it never asked about, and a guest can cause those at will.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    limit: usize,
    used: usize,
    peak: usize,
    denied: u64,
}

impl MemoryLimit {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit: usize::try_from(limit).unwrap_or(usize::MAX), used: 0, peak: 0, denied: 0 }
    }

    /// The most that was held at once, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.peak as u64
    }

    /// How often a growth was refused.
    pub(crate) fn denied(&self) -> u64 {
        self.denied
    }

    fn grow(&mut self, current: usize, desired: usize, declared: Option<usize>, unit: usize) -> bool {
        if declared.is_some_and(|maximum| desired > maximum) {
            // The guest's own declaration forbids it: the engine will fail it,
            // and nothing is counted.
            return true;
        }
        let more = desired.saturating_sub(current).saturating_mul(unit);
        let total = self.used.saturating_add(more);
        if total > self.limit {
            self.denied += 1;
            return false;
        }
        self.used = total;
        self.peak = self.peak.max(total);
        true
    }
}

impl ResourceLimiter for MemoryLimit {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.grow(current, desired, maximum, 1))
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.grow(current, desired, maximum, ELEMENT_BYTES))
    }

    fn instances(&self) -> usize {
        INSTANCES
    }

    fn tables(&self) -> usize {
        TABLES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}
