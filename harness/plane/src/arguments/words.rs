//! Schemas and values in plain words.

use std::fmt::Write as _;

use env_contracts::canon::{Pointer, excerpt};
use serde_json::{Map, Value};

/// How many choices are spelled out before `…`.
const MAX_CHOICES: usize = 8;

/// How far a description looks into references and branches.
const MAX_LOOKED_INTO: usize = 3;

/// A place in a schema, for messages.
pub(super) fn place(pointer: &str) -> String {
    if pointer.is_empty() { "the root".to_owned() } else { format!("`#{}`", shown(pointer)) }
}

/// A JSON Pointer, made safe to show.
pub(super) fn shown(pointer: &str) -> String {
    let mut shown = Pointer::default();
    for segment in pointer.split('/').skip(1).collect::<Vec<_>>().into_iter().rev() {
        shown.prepend(&segment.replace("~1", "/").replace("~0", "~"));
    }
    shown.to_string()
}

/// A name in backquotes, made safe to show.
pub(super) fn name(text: &str) -> String {
    let quoted = excerpt(text);
    format!("`{}`", quoted[1..quoted.len() - 1].replace('`', "\\u{60}"))
}

/// Names in backquotes, the first few of them.
pub(super) fn names<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    listed(texts.map(name), ", ")
}

/// A value in few words: scalars as they are, the rest by its size.
pub(super) fn brief(value: &Value) -> String {
    let counted = |count: usize, one: &str, many: &str| match count {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    };
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(double) => format!("{double:?}"),
            None => number.to_string(),
        },
        Value::String(text) => excerpt(text),
        Value::Array(items) => format!("an array with {}", counted(items.len(), "item", "items")),
        Value::Object(map) => {
            format!("an object with {}", counted(map.len(), "property", "properties"))
        }
    }
}

/// What the subschema at a pointer asks for.
pub(super) fn describe(document: &Value, pointer: &str) -> String {
    document.pointer(pointer).map_or_else(|| "a value".to_owned(), |schema| any(document, schema, 0))
}

fn any(document: &Value, schema: &Value, depth: usize) -> String {
    let keywords = match schema {
        Value::Bool(false) => return "nothing at all".to_owned(),
        Value::Object(keywords) => keywords,
        _ => return "a value".to_owned(),
    };
    if let Some(value) = keywords.get("const") {
        return brief(value);
    }
    if let Some(Value::Array(values)) = keywords.get("enum") {
        return match values.as_slice() {
            [value] => brief(value),
            _ => format!("one of {}", listed(values.iter().map(brief), ", ")),
        };
    }
    let types: Vec<&str> = match keywords.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    if !types.is_empty() {
        return listed(types.into_iter().map(|name| typed(name, keywords)), " or ");
    }
    if depth < MAX_LOOKED_INTO {
        if let Some(target) = keywords.get("$ref").and_then(Value::as_str) {
            let target = document.pointer(target.trim_start_matches('#'));
            return target.map_or_else(|| "a value".to_owned(), |schema| any(document, schema, depth + 1));
        }
        for branches in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = keywords.get(branches) {
                return listed(branches.iter().map(|branch| any(document, branch, depth + 1)), " or ");
            }
        }
    }
    // Without a type, what else is said tells which type is meant.
    let hint = [
        (
            "an integer or a number",
            ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"].as_slice(),
        ),
        ("string", &["minLength", "maxLength", "pattern"]),
        ("array", &["minItems", "maxItems", "uniqueItems", "contains"]),
        ("object", &["minProperties", "maxProperties", "required", "properties"]),
    ];
    let hinted = hint.into_iter().find(|(_, words)| words.iter().any(|word| keywords.contains_key(*word)));
    hinted.map_or_else(|| "a value".to_owned(), |(name, _)| typed(name, keywords))
}

fn typed(name: &str, keywords: &Map<String, Value>) -> String {
    match name {
        "null" => "null".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" => format!("an integer{}", numeric(keywords)),
        "string" => format!("a string{}", textual(keywords)),
        "array" => {
            let distinct = keywords.get("uniqueItems") == Some(&Value::Bool(true));
            let size = sized(keywords, "minItems", "maxItems", "item", "items");
            format!("an array{size}{}", if distinct { ", all of them different" } else { "" })
        }
        "object" => {
            let size = sized(keywords, "minProperties", "maxProperties", "property", "properties");
            format!("an object{size}{}", tag(keywords))
        }
        _ => format!("a number{}", numeric(keywords)),
    }
}

/// What tells an object of this kind from others: the property that has to be
/// one value.
fn tag(keywords: &Map<String, Value>) -> String {
    let fields = keywords.get("properties").and_then(Value::as_object);
    let fixed = fields.into_iter().flatten().find_map(|(key, schema)| Some((key, schema.get("const")?)));
    fixed.map_or_else(String::new, |(key, value)| format!(" whose {} is {}", name(key), brief(value)))
}

fn numeric(keywords: &Map<String, Value>) -> String {
    let bound = |keyword: &str| keywords.get(keyword).filter(|value| value.is_number()).map(brief);
    let mut out = match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" of at least {least}"),
        (None, Some(most)) => format!(" of at most {most}"),
        (None, None) => String::new(),
    };
    let rest = [("exclusiveMinimum", "above"), ("exclusiveMaximum", "below"), ("multipleOf", "a multiple of")];
    for (keyword, words) in rest {
        if let Some(value) = bound(keyword) {
            // Writing to a String can't fail.
            let _ = write!(out, ", {words} {value}");
        }
    }
    out
}

fn textual(keywords: &Map<String, Value>) -> String {
    let mut out = sized(keywords, "minLength", "maxLength", "character", "characters");
    if let Some(pattern) = keywords.get("pattern").and_then(Value::as_str) {
        let _ = write!(out, " that matches {}", name(pattern));
    }
    if let Some(format) = keywords.get("format").and_then(Value::as_str) {
        let _ = write!(out, " ({})", excerpt(format).trim_matches('"'));
    }
    out
}

fn sized(keywords: &Map<String, Value>, least: &str, most: &str, one: &str, many: &str) -> String {
    let bound = |keyword: &str| keywords.get(keyword).and_then(Value::as_u64);
    let unit = |count: u64| if count == 1 { one } else { many };
    match (bound(least), bound(most)) {
        (Some(least), Some(most)) if least == most => format!(" of {least} {}", unit(least)),
        (Some(least), Some(most)) => format!(" of {least} to {most} {many}"),
        (Some(least), None) => format!(" of at least {least} {}", unit(least)),
        (None, Some(most)) => format!(" of at most {most} {}", unit(most)),
        (None, None) => String::new(),
    }
}

fn listed(mut texts: impl Iterator<Item = String>, separator: &str) -> String {
    let mut all: Vec<String> = texts.by_ref().take(MAX_CHOICES).collect();
    if texts.next().is_some() {
        all.push("…".to_owned());
    }
    all.join(separator)
}
