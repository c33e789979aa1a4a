//! Values of the filter as JSON, within limits.

use glovebox_guest::Json;
use jaq_json::{Num, Val};
use serde_json::{Map, Number};

/// How deep a result may nest: what is around it has levels too, and no host
/// takes more than 64.
pub const MOST_DEPTH: usize = 60;

/// Why a value has no form in the answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It nests deeper than [`MOST_DEPTH`].
    Deep,
    /// Its text is longer than what is left.
    Long,
    /// An object has a key that is no string.
    Key(String),
    /// It holds an integer that 64 bits don't.
    Integer(String),
}

/// A writer of results.
pub struct Results {
    /// How many bytes of text are left.
    left: usize,
    /// How many decimals were rounded to what a double holds.
    pub rounded: usize,
}

impl Results {
    /// A writer of at most `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { left: most, rounded: 0 }
    }

    /// The value as JSON. Numbers are those that a host can hold: integers of
    /// 64 bits, and doubles.
    pub fn value(&mut self, value: &Val) -> Result<Json, Unfit> {
        let (left, rounded) = (self.left, self.rounded);
        self.convert(value, 0).inspect_err(|_| (self.left, self.rounded) = (left, rounded))
    }

    /// The value as JSON text, with each digit of its numbers.
    pub fn text(&mut self, value: &Val) -> Result<String, Unfit> {
        let mut text = String::new();
        write(value, 0, self.left, &mut text)?;
        self.take(text.len())?;
        Ok(text)
    }

    fn take(&mut self, bytes: usize) -> Result<(), Unfit> {
        self.left = self.left.checked_sub(bytes).ok_or(Unfit::Long)?;
        Ok(())
    }

    fn convert(&mut self, value: &Val, depth: usize) -> Result<Json, Unfit> {
        if depth > MOST_DEPTH {
            return Err(Unfit::Deep);
        }
        // A comma or colon each, and what it takes at least.
        self.take(2)?;
        Ok(match value {
            Val::Null => Json::Null,
            Val::Bool(bool) => Json::Bool(*bool),
            Val::Num(num) => self.number(num)?,
            Val::TStr(bytes) | Val::BStr(bytes) => self.string(bytes)?.into(),
            Val::Arr(items) => {
                Json::Array(items.iter().map(|item| self.convert(item, depth + 1)).collect::<Result<_, _>>()?)
            }
            Val::Obj(entries) => {
                let mut object = Map::new();
                for (name, value) in entries.iter() {
                    let (Val::TStr(bytes) | Val::BStr(bytes)) = name else { return Err(Unfit::Key(name.to_string())) };
                    let name = self.string(bytes)?;
                    object.insert(name, self.convert(value, depth + 1)?);
                }
                Json::Object(object)
            }
        })
    }

    /// Text that is not UTF-8, which a filter can make, gets U+FFFD.
    fn string(&mut self, bytes: &[u8]) -> Result<String, Unfit> {
        self.take(bytes.len())?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    fn number(&mut self, num: &Num) -> Result<Json, Unfit> {
        let text = num.to_string();
        self.take(text.len())?;
        Ok(match num {
            Num::Int(_) | Num::BigInt(_) => match (text.parse::<i64>(), text.parse::<u64>()) {
                (Ok(signed), _) => signed.into(),
                (_, Ok(unsigned)) => unsigned.into(),
                _ => return Err(Unfit::Integer(text)),
            },
            Num::Float(double) => double_or_null(*double),
            Num::Dec(decimal) => {
                let double: f64 = decimal.parse().unwrap_or(f64::NAN);
                if significant(decimal) != significant(&format!("{double:e}")) {
                    self.rounded += 1;
                }
                double_or_null(double)
            }
        })
    }
}

/// JSON has no form for what is not finite; jq writes null too.
fn double_or_null(double: f64) -> Json {
    Number::from_f64(double).map_or(Json::Null, Json::Number)
}

/// A decimal's digits and the power of ten of the last of them: equal for all
/// spellings of one number.
fn significant(text: &str) -> Option<(bool, String, i64)> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let mut exponent: i64 = exponent.parse().ok()?;
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    exponent = exponent.checked_sub(part.len() as i64)?;
    let negative = whole.starts_with('-');
    let digits = format!("{}{part}", whole.trim_start_matches(['-', '+']));
    let kept = digits.trim_end_matches('0');
    exponent = exponent.checked_add((digits.len() - kept.len()) as i64)?;
    let kept = kept.trim_start_matches('0');
    Some((negative, kept.to_owned(), if kept.is_empty() { 0 } else { exponent }))
}

