//! Executes WebAssembly components: the only crate that links wasmtime.
//!
//! What it is: an [`Engine`] with a pool of instances; [`inspect`] for
//! files of strangers; a [`Compiler`] that works in a child process, shut in,
//! and a [`CompileCache`] that verifies what it gives out; and an
//! [`Executor`] that runs a [`Job`](glovebox_runtime::job::Job) in a fresh
//! instance and says how it ended. All of a job's rights are descriptors that
//! it brings; nothing is taken from the process around it, so the same code
//! runs in this process and in a cell.
//!
//! What it is not: it knows no contract, no permit and no registry, and opens
//! no path but those of its cache. It links no HTTP and no sockets. It is one
//! wall, not two: a hole in the engine is a hole in this process, which is
//! why there are cells.
//!
//! ```
//! use env_contracts::{Code, Diagnose};
//! use glovebox_runtime::job::UngrantedImports;
//!
//! // A component that exports nothing is valid, but no tool.
//! let file = wat::parse_str("(component)").unwrap();
//! let inspection = glovebox_wasm::inspect(&file, 1 << 20).unwrap();
//! let error = inspection.check(UngrantedImports::Refuse).unwrap_err();
//! assert_eq!(error.code(), Code::ComponentExports);
//! ```
//!
//! From a file to a result, in outline:
//!
//! ```no_run
//! # use glovebox_wasm::*;
//! # async fn example(file: Vec<u8>, job: glovebox_runtime::job::Job, sink: Box<dyn glovebox_runtime::job::FrameSink>) -> Result<(), WasmError> {
//! # let digest = |_: &[u8]| String::new();
//! let engine = Engine::new(EngineConfig::default())?;
//! // This program's `main` begins with `maybe_enter_cell`.
//! let compiler = Compiler::new(Helper::this_program(), CompileLimits::default());
//! let component = compiler.adapt(&file, &inspect(&file, 64 << 20)?)?.into_owned();
//! let cache = CompileCache::open("/var/lib/glovebox/wasm", &engine, compiler)?;
//! let executor = Executor::new(engine)?;
//!
//! let artefact = cache.get_or_compile(&digest(&component), || Ok(component), &mut |_| {})?;
//! let loaded = executor.load(&artefact, job.imports)?;
//! let report = executor.run(&loaded, &job, vec![], sink, std::future::pending()).await;
//! # Ok(())
//! # }
//! ```

mod adapt;
mod backend;
mod bindings;
mod cache;
mod cell;
mod cli;
mod clocks;
mod compile;
mod component;
mod enforce;
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
pub mod typed;

pub use adapt::adapt;
pub use backend::{Placement, WasmBackend};
pub use cache::{CacheEntry, CompileCache, CompileEvent};
pub use cell::{Cells, Errand, Helper, Timeline, maybe_enter_cell};
pub use compile::{CompileLimits, Compiler};
pub use component::{Artefact, Loaded};
pub use engine::{Engine, EngineConfig, Ticks};
pub use error::WasmError;
pub use execute::Executor;
pub use inspect::{Inspection, Kind, inspect};

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
