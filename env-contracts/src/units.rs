//! Sizes and spans as people write them: `"256MiB"`, `"30s"`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes, written with a binary or decimal unit: `"64KiB"`,
/// `"1MB"`, `"512B"`. It is sent in the largest binary unit that keeps it exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// So many times 1024 bytes.
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }

    /// So many times 1024² bytes.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    /// So many times 1024³ bytes.
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }
}

/// Units from large to small: the name, its factor, whether it is written out.
const SIZE_UNITS: [(&str, u64, bool); 9] = [
    ("TiB", 1 << 40, true),
    ("TB", 1_000_000_000_000, false),
    ("GiB", 1 << 30, true),
    ("GB", 1_000_000_000, false),
    ("MiB", 1 << 20, true),
    ("MB", 1_000_000, false),
    ("KiB", 1 << 10, true),
    ("kB", 1_000, false),
    ("B", 1, true),
];

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, factor, _) = SIZE_UNITS
            .iter()
            .find(|(_, factor, written)| *written && self.0 != 0 && self.0.is_multiple_of(*factor))
            .unwrap_or(&("B", 1, true));
        write!(f, "{}{name}", self.0 / factor)
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, factor) = SIZE_UNITS
            .iter()
            .find_map(|(name, factor, _)| Some((text.strip_suffix(name)?, *factor)))
            .ok_or_else(|| format!("`{text}` is not a size: write a whole number and a unit, such as `256MiB`"))?;
        let number: u64 = number
            .trim_end()
            .parse()
            .map_err(|_| format!("`{text}` is not a size: write a whole number and a unit, such as `256MiB`"))?;
        number.checked_mul(factor).map(Self).ok_or_else(|| format!("`{text}` is larger than any size can be"))
    }
}

/// A length of time, written with a unit: `"500ms"`, `"30s"`, `"5m"`, `"1h"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub Duration);

impl Span {
    /// So many seconds.
    pub const fn secs(n: u64) -> Self {
        Self(Duration::from_secs(n))
    }

    /// So many milliseconds.
    pub const fn millis(n: u64) -> Self {
        Self(Duration::from_millis(n))
    }
}

/// The longest span that can be written: a hundred years keeps every sum of
/// spans and instants far from overflow.
const LONGEST_SPAN: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Units from large to small, in microseconds.
const SPAN_UNITS: [(&str, u64); 6] =
    [("d", 86_400_000_000), ("h", 3_600_000_000), ("ms", 1_000), ("m", 60_000_000), ("us", 1), ("s", 1_000_000)];

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = u64::try_from(self.0.as_micros()).unwrap_or(u64::MAX);
        let mut units = SPAN_UNITS;
        units.sort_by_key(|(_, factor)| std::cmp::Reverse(*factor));
        let (name, factor) = units
            .into_iter()
            .find(|(_, factor)| micros != 0 && micros.is_multiple_of(*factor))
            .unwrap_or(("s", 1_000_000));
        write!(f, "{}{name}", micros / factor)
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad =
            || format!("`{text}` is not a span of time: write a whole number and a unit, such as `30s` or `500ms`");
        let (number, factor) = SPAN_UNITS
            .iter()
            .find_map(|(name, factor)| {
                let number = text.strip_suffix(name)?;
                number.chars().all(|c| c.is_ascii_digit()).then_some((number, *factor))
            })
            .ok_or_else(bad)?;
        let number: u64 = number.parse().map_err(|_| bad())?;
        let span = number.checked_mul(factor).map(Duration::from_micros).ok_or_else(bad)?;
        if span > LONGEST_SPAN {
            return Err(format!("`{text}` is longer than a hundred years"));
        }
        Ok(Self(span))
    }
}

/// A moment to the second, written as RFC 3339: `"2026-01-01T00:00:00Z"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The first second of the year 2000.
    pub const Y2000: Self = Self(946_684_800);

    /// The moment so many seconds after the beginning of 1970; the end of the
    /// year 9999 for all that are later, which can't be written.
    pub fn at(seconds: u64) -> Self {
        const LATEST: u64 = 253_402_207_200;
        Self(seconds.min(LATEST))
    }

    /// So many seconds after the beginning of 1970.
    pub fn seconds(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.0).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_second(seconds) {
            Ok(timestamp) => timestamp.fmt(f),
            // No moment that was parsed is so late.
            Err(_) => seconds.fmt(f),
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            let text = crate::ids::shown(text);
            format!("`{text}` is not a moment: write a whole second since 1970, such as `2026-01-01T00:00:00Z`")
        };
        let timestamp: jiff::Timestamp = text.parse().map_err(|_| bad())?;
        if timestamp.subsec_nanosecond() != 0 {
            return Err(bad());
        }
        u64::try_from(timestamp.as_second()).map(Self).map_err(|_| bad())
    }
}

/// Serde and schema for a type that is written as text.
macro_rules! as_text {
    ($name:ident, $schema_name:literal, $pattern:literal, $description:expr) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                $schema_name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "description": $description.trim() })
            }
        }
    };
}
pub(crate) use as_text;

as_text!(
    ByteSize,
    "ByteSize",
    "^[0-9]+ *(B|kB|KiB|MB|MiB|GB|GiB|TB|TiB)$",
    "A number of bytes with a unit, such as \"256MiB\"."
);
as_text!(
    Moment,
    "Moment",
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}([Zz]|[+-][0-9]{2}:[0-9]{2})$",
    "A moment to the second, such as \"2026-01-01T00:00:00Z\"."
);
as_text!(Span, "Span", "^[0-9]+(us|ms|s|m|h|d)$", "A length of time with a unit, such as \"30s\".");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_spans_survive_being_written() {
        for text in ["0B", "1B", "64KiB", "256MiB", "3GiB", "1000B"] {
            assert_eq!(text.parse::<ByteSize>().unwrap().to_string(), text);
        }
        for text in ["0s", "500ms", "30s", "5m", "1h", "2d", "7us"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert_eq!("1 MB".parse::<ByteSize>().unwrap(), ByteSize(1_000_000));
    }

    #[test]
    fn moments_are_whole_seconds_since_1970() {
        let moment = "2026-01-01T01:00:00+01:00".parse::<Moment>().unwrap();
        assert_eq!((moment.seconds(), moment.to_string().as_str()), (1_767_225_600, "2026-01-01T00:00:00Z"));
        for text in ["", "2026-01-01", "1969-12-31T23:59:59Z", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00", "now"] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_or_span_is_refused() {
        for text in ["", "5", "MiB", "-1B", "1.5MiB", "99999999999999TiB", "5mib", "0x5B"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        for text in ["", "5", "s", "-1s", "1.5s", "99999999999999999d", "36501d", "5S", "5 s"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
