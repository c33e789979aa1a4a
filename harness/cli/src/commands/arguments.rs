//! The arguments of an action, as the command line gives them.

use std::io::Read as _;
use std::path::Path;

use env_contracts::{Code, Problem, canon};
use glovebox_plane::Tool;
use serde_json::{Map, Value};

use super::files;
use crate::args::CallArgs;
use crate::terminal::escaped_line;

/// The arguments as bytes, to be parsed strictly by the service.
///
/// # Errors
/// `file-unreadable`, and `usage` for a flag that can't be.
pub(super) fn received(args: &CallArgs, tool: &Tool) -> Result<Vec<u8>, Problem> {
    match args.args.as_deref() {
        Some("-") => read_bounded(std::io::stdin().lock(), "standard input"),
        Some(text) => match text.strip_prefix('@') {
            Some(path) => read_bounded(files::open(Path::new(path))?, path),
            None => Ok(text.as_bytes().to_vec()),
        },
        None => Ok(serde_json::to_vec(&Value::Object(object(&args.arg, &tool.manifest.input)?)).unwrap_or_default()),
    }
}

/// Reads no more than arguments may have; the service says what is wrong.
fn read_bounded(from: impl std::io::Read, what: &str) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    let read = from.take(canon::MAX_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| Problem::new(Code::FileUnreadable, format!("{what}: {error}")))?;
    Ok(bytes)
}

/// `--arg` flags as one object. Repeating an argument that is an array adds to
/// it; repeating any other would drop a value.
fn object(flags: &[String], schema: &Value) -> Result<Map<String, Value>, Problem> {
    let mut object = Map::new();
    for flag in flags {
        let (key, text) = pair("--arg", flag)?;
        let schema = schema.pointer("/properties").and_then(|all| all.get(key));
        let value = value(text, schema);
        match (object.get_mut(key), value) {
            (None, value) => drop(object.insert(key.to_owned(), value)),
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (Some(_), _) => {
                return Err(Problem::new(Code::Usage, format!("--arg: `{key}` is given twice and is no array")));
            }
        }
    }
    Ok(object)
}

/// A value as the schema has it: text stays text where text is wanted, also
/// as an item of an array.
fn value(text: &str, schema: Option<&Value>) -> Value {
    let is = |name: &str| match schema.and_then(|schema| schema.get("type")) {
        Some(Value::Array(types)) => types.iter().any(|ty| *ty == name),
        Some(ty) => *ty == name,
        None => false,
    };
    if is("string") {
        return Value::String(text.to_owned());
    }
    let parsed = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    if is("array") && !parsed.is_array() {
        return Value::Array(vec![value(text, schema.and_then(|schema| schema.get("items")))]);
    }
    parsed
}

/// `NAME=VALUE` of a flag.
pub(super) fn pair<'a>(flag: &str, text: &'a str) -> Result<(&'a str, &'a str), Problem> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    pair.ok_or_else(|| Problem::new(Code::Usage, format!("{flag}: `{}` lacks a name or a `=`", escaped_line(text))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_what_the_schema_has() {
        let schema = json!({ "properties": {
            "text": { "type": "string" },
            "count": { "type": "integer" },
            "words": { "type": "array", "items": { "type": "string" } },
            "numbers": { "type": ["array", "null"], "items": { "type": "integer" } },
            "any": {},
        }});
        let cases: &[(&[&str], Value)] = &[
            (&["text=5"], json!({ "text": "5" })),
            (&["count=5"], json!({ "count": 5 })),
            (&["count=five"], json!({ "count": "five" })),
            (&["words=5"], json!({ "words": ["5"] })),
            (&["words=true", "words=null", "words={}"], json!({ "words": ["true", "null", "{}"] })),
            (&["words=[\"a\", \"b\"]", "words=c"], json!({ "words": ["a", "b", "c"] })),
            (&["words=[a-z]+"], json!({ "words": ["[a-z]+"] })),
            (&["numbers=5", "numbers=6"], json!({ "numbers": [5, 6] })),
            (&["any=5"], json!({ "any": 5 })),
            (&["any=a=b"], json!({ "any": "a=b" })),
            (&["unknown={\"a\": 1}"], json!({ "unknown": { "a": 1 } })),
        ];
        for (flags, expected) in cases {
            let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
            assert_eq!(Value::Object(object(&flags, &schema).unwrap()), *expected, "{flags:?}");
        }
        for flags in [&["text=a", "text=b"][..], &["=x"], &["text"]] {
            let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
            assert_eq!(object(&flags, &schema).unwrap_err().code, Code::Usage, "{flags:?}");
        }
    }
}
