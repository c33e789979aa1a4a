//! How arguments become values that rules can compare: the written mapping.
//!
//! | JSON Schema of the argument | in a rule |
//! |---|---|
//! | `string`; an `enum` or `const` of strings | `String` |
//! | `integer` | `Long`; a value beyond 64 signed bits is hidden in that call |
//! | `boolean` | `Bool` |
//! | `array` whose `items` are one of the three above | `Set`; order and repetition are lost |
//! | `object` with `properties` | a record; what the schema does not name is hidden |
//! | any of these or `null` | the same, and absent where it is null |
//! | `number` | hidden: rules compare exactly, doubles do not. Take an integer of a smaller unit |
//! | arrays of anything else, `anyOf`, `oneOf`, `allOf`, `not`, `if`, `$ref`, several types, no type | hidden |
//!
//! Hidden means that rules can't see it, and never that a rule can be evaded by
//! it: a call that has a hidden value where a rule looks is denied, and the rule
//! is named ([`Hidden`], `looks.rs`).

use std::collections::BTreeSet;

use cedar_policy::RestrictedExpression;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// How deep records are followed. Arguments may nest deeper; what lies below is
/// hidden, and so safe.
const DEPTH_MAX: usize = 8;

/// The mark of an argument that is a command line.
pub(crate) const ARGV: &str = "x-glovebox-argv";

/// Keywords that say more than a type can.
const OPAQUE: &[&str] = &["anyOf", "oneOf", "allOf", "not", "if", "$ref", "$dynamicRef"];

/// The type of an argument in rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Type {
    String,
    Long,
    Bool,
    Set(Box<Type>),
    Record(Vec<Attribute>),
}

/// One field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) required: bool,
}

/// An argument that rules can't see.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Hidden {
    /// Its name, or its way through nested objects.
    pub path: Vec<String>,
    /// Why.
    pub why: String,
}

/// What rules see of a capability's arguments.
pub(crate) struct Mapped {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) hidden: Vec<Hidden>,
    /// The arguments that are command lines.
    pub(crate) argv: Vec<String>,
}

/// Reads the mapping out of the schema of a capability's arguments.
pub(crate) fn of_schema(input: &Value) -> Mapped {
    let mut hidden = Vec::new();
    let attributes = record(input, &mut Vec::new(), &mut hidden);
    let argv = properties(input)
        .filter(|(_, schema)| schema.get(ARGV) == Some(&Value::Bool(true)))
        .map(|(name, _)| name.clone())
        .collect();
    Mapped { attributes, hidden, argv }
}

/// Arguments of a schema that are marked as command lines and are not seen as
/// one by rules: of another type, or inside of something else.
pub fn wrong_marks(input: &Value) -> Vec<String> {
    let fits = |schema: &Value| {
        let text = |ty: Option<Type>| matches!(ty, Some(Type::String));
        match ty(schema, 0).map(|(ty, _)| ty) {
            Ok(Type::String) => true,
            Ok(Type::Set(items)) => text(Some(*items)),
            _ => false,
        }
    };
    let wrong = |schema: &Value| {
        let here = schema.get(ARGV).is_some_and(|mark| *mark != Value::Bool(true) || !fits(schema));
        let keywords = schema.as_object().into_iter().flatten();
        here || keywords.filter(|(keyword, _)| *keyword != ARGV).any(|(_, value)| is_marked(value))
    };
    properties(input).filter(|(_, schema)| wrong(schema)).map(|(name, _)| name.clone()).collect()
}

