//! The backends: one line each.

use std::path::Path;
use std::sync::Arc;

use env_contracts::Problem;
use glovebox_container::{ContainerBackend, Containers};
use glovebox_runtime::Backend;
use glovebox_wasm::{CompileLimits, Helper, Placement, WasmBackend};

use crate::engine;

/// Actions at one time: fewer than the rows want at once, so that waiting for
/// a place is part of what is tested.
pub(crate) const SLOTS: u32 = 8;

/// What a tool is to a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A component.
    Component,
    /// An image, run as a command.
    Image,
}

/// A backend that the promises are held against.
pub(crate) struct Column {
    /// How the table calls it.
    pub(crate) name: &'static str,
    /// What its tools are.
    pub(crate) kind: Kind,
    /// What every contract asks for as `platform.runtime`. The backend has to
    /// refuse it, or keep everything with it.
    pub(crate) runtime: Option<&'static str>,
    /// What this machine lacks for it, if it does.
    pub(crate) lacks: fn() -> Option<String>,
    /// Makes one that keeps what it prepares in this folder.
    pub(crate) backend: fn(&Path) -> Result<Arc<dyn Backend>, Problem>,
}

/// Every backend that this program holds the promises against.
pub(crate) const COLUMNS: &[Column] = &[
    Column { name: Placement::Cell.name(), kind: Kind::Component, runtime: None, lacks: || None, backend: in_cells },
    Column {
        name: Placement::InProcess.name(),
        kind: Kind::Component,
        runtime: None,
        lacks: || None,
        backend: in_process,
    },
    Column { name: "container", kind: Kind::Image, runtime: None, lacks: engine::lacks, backend: in_containers },
    Column {
        name: "container+runsc",
        kind: Kind::Image,
        runtime: Some("runsc"),
        lacks: engine::lacks,
        backend: in_containers,
    },
];

fn in_cells(cache: &Path) -> Result<Arc<dyn Backend>, Problem> {
    Ok(Arc::new(WasmBackend::in_cells(cache, Helper::this_program(), CompileLimits::default())?))
}

fn in_process(cache: &Path) -> Result<Arc<dyn Backend>, Problem> {
    Ok(Arc::new(WasmBackend::in_process(SLOTS, cache, Helper::this_program(), CompileLimits::default())?))
}

fn in_containers(cache: &Path) -> Result<Arc<dyn Backend>, Problem> {
    Ok(Arc::new(ContainerBackend::new(Arc::new(Containers::new(engine::socket(), cache.to_owned())))))
}
