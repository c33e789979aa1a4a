//! What executes on this host: engines, and servers elsewhere.

use std::path::PathBuf;
use std::sync::Arc;

use env_contracts::{ByteSize, Problem, Span};
use glovebox_container::{ContainerBackend, Containers, Socket};
use glovebox_mcp::upstream::{ProgramBackend, UpstreamBackend};
use glovebox_runtime::Backend;
use glovebox_server::Ways;
use glovebox_wasm::{CompileLimits, Compiler, Helper, Placement, WasmBackend};

use crate::config::Config;
use crate::places::Places;
use crate::programs::Contained;

/// The WebAssembly backend, where the operator wants components to run.
///
/// # Errors
/// `backend-unavailable` if this host has no such place, `state-unavailable`
/// if the cache can't be used.
pub(crate) fn wasm(config: &Config, places: &Places, slots: u32) -> Result<WasmBackend, Problem> {
    let (cache, helper, limits) = (places.compiled(), Helper::this_program(), compile_limits(config));
    match config.get("wasm.placement") {
        Placement::Cell => WasmBackend::in_cells(&cache, helper, limits),
        Placement::InProcess => WasmBackend::in_process(slots, &cache, helper, limits),
    }
}

/// The backend for tools of MCP servers elsewhere.
pub(crate) fn upstream() -> UpstreamBackend {
    UpstreamBackend::new(Arc::new(Ways::of_this_host()))
}

/// The containers of this state folder. Nothing is asked of an engine yet.
///
/// # Errors
/// `config-invalid` for an engine that is not behind a Unix socket.
pub(crate) fn containers(config: &Config, places: &Places) -> Result<Containers, Problem> {
    let named = config.entry("container.socket").0;
    let socket = if named.is_empty() {
        let host = std::env::var("DOCKER_HOST").ok();
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        Socket::find(host.as_deref(), runtime.as_deref())?
    } else {
        Socket::at(named)
    };
    Ok(Containers::new(socket, places.containers()))
}

/// The backend for images.
///
/// # Errors
/// As of [`containers`].
pub(crate) fn container(config: &Config, places: &Places) -> Result<ContainerBackend, Problem> {
    Ok(ContainerBackend::new(Arc::new(containers(config, places)?)))
}

/// Programs that are spoken to, in containers of this state folder.
///
/// # Errors
/// As of [`containers`].
pub(crate) fn programs(config: &Config, places: &Places) -> Result<Contained, Problem> {
    Ok(Contained::new(Arc::new(containers(config, places)?)))
}

/// All backends of this host.
///
/// # Errors
/// Those of the backends.
pub(crate) fn all(
    config: &Config,
    places: &Places,
    slots: u32,
    containers: Option<Arc<Containers>>,
) -> Result<Vec<Arc<dyn Backend>>, Problem> {
    let mut backends: Vec<Arc<dyn Backend>> = vec![Arc::new(wasm(config, places, slots)?), Arc::new(upstream())];
    if let Some(containers) = containers {
        backends.push(Arc::new(ContainerBackend::new(containers.clone())));
        backends.push(Arc::new(ProgramBackend::new(Arc::new(Contained::new(containers)))));
    }
    Ok(backends)
}

/// What compiles and adapts strangers' components: this program, started anew.
pub(crate) fn compiler(config: &Config) -> Compiler {
    Compiler::new(Helper::this_program(), compile_limits(config))
}

fn compile_limits(config: &Config) -> CompileLimits {
    CompileLimits {
        input: config.get::<ByteSize>("component.max_size").0,
        wall: config.get::<Span>("compile.wall").0,
        memory: config.get::<ByteSize>("compile.memory").0,
        ..CompileLimits::default()
    }
}
