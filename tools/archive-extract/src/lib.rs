//! The tool `archive.extract`: files of a zip or tar, as artifacts.
//!
//! What comes out is plain files below `/outputs`; no links, modes, owners or
//! times. It unpacks no archives in archives.
//!
//! ```
//! use glovebox_guest::{Context, Kind, Tool as _, json};
//! use serde::Deserialize as _;
//!
//! let args = archive_extract::Args::deserialize(json!({ "path": "a.zip", "only": [""] })).unwrap();
//! let context = Context { request_id: String::new(), deadline_ms: 0, locale: None, idempotency_key: None };
//! // Refused before any file is looked at.
//! assert_eq!(archive_extract::ArchiveExtract::call(args, &context).unwrap_err().kind, Kind::InvalidArgs);
//! ```

use std::fs::OpenOptions;
use std::io::{self, Read, Seek};

use glovebox_archive::{Archive, Entry, Kind};
use glovebox_guest::{Context, Failure, Json, Kind as FailureKind, Tool, json, make_parents};

/// Where files become artifacts.
const OUTPUTS: &str = "/outputs";

/// The most files of one call: as many artifacts as one action can have.
const MOST_FILES: usize = 1_000;

/// The most patterns, and the longest one in bytes. Each is tried on each entry.
const MOST_PATTERNS: usize = 50;
const MOST_PATTERN: usize = 1024;

/// The most bytes of names in one answer: six times as much, which escaping in
/// JSON can make of it, still fits into the contract's output limit.
const MOST_BYTES: usize = 512 << 10;

/// The tool.
pub struct ArchiveExtract;

/// The arguments of `archive.extract`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Args {
    path: String,
    #[serde(default)]
    only: Vec<String>,
    #[serde(default)]
    skip_refused: bool,
}

impl Args {
    /// What a schema can't say.
    fn check(&self) -> Result<(), Failure> {
        let wrong = |pattern: &String| pattern.is_empty() || pattern.len() > MOST_PATTERN;
        if self.only.len() > MOST_PATTERNS || self.only.iter().any(wrong) {
            let message = format!("`only` holds at most {MOST_PATTERNS} patterns of 1 to {MOST_PATTERN} bytes");
            return Err(Failure::invalid(message));
        }
        Ok(())
    }

    fn wants(&self, entry: &Entry) -> bool {
        let path = entry.path.as_deref().unwrap_or(&entry.name);
        self.only.is_empty() || self.only.iter().any(|pattern| fits(pattern, path))
    }
}

/// Whether a pattern means a path: the name at any depth where it has no slash,
/// else the whole path or a folder that it is in.
fn fits(pattern: &str, path: &str) -> bool {
    let folder = pattern.trim_end_matches('/');
    if path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        return true;
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    fast_glob::glob_match(pattern, if pattern.contains('/') { path } else { name })
}

impl Tool for ArchiveExtract {
    const NAME: &'static str = "archive.extract";
    const MANIFEST: &'static str = include_str!(concat!(env!("OUT_DIR"), "/manifest.json"));
    type Args = Args;

    fn call(args: Args, _context: &Context) -> Result<Json, Failure> {
        args.check()?;
        extract(Archive::open(&args.path)?, &args, OUTPUTS)
    }
}

fn extract<R: Read + Seek>(mut archive: Archive<R>, args: &Args, outputs: &str) -> Result<Json, Failure> {
    let all = archive.entries().iter().enumerate();
    let wanted: Vec<usize> = all.filter(|(_, entry)| args.wants(entry)).map(|(index, _)| index).collect();
    if wanted.is_empty() && !args.only.is_empty() {
        return Err(Failure::new(FailureKind::NotFound, "nothing in the archive is what `only` asks for"));
    }
    archive.verify(&wanted)?;
    let entries = || wanted.iter().map(|index| &archive.entries()[*index]);
    let refused = entries().filter(|entry| entry.refused.is_some()).count();
    let files = entries().filter(|entry| entry.kind == Kind::File && entry.refused.is_none()).count();
    if refused > 0 && !args.skip_refused {
        let (list, _) = listed(entries().filter(|entry| entry.refused.is_some()));
        let message = format!(
            "{refused} entries can't be extracted, so nothing was; `skip_refused` leaves them out, `only` chooses others"
        );
        return Err(Failure::conflict(message).with_details(json!({ "refused": list, "count": refused })));
    }
    if files > MOST_FILES {
        let message =
            format!("{files} files are to be extracted, at most {MOST_FILES} can be: choose some with `only`");
        return Err(Failure::conflict(message));
    }
    let format = archive.format();
    let bytes: u64 =
        entries().filter(|entry| entry.kind == Kind::File && entry.refused.is_none()).map(|entry| entry.size).sum();
    let (list, unlisted) = listed(entries());
    archive.extract(&wanted, |entry, content| put(outputs, entry, content))?;
    Ok(json!({
        "format": format,
        "extracted": files,
        "bytes": bytes,
        "refused": refused,
        "entries": list,
        "entries_unlisted": unlisted,
    }))
}

