//! Using storage up.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;

use serde_json::{Value, json};

use crate::{Told, refused};

/// Writes to `path` until `bytes` are written or it is refused.
pub(crate) fn write(told: &Told) -> Value {
    let mut file = match File::create(told.text("path", "/outputs/flood")) {
        Ok(file) => file,
        Err(error) => return refused(error),
    };
    let bytes = told.number("bytes", u64::MAX);
    let block = vec![b'x'; 64 << 10];
    let mut written = 0;
    while written < bytes {
        let size = (bytes - written).min(block.len() as u64) as usize;
        match file.write(&block[..size]) {
            Ok(0) => return json!({ "written": written, "refused": "nothing more was taken" }),
            Ok(taken) => written += taken as u64,
            Err(error) => return json!({ "written": written, "refused": format!("{error:?}") }),
        }
    }
    json!({ "written": written })
}

/// Writes each of `write`, a path and a text, until one is refused.
pub(crate) fn write_all(told: &Told) -> Value {
    for (path, text) in told.pairs("write", "path", "text") {
        if let Err(error) = fs::write(path, text) {
            return refused(error);
        }
    }
    json!({ "written": told.pairs("write", "path", "text").len() })
}

/// Makes empty files (or folders, if `folders`) in `folder` until there are
/// `count` or it is refused.
pub(crate) fn create(told: &Told) -> Value {
    let folder = told.text("folder", "/outputs");
    for made in 0..told.number("count", u64::MAX) {
        let path = format!("{folder}/{made:08}");
        let outcome = if told.flag("folders") { fs::create_dir(&path) } else { File::create_new(&path).map(drop) };
        if let Err(error) = outcome {
            return json!({ "created": made, "refused": format!("{error:?}") });
        }
    }
    json!({ "created": told.number("count", u64::MAX) })
}

/// Sets the size of `path` without writing; 1 TiB by default. Opens it for
/// reading only if `read_only`.
pub(crate) fn set_size(told: &Told) -> Value {
    let writing = !told.flag("read_only");
    let opened = OpenOptions::new()
        .read(true)
        .write(writing)
        .create(writing)
        .truncate(false)
        .open(told.text("path", "/outputs/sparse"));
    match opened.and_then(|file| file.set_len(told.number("size", 1 << 40))) {
        Ok(()) => json!({ "size": told.number("size", 1 << 40) }),
        Err(error) => refused(error),
    }
}

/// Copies `from` to `to`: the usual work of a tool, for tests in which
/// everything goes well.
pub(crate) fn copy(told: &Told) -> Value {
    match fs::copy(told.text("from", "/workspace/a.txt"), told.text("to", "/outputs/a.txt")) {
        Ok(copied) => json!({ "copied": copied }),
        Err(error) => refused(error),
    }
}
