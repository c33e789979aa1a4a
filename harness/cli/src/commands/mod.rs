//! One file a command.

mod arguments;
pub(crate) mod artifacts;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod contract;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod gc;
pub(crate) mod reference;
pub(crate) mod run;
pub(crate) mod tool;

use std::path::Path;
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

/// The longest manifest or contract that is read; the formats take less.
const MAX_TEXT: u64 = 1 << 20;

/// Reads a text that a person named: a plain file of bounded length.
///
/// # Errors
/// `file-unreadable`.
pub(crate) fn read_text(path: &Path) -> Result<String, Problem> {
    use std::io::Read as _;
    let mut text = String::new();
    let file = std::fs::File::from(run::open_input(path)?);
    let read = file.take(MAX_TEXT + 1).read_to_string(&mut text);
    read.map_err(|error| Problem::new(Code::FileUnreadable, format!("`{}`: {error}", path.display())))?;
    if text.len() as u64 > MAX_TEXT {
        let message = format!("`{}` has more than {MAX_TEXT} bytes", path.display());
        return Err(Problem::new(Code::FileUnreadable, message));
    }
    Ok(text)
}