/// Whether the mark stands anywhere in a schema.
fn is_marked(schema: &Value) -> bool {
    match schema {
        Value::Object(keywords) => keywords.contains_key(ARGV) || keywords.values().any(is_marked),
        Value::Array(values) => values.iter().any(is_marked),
        _ => false,
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn record(schema: &Value, way: &mut Vec<String>, hidden: &mut Vec<Hidden>) -> Vec<Attribute> {
    let mandatory: BTreeSet<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut out = Vec::new();
    for (name, property) in properties(schema) {
        way.push(name.clone());
        match ty(property, way.len()) {
            Ok((mut ty, nullable)) => {
                if let Type::Record(fields) = &mut ty {
                    *fields = record(property, way, hidden);
                }
                let required = mandatory.contains(name.as_str()) && !nullable;
                out.push(Attribute { name: name.clone(), ty, required });
            }
            Err(why) => hidden.push(Hidden { path: way.clone(), why }),
        }
        way.pop();
    }
    out
}

/// The type of one schema and whether null is let through, or why there is no
/// type. The fields of a record are left to the caller.
fn ty(schema: &Value, depth: usize) -> Result<(Type, bool), String> {
    let Some(keywords) = schema.as_object() else { return Err("its schema says nothing of it".into()) };
    if let Some(keyword) = OPAQUE.iter().find(|keyword| keywords.contains_key(**keyword)) {
        return Err(format!("its schema has `{keyword}`"));
    }
    let (name, nullable) = type_name(keywords)?;
    let ty = match name {
        "string" => Type::String,
        "integer" => Type::Long,
        "boolean" => Type::Bool,
        "number" => return Err("a number may have a fraction; rules compare integers".into()),
        "array" => {
            let items = keywords.get("items").ok_or("an array without `items`")?;
            if keywords.contains_key("prefixItems") {
                return Err("an array of different things".into());
            }
            match ty(items, depth).map_err(|why| format!("an array of what rules can't see: {why}"))? {
                (Type::Set(_) | Type::Record(_), _) => return Err("an array of arrays or objects".into()),
                (_, true) => return Err("an array in which null may stand".into()),
                (items, false) => Type::Set(Box::new(items)),
            }
        }
        "object" if depth >= DEPTH_MAX => return Err(format!("it lies below {DEPTH_MAX} objects")),
        "object" if keywords.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty()) => {
            Type::Record(Vec::new())
        }
        "object" => return Err("an object whose fields the schema does not name".into()),
        other => return Err(format!("its type is `{other}`")),
    };
    Ok((ty, nullable))
}

/// The one type that a schema names, and whether null stands beside it.
fn type_name(keywords: &Map<String, Value>) -> Result<(&str, bool), String> {
    match keywords.get("type") {
        Some(Value::String(name)) => Ok((name, false)),
        Some(Value::Array(names)) => {
            let mut others = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            match (others.next(), others.next()) {
                (Some(name), None) => Ok((name, names.len() > 1)),
                _ => Err("it may be of several types".into()),
            }
        }
        _ => {
            let choices: Vec<&Value> = match (keywords.get("enum"), keywords.get("const")) {
                (Some(Value::Array(choices)), _) => choices.iter().collect(),
                (_, Some(only)) => vec![only],
                _ => return Err("its schema names no type".into()),
            };
            let nullable = choices.iter().any(|choice| choice.is_null());
            match choices.iter().all(|choice| choice.is_string() || choice.is_null()) {
                true if choices.iter().any(|choice| choice.is_string()) => Ok(("string", nullable)),
                _ => Err("its choices are not all strings".into()),
            }
        }
    }
}

/// The arguments as rules see them, and the ways to those that are there and
/// that rules don't see.
pub(crate) fn of_value(mapped: &Mapped, arguments: &Value) -> (RestrictedExpression, Vec<Vec<String>>) {
    let mut unseen = Vec::new();
    let record = see_record(&mapped.attributes, arguments, &mut Vec::new(), &mut unseen);
    (record, unseen)
}

fn see_record(
    attributes: &[Attribute],
    value: &Value,
    way: &mut Vec<String>,
    unseen: &mut Vec<Vec<String>>,
) -> RestrictedExpression {
    let mut fields = Vec::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        // Null is absence, to rules.
        if value.is_null() {
            continue;
        }
        way.push(name.clone());
        let attribute = attributes.iter().find(|attribute| attribute.name == *name);
        let seen = match attribute.map(|attribute| &attribute.ty) {
            Some(Type::Record(inner)) if value.is_object() => Some(see_record(inner, value, way, unseen)),
            Some(ty) => see(ty, value),
            None => None,
        };
        match seen {
            Some(seen) => fields.push((name.clone(), seen)),
            None => unseen.push(way.clone()),
        }
        way.pop();
    }
    // Keys of an object are different from one another.
    RestrictedExpression::new_record(fields).unwrap_or_else(|_| RestrictedExpression::new_set([]))
}

/// One value. `None` where it is not of its type or beyond what rules can hold.
fn see(ty: &Type, value: &Value) -> Option<RestrictedExpression> {
    match (ty, value) {
        (Type::String, Value::String(text)) => Some(RestrictedExpression::new_string(text.clone())),
        (Type::Bool, Value::Bool(yes)) => Some(RestrictedExpression::new_bool(*yes)),
        (Type::Long, _) => long(value).map(RestrictedExpression::new_long),
        (Type::Set(items), Value::Array(values)) => {
            let values: Option<Vec<_>> = values.iter().map(|value| see(items, value)).collect();
            values.map(RestrictedExpression::new_set)
        }
        _ => None,
    }
}

/// An integer, also one that is written as a double without a fraction or, by
/// clients that have no such integers, as a string.
fn long(value: &Value) -> Option<i64> {
    /// Up to here a double holds every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let double = number.as_f64().filter(|double| double.fract() == 0.0 && double.abs() <= EXACT)?;
            #[expect(clippy::cast_possible_truncation, reason = "an integer within 2^53, as checked")]
            let long = double as i64;
            Some(long)
        }
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}