/// Writes one file where nothing is yet.
fn put(outputs: &str, entry: &Entry, content: &mut dyn Read) -> Result<(), Failure> {
    let path = format!("{outputs}/{}", entry.path.as_deref().unwrap_or_default());
    let failed = |error: io::Error| Failure::writing(&path, &error);
    make_parents(&path)?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
    let written = io::copy(content, &mut file).map_err(failed)?;
    if written != entry.size {
        // It was counted before; the file can't have changed since.
        return Err(Failure::new(FailureKind::Internal, format!("`{}` has {written} bytes now", entry.name)));
    }
    Ok(())
}

/// What became of entries, as far as there is room, and how many are left out.
fn listed<'e>(entries: impl Iterator<Item = &'e Entry>) -> (Vec<Json>, usize) {
    let (mut list, mut bytes, mut unlisted) = (Vec::new(), 0, 0);
    for entry in entries {
        bytes += entry.name.len();
        if list.len() >= MOST_FILES || bytes > MOST_BYTES {
            unlisted += 1;
            continue;
        }
        let outcome = match (&entry.refused, entry.kind) {
            (Some(_), _) => "refused",
            (None, Kind::Folder) => "folder",
            (None, _) => "extracted",
        };
        let mut shown = json!({ "name": entry.name, "outcome": outcome });
        if outcome == "extracted" {
            shown["size"] = entry.size.into();
            shown["path"] = entry.path.as_deref().unwrap_or_default().into();
        }
        if let Some(refusal) = &entry.refused {
            shown["reason"] = json!(refusal.reason);
            shown["message"] = refusal.message.as_str().into();
        }
        list.push(shown);
    }
    (list, unlisted)
}

glovebox_guest::export!(ArchiveExtract);

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Cursor;

    use super::*;

    #[test]
    fn patterns() {
        let table = [
            ("*.rs", "src/a.rs", true),
            ("*.rs", "src/a.txt", false),
            ("src", "src/a.rs", true),
            ("src/", "src/d/a.rs", true),
            ("src", "srcs/a.rs", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/d/a.rs", false),
            ("src/**/*.{rs,toml}", "src/d/a.toml", true),
            ("a.rs", "src/a.rs", true),
            ("/", "a", false),
        ];
        for (pattern, path, expected) in table {
            assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
        }
    }

    /// A tar with files of one byte, and with links where a name begins with `@`.
    fn tar(names: &[&str]) -> Archive<Cursor<Vec<u8>>> {
        let mut bytes = Vec::new();
        for name in names {
            let link = name.starts_with('@');
            let mut header = [0; 512];
            header[..name.len()].copy_from_slice(name.as_bytes());
            header[124..136].copy_from_slice(if link { b"00000000000\0" } else { b"00000000001\0" });
            header[148..156].copy_from_slice(b"        ");
            header[156] = if link { b'2' } else { b'0' };
            let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
            header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            bytes.extend(header);
            if !link {
                bytes.push(b'x');
            }
            bytes.resize(bytes.len().next_multiple_of(512), 0);
        }
        bytes.extend([0; 1024]);
        let size = bytes.len() as u64;
        Archive::new(Cursor::new(bytes), size).unwrap()
    }

    #[test]
    fn nothing_comes_out_where_something_is_refused() {
        let outputs = std::env::temp_dir().join(format!("glovebox-archive-extract-{}", std::process::id()));
        fs::create_dir_all(&outputs).unwrap();
        let run = |names: &[&str], only: &[&str], skip_refused: bool| {
            let only = only.iter().map(|pattern| (*pattern).to_owned()).collect();
            let args = Args { path: String::new(), only, skip_refused };
            extract(tar(names), &args, outputs.to_str().unwrap())
        };
        let names = ["d/a", "b", "@link", "../up"];
        let failure = run(&names, &[], false).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Conflict);
        let refused = failure.details.unwrap();
        assert_eq!((&refused["count"], &refused["refused"][1]["reason"]), (&json!(2), &json!("name")));
        let failure = run(&names, &["nothing"], false).unwrap_err();
        assert_eq!(failure.kind, FailureKind::NotFound);
        let many: Vec<String> = (0..=MOST_FILES).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(run(&many, &[], false).unwrap_err().message.contains("choose some"));
        assert_eq!(fs::read_dir(&outputs).unwrap().count(), 0);
        // What is not asked for does not matter.
        let one = run(&names, &["d/"], false).unwrap();
        assert_eq!((&one["extracted"], &one["refused"], &one["bytes"]), (&json!(1), &json!(0), &json!(1)));
        assert_eq!(fs::read(outputs.join("d/a")).unwrap(), b"x");
        // Nothing is written over.
        assert_eq!(run(&names, &["d/"], false).unwrap_err().kind, FailureKind::Conflict);
        fs::remove_dir_all(outputs.join("d")).unwrap();
        let rest = run(&names, &[], true).unwrap();
        let outcomes: Vec<&Json> = rest["entries"].as_array().unwrap().iter().map(|entry| &entry["outcome"]).collect();
        assert_eq!(outcomes, ["extracted", "extracted", "refused", "refused"]);
        let mut left: Vec<_> = fs::read_dir(&outputs).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["b", "d"]);
        fs::remove_dir_all(&outputs).unwrap();
    }
}
