//! The tool `fs.write`: makes, replaces or lengthens one file.
//!
//! It edits nothing inside a file and deletes nothing. The argument `path` is
//! not sealed as a path that is read would be: a sealed file can't be written.
//! What a caller knew of the file stands in `expected_sha256` instead.
//!
//! ```
//! use glovebox_guest::{Context, Kind, Tool as _, json};
//! use serde::Deserialize as _;
//!
//! let args = fs_write::Args::deserialize(json!({ "path": "a.txt", "mode": "create" })).unwrap();
//! let context = Context { request_id: String::new(), deadline_ms: 0, locale: None, idempotency_key: None };
//! // No content: refused before any file is looked at.
//! assert_eq!(fs_write::FsWrite::call(args, &context).unwrap_err().kind, Kind::InvalidArgs);
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_guest::{
    Context, Failure, Json, Kind, Place, Staged, Tool, hex, json, make_parents, open, place, resolve, sha256,
};
use sha2::{Digest as _, Sha256};

/// How much of a file is read at once.
const CHUNK: usize = 64 << 10;

/// The tool.
pub struct FsWrite;

/// What is to become of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It is new.
    Create,
    /// It is there, and gets other content.
    Replace,
    /// It is there, and gets longer.
    Append,
}

/// The arguments of `fs.write`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Args {
    path: String,
    mode: Mode,
    text: Option<String>,
    base64: Option<String>,
    expected_sha256: Option<String>,
    #[serde(default)]
    make_folders: bool,
}

impl Args {
    fn content(&self) -> Result<Vec<u8>, Failure> {
        match (&self.text, &self.base64) {
            (Some(text), None) => Ok(text.as_bytes().to_vec()),
            (None, Some(base64)) => STANDARD
                .decode(base64)
                .map_err(|error| Failure::invalid(format!("`base64` is not base64 with padding: {error}"))),
            _ => Err(Failure::invalid("give either `text` or `base64`")),
        }
    }

    /// What a schema can't say.
    fn check(&self) -> Result<(), Failure> {
        if self.mode == Mode::Create && self.expected_sha256.is_some() {
            return Err(Failure::invalid(
                "`expected_sha256` is about a file that is there: mode `create` already refuses to touch one",
            ));
        }
        if self.mode != Mode::Create && self.make_folders {
            return Err(Failure::invalid("`make_folders` is for mode `create`: a file that is there has its folders"));
        }
        Ok(())
    }

    fn expects(&self, digest: &str) -> Result<(), Failure> {
        match &self.expected_sha256 {
            Some(expected) if !expected.eq_ignore_ascii_case(digest) => Err(Failure::conflict(format!(
                "`{}` has the sha256 {digest}, not the expected one: it was changed; read it again",
                self.path
            ))
            .with_details(json!({ "sha256": digest }))),
            _ => Ok(()),
        }
    }
}

/// What was done.
struct Done {
    before: Option<String>,
    after: String,
    size: u64,
}

impl Tool for FsWrite {
    const NAME: &'static str = "fs.write";
    const MANIFEST: &'static str = include_str!(concat!(env!("OUT_DIR"), "/manifest.json"));
    type Args = Args;

    fn call(args: Args, _context: &Context) -> Result<Json, Failure> {
        args.check()?;
        let content = args.content()?;
        let done = match (args.mode, place(&args.path)?) {
            (Mode::Create, Place::Free) => create(&args, &content)?,
            (Mode::Create, Place::File(_)) => {
                let message = format!("`{}` exists already; mode `replace` gives it other content", args.path);
                return Err(Failure::conflict(message));
            }
            (Mode::Replace, Place::File(_)) => replace(&args, &content)?,
            (Mode::Append, Place::File(size)) => append(&args, &content, size)?,
            (Mode::Replace | Mode::Append, Place::Free) => {
                let message = format!("`{}` does not exist; mode `create` makes it", args.path);
                return Err(Failure::new(Kind::NotFound, message));
            }
        };
        let mut result =
            json!({ "path": args.path, "written": content.len(), "size": done.size, "sha256": done.after });
        if let Some(before) = done.before {
            result["changed"] = (before != done.after).into();
            result["sha256_before"] = before.into();
        } else {
            result["changed"] = true.into();
        }
        Ok(result)
    }
}

/// Makes a file that nobody else made first.
fn create(args: &Args, content: &[u8]) -> Result<Done, Failure> {
    if args.make_folders {
        make_parents(&args.path)?;
    }
    let absolute = resolve(&args.path);
    let mut file =
        OpenOptions::new().write(true).create_new(true).open(&absolute).map_err(|error| missing(args, &error))?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(|error| {
        // Half a file would look like a whole one.
        let _ = fs::remove_file(&absolute);
        Failure::writing(&args.path, &error)
    })?;
    Ok(Done { before: None, after: sha256(content), size: content.len() as u64 })
}

/// A folder that is not there is the usual reason.
fn missing(args: &Args, error: &io::Error) -> Failure {
    let failure = Failure::writing(&args.path, error);
    if error.kind() == io::ErrorKind::NotFound && !args.make_folders {
        let message = format!("{}; if its folder is not there, set `make_folders`", failure.message);
        return Failure { message, ..failure };
    }
    failure
}

/// Puts other content in the place of a file in one step: whoever reads it
/// meanwhile reads the old or the new.
fn replace(args: &Args, content: &[u8]) -> Result<Done, Failure> {
    let staged = Staged::new(&args.path, content)?;
    // As late as can be: what changes between here and the next line is lost.
    let (before, _) = digest(args)?;
    let before = hex(before.finalize().into());
    args.expects(&before)?;
    staged.commit()?;
    Ok(Done { before: Some(before), after: sha256(content), size: content.len() as u64 })
}