fn write(value: &Val, depth: usize, most: usize, text: &mut String) -> Result<(), Unfit> {
    if text.len() > most {
        return Err(Unfit::Long);
    }
    if depth > MOST_DEPTH {
        return Err(Unfit::Deep);
    }
    match value {
        Val::Null => text.push_str("null"),
        Val::Bool(bool) => text.push_str(if *bool { "true" } else { "false" }),
        Val::Num(Num::Float(double)) => text.push_str(&double_or_null(*double).to_string()),
        Val::Num(num) => text.push_str(&num.to_string()),
        Val::TStr(bytes) | Val::BStr(bytes) => write_string(bytes, text),
        Val::Arr(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, depth + 1, most, text)?;
            }
            text.push(']');
        }
        Val::Obj(entries) => {
            text.push('{');
            for (index, (name, value)) in entries.iter().enumerate() {
                let (Val::TStr(bytes) | Val::BStr(bytes)) = name else { return Err(Unfit::Key(name.to_string())) };
                if index > 0 {
                    text.push(',');
                }
                write_string(bytes, text);
                text.push(':');
                write(value, depth + 1, most, text)?;
            }
            text.push('}');
        }
    }
    if text.len() > most { Err(Unfit::Long) } else { Ok(()) }
}

fn write_string(bytes: &[u8], text: &mut String) {
    text.push_str(&Json::from(String::from_utf8_lossy(bytes).into_owned()).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_guest::json;

    fn val(text: &str) -> Val {
        jaq_json::read::parse_single(text.as_bytes()).unwrap()
    }

    #[test]
    fn numbers() {
        let table = [
            ("18446744073709551615", json!(u64::MAX), 0),
            ("-9223372036854775808", json!(i64::MIN), 0),
            ("4294967296", json!(4_294_967_296_u64), 0),
            ("0.1", json!(0.1), 0),
            ("1.50e3", json!(1500.0), 0),
            ("-0.0", json!(-0.0), 0),
            ("0.10000000000000000001", json!(0.1), 1),
            ("3.14159265358979323846", json!(std::f64::consts::PI), 1),
            ("1e999", Json::Null, 1),
            ("NaN", Json::Null, 0),
        ];
        for (text, expected, rounded) in table {
            let mut results = Results::new(100);
            assert_eq!(results.value(&val(text)), Ok(expected), "{text}");
            assert_eq!(results.rounded, rounded, "{text}");
        }
        let beyond = "18446744073709551616";
        assert_eq!(Results::new(100).value(&val(beyond)), Err(Unfit::Integer(beyond.to_owned())));
    }

    #[test]
    fn text_keeps_each_digit() {
        let text = r#"{"b":[3.14159265358979323846,184467440737095516160],"a":"é\n","c":{}}"#;
        assert_eq!(Results::new(100).text(&val(text)).unwrap(), text);
    }

    #[test]
    fn limits() {
        let deep = |levels: usize| val(&format!("{}{}", "[".repeat(levels), "]".repeat(levels)));
        assert!(Results::new(1000).value(&deep(MOST_DEPTH)).is_ok());
        assert_eq!(Results::new(1000).value(&deep(MOST_DEPTH + 2)), Err(Unfit::Deep));
        assert_eq!(Results::new(1000).text(&deep(MOST_DEPTH + 2)), Err(Unfit::Deep));
        // What did not fit takes nothing away from what comes after it.
        let mut results = Results::new(10);
        assert_eq!(results.value(&val(r#"["abcdefghijkl"]"#)), Err(Unfit::Long));
        assert_eq!(results.value(&val(r#""abcd""#)), Ok(json!("abcd")));
        assert_eq!(results.value(&val(r#""abcd""#)), Err(Unfit::Long));
        assert_eq!(Results::new(10).text(&val(r#"["abcdefghijkl"]"#)), Err(Unfit::Long));
        assert_eq!(Results::new(100).value(&val("{1:2}")), Err(Unfit::Key("1".to_owned())));
    }
}
