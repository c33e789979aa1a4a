//! Reaching for what was not given.
//!
//! Paths go to the host as they are: the C library would tidy them up, and with
//! it the very tricks that are to be tried. `folder` names a preopened folder
//! and `path` is taken from there, whatever it holds; without `folder`, `path`
//! is absolute and the longest preopened folder in it is used.

use serde_json::{Map, Value, json};

use crate::host::filesystem::{
    Descriptor, DescriptorFlags, ErrorCode, OpenFlags, PathFlags, get_directories, timestamp,
};
use crate::{Told, refused};

/// How much of a file is printed.
const SHOWN: u64 = 4096;

/// The preopened folder that an absolute path lies in, and the rest of the path.
pub(crate) fn locate(path: &str) -> Result<(Descriptor, String), ErrorCode> {
    let below = |folder: &str| {
        let rest = path.strip_prefix(folder.trim_end_matches('/'))?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/').to_owned())
    };
    get_directories()
        .into_iter()
        .filter_map(|(folder, name)| below(&name).map(|rest| (folder, rest)))
        .min_by_key(|(_, rest)| rest.len())
        .map(|(folder, rest)| (folder, if rest.is_empty() { ".".to_owned() } else { rest }))
        .ok_or(ErrorCode::NoEntry)
}

/// The place that `folder` and `path` name, under keys with this prefix.
fn place(told: &Told, prefix: &str) -> Result<(Descriptor, String), ErrorCode> {
    let path = told.text(&format!("{prefix}path"), "");
    match told.text(&format!("{prefix}folder"), "") {
        "" => locate(path),
        folder => Ok((named(folder)?, path.to_owned())),
    }
}

fn named(folder: &str) -> Result<Descriptor, ErrorCode> {
    get_directories().into_iter().find(|(_, name)| name == folder).map(|(it, _)| it).ok_or(ErrorCode::NoEntry)
}

/// Opens with the `flags` (create, exclusive, truncate, directory) and the
/// `access` (read, write, mutate) that are named, following a last symbolic
/// link unless `nofollow`; prints what it holds, or writes `text` to it.
pub(crate) fn open(told: &Told) -> Value {
    report(|| {
        let (folder, path) = place(told, "")?;
        let mut flags = OpenFlags::empty();
        for flag in told.list("flags") {
            flags |= match flag {
                "create" => OpenFlags::CREATE,
                "exclusive" => OpenFlags::EXCLUSIVE,
                "truncate" => OpenFlags::TRUNCATE,
                "directory" => OpenFlags::DIRECTORY,
                _ => OpenFlags::empty(),
            };
        }
        let mut access = DescriptorFlags::empty();
        for kind in told.list("access") {
            access |= match kind {
                "read" => DescriptorFlags::READ,
                "write" => DescriptorFlags::WRITE,
                "mutate" => DescriptorFlags::MUTATE_DIRECTORY,
                _ => DescriptorFlags::empty(),
            };
        }
        let file = folder.open_at(follow(told), &path, flags, access)?;
        let text = told.text("text", "");
        if !text.is_empty() {
            return Ok(json!({ "opened": true, "written": file.write(text.as_bytes(), 0)? }));
        }
        if access.contains(DescriptorFlags::READ) && !flags.contains(OpenFlags::DIRECTORY) {
            return content(&file);
        }
        Ok(json!({ "opened": true, "type": format!("{:?}", file.get_type()?) }))
    })
}

/// Reads `path`, which lies `below` a folder if that is said, by way of the C
/// library, as ordinary programs do.
pub(crate) fn read(told: &Told) -> Value {
    let path = format!("{}{}", told.text("below", ""), told.text("path", "/workspace/a.txt"));
    match std::fs::read(&path) {
        Ok(bytes) => json!({
            "read": bytes.len(),
            "modified": modified(&path),
            "text": String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN as usize)]),
        }),
        Err(error) => refused(error),
    }
}

