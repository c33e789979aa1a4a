//! The tool `text.diff`: what differs between two texts, as a unified diff.
//!
//! It compares lines of UTF-8 text; it knows nothing of folders, words or
//! formats, and changes nothing.
//!
//! ```
//! use glovebox_guest::{Context, Tool as _, json};
//! use serde::Deserialize as _;
//!
//! let args = text_diff::Args::deserialize(json!({ "old": "a\n", "new": "b\n" })).unwrap();
//! let context = Context { request_id: String::new(), deadline_ms: 0, locale: None, idempotency_key: None };
//! let result = text_diff::TextDiff::call(args, &context).unwrap();
//! assert_eq!(result["diff"], "--- a/text\n+++ b/text\n@@ -1 +1 @@\n-a\n+b\n");
//! ```

mod unified;

use std::time::{Duration, Instant};

use glovebox_guest::{Context, Failure, Json, Tool, json, read};

use unified::{How, Whitespace};

/// The largest text, in bytes: two of them, their lines and what is known of
/// these fit into the memory of the contract.
const MOST_TEXT: u64 = 4 << 20;

/// The most bytes of diff: six times as much, which escaping in JSON can make
/// of it, still fits into the contract's output limit.
const MOST_DIFF: usize = 256 << 10;

/// The most lines of context.
const MOST_CONTEXT: usize = 100;

/// How many lines of context a call gets that does not say.
const DEFAULT_CONTEXT: usize = 3;

/// How long the smallest diff is looked for. Texts that have little in common
/// would take minutes; after this they get a larger one, which is as true.
const MOST_TIME: Duration = Duration::from_secs(5);

/// The tool.
pub struct TextDiff;

/// The arguments of `text.diff`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Args {
    old: Option<String>,
    old_path: Option<String>,
    new: Option<String>,
    new_path: Option<String>,
    context: Option<usize>,
    #[serde(default)]
    ignore_whitespace: Whitespace,
}

impl Tool for TextDiff {
    const NAME: &'static str = "text.diff";
    const MANIFEST: &'static str = include_str!(concat!(env!("OUT_DIR"), "/manifest.json"));
    type Args = Args;

    fn call(args: Args, _context: &Context) -> Result<Json, Failure> {
        let context = args.context.unwrap_or(DEFAULT_CONTEXT);
        if context > MOST_CONTEXT {
            return Err(Failure::invalid(format!("`context` must be from 0 to {MOST_CONTEXT}")));
        }
        let old_path = args.old_path.clone();
        let name = old_path.or_else(|| args.new_path.clone()).unwrap_or_else(|| "text".to_owned());
        let old = side("old", args.old, args.old_path.as_deref())?;
        let new = side("new", args.new, args.new_path.as_deref())?;
        let deadline = Instant::now().checked_add(MOST_TIME);
        let how = How { context, ignore: args.ignore_whitespace, most: MOST_DIFF, deadline };
        let diff = unified::diff(&old, &new, &how);
        let name = label(&name);
        let text =
            if diff.text.is_empty() { String::new() } else { format!("--- a/{name}\n+++ b/{name}\n{}", diff.text) };
        Ok(json!({
            "equal": diff.hunks == 0,
            "diff": text,
            "added": diff.added,
            "removed": diff.removed,
            "hunks": diff.hunks,
            "hunks_omitted": diff.omitted,
        }))
    }
}

/// One of the two texts.
fn side(which: &str, text: Option<String>, path: Option<&str>) -> Result<String, Failure> {
    match (text, path) {
        (Some(text), None) if text.len() as u64 > MOST_TEXT => {
            Err(Failure::invalid(format!("`{which}` is longer than {MOST_TEXT} bytes")))
        }
        (Some(text), None) => Ok(text),
        (None, Some(path)) => String::from_utf8(read(path, MOST_TEXT)?).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Failure::invalid(format!("`{path}` is not UTF-8 text: byte {at} begins no character"))
        }),
        _ => Err(Failure::invalid(format!("give either `{which}`, a text, or `{which}_path`, a file"))),
    }
}

/// A name in one line: what would end or reorder it is replaced.
fn label(name: &str) -> String {
    let name = name.strip_prefix("/workspace/").unwrap_or(name).trim_start_matches("./").trim_start_matches('/');
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

glovebox_guest::export!(TextDiff);

#[cfg(test)]
mod tests {
    use super::*;

    fn call(args: Json) -> Result<Json, Failure> {
        let context = Context { request_id: String::new(), deadline_ms: 0, locale: None, idempotency_key: None };
        TextDiff::call(serde::Deserialize::deserialize(args).unwrap(), &context)
    }

    #[test]
    fn either_text_or_file() {
        for (args, message) in [
            (json!({ "old": "a" }), "either `new`"),
            (json!({ "new": "a" }), "either `old`"),
            (json!({ "old": "a", "old_path": "a", "new": "a" }), "either `old`"),
            (json!({ "old": "a", "new": "a", "context": 101 }), "from 0 to 100"),
        ] {
            let message_of = call(args.clone()).unwrap_err().message;
            assert!(message_of.contains(message), "{args}: {message_of}");
        }
    }

    #[test]
    fn a_diff_that_ran_out_of_time_is_true() {
        // Hard for the algorithm: few kinds of lines in a random order.
        let text = |mut seed: u64| -> String {
            let mut line = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                format!("{}\n", (seed >> 33) % 50)
            };
            (0..30_000).map(|_| line()).collect()
        };
        let how = How { context: 30_000, ignore: Whitespace::Exact, most: usize::MAX, deadline: Some(Instant::now()) };
        let (old, new) = (text(1), text(2));
        let diff = unified::diff(&old, &new, &how);
        let side = |signs: [char; 2]| -> String {
            let lines = diff.text.lines().filter(|line| line.starts_with(signs));
            lines.map(|line| format!("{}\n", &line[1..])).collect()
        };
        assert_eq!(side([' ', '-']), old);
        assert_eq!(side([' ', '+']), new);
    }

    #[test]
    fn labels_are_one_line() {
        assert_eq!(label("/workspace/a\nb"), "a?b");
        assert_eq!(label("./a"), "a");
    }
}
