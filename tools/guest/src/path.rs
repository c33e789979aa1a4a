//! Paths as callers write them.

use std::fs::{self, File};

use crate::Failure;

/// Where relative paths begin.
const WORKSPACE: &str = "/workspace";

/// The absolute path of what a caller named: relative paths are taken from
/// `/workspace`. Nothing is checked here: what lies outside the mounts can't be
/// opened, whatever a path says.
pub fn resolve(path: &str) -> String {
    match path {
        "" | "." => WORKSPACE.to_owned(),
        absolute if absolute.starts_with('/') => absolute.to_owned(),
        relative => format!("{WORKSPACE}/{}", relative.strip_prefix("./").unwrap_or(relative)),
    }
}

/// The path as a caller would write it: relative where it lies in `/workspace`.
pub fn shown(absolute: &str) -> &str {
    match absolute.strip_prefix(WORKSPACE) {
        Some("") => ".",
        Some(rest) => rest.strip_prefix('/').unwrap_or(absolute),
        None => absolute,
    }
}

/// Opens a regular file that a caller named, and says how long it is.
///
/// # Errors
/// A [`Failure`] that says what the path is instead.
pub fn open(path: &str) -> Result<(File, u64), Failure> {
    let absolute = resolve(path);
    let failed = |error| Failure::io(path, &error);
    // Asked first: opening a named pipe would wait for its other end.
    let kind = fs::metadata(&absolute).map_err(failed)?;
    if kind.is_dir() {
        return Err(Failure::invalid(format!("`{path}` is a folder; name a file")));
    }
    if !kind.is_file() {
        return Err(Failure::invalid(format!("`{path}` is not a regular file")));
    }
    Ok((File::open(&absolute).map_err(failed)?, kind.len()))
}
