//! The tool `fs.search`: lines that match a pattern, in a file or a tree.
//!
//! Not a finder of files by name or age, and not an index: it reads what it
//! searches, every time.
//!
//! ```
//! use glovebox_guest::{Context, Tool as _, json};
//! use serde::Deserialize as _;
//!
//! let args = fs_search::Args::deserialize(json!({ "pattern": "(unclosed" })).unwrap();
//! let context = Context { request_id: String::new(), deadline_ms: 0, locale: None, idempotency_key: None };
//! // Refused before any file is looked at, with what would be right.
//! let failure = fs_search::FsSearch::call(args, &context).unwrap_err();
//! assert!(failure.message.contains("set `fixed`"), "{}", failure.message);
//! ```

mod file;
mod folder;
mod ignored;
mod walk;

use std::fs;
use std::ops::ControlFlow;

use globset::{GlobBuilder, GlobMatcher};
use glovebox_guest::{Context, Failure, Json, Tool, json, resolve, shown};
use regex::bytes::{Regex, RegexBuilder};

use file::{Outcome, Search};
use walk::Walk;

/// What a pattern may need when compiled. Far more than any sensible pattern;
/// far less than the memory of the contract.
const PATTERN_BYTES: usize = 4 << 20;

/// How many matches a call returns that does not say.
const DEFAULT_MATCHES: usize = 100;

/// The most matches that one call returns.
const MOST_MATCHES: usize = 1_000;

/// The most lines of context around a match.
const MOST_CONTEXT: usize = 10;

/// How many entries that could not be read are named; all are counted.
const NAMED_UNREADABLE: usize = 20;

/// The tool.
pub struct FsSearch;

/// The arguments of `fs.search`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Args {
    pattern: String,
    #[serde(default)]
    path: String,
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    max_matches: Option<usize>,
    #[serde(default)]
    context: usize,
    #[serde(default)]
    hidden: bool,
    #[serde(default)]
    fixed: bool,
}

impl Tool for FsSearch {
    const NAME: &'static str = "fs.search";
    const MANIFEST: &'static str = include_str!(concat!(env!("OUT_DIR"), "/manifest.json"));
    type Args = Args;

    fn call(args: Args, _context: &Context) -> Result<Json, Failure> {
        let most = args.max_matches.unwrap_or(DEFAULT_MATCHES);
        if most == 0 || most > MOST_MATCHES {
            return Err(Failure::invalid(format!("`max_matches` must be from 1 to {MOST_MATCHES}")));
        }
        if args.context > MOST_CONTEXT {
            return Err(Failure::invalid(format!("`context` must be from 0 to {MOST_CONTEXT}")));
        }
        let glob = args.glob.as_deref().map(glob).transpose()?;
        let mut search = Search::new(pattern(&args)?, most, args.context);
        let mut tally = Tally::default();

        let root = resolve(&args.path);
        let named = if args.path.is_empty() { "." } else { &args.path };
        let kind = fs::metadata(&root).map_err(|error| Failure::io(named, &error))?;
        if kind.is_dir() {
            // What can't be read inside is counted; the folder itself must be readable.
            fs::read_dir(&root).map_err(|error| Failure::io(named, &error))?;
            let walk = Walk { root: &root, hidden: args.hidden, glob: glob.as_ref() };
            walk.run(&mut tally, &mut |path, tally| tally.search(&mut search, path));
        } else if kind.is_file() {
            let _ = tally.search(&mut search, &root);
        } else {
            return Err(Failure::invalid(format!("`{named}` is neither a folder nor a regular file")));
        }
        Ok(json!({
            "matches": search.matches,
            "truncated": search.truncated,
            "files_searched": tally.searched,
            "files_skipped": {
                "binary": tally.binary,
                "symlink": tally.symlinks,
                "special": tally.special,
                "unreadable": tally.unreadable,
            },
            "unreadable": tally.named,
        }))
    }
}

glovebox_guest::export!(FsSearch);

/// What became of the files.
#[derive(Default)]
pub(crate) struct Tally {
    searched: u64,
    binary: u64,
    symlinks: u64,
    special: u64,
    unreadable: u64,
    named: Vec<Json>,
}

impl Tally {
    /// Searches one file. Breaks off when there are enough matches.
    fn search(&mut self, search: &mut Search, path: &str) -> ControlFlow<()> {
        match search.file(path, shown(path)) {
            Ok(Outcome::Searched) => self.searched += 1,
            Ok(Outcome::Binary) => self.binary += 1,
            Err(error) => self.unreadable(path, &error.to_string()),
        }
        if search.truncated { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Counts what could not be read.
    fn unreadable(&mut self, path: &str, reason: &str) {
        self.unreadable += 1;
        if self.named.len() < NAMED_UNREADABLE {
            self.named.push(json!({ "path": shown(path), "reason": reason }));
        }
    }
}

/// The pattern, compiled within limits.
fn pattern(args: &Args) -> Result<Regex, Failure> {
    let escaped;
    let source = if args.fixed {
        escaped = regex::escape(&args.pattern);
        &escaped
    } else {
        &args.pattern
    };
    RegexBuilder::new(source).case_insensitive(args.ignore_case).size_limit(PATTERN_BYTES).build().map_err(|error| {
        Failure::invalid(format!(
            "`pattern` is no regular expression that can be used here: {error}; \
                 for text taken literally set `fixed`; look-around and back-references do not exist"
        ))
    })
}

fn glob(text: &str) -> Result<GlobMatcher, Failure> {
    // Without a slash it is about the name alone, at any depth.
    let anywhere = if text.contains('/') { text.trim_start_matches('/').to_owned() } else { format!("**/{text}") };
    GlobBuilder::new(&anywhere)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| Failure::invalid(format!("`glob` is no glob: {error}")))
}
