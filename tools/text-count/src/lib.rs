//! The tool `text.count`: lines, words, bytes and characters as `wc` counts them.
//!
//! Not a text analyser: it knows UTF-8 and nothing of languages.
//!
//! ```
//! let mut counter = text_count::Counter::default();
//! counter.feed("naïve\ncafé".as_bytes());
//! let counts = counter.finish();
//! assert_eq!((counts.lines, counts.words, counts.bytes, counts.characters), (1, 2, 12, 10));
//! ```

mod count;
mod printable;

use std::io::Read as _;

pub use count::Counter;
use glovebox_guest::{Context, Failure, Json, Tool, json, open};

/// How much is read at a time: the memory this tool needs does not depend on the file.
const CHUNK: usize = 64 << 10;

/// The tool.
pub struct TextCount;

/// The arguments of `text.count`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Args {
    path: String,
}

impl Tool for TextCount {
    const NAME: &'static str = "text.count";
    const MANIFEST: &'static str = include_str!(concat!(env!("OUT_DIR"), "/manifest.json"));
    type Args = Args;

    fn call(args: Args, _context: &Context) -> Result<Json, Failure> {
        let (mut file, _size) = open(&args.path)?;
        let mut counter = Counter::default();
        let mut chunk = vec![0; CHUNK];
        loop {
            match file.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => counter.feed(&chunk[..read]),
                Err(error) => return Err(Failure::io(&args.path, &error)),
            }
        }
        let counts = counter.finish();
        Ok(json!({
            "lines": counts.lines,
            "words": counts.words,
            "bytes": counts.bytes,
            "characters": counts.characters,
        }))
    }
}

glovebox_guest::export!(TextCount);
