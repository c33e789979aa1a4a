//! What a component may import.

use glovebox_runtime::job::UngrantedImports;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, HasData, HasSelf, Linker, LinkerInstance, ResourceTable, ResourceType};
use wasmtime_wasi::p2::bindings as wasi;
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsCtx, WasiSocketsCtxView};

use crate::bindings::{files, tool};
use crate::error::WasmError;
use crate::name;
use crate::state::State;

/// Interfaces of WASI 0.2 that carry no authority by themselves: a guest
/// without folders, arguments and environment can do nothing with them but
/// compute, say something and ask the time.
const GRANTED: &[&str] = &[
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:clocks/wall-clock",
    "wasi:clocks/monotonic-clock",
    "wasi:random/random",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/terminal-stderr",
    "wasi:filesystem/types",
    "wasi:filesystem/preopens",
];

/// Interfaces that answer "access denied" in stub mode, because a program can
/// do something sensible with that answer.
const DENYING: &[&str] = &[
    "wasi:sockets/network",
    "wasi:sockets/instance-network",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
    "wasi:sockets/ip-name-lookup",
];

/// Interfaces of our own that every tool may use.
const OURS: &[&str] = &["glovebox:tool/host", "glovebox:tool/types"];

/// Whether an import is granted to every component.
pub(crate) fn is_granted(import: &str) -> bool {
    let (interface, version) = import.split_once('@').unwrap_or((import, ""));
    (GRANTED.contains(&interface) && version.starts_with("0.2."))
        || (OURS.contains(&interface) && version.starts_with("0.1."))
        || (cfg!(test) && import == "test:raw/kernel")
}

/// Everything that is granted to every component.
pub(crate) fn granted(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker: Linker<State> = Linker::new(engine);
    let l = &mut linker;
    wasi::io::error::add_to_linker::<_, Table>(l, |state| &mut state.table)?;
    wasi::io::poll::add_to_linker::<_, Table>(l, |state| &mut state.table)?;
    wasi::io::streams::add_to_linker::<_, Table>(l, |state| &mut state.table)?;
    wasi::clocks::wall_clock::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    wasi::clocks::monotonic_clock::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    wasi::random::random::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    wasi::random::insecure::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    wasi::random::insecure_seed::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    wasi::cli::environment::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    wasi::cli::exit::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    wasi::cli::stdin::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    wasi::cli::stdout::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    wasi::cli::stderr::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    wasi::cli::terminal_input::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    wasi::cli::terminal_output::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    wasi::cli::terminal_stdin::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    wasi::cli::terminal_stdout::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    wasi::cli::terminal_stderr::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    files::wasi::filesystem::types::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    files::wasi::filesystem::preopens::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    tool::glovebox::tool::host::add_to_linker::<_, HasSelf<State>>(l, |state| state)?;
    #[cfg(test)]
    crate::cell::raw::add_to_linker(l)?;
    Ok(linker)
}

/// A linker for one component whose ungranted imports are stubs.
pub(crate) fn stubbed(engine: &wasmtime::Engine, component: &Component) -> wasmtime::Result<Linker<State>> {
    let mut linker = granted(engine)?;
    let l = &mut linker;
    wasi::sockets::network::add_to_linker::<_, WasiSockets>(
        l,
        &wasi::sockets::network::LinkOptions::default(),
        sockets,
    )?;
    wasi::sockets::instance_network::add_to_linker::<_, WasiSockets>(l, sockets)?;
    wasi::sockets::tcp::add_to_linker::<_, WasiSockets>(l, sockets)?;
    wasi::sockets::tcp_create_socket::add_to_linker::<_, WasiSockets>(l, sockets)?;
    wasi::sockets::udp::add_to_linker::<_, WasiSockets>(l, sockets)?;
    wasi::sockets::udp_create_socket::add_to_linker::<_, WasiSockets>(l, sockets)?;
    wasi::sockets::ip_name_lookup::add_to_linker::<_, WasiSockets>(l, sockets)?;
    for (import, item) in component.component_type().imports(engine) {
        if !is_granted(import) && !is_denying(import) {
            stub(&mut linker.root(), import, &item.ty, import, engine)?;
        }
    }
    Ok(linker)
}

/// Refuses a component with imports that nothing grants.
pub(crate) fn check(
    engine: &wasmtime::Engine,
    component: &Component,
    imports: UngrantedImports,
) -> Result<(), WasmError> {
    if imports == UngrantedImports::Stub {
        return Ok(());
    }
    let ungranted: Vec<String> = component
        .component_type()
        .imports(engine)
        .filter(|(import, _)| !is_granted(import))
        .map(|(import, _)| name::bounded(import))
        .collect();
    if ungranted.is_empty() { Ok(()) } else { Err(WasmError::Imports { ungranted }) }
}

/// The handles of a store, as `wasi:io` wants them.
struct Table;

impl HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

fn sockets(state: &mut State) -> WasiSocketsCtxView<'_> {
    WasiSocketsCtxView { ctx: state.sockets.get_or_insert_with(WasiSocketsCtx::default), table: &mut state.table }
}

fn is_denying(import: &str) -> bool {
    let (interface, version) = import.split_once('@').unwrap_or((import, ""));
    DENYING.contains(&interface) && version.starts_with("0.2.")
}

/// Defines `name` as something that can be linked, but ends the guest when it
/// is called.
fn stub(
    linker: &mut LinkerInstance<'_, State>,
    item_name: &str,
    item: &ComponentItem,
    import: &str,
    engine: &wasmtime::Engine,
) -> wasmtime::Result<()> {
    match item {
        ComponentItem::ComponentFunc(_) => {
            let full = if item_name == import {
                name::bounded(import)
            } else {
                format!("{}#{item_name}", name::bounded(import))
            };
            linker
                .func_new(item_name, move |_, _, _, _| Err(wasmtime::format_err!("the import `{full}` is not granted")))
        }
        ComponentItem::ComponentInstance(instance) => {
            let mut inner = linker.instance(item_name)?;
            for (export, item) in instance.exports(engine) {
                stub(&mut inner, export, &item.ty, import, engine)?;
            }
            Ok(())
        }
        ComponentItem::Resource(_) => linker.resource(item_name, ResourceType::host::<()>(), |_, _| Ok(())),
        ComponentItem::Type(_) => Ok(()),
        ComponentItem::CoreFunc(_) | ComponentItem::Module(_) | ComponentItem::Component(_) => {
            Err(wasmtime::format_err!("`{}` imports code, which can't be stubbed", name::bounded(import)))
        }
    }
}
