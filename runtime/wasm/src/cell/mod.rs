//! The second wall: components run in cells, processes that are shut in by
//! the kernel and serve one action.
//!
//! ```text
//! host ──control──> zygote     this program again, one thread, engine and linker made
//!   │                 │ fork
//!   ├──control──> template     one for each component in use: its code mapped and linked,
//!   │                 │ fork   privileges given up, system calls filtered
//!   └──channel──>   cell       idle until it is claimed; then Landlock, limits, a stricter
//!                              filter, the guest; gone after it
//! ```
//!
//! No process but the host is ever given more than it needs for its next step,
//! and none can get it back. A cell gets its job and the descriptors of its
//! folders over its channel and answers in frames, of which the host believes
//! nothing that it can't check. Whatever happens in a cell, the host learns of
//! its end from the kernel, and holds a handle of the process to end it itself.

mod channel;
mod conduct;
mod held;
mod inside;
mod keeper;
mod pool;
#[cfg(test)]
pub(crate) mod raw;
mod template;
mod verdict;
mod wire;
mod zygote;

pub use conduct::Errand;
pub use conduct::Timeline;
pub use pool::Cells;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use env_contracts::{Code, Problem};
use glovebox_runtime::job::JobLimits;

use crate::compile::compile_child_main;

/// The first argument of a program that is started as a zygote.
const ZYGOTE: &str = "__glovebox-zygote";
/// The first argument of a program that is started to compile one component.
pub(crate) const COMPILER: &str = "__glovebox-compiler";
/// How everything that is started here is called, in the place of a program's
/// name: such a program never starts cells of its own, even if it forgets to
/// ask [`maybe_enter_cell`]. Not a variable: their environment is empty.
pub(crate) const INSIDE: &str = "glovebox-inside";

/// How the processes of the second wall, and compilers, are started: a program
/// whose `main` begins with [`maybe_enter_cell`].
#[derive(Debug, Clone)]
pub struct Helper {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
}

impl Helper {
    /// This very program, also where its file has been replaced since.
    pub fn this_program() -> Self {
        Self::new("/proc/self/exe", Vec::new())
    }

    /// Another program, with arguments before ours. It is started under a name
    /// of ours, so a script that starts it in turn will not do.
    pub fn new(program: impl Into<PathBuf>, arguments: Vec<OsString>) -> Self {
        Self { program: program.into(), arguments }
    }
}

/// To be called first thing in `main`, before any thread is started, by every
/// program that compiles components or runs them in cells: where this process
/// was started to do a part of that, it does it and returns how it ended; then
/// `main` returns at once. Otherwise it does nothing.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     if let Some(code) = glovebox_wasm::maybe_enter_cell() {
///         return code;
///     }
///     // … the program itself …
///     std::process::ExitCode::SUCCESS
/// }
/// ```
pub fn maybe_enter_cell() -> Option<ExitCode> {
    // Only who starts such a process calls it so; a person who types the
    // argument gets the program's own complaint about it.
    is_inside().then_some(())?;
    let mut arguments = std::env::args().skip_while(|argument| argument != ZYGOTE && argument != COMPILER);
    let part = arguments.next()?;
    let about = arguments.next();
    // Before anything waits for a child or a clock.
    if glovebox_jail::hear_signals().is_err() {
        return Some(ExitCode::FAILURE);
    }
    Some(match part == ZYGOTE {
        true => zygote::main(about.and_then(|text| text.parse().ok())),
        false => compile_child_main(about.as_deref()),
    })
}

// The signal handler that writes this frame knows nothing of the reader.
const _: () = assert!(glovebox_jail::VIOLATION == glovebox_runtime::frames::VIOLATION);

/// What an attempt to break out may use.
const ATTEMPT: JobLimits = JobLimits {
    wall: Duration::from_secs(5),
    idle: None,
    cpu: None,
    memory: 16 << 20,
    output: 0,
    storage: 0,
    inodes: 0,
};

/// Whether this process is a part of the second wall that went astray.
fn is_inside() -> bool {
    std::env::args_os().next().is_some_and(|name| name == INSIDE)
}

/// A process could not shut itself in.
fn jail_problem(error: glovebox_jail::JailError) -> Problem {
    let mut text = format!("the second wall can't be put up: {error}");
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    Problem::new(Code::IsolationUnavailable, text)
}
