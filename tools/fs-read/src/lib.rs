//! The tool `fs.read`: text of one file, by lines or by bytes.
//!
//! It changes nothing, lists no folders and converts no formats: what is not
//! UTF-8 text is described, and handed out as base64 when bytes are asked for.
//!
//! ```
//! use glovebox_guest::{Context, Kind, Tool as _, json};
//! use serde::Deserialize as _;
//!
//! let args = fs_read::Args::deserialize(json!({ "path": "a.txt", "start_line": 1, "byte_count": 10 })).unwrap();
//! let context = Context { request_id: String::new(), deadline_ms: 0, locale: None, idempotency_key: None };
//! // Lines or bytes, not both: refused before any file is looked at.
//! assert_eq!(fs_read::FsRead::call(args, &context).unwrap_err().kind, Kind::InvalidArgs);
//! ```

mod base64;
mod bytes;
mod lines;
mod sniff;

use glovebox_guest::{Context, Failure, Json, Tool, json, open};

/// The tool.
pub struct FsRead;

/// The arguments of `fs.read`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Args {
    path: String,
    start_line: Option<u64>,
    line_count: Option<u64>,
    byte_offset: Option<u64>,
    byte_count: Option<u64>,
    #[serde(default)]
    line_numbers: bool,
}

impl Args {
    fn by_bytes(&self) -> bool {
        self.byte_offset.is_some() || self.byte_count.is_some()
    }

    /// What a schema can't say.
    fn check(&self) -> Result<(), Failure> {
        let by_lines = self.start_line.is_some() || self.line_count.is_some() || self.line_numbers;
        if self.by_bytes() && by_lines {
            return Err(Failure::invalid(
                "ask for lines (start_line, line_count, line_numbers) or for bytes (byte_offset, byte_count), not for both",
            ));
        }
        for (name, value, most) in [
            ("start_line", self.start_line, u64::MAX),
            ("line_count", self.line_count, lines::MOST_LINES),
            ("byte_count", self.byte_count, bytes::MOST_BYTES),
        ] {
            if value.is_some_and(|value| value == 0 || value > most) {
                return Err(Failure::invalid(format!("`{name}` must be from 1 to {most}")));
            }
        }
        Ok(())
    }
}

impl Tool for FsRead {
    const NAME: &'static str = "fs.read";
    const MANIFEST: &'static str = include_str!(concat!(env!("OUT_DIR"), "/manifest.json"));
    type Args = Args;

    fn call(args: Args, _context: &Context) -> Result<Json, Failure> {
        args.check()?;
        let (mut file, size) = open(&args.path)?;
        let failed = |error| Failure::io(&args.path, &error);
        let kind = sniff::sniff(&mut file, &args.path).map_err(failed)?;
        let mut result = json!({});
        result["path"] = args.path.as_str().into();
        result["size"] = size.into();
        result["media_type"] = kind.media_type.into();
        result["binary"] = kind.binary.into();
        if args.by_bytes() {
            let offset = args.byte_offset.unwrap_or(0);
            let count = args.byte_count.unwrap_or(bytes::DEFAULT_BYTES);
            bytes::read(&mut file, size, offset, count, kind.binary, &mut result).map_err(failed)?;
        } else if !kind.binary {
            let first = args.start_line.unwrap_or(1);
            let count = args.line_count.unwrap_or(lines::DEFAULT_LINES);
            lines::read(file, size, first, count, args.line_numbers, &mut result).map_err(failed)?;
        }
        Ok(result)
    }
}

glovebox_guest::export!(FsRead);
