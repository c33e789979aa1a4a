//! What must be available at least, and what may be used at most.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::as_text;
use crate::{ByteSize, Span};

/// What must be available at least; an action that needs more than its limits
/// or its host can give is refused before it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// Memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<ByteSize>,
    /// Processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// Space in writable folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<ByteSize>,
    /// Graphics processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<u32>,
}

/// What may be used at most. An absent limit is the ceiling's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Time from start to end, by the clock on the wall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<Span>,
    /// Time without any output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Span>,
    /// Processor time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Span>,
    /// Processors at one time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// Memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<ByteSize>,
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// Growth of writable folders, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<ByteSize>,
    /// Growth of writable folders, in entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inodes: Option<u64>,
    /// Graphics processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<u32>,
    /// Standard output and error together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<ByteSize>,
    /// Actions of this capability at one time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
}

/// Processors, in thousandths: `"1.5"`, `"0.25"`, `"2"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpus {
    /// Thousandths of a processor.
    pub millis: u32,
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:03}", self.millis / 1000, self.millis % 1000);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{}` is not a number of processors: write `2`, `1.5` or `0.25`", crate::ids::shown(text));
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(part) || whole.len() > 5 || part.len() > 3 {
            return Err(bad());
        }
        let whole: u32 = whole.parse().map_err(|_| bad())?;
        let part: u32 = format!("{part:0<3}").parse().map_err(|_| bad())?;
        let millis = whole * 1000 + part;
        if millis == 0 { Err(bad()) } else { Ok(Self { millis }) }
    }
}

as_text!(Cpus, "Cpus", "^[0-9]+([.][0-9]{1,3})?$", "Processors, such as \"2\" or \"0.5\".");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_survive_being_written() {
        for text in ["1", "1.5", "0.25", "0.001", "64"] {
            assert_eq!(text.parse::<Cpus>().unwrap().to_string(), text);
        }
        for text in ["", "0", "0.0", "-1", "1.", ".5", "1.0001", "a", "1e3", "999999"] {
            assert!(text.parse::<Cpus>().is_err(), "{text}");
        }
    }
}
