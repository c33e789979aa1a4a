//! Files that a person named.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use env_contracts::{Code, Problem, canon};
use glovebox_runtime::{open_plain, read_plain};

/// The longest text that is read, in bytes: manifests, contracts, requests,
/// and what the operator decides with. The formats take less.
pub(crate) const MAX_TEXT: u64 = 1 << 20;

/// Reads a text that a person named: a regular file of bounded length.
///
/// # Errors
/// `file-unreadable`.
pub(super) fn read_text(path: &Path) -> Result<String, Problem> {
    read_plain(path, MAX_TEXT).map_err(unreadable)
}

/// Reads the text on standard input, of no more length than arguments may have.
///
/// # Errors
/// `file-unreadable`.
pub(super) fn read_stdin() -> Result<String, Problem> {
    let most = canon::MAX_BYTES as u64;
    let mut text = String::new();
    std::io::stdin().lock().take(most + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > most {
        return Err(Problem::new(Code::FileUnreadable, format!("standard input has more than {most} bytes"))
            .with_help("give it as a file: --input NAME=FILE"));
    }
    Ok(text)
}

/// Opens a regular file for reading; what could block or do something is
/// refused.
///
/// # Errors
/// `file-unreadable`.
pub(super) fn open(path: &Path) -> Result<File, Problem> {
    open_plain(path).map_err(unreadable)
}

fn unreadable(error: std::io::Error) -> Problem {
    Problem::new(Code::FileUnreadable, error.to_string())
}
