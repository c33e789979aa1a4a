//! Writes a value as canonical text.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

use super::error::{CanonError, CanonErrorKind};
use super::{MAX_DEPTH, ParseLimits, excerpt};

/// The canonical text of a value.
pub(super) fn write(value: &Value, limits: ParseLimits) -> Result<String, CanonError> {
    let mut writer = Writer { out: String::new(), limits, values: 0 };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct Writer {
    out: String,
    limits: ParseLimits,
    values: usize,
}

impl Writer {
    /// Recursion ends at `MAX_DEPTH`, whatever the value holds.
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), CanonError> {
        self.values += 1;
        if self.values > self.limits.max_values {
            let limit = self.limits.max_values;
            return Err(CanonError::placeless(CanonErrorKind::TooManyValues { limit }));
        }
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(true) => self.out.push_str("true"),
            Value::Bool(false) => self.out.push_str("false"),
            Value::Number(number) => self.number(number)?,
            Value::String(text) => self.string(text),
            Value::Array(items) => self.array(items, deeper(depth)?)?,
            Value::Object(map) => self.object(map, deeper(depth)?)?,
        }
        // A double can be longer in canonical form than as sent, so the limit
        // is checked here too: what we write, we must be able to read again.
        if self.out.len() > self.limits.max_bytes {
            let limit = self.limits.max_bytes;
            return Err(CanonError::placeless(CanonErrorKind::TooLarge { limit }));
        }
        Ok(())
    }

    fn array(&mut self, items: &[Value], depth: usize) -> Result<(), CanonError> {
        self.out.push('[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.value(item, depth).map_err(|error| error.below(&index))?;
        }
        self.out.push(']');
        Ok(())
    }

    fn object(&mut self, map: &Map<String, Value>, depth: usize) -> Result<(), CanonError> {
        // Sorted here: whether the map is sorted depends on a feature of
        // serde_json that any crate of the build can switch.
        let mut entries: Vec<(&String, &Value)> = map.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| key.as_bytes());
        self.out.push('{');
        for (index, (key, value)) in entries.into_iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.string(key);
            self.out.push(':');
            self.value(value, depth).map_err(|error| error.below(key))?;
        }
        self.out.push('}');
        Ok(())
    }

    fn number(&mut self, number: &Number) -> Result<(), CanonError> {
        // Writing to a String can't fail.
        let _ = if let Some(integer) = number.as_u64() {
            write!(self.out, "{integer}")
        } else if let Some(integer) = number.as_i64() {
            write!(self.out, "{integer}")
        } else if let Some(double) = number.as_f64().filter(|double| double.is_finite()) {
            // `Debug` is the shortest text that reads back to the same bits,
            // and always has a point or an exponent.
            write!(self.out, "{double:?}")
        } else {
            let literal = excerpt(&number.to_string());
            return Err(CanonError::placeless(CanonErrorKind::NotFinite { literal }));
        };
        Ok(())
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        let mut plain = 0;
        for (at, byte) in text.bytes().enumerate() {
            let escape = match byte {
                b'"' => "\\\"",
                b'\\' => "\\\\",
                0x08 => "\\b",
                0x09 => "\\t",
                0x0A => "\\n",
                0x0C => "\\f",
                0x0D => "\\r",
                0x00..=0x1F => "",
                _ => continue,
            };
            self.out.push_str(&text[plain..at]);
            plain = at + 1;
            if escape.is_empty() {
                let _ = write!(self.out, "\\u{byte:04x}");
            } else {
                self.out.push_str(escape);
            }
        }
        self.out.push_str(&text[plain..]);
        self.out.push('"');
    }
}

fn deeper(depth: usize) -> Result<usize, CanonError> {
    if depth == MAX_DEPTH {
        return Err(CanonError::placeless(CanonErrorKind::TooDeep { limit: MAX_DEPTH }));
    }
    Ok(depth + 1)
}
