//! Executes WebAssembly components.
mod adapt;
mod backend;
mod bindings;
mod cache;
mod cli;
mod compile;
mod component;
mod engine;
mod error;
mod execute;
mod fs;
mod host;
mod inspect;
mod limits;
mod link;
mod name;
mod outcome;
mod random;
mod run;
mod state;
mod stdio;
mod ticker;

pub use adapt::adapt;
pub use backend::{NAME as BACKEND, WasmBackend};
pub use cache::{CacheEntry, CompileCache, CompileEvent};
pub use compile::{CompileLimits, Compiler, compile_child_main};
pub use component::{Artefact, Loaded};
pub use engine::{Engine, EngineConfig, Ticks};
pub use error::WasmError;
pub use execute::Executor;
pub use inspect::{Inspection, Kind, inspect};

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
