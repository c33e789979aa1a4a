//! The backends: one line each.

use std::path::Path;
use std::sync::Arc;

use env_contracts::Problem;
use glovebox_runtime::Backend;
use glovebox_wasm::{CompileLimits, Compiler, WasmBackend};

/// What starts this program as a compiler.
pub(crate) const COMPILE: &str = "__compile";

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
pub(crate) const COLUMNS: &[Column] = &[Column { name: "in-process", backend: in_process }];

fn in_process(cache: &Path) -> Result<Arc<dyn Backend>, Problem> {
    Ok(Arc::new(WasmBackend::new(SLOTS, cache, compiler())?))
}

fn compiler() -> Compiler {
    Compiler::new("/proc/self/exe", vec![COMPILE.into()], CompileLimits::default())
}
