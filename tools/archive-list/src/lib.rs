//! The tool `archive.list`: what is in a zip or tar, and what of it can be
//! extracted.
//!
//! It extracts nothing and reads no content but what it takes to find the
//! entries. Names are shown so that they can do no harm.
//!
//! ```
//! use glovebox_guest::{Context, Kind, Tool as _, json};
//! use serde::Deserialize as _;
//!
//! let args = archive_list::Args::deserialize(json!({ "path": "a.zip", "max_entries": 0 })).unwrap();
//! let context = Context { request_id: String::new(), deadline_ms: 0, locale: None, idempotency_key: None };
//! // Refused before any file is looked at.
//! assert_eq!(archive_list::ArchiveList::call(args, &context).unwrap_err().kind, Kind::InvalidArgs);
//! ```

use std::collections::BTreeMap;

use glovebox_archive::{Archive, Entry, Kind};
use glovebox_guest::{Context, Failure, Json, Tool, json};

/// How many entries a call returns that does not say.
const DEFAULT_ENTRIES: usize = 200;

/// The most entries that one call returns.
const MOST_ENTRIES: usize = 1_000;

/// The most bytes of names in one call: six times as much, which escaping in
/// JSON can make of it, still fits into the contract's output limit.
const MOST_BYTES: usize = 512 << 10;

/// The tool.
pub struct ArchiveList;

/// The arguments of `archive.list`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Args {
    path: String,
    #[serde(default)]
    offset: usize,
    max_entries: Option<usize>,
}

impl Tool for ArchiveList {
    const NAME: &'static str = "archive.list";
    const MANIFEST: &'static str = include_str!(concat!(env!("OUT_DIR"), "/manifest.json"));
    type Args = Args;

    fn call(args: Args, _context: &Context) -> Result<Json, Failure> {
        let most = args.max_entries.unwrap_or(DEFAULT_ENTRIES);
        if most == 0 || most > MOST_ENTRIES {
            return Err(Failure::invalid(format!("`max_entries` must be from 1 to {MOST_ENTRIES}")));
        }
        let archive = Archive::open(&args.path)?;
        let mut answer = summary(archive.entries());
        answer["format"] = json!(archive.format());
        let mut bytes = 0;
        let page: Vec<Json> = archive
            .entries()
            .iter()
            .skip(args.offset)
            .take(most)
            .take_while(|entry| {
                bytes += entry.name.len() + entry.target.as_ref().map_or(0, String::len);
                bytes <= MOST_BYTES
            })
            .map(shown)
            .collect();
        let next = args.offset.saturating_add(page.len());
        if next < archive.entries().len() {
            answer["next"] = json!({ "offset": next });
        }
        answer["entries"] = page.into();
        Ok(answer)
    }
}

/// What is in all of it.
fn summary(entries: &[Entry]) -> Json {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for refusal in entries.iter().filter_map(|entry| entry.refused.as_ref()) {
        let reason = json!(refusal.reason).as_str().unwrap_or_default().to_owned();
        *reasons.entry(reason).or_default() += 1;
    }
    let files = || entries.iter().filter(|entry| entry.kind == Kind::File);
    json!({
        "total": entries.len(),
        "files": files().count(),
        "bytes": files().fold(0u64, |sum, entry| sum.saturating_add(entry.size)),
        "refused": reasons.values().sum::<usize>(),
        "refused_by_reason": reasons,
    })
}

fn shown(entry: &Entry) -> Json {
    let mut shown = json!({ "name": entry.name, "kind": entry.kind });
    if entry.kind == Kind::File {
        shown["size"] = entry.size.into();
    }
    if let Some(target) = &entry.target {
        shown["target"] = target.as_str().into();
    }
    if let Some(refusal) = &entry.refused {
        shown["refused"] = json!(refusal);
    }
    shown
}

glovebox_guest::export!(ArchiveList);