/// Adds to the end. It may be a log of gigabytes: it is not copied.
fn append(args: &Args, content: &[u8], size: u64) -> Result<Done, Failure> {
    let failed = |error| Failure::writing(&args.path, &error);
    let (hash, read) = digest(args)?;
    let before = hex(hash.clone().finalize().into());
    args.expects(&before)?;
    let mut file = OpenOptions::new().append(true).open(resolve(&args.path)).map_err(failed)?;
    if let Err(error) = file.write_all(content).and_then(|()| file.sync_all()) {
        shorten(args, size);
        return Err(failed(error));
    }
    let after = hex(hash.chain_update(content).finalize().into());
    Ok(Done { before: Some(before), after, size: read + content.len() as u64 })
}

/// Takes back a part that was added before there was no more room.
fn shorten(args: &Args, size: u64) {
    if let Ok(file) = File::options().write(true).open(resolve(&args.path)) {
        let _ = file.set_len(size);
    }
}

/// The hash of what is there, and its length.
fn digest(args: &Args) -> Result<(Sha256, u64), Failure> {
    let (mut file, _) = open(&args.path)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    let mut size = 0;
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok((hash, size)),
            Ok(read) => {
                hash.update(&chunk[..read]);
                size += read as u64;
            }
            Err(error) => return Err(Failure::io(&args.path, &error)),
        }
    }
}

glovebox_guest::export!(FsWrite);

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("glovebox-fs-write-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn call(&self, name: &str, mut args: Json) -> Result<Json, Failure> {
            args["path"] = format!("{}/{name}", self.0.display()).into();
            let context = Context { request_id: String::new(), deadline_ms: 0, locale: None, idempotency_key: None };
            FsWrite::call(serde::Deserialize::deserialize(args).unwrap(), &context)
        }

        fn names(&self) -> Vec<String> {
            let names = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn modes() {
        let folder = Folder::new("modes");
        let made = folder.call("a", json!({ "mode": "create", "text": "one\n" })).unwrap();
        assert_eq!((&made["size"], &made["changed"], made.get("sha256_before")), (&json!(4), &json!(true), None));
        assert_eq!(made["sha256"], sha256(b"one\n"));
        let again = folder.call("a", json!({ "mode": "create", "text": "other" })).unwrap_err();
        assert_eq!(again.kind, Kind::Conflict);
        let longer = folder.call("a", json!({ "mode": "append", "base64": "dHdvCg==" })).unwrap();
        assert_eq!(fs::read(folder.0.join("a")).unwrap(), b"one\ntwo\n");
        assert_eq!((&longer["written"], &longer["size"]), (&json!(4), &json!(8)));
        assert_eq!(longer["sha256"], sha256(b"one\ntwo\n"));
        assert_eq!(longer["sha256_before"], made["sha256"]);
        let other = folder.call("a", json!({ "mode": "replace", "text": "" })).unwrap();
        assert_eq!(fs::read(folder.0.join("a")).unwrap(), b"");
        assert_eq!(other["sha256_before"], longer["sha256"]);
        let same = folder.call("a", json!({ "mode": "replace", "text": "" })).unwrap();
        assert_eq!(same["changed"], false);
        for mode in ["replace", "append"] {
            let failure = folder.call("missing", json!({ "mode": mode, "text": "" })).unwrap_err();
            assert_eq!(failure.kind, Kind::NotFound, "{mode}");
        }
        assert_eq!(folder.names(), ["a"]);
    }

    #[test]
    fn nothing_is_written_over_what_the_caller_does_not_know() {
        let folder = Folder::new("expected");
        folder.call("a", json!({ "mode": "create", "text": "mine" })).unwrap();
        for mode in ["replace", "append"] {
            let args = json!({ "mode": mode, "text": "other", "expected_sha256": sha256(b"theirs") });
            let failure = folder.call("a", args).unwrap_err();
            assert_eq!(failure.kind, Kind::Conflict, "{mode}");
            assert_eq!(failure.details.unwrap()["sha256"], sha256(b"mine"));
            assert_eq!(fs::read(folder.0.join("a")).unwrap(), b"mine", "{mode}");
        }
        let known = sha256(b"mine").to_uppercase();
        folder.call("a", json!({ "mode": "replace", "text": "other", "expected_sha256": known })).unwrap();
        assert_eq!(folder.names(), ["a"], "a file beside it is left behind");
    }

    #[test]
    fn folders_are_made_when_asked() {
        let folder = Folder::new("folders");
        let failure = folder.call("b/c/a", json!({ "mode": "create", "text": "x" })).unwrap_err();
        assert!(failure.kind == Kind::NotFound && failure.message.contains("`make_folders`"), "{}", failure.message);
        folder.call("b/c/a", json!({ "mode": "create", "text": "x", "make_folders": true })).unwrap();
        assert_eq!(fs::read(folder.0.join("b/c/a")).unwrap(), b"x");
    }

    #[test]
    fn refused_before_anything_is_touched() {
        let folder = Folder::new("refused");
        for (args, message) in [
            (json!({ "mode": "create" }), "either `text`"),
            (json!({ "mode": "create", "text": "", "base64": "" }), "either `text`"),
            (json!({ "mode": "create", "base64": "x" }), "not base64"),
            (json!({ "mode": "create", "text": "", "expected_sha256": sha256(b"") }), "already refuses"),
            (json!({ "mode": "append", "text": "", "make_folders": true }), "is for mode `create`"),
        ] {
            let failure = folder.call("a/b", args.clone()).unwrap_err();
            assert_eq!(failure.kind, Kind::InvalidArgs, "{args}");
            assert!(failure.message.contains(message), "{args}: {}", failure.message);
        }
        assert!(folder.names().is_empty());
    }
}
