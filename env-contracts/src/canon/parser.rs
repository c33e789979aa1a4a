//! The strict JSON parser (RFC 8259, less what can't be kept exactly).

use serde_json::{Map, Number, Value};

use super::error::{CanonError, CanonErrorKind as Kind};
use super::{EXCERPT_CHARS, MAX_DEPTH, ParseLimits, excerpt};

type Parsed<T> = Result<T, CanonError>;

/// Parses one value and nothing else.
pub(super) fn parse(bytes: &[u8], limits: ParseLimits) -> Parsed<Value> {
    // Before anything is read: what is too large costs nothing.
    if bytes.len() > limits.max_bytes {
        return Err(CanonError::placeless(Kind::TooLarge { limit: limits.max_bytes }));
    }
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        return Err(CanonError::at(Kind::ByteOrderMark, bytes, 0));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| CanonError::at(Kind::NotUtf8, bytes, error.valid_up_to()))?;
    let mut parser = Parser { text, at: 0, depth: 0, values: 0, limits };
    parser.skip_whitespace();
    let value = parser.value("a value")?;
    parser.skip_whitespace();
    if parser.at < text.len() {
        return Err(parser.error(Kind::Trailing { got: parser.got(parser.at) }, parser.at));
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    /// Always at a character boundary when a method returns `Ok`.
    at: usize,
    depth: usize,
    values: usize,
    limits: ParseLimits,
}

