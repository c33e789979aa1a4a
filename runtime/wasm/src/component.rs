//! Compiled components, ready to be instantiated.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use glovebox_runtime::job::UngrantedImports;
use rustix::mm::{Advice, madvise};
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime_wasi::p2::bindings::CommandPre;

use crate::bindings::tool::ToolComponentPre;
use crate::engine::Engine;
use crate::error::WasmError;
use crate::link;
use crate::state::State;
use crate::typed;

/// Loaded components kept in memory. What is pushed out is loaded again from
/// the cache when it is wanted.
const KEPT: usize = 64;

/// What of a component's code is mapped in beforehand: all of a small tool's.
const READ_IN: usize = 2 << 20;

/// A compiled component in a file whose content was verified: machine code
/// that will be run. Comes from [`CompileCache`](crate::CompileCache).
#[derive(Debug)]
pub struct Artefact {
    file: OwnedFd,
    component: String,
}

impl Artefact {
    /// An artefact whose content was verified elsewhere, for example by the
    /// process that sent the descriptor.
    ///
    /// # Safety
    /// The file must hold what this version's compiler made, unchanged, and
    /// must not change while anything loaded from it lives. Its content is
    /// mapped and executed as machine code.
    #[expect(unsafe_code, reason = "the caller vouches for machine code")]
    pub unsafe fn from_verified(file: OwnedFd, component: String) -> Self {
        Self::verified(file, component)
    }

    pub(crate) fn verified(file: OwnedFd, component: String) -> Self {
        Self { file, component }
    }

    /// The digest of the component it was compiled from.
    pub fn component(&self) -> &str {
        &self.component
    }

    /// The verified file.
    pub fn file(&self) -> &OwnedFd {
        &self.file
    }
}

/// A component with its imports resolved: instantiating it is all that is
/// left to do.
pub struct Loaded {
    pub(crate) engine: Engine,
    component: String,
    imports: UngrantedImports,
    pub(crate) tool: Option<ToolComponentPre<State>>,
    pub(crate) command: Option<CommandPre<State>>,
    /// For exports of its own.
    pub(crate) plain: InstancePre<State>,
}

impl Loaded {
    /// The digest of the component.
    pub fn component(&self) -> &str {
        &self.component
    }

    /// Whether it exports the tool interface.
    pub fn is_tool(&self) -> bool {
        self.tool.is_some()
    }

    /// Whether it is a WASI command.
    pub fn is_command(&self) -> bool {
        self.command.is_some()
    }

    /// Maps its code in at once, instead of page by page when it is run. Large
    /// components use little of theirs, so only as much of it as is cheap.
    #[expect(unsafe_code, reason = "madvise")]
    pub(crate) fn read_in(&self) {
        let range = self.plain.component().image_range();
        let start = range.start.map_addr(|address| address & !(rustix::param::page_size() - 1));
        let length = (range.end.addr() - start.addr()).min(READ_IN);
        // SAFETY: reading pages in changes nothing of what they hold. A kernel
        // that can't do it says so, and nothing is lost.
        let _ = unsafe { madvise(start.cast_mut().cast(), length, Advice::LinuxPopulateRead) };
    }

    /// Whether it exports this function, in this interface or by itself.
    pub fn exports(&self, interface: Option<&str>, function: &str) -> bool {
        typed::find(self.plain.component(), interface, function).is_some()
    }
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded").field("component", &self.component).finish_non_exhaustive()
    }
}

/// Loads components, and keeps those that were used last.
pub(crate) struct Library {
    engine: Engine,
    granted: Linker<State>,
    /// The one that was used last comes first.
    kept: Mutex<Vec<Arc<Loaded>>>,
}

impl Library {
    pub(crate) fn new(engine: Engine) -> Result<Self, WasmError> {
        let granted = link::granted(engine.raw()).map_err(load)?;
        Ok(Self { engine, granted, kept: Mutex::default() })
    }

    pub(crate) fn get(&self, component: &str, imports: UngrantedImports) -> Option<Arc<Loaded>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|loaded| loaded.component == component && loaded.imports == imports)?;
        kept[..=place].rotate_right(1);
        kept.first().cloned()
    }

    pub(crate) fn load(&self, artefact: &Artefact, imports: UngrantedImports) -> Result<Arc<Loaded>, WasmError> {
        if let Some(loaded) = self.get(&artefact.component, imports) {
            return Ok(loaded);
        }
        let engine = self.engine.raw();
        let component = deserialize(engine, artefact).map_err(load)?;
        link::check(engine, &component, imports)?;
        // Now rather than with the first instance: a cell that is forked after
        // this shares it.
        component.initialize_copy_on_write_image().map_err(load)?;
        let ready = match imports {
            UngrantedImports::Refuse => self.granted.instantiate_pre(&component),
            // A linker of its own: a shared one must not change once it is in use.
            UngrantedImports::Stub => {
                link::stubbed(engine, &component).and_then(|linker| linker.instantiate_pre(&component))
            }
        };
        let ready = ready.map_err(|error| WasmError::Invalid(format!("the component can't be linked: {error:#}")))?;
        let loaded = Arc::new(Loaded {
            engine: self.engine.clone(),
            component: artefact.component.clone(),
            imports,
            tool: ToolComponentPre::new(ready.clone()).ok(),
            command: CommandPre::new(ready.clone()).ok(),
            plain: ready,
        });
        if loaded.tool.is_none() && loaded.command.is_none() && !typed::exports_any(engine, &component) {
            let exports = component.component_type();
            let found = exports.exports(engine).map(|(name, _)| crate::name::bounded(name)).collect();
            return Err(WasmError::Exports { found });
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(0, Arc::clone(&loaded));
        kept.truncate(KEPT);
        Ok(loaded)
    }
}

fn load(error: wasmtime::Error) -> WasmError {
    let text = format!("{error:#}");
    // What a pool sets aside for each component is fixed, and said only in words.
    if text.contains("exceeds the") && text.contains("limit") {
        return WasmError::Invalid(format!("it needs more than a component gets in this placement: {text}"));
    }
    WasmError::Load(text)
}

/// Maps the artefact. The path leads to the open file itself, not to whatever
/// has its name now.
#[expect(unsafe_code, reason = "loading machine code")]
fn deserialize(engine: &wasmtime::Engine, artefact: &Artefact) -> wasmtime::Result<Component> {
    let path = format!("/proc/self/fd/{}", artefact.file.as_raw_fd());
    // SAFETY: an `Artefact` is only made of a file that our compiler wrote,
    // whose digest was checked on this very descriptor, and that is never
    // written again: the cache replaces files, and its folder is ours alone.
    unsafe { Component::deserialize_file(engine, path) }
}
