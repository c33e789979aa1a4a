//! The keywords of ours: which strings are paths, which integers may be sent
//! as strings.

use std::collections::{BTreeSet, HashSet};

use glovebox_runtime::bind::PathArgument;
use serde_json::{Map, Number, Value};

use super::error::SchemaError;
use super::fills::Fill;
use super::outline::{Link, Outline, Place, Via};
use super::words::place;

/// What one subschema is marked with.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The mount of `x-glovebox-path`.
    pub(super) path: Option<String>,
    /// The format of an integer that may be sent as a string.
    pub(super) integer: Option<Wide>,
    /// What Glovebox fills in there.
    pub(super) fill: Option<Fill>,
}

/// An integer that a double can't always hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wide {
    Unsigned,
    Signed,
}

const PATH: &str = "x-glovebox-path";

impl Marks {
    pub(super) fn of(at: &str, keywords: &Map<String, Value>) -> Result<Self, SchemaError> {
        let types = types(keywords);
        let only = |wanted: &str| types.contains(wanted) && types.iter().all(|name| *name == wanted || *name == "null");
        let path = keywords.get(PATH).map(|mount| {
            let why = if !only("string") {
                "it stands beside `\"type\": \"string\"` only, so that no other value escapes it"
            } else if let Some(mount) = mount.as_str().filter(|mount| is_mount(mount)) {
                return Ok(mount.to_owned());
            } else {
                "it names a mount as the guest sees it, such as `/workspace`"
            };
            Err(SchemaError::Keyword { at: at.to_owned(), keyword: PATH, why: why.into() })
        });
        let integer = match keywords.get("format").and_then(Value::as_str) {
            Some("uint64") if only("integer") => Some(Wide::Unsigned),
            Some("int64") if only("integer") => Some(Wide::Signed),
            _ => None,
        };
        Ok(Self { path: path.transpose()?, integer, fill: Fill::of(at, keywords)? })
    }
}

impl Wide {
    /// What is expected there, in plain words.
    pub(super) fn expected(self) -> String {
        match self {
            Self::Unsigned => format!("an integer from 0 to {}", u64::MAX),
            Self::Signed => format!("an integer from {} to {}", i64::MIN, i64::MAX),
        }
    }

    /// Whether a number is in range. Doubles without a fraction are integers
    /// to JSON Schema, so they are judged as well.
    fn holds(self, number: &Number) -> bool {
        // The first double beyond, since the largest integers are no doubles.
        const UNSIGNED_END: f64 = 18_446_744_073_709_551_616.0;
        const SIGNED_END: f64 = 9_223_372_036_854_775_808.0;
        let double = number.as_f64().unwrap_or(f64::NAN);
        match self {
            Self::Unsigned if number.is_f64() => (0.0..UNSIGNED_END).contains(&double),
            Self::Signed if number.is_f64() => (-SIGNED_END..SIGNED_END).contains(&double),
            Self::Unsigned => number.is_u64(),
            Self::Signed => number.is_i64(),
        }
    }

    /// The integer that a string of digits spells in the one usual way.
    fn read(self, text: &str) -> Option<Number> {
        let number = match self {
            Self::Unsigned => Number::from(text.parse::<u64>().ok()?),
            Self::Signed => Number::from(text.parse::<i64>().ok()?),
        };
        // Not `+5`, `05` or `-0`.
        (number.to_string() == text).then_some(number)
    }
}

/// Refuses paths marked where [`paths`] does not look: they would reach the
/// guest unbound.
pub(super) fn refuse_unreachable(outline: &Outline) -> Result<(), SchemaError> {
    let mut seen = HashSet::new();
    let mut stack = vec![(0, true)];
    while let Some((at, looked_at)) = stack.pop() {
        if !seen.insert((at, looked_at)) {
            continue;
        }
        let here = &outline.places[at];
        if !looked_at && here.marks.path.is_some() {
            let at = place(&here.pointer);
            let why = "paths are found through `properties`, `items`, `prefixItems`, `additionalProperties`, \
                       `$ref`, `allOf`, `anyOf`, `oneOf`, `then`, `else` and `dependentSchemas` only \
                       (not beside `patternProperties`)";
            return Err(SchemaError::Keyword { at, keyword: PATH, why: why.into() });
        }
        stack.extend(here.properties.values().map(|to| (*to, looked_at)));
        stack.extend(here.links.iter().map(|link| (link.to, looked_at && leads_to_paths(here, link))));
    }
    Ok(())
}

