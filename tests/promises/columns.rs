//! The backends: one line each.

use std::path::Path;
use std::sync::Arc;

use env_contracts::Problem;
use glovebox_runtime::Backend;
use glovebox_wasm::{CompileLimits, Helper, Placement, WasmBackend};

/// Actions at one time: fewer than the rows want at once, so that waiting for
/// a place is part of what is tested.
pub(crate) const SLOTS: u32 = 8;

/// A backend that the promises are held against.
pub(crate) struct Column {
    /// How the table calls it.
    pub(crate) name: &'static str,
    /// Makes one that keeps what it prepares in this folder.
    pub(crate) backend: fn(&Path) -> Result<Arc<dyn Backend>, Problem>,
}

/// Every backend that this program holds the promises against.
pub(crate) const COLUMNS: &[Column] = &[
    Column { name: Placement::Cell.name(), backend: in_cells },
    Column { name: Placement::InProcess.name(), backend: in_process },
];

fn in_cells(cache: &Path) -> Result<Arc<dyn Backend>, Problem> {
    Ok(Arc::new(WasmBackend::in_cells(cache, Helper::this_program(), CompileLimits::default())?))
}

fn in_process(cache: &Path) -> Result<Arc<dyn Backend>, Problem> {
    Ok(Arc::new(WasmBackend::in_process(SLOTS, cache, Helper::this_program(), CompileLimits::default())?))
}