/// Tries each of `paths` from every preopened folder, and by way of the C
/// library; prints what each attempt gave.
pub(crate) fn escape(told: &Told) -> Value {
    let mut attempts = Map::new();
    for path in told.list("paths") {
        for (folder, name) in get_directories() {
            let attempt = report(|| {
                content(&folder.open_at(PathFlags::SYMLINK_FOLLOW, path, OpenFlags::empty(), DescriptorFlags::READ)?)
            });
            attempts.insert(format!("{name}: {path}"), attempt);
        }
        let attempt = match std::fs::read(path) {
            Ok(bytes) => json!({ "read": bytes.len() }),
            Err(error) => refused(error),
        };
        attempts.insert(path.to_owned(), attempt);
    }
    let reached = attempts.values().filter(|attempt| attempt["read"].is_u64()).count();
    json!({ "reached": reached, "attempts": attempts })
}

/// Lists a folder.
pub(crate) fn list(told: &Told) -> Value {
    report(|| {
        let (folder, path) = place(told, "")?;
        let flags = DescriptorFlags::READ;
        let entries = folder.open_at(follow(told), &path, OpenFlags::DIRECTORY, flags)?.read_directory()?;
        let mut names = Vec::new();
        while let Some(entry) = entries.read_directory_entry()? {
            names.push(entry.name);
        }
        names.sort();
        Ok(json!({ "names": names }))
    })
}

/// Makes a symbolic link at `path` with the content `target`.
pub(crate) fn symlink(told: &Told) -> Value {
    report(|| {
        let (folder, path) = place(told, "")?;
        folder.symlink_at(told.text("target", "/etc/passwd"), &path)?;
        Ok(json!({ "made": true }))
    })
}

/// Makes a hard link to `from_folder`/`from_path` at `to_folder`/`to_path`,
/// through a symbolic link unless `nofollow`.
pub(crate) fn link(told: &Told) -> Value {
    report(|| {
        let ((from, old), (to, new)) = (place(told, "from_")?, place(told, "to_")?);
        from.link_at(follow(told), &old, &to, &new)?;
        Ok(json!({ "made": true }))
    })
}

/// Moves `from_folder`/`from_path` to `to_folder`/`to_path`.
pub(crate) fn rename(told: &Told) -> Value {
    report(|| {
        let ((from, old), (to, new)) = (place(told, "from_")?, place(told, "to_")?);
        from.rename_at(&old, &to, &new)?;
        Ok(json!({ "moved": true }))
    })
}

/// Removes a file, or an empty folder if `folders`.
pub(crate) fn remove(told: &Told) -> Value {
    report(|| {
        let (folder, path) = place(told, "")?;
        if told.flag("folders") {
            folder.remove_directory_at(&path)?
        } else {
            folder.unlink_file_at(&path)?
        }
        Ok(json!({ "removed": true }))
    })
}

/// Makes a folder.
pub(crate) fn make_folder(told: &Told) -> Value {
    report(|| {
        let (folder, path) = place(told, "")?;
        folder.create_directory_at(&path)?;
        Ok(json!({ "made": true }))
    })
}

/// Sets both times to `seconds` and `nanoseconds`: by the path, or of the
/// opened file if `opened`.
pub(crate) fn set_times(told: &Told) -> Value {
    report(|| {
        let (folder, path) = place(told, "")?;
        let nanoseconds = u32::try_from(told.number("nanoseconds", 0)).unwrap_or(u32::MAX);
        let time = || timestamp(told.number("seconds", 1), nanoseconds);
        if told.flag("opened") {
            let file = folder.open_at(follow(told), &path, OpenFlags::empty(), DescriptorFlags::READ)?;
            file.set_times(time(), time())?;
        } else {
            folder.set_times_at(follow(told), &path, time(), time())?;
        }
        Ok(json!({ "set": true }))
    })
}

fn follow(told: &Told) -> PathFlags {
    if told.flag("nofollow") { PathFlags::empty() } else { PathFlags::SYMLINK_FOLLOW }
}

fn content(file: &Descriptor) -> Result<Value, ErrorCode> {
    let (bytes, _) = file.read(SHOWN, 0)?;
    Ok(json!({ "opened": true, "read": bytes.len(), "text": String::from_utf8_lossy(&bytes) }))
}

fn report(attempt: impl FnOnce() -> Result<Value, ErrorCode>) -> Value {
    attempt().unwrap_or_else(|code| json!({ "refused": code.name() }))
}

/// When a file was changed last, in seconds since 1970.
fn modified(path: &str) -> Option<u64> {
    let time = std::fs::metadata(path).ok()?.modified().ok()?;
    time.duration_since(std::time::UNIX_EPOCH).ok().map(|since| since.as_secs())
}
