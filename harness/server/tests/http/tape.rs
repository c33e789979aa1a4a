//! Values that are made up from bytes: what a case decides is on a tape, so that
//! it can be made smaller, and made again.

use env_contracts::Digest;
use serde_json::{Map, Value, json};

/// How deep what is made up goes.
const DEEP: usize = 5;

/// What a case decides, in the order in which it is asked. Where there is
/// nothing left, it is always the first, so that small tapes are small cases.
pub(crate) struct Tape<'a> {
    pub(crate) left: std::slice::Iter<'a, u8>,
    /// Ids that are known here.
    pub(crate) ids: &'a [String],
}

impl Tape<'_> {
    pub(crate) fn pick(&mut self, of: usize) -> usize {
        usize::from(self.left.next().copied().unwrap_or_default()) % of
    }

    pub(crate) fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.pick(of.len())].clone()
    }

    pub(crate) fn text(&mut self) -> String {
        let texts = [
            "s1",
            "t1",
            "fake.read",
            "fake.write",
            "text",
            "work",
            "once",
            "decline",
            "",
            "0",
            "-1",
            "1",
            "a b",
            "\u{0}",
            "../../etc/passwd",
            "\u{202e}\u{1b}[2J",
            "<script>",
            "18446744073709551616",
            "artifact/s1/1",
            "bytes=0-",
        ];
        match self.pick(3) {
            0 => self.one(self.ids),
            1 => self.one(&texts).to_owned(),
            _ => self.one(&texts).repeat(self.one(&[1, 2, 200])),
        }
    }

    fn number(&mut self) -> Value {
        let numbers =
            [json!(0), json!(1), json!(2), json!(-1), json!(1.5), json!(u64::MAX), json!(i64::MIN), json!(1e300)];
        self.one(&numbers)
    }

    /// Anything.
    fn any(&mut self, deep: usize) -> Value {
        match self.pick(if deep == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.pick(2) == 0),
            2 => self.number(),
            3 => json!(self.text()),
            4 => json!([]),
            5 => (0..self.pick(3)).map(|_| self.any(deep - 1)).collect(),
            _ => Value::Object((0..self.pick(3)).map(|_| (self.text(), self.any(deep - 1))).collect()),
        }
    }

    /// Something that fits a schema, but for some places.
    pub(crate) fn fits(&mut self, schema: &Value, document: &Value, deep: usize) -> Value {
        if deep == 0 || self.pick(12) == 11 {
            return self.any(deep);
        }
        if let Some(name) = schema["$ref"].as_str() {
            let named = name.rsplit('/').next().unwrap_or_default();
            // Names and ids are texts of patterns: those that exist are more telling.
            return match named {
                "Id" | "Name" => json!(self.text()),
                "Digest" => json!(Digest::of(self.text().as_bytes())),
                _ => self.fits(&document["components"]["schemas"][named], document, deep),
            };
        }
        let either =
            ["anyOf", "oneOf", "allOf", "enum"].iter().find_map(|key| schema[*key].as_array().map(|all| (*key, all)));
        match either {
            Some(("enum", all)) => return self.one(all),
            Some((_, all)) => {
                let one = self.one(all);
                return self.fits(&one, document, deep);
            }
            None => {}
        }
        if !schema["const"].is_null() {
            return schema["const"].clone();
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            kind => kind.as_str().into_iter().collect(),
        };
        match if kinds.is_empty() { "" } else { self.one(&kinds) } {
            "object" => self.object(schema, document, deep),
            "array" => (0..self.pick(3)).map(|_| self.fits(&schema["items"], document, deep - 1)).collect(),
            "string" => json!(self.text()),
            "integer" | "number" => self.number(),
            "boolean" => json!(self.pick(2) == 0),
            "null" => Value::Null,
            _ => self.any(deep - 1),
        }
    }

    fn object(&mut self, schema: &Value, document: &Value, deep: usize) -> Value {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut made = Map::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let wanted = required.contains(&name.as_str());
            if if wanted { self.pick(20) < 19 } else { self.pick(3) == 2 } {
                made.insert(name.clone(), self.fits(field, document, deep - 1));
            }
        }
        if self.pick(20) == 19 {
            made.insert(self.text(), self.any(1));
        }
        Value::Object(made)
    }

    /// The bytes of a body, and what they are said to be.
    pub(crate) fn body(&mut self, schema: &Value, document: &Value) -> (Option<&'static str>, Vec<u8>) {
        let mut bytes = serde_json::to_vec(&self.fits(schema, document, DEEP)).unwrap();
        let json = Some("application/json");
        match self.pick(12) {
            // Broken off, something between, another type, too deep, twice, no text.
            7 => bytes.truncate(bytes.len() / 2),
            8 => bytes = "[".repeat(100_000).into_bytes(),
            9 => bytes.extend_from_slice(b"{}"),
            10 => bytes.insert(0, 0xff),
            11 => {
                let kind = self.one(&[None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("a")]);
                return (kind, bytes);
            }
            _ => {}
        }
        (json, bytes)
    }
}