impl Parser<'_> {
    /// Recursion ends at `MAX_DEPTH`, before it goes one deeper.
    fn value(&mut self, expected: &'static str) -> Parsed<Value> {
        self.values += 1;
        if self.values > self.limits.max_values {
            let limit = self.limits.max_values;
            return Err(self.error(Kind::TooManyValues { limit }, self.at));
        }
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number().map(Value::Number),
            Some(b't') if self.eat_word("true") => Ok(Value::Bool(true)),
            Some(b'f') if self.eat_word("false") => Ok(Value::Bool(false)),
            Some(b'n') if self.eat_word("null") => Ok(Value::Null),
            _ => Err(self.syntax(self.better_hint(expected), self.at)),
        }
    }

    fn nested(&mut self, inner: fn(&mut Self) -> Parsed<Value>) -> Parsed<Value> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(Kind::TooDeep { limit: MAX_DEPTH }, self.at));
        }
        self.depth += 1;
        self.at += 1;
        self.skip_whitespace();
        let value = inner(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Parsed<Value> {
        let mut items = Vec::new();
        if self.eat(b']') {
            return Ok(Value::Array(items));
        }
        let mut expected = "a value or `]`";
        loop {
            let item = self.value(expected).map_err(|error| error.below(&items.len()))?;
            items.push(item);
            self.skip_whitespace();
            if self.eat(b']') {
                return Ok(Value::Array(items));
            }
            if !self.eat(b',') {
                return Err(self.syntax("`,` or `]`", self.at));
            }
            self.skip_whitespace();
            expected = "a value after `,`";
        }
    }

    fn object(&mut self) -> Parsed<Value> {
        let mut map = Map::new();
        if self.eat(b'}') {
            return Ok(Value::Object(map));
        }
        let mut expected = "a key in double quotes or `}`";
        loop {
            let key_at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.syntax(expected, self.at));
            }
            let key = self.string()?;
            if map.contains_key(&key) {
                return Err(self.error(Kind::DuplicateKey { key: excerpt(&key) }, key_at));
            }
            self.skip_whitespace();
            if !self.eat(b':') {
                return Err(self.syntax("`:` after the key", self.at));
            }
            self.skip_whitespace();
            let value = self.value("a value after `:`").map_err(|error| error.below(&key))?;
            map.insert(key, value);
            self.skip_whitespace();
            if self.eat(b'}') {
                return Ok(Value::Object(map));
            }
            if !self.eat(b',') {
                return Err(self.syntax("`,` or `}`", self.at));
            }
            self.skip_whitespace();
            expected = "a key in double quotes after `,`";
        }
    }

    fn string(&mut self) -> Parsed<String> {
        self.at += 1;
        let mut out = String::new();
        let mut plain = self.at;
        loop {
            match self.peek() {
                Some(b'"') => {
                    out.push_str(&self.text[plain..self.at]);
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    out.push_str(&self.text[plain..self.at]);
                    out.push(self.escape()?);
                    plain = self.at;
                }
                Some(0x00..=0x1F) => {
                    let got = excerpt(&self.text[self.at..=self.at]);
                    return Err(self.error(Kind::RawControl { got }, self.at));
                }
                Some(_) => self.at += 1,
                None => return Err(self.syntax("`\"` at the end of the string", self.at)),
            }
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        let start = self.at;
        self.at += 1;
        let simple = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(start),
            _ => return Err(self.syntax("an escape that JSON knows", start)),
        };
        self.at += 1;
        Ok(simple)
    }

    fn unicode_escape(&mut self, start: usize) -> Parsed<char> {
        let first = self.hex_unit(start)?;
        let mut code = first;
        if (0xD800..0xDC00).contains(&first) && self.text[self.at..].starts_with("\\u") {
            let second_at = self.at;
            self.at += 1;
            let second = self.hex_unit(second_at)?;
            if (0xDC00..0xE000).contains(&second) {
                code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
            }
        }
        char::from_u32(code).ok_or_else(|| {
            let escape = excerpt(&self.text[start..start + "\\uXXXX".len()]);
            self.error(Kind::LoneSurrogate { escape }, start)
        })
    }

    /// The four digits after `u`.
    fn hex_unit(&mut self, start: usize) -> Parsed<u32> {
        self.at += 1;
        let digits = self.text.as_bytes().get(self.at..self.at + 4).unwrap_or_default();
        let mut unit = 0;
        for digit in digits {
            match char::from(*digit).to_digit(16) {
                Some(value) => unit = unit * 16 + value,
                None => return Err(self.syntax("four hexadecimal digits after `\\u`", start)),
            }
        }
        if digits.is_empty() {
            return Err(self.syntax("four hexadecimal digits after `\\u`", start));
        }
        self.at += 4;
        Ok(unit)
    }

    fn number(&mut self) -> Parsed<Number> {
        let start = self.at;
        self.eat(b'-');
        if self.eat(b'0') {
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.syntax("a number without leading zeros", start));
            }
        } else if self.eat_digits() == 0 {
            return Err(self.syntax(self.better_hint("a digit after `-`"), start));
        }
        let integer_end = self.at;
        if self.eat(b'.') && self.eat_digits() == 0 {
            return Err(self.syntax("a digit after the point", start));
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _ = self.eat(b'+') || self.eat(b'-');
            if self.eat_digits() == 0 {
                return Err(self.syntax("a digit in the exponent", start));
            }
        }
        let literal = &self.text[start..self.at];
        // An integer has no negative zero; only a double can keep the sign.
        if self.at == integer_end && literal != "-0" {
            let unsigned = literal.parse::<u64>().map(Number::from);
            return unsigned
                .or_else(|_| literal.parse::<i64>().map(Number::from))
                .map_err(|_| self.error(Kind::IntegerRange { literal: excerpt(literal) }, start));
        }
        let double = literal.parse::<f64>().ok();
        double
            .and_then(Number::from_f64)
            .ok_or_else(|| self.error(Kind::NotFinite { literal: excerpt(literal) }, start))
    }

    /// Names the usual mistakes instead of just "a value".
    fn better_hint(&self, expected: &'static str) -> &'static str {
        let rest = &self.text[self.at..];
        let starts = |words: &[&str]| words.iter().any(|word| rest.starts_with(word));
        if starts(&["NaN", "nan", "Infinity", "inf", "+Infinity"]) {
            "a finite number (JSON has no NaN and no Infinity)"
        } else if starts(&["//", "/*", "#"]) {
            "a value (JSON has no comments)"
        } else if starts(&["'"]) {
            "a string in double quotes"
        } else if starts(&["True", "False", "None", "undefined"]) {
            "`true`, `false` or `null`"
        } else {
            expected
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.text[self.at..].starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn eat_digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn syntax(&self, expected: &'static str, at: usize) -> CanonError {
        self.error(Kind::Syntax { expected, got: self.got(at) }, at)
    }

    /// What stands at a byte, shortened to the word or line it begins.
    fn got(&self, at: usize) -> String {
        let rest = &self.text[at..];
        let line = rest.lines().next().unwrap_or_default().trim_end();
        // A line that is long is cut by `excerpt`; look at no more of it.
        let end = line.char_indices().nth(EXCERPT_CHARS + 1).map_or(line.len(), |(end, _)| end);
        if rest.is_empty() { "the end of the input".into() } else { excerpt(&line[..end]) }
    }

    fn error(&self, kind: Kind, at: usize) -> CanonError {
        CanonError::at(kind, self.text.as_bytes(), at)
    }
}