/// The strings whose schema marks them as paths. Where only one of several
/// branches marks a value, it counts as marked. The arguments must have been
/// measured: that bounds the work here too.
pub(super) fn paths(outline: &Outline, value: &Value) -> Vec<PathArgument> {
    let mut found = BTreeSet::new();
    each(outline, value, leads_to_paths, &mut |here, pointer, value| {
        if let (Some(mount), Value::String(value)) = (&here.marks.path, value) {
            let (mount, value) = (mount.clone(), value.clone());
            found.insert(PathArgument { pointer: pointer.to_owned(), mount, value });
        }
    });
    found.into_iter().collect()
}

/// The value with strings of digits turned into integers where the schema
/// says so; `None` if there are none. The arguments must have been measured.
pub(super) fn with_integers(outline: &Outline, value: &Value) -> Option<Value> {
    let mut changes = Vec::new();
    each(outline, value, leads_to_integers, &mut |here, pointer, value| {
        if let (Some(wide), Value::String(text)) = (here.marks.integer, value)
            && let Some(number) = wide.read(text)
        {
            changes.push((pointer.to_owned(), number));
        }
    });
    if changes.is_empty() {
        return None;
    }
    let mut changed = value.clone();
    for (pointer, number) in changes {
        if let Some(place) = changed.pointer_mut(&pointer) {
            *place = Value::Number(number);
        }
    }
    Some(changed)
}

/// The integers that are out of the range of their format. The arguments must
/// have been measured.
pub(super) fn out_of_range(outline: &Outline, value: &Value) -> Vec<(String, Wide)> {
    let mut found = Vec::new();
    each(outline, value, leads_to_integers, &mut |here, pointer, value| {
        if let (Some(wide), Value::Number(number)) = (here.marks.integer, value)
            && !wide.holds(number)
        {
            found.push((pointer.to_owned(), wide));
        }
    });
    found
}

type Leads = fn(&Place, &Link) -> bool;

/// Which links [`paths`] follows.
fn leads_to_paths(from: &Place, link: &Link) -> bool {
    match link.keyword {
        // `not` and `if` say nothing of what a value is.
        "not" | "if" => false,
        _ => link.via == Via::Here || leads_by_place(from, link),
    }
}

/// Which links [`with_integers`] follows: those that always apply. Elsewhere a
/// string of digits may be meant as a string.
fn leads_to_integers(from: &Place, link: &Link) -> bool {
    matches!(link.keyword, "allOf" | "$ref") || leads_by_place(from, link)
}

fn leads_by_place(from: &Place, link: &Link) -> bool {
    match link.keyword {
        "items" | "prefixItems" => true,
        // Which properties are "additional" would depend on the patterns.
        "additionalProperties" => !from.links.iter().any(|other| other.keyword == "patternProperties"),
        _ => false,
    }
}

fn each(outline: &Outline, value: &Value, leads: Leads, meet: &mut dyn FnMut(&Place, &str, &Value)) {
    visit(outline, 0, value, &mut String::new(), leads, meet);
}

fn visit(
    outline: &Outline,
    at: usize,
    value: &Value,
    pointer: &mut String,
    leads: Leads,
    meet: &mut dyn FnMut(&Place, &str, &Value),
) {
    let here = &outline.places[at];
    meet(here, pointer, value);
    let mut below = |to: usize, segment: &str, value: &Value| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&segment.replace('~', "~0").replace('/', "~1"));
        visit(outline, to, value, pointer, leads, meet);
        pointer.truncate(length);
    };
    for (name, value) in value.as_object().into_iter().flatten() {
        if let Some(to) = here.properties.get(name) {
            below(*to, name, value);
        }
    }
    for link in here.links.iter().filter(|link| leads(here, link)) {
        match (&link.via, value) {
            (Via::OtherProperties, Value::Object(map)) => {
                for (name, value) in map {
                    if !here.properties.contains_key(name) {
                        below(link.to, name, value);
                    }
                }
            }
            (Via::Item(index), Value::Array(items)) => {
                if let Some(value) = items.get(*index) {
                    below(link.to, &index.to_string(), value);
                }
            }
            (Via::ItemsFrom(first), Value::Array(items)) => {
                for (index, value) in items.iter().enumerate().skip(*first) {
                    below(link.to, &index.to_string(), value);
                }
            }
            _ => {}
        }
    }
    for link in here.links.iter().filter(|link| link.via == Via::Here && leads(here, link)) {
        visit(outline, link.to, value, pointer, leads, meet);
    }
}

fn types(keywords: &Map<String, Value>) -> BTreeSet<&str> {
    match keywords.get("type") {
        Some(Value::String(name)) => BTreeSet::from([name.as_str()]),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => BTreeSet::new(),
    }
}

fn is_mount(mount: &str) -> bool {
    let segment = |part: &str| !matches!(part, "" | "." | "..") && !part.chars().any(char::is_control);
    mount.strip_prefix('/').is_some_and(|rest| rest.split('/').all(segment))
}
