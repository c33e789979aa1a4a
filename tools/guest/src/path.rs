//! Paths as callers write them.

use std::fs::{self, File};
use std::io::Read as _;

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

/// Reads a whole regular file that a caller named, of at most `most` bytes.
///
/// # Errors
/// A [`Failure`] that says what the path is instead, or how large it is.
pub fn read(path: &str, most: u64) -> Result<Vec<u8>, Failure> {
    let (file, size) = open(path)?;
    let mut bytes = Vec::with_capacity(size.min(most) as usize);
    // One more than that: the file may be growing.
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| Failure::io(path, &error))?;
    if bytes.len() as u64 > most {
        let size = size.max(bytes.len() as u64);
        return Err(Failure::invalid(format!("`{path}` has {size} bytes; at most {most} are taken")));
    }
    Ok(bytes)
}
