//! One file a command.

mod arguments;
pub(crate) mod artifacts;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod contract;
pub(crate) mod doctor;
pub(crate) mod explain;
mod files;
pub(crate) mod gc;
pub(crate) mod reference;
pub(crate) mod run;
pub(crate) mod tool;

use std::process::ExitCode;

use env_contracts::{Code, Problem};

/// What writing to standard output answers: a reader that went away is no
/// error of ours.
pub(crate) fn printed(result: std::io::Result<()>, code: u8) -> Result<ExitCode, Problem> {
    match result {
        Ok(()) => Ok(ExitCode::from(code)),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::from(code)),
        Err(error) => Err(glovebox_runtime::io_problem("cannot write to standard output", Code::BackendError, &error)),
    }
}
