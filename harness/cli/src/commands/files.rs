//! Files that a person named.

use std::fs::File;
use std::path::Path;

use env_contracts::{Code, Problem};
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
