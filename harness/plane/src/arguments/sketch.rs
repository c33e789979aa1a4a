//! Reads a schema keyword by keyword into the places of an [`super::outline`].

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use super::error::SchemaError;
use super::marks::Marks;
use super::outline::{Link, MAX_SCHEMA_PLACES, Place, Via};
use super::patterns::Patterns;
use super::words::place;

/// The dialects we read.
const DIALECTS: [&str; 2] =
    ["https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2020-12/schema#"];

/// Keywords that lead elsewhere than the outline can show, or belong to other
/// dialects and would be understood by some readers only.
const REFUSED: [(&str, &str); 9] = [
    ("$id", "a schema has no address here; remove it"),
    ("$anchor", "refer by pointer, as in `#/$defs/name`"),
    ("$dynamicRef", "refer by pointer, as in `#/$defs/name`"),
    ("$dynamicAnchor", "refer by pointer, as in `#/$defs/name`"),
    ("$recursiveRef", "refer by pointer, as in `#`"),
    ("$recursiveAnchor", "refer by pointer, as in `#`"),
    ("$vocabulary", "the vocabulary is that of JSON Schema 2020-12"),
    ("dependencies", "write `dependentRequired` or `dependentSchemas`"),
    ("additionalItems", "write `prefixItems` and `items`"),
];

/// The subschemas of a schema, the whole of it first.
pub(super) fn places_of(schema: &Value) -> Result<Vec<Place>, SchemaError> {
    let mut sketch = Sketch::default();
    sketch.add(String::new(), schema)?;
    let mut next = 0;
    while let Some((index, value)) = sketch.todo.get(next).copied() {
        if let Value::Object(keywords) = value {
            sketch.read(index, keywords)?;
        }
        next += 1;
    }
    sketch.resolve()?;
    Ok(sketch.places)
}

#[derive(Default)]
struct Sketch<'a> {
    places: Vec<Place>,
    todo: Vec<(usize, &'a Value)>,
    by_pointer: HashMap<String, usize>,
    references: Vec<(usize, String)>,
    patterns: Patterns,
}

impl<'a> Sketch<'a> {
    fn add(&mut self, pointer: String, schema: &'a Value) -> Result<usize, SchemaError> {
        let index = self.places.len();
        if index == MAX_SCHEMA_PLACES {
            return Err(SchemaError::TooManyPlaces { limit: MAX_SCHEMA_PLACES });
        }
        if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
            let message = "expected a schema: an object, true or false".to_owned();
            return Err(SchemaError::Invalid { at: place(&pointer), message });
        }
        self.by_pointer.insert(pointer.clone(), index);
        self.places.push(Place { pointer, weight: 1, ..Place::default() });
        self.todo.push((index, schema));
        Ok(index)
    }

    fn read(&mut self, from: usize, keywords: &'a Map<String, Value>) -> Result<(), SchemaError> {
        for (keyword, value) in keywords {
            self.places[from].weight += 1;
            self.keyword(from, keyword, value, keywords)?;
        }
        let marks = Marks::of(&place(&self.places[from].pointer), keywords)?;
        self.places[from].marks = marks;
        Ok(())
    }

    fn keyword(
        &mut self,
        from: usize,
        keyword: &str,
        value: &'a Value,
        siblings: &'a Map<String, Value>,
    ) -> Result<(), SchemaError> {
        let after_prefix = || siblings.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        match keyword {
            "$ref" => self.reference(from, value)?,
            "$schema" => self.dialect(from, value)?,
            "allOf" => self.list(from, "allOf", value, |_| Some(Via::Here))?,
            "anyOf" => self.list(from, "anyOf", value, |_| Some(Via::Here))?,
            "oneOf" => self.list(from, "oneOf", value, |_| Some(Via::Here))?,
            "not" => self.one(from, "not", value, Some(Via::Here))?,
            "if" => self.one(from, "if", value, Some(Via::Here))?,
            "then" => self.one(from, "then", value, Some(Via::Here))?,
            "else" => self.one(from, "else", value, Some(Via::Here))?,
            "dependentSchemas" => self.map(from, "dependentSchemas", value, |_, _, _| Ok(Some(Via::Here)))?,
            "properties" => self.properties(from, value)?,
            "patternProperties" => {
                self.map(from, "patternProperties", value, |sketch, at, pattern| {
                    sketch.patterns.price(at, pattern).map(|price| Some(Via::MatchingProperties(price)))
                })?;
            }
            "additionalProperties" => {
                self.one(from, "additionalProperties", value, Some(Via::OtherProperties))?;
            }
            "unevaluatedProperties" => {
                self.places[from].unevaluated = true;
                self.one(from, "unevaluatedProperties", value, Some(Via::Properties))?;
            }
            "propertyNames" => self.one(from, "propertyNames", value, Some(Via::Names))?,
            "prefixItems" => {
                self.list(from, "prefixItems", value, |index| Some(Via::Item(index)))?;
            }
            "items" => self.one(from, "items", value, Some(Via::ItemsFrom(after_prefix())))?,
            "contains" => self.one(from, "contains", value, Some(Via::ItemsFrom(0)))?,
            "unevaluatedItems" => {
                self.places[from].unevaluated = true;
                self.one(from, "unevaluatedItems", value, Some(Via::ItemsFrom(0)))?;
            }
            // Reached by `$ref` only.
            "$defs" => self.map(from, "$defs", value, |_, _, _| Ok(None))?,
            "definitions" => self.map(from, "definitions", value, |_, _, _| Ok(None))?,
            // An annotation in this dialect.
            "contentSchema" => self.one(from, "contentSchema", value, None)?,
            "pattern" => {
                let at = place(&self.places[from].pointer);
                let price = value.as_str().map(|pattern| self.patterns.price(&at, pattern));
                self.places[from].pattern = price.transpose()?;
            }
            "uniqueItems" => self.places[from].unique = true,
            "enum" | "const" | "required" | "dependentRequired" => {
                self.places[from].weight += count_values(value);
            }
            _ => {
                if let Some((keyword, why)) = REFUSED.iter().find(|(refused, _)| *refused == keyword) {
                    return Err(self.refuse(from, keyword, *why));
                }
            }
        }
        Ok(())
    }

    fn properties(&mut self, from: usize, value: &'a Value) -> Result<(), SchemaError> {
        for (name, item) in value.as_object().into_iter().flatten() {
            let pointer = format!("{}/properties/{}", self.places[from].pointer, escape(name));
            let to = self.add(pointer, item)?;
            self.places[from].properties.insert(name.clone(), to);
            self.places[from].weight += 1;
        }
        Ok(())
    }

    fn one(
        &mut self,
        from: usize,
        keyword: &'static str,
        value: &'a Value,
        via: Option<Via>,
    ) -> Result<(), SchemaError> {
        let pointer = format!("{}/{keyword}", self.places[from].pointer);
        let to = self.add(pointer, value)?;
        self.link(from, keyword, via, to);
        Ok(())
    }

    fn list(
        &mut self,
        from: usize,
        keyword: &'static str,
        value: &'a Value,
        via: fn(usize) -> Option<Via>,
    ) -> Result<(), SchemaError> {
        // What is no list is refused by the validator's own rules later.
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            let pointer = format!("{}/{keyword}/{index}", self.places[from].pointer);
            let to = self.add(pointer, item)?;
            self.link(from, keyword, via(index), to);
        }
        Ok(())
    }

    fn map(
        &mut self,
        from: usize,
        keyword: &'static str,
        value: &'a Value,
        via: fn(&mut Self, &str, &str) -> Result<Option<Via>, SchemaError>,
    ) -> Result<(), SchemaError> {
        for (name, item) in value.as_object().into_iter().flatten() {
            let pointer = format!("{}/{keyword}/{}", self.places[from].pointer, escape(name));
            let via = via(self, &place(&pointer), name)?;
            let to = self.add(pointer, item)?;
            self.link(from, keyword, via, to);
        }
        Ok(())
    }

    fn link(&mut self, from: usize, keyword: &'static str, via: Option<Via>, to: usize) {
        if let Some(via) = via {
            self.places[from].links.push(Link { keyword, via, to });
        }
    }

    fn reference(&mut self, from: usize, value: &Value) -> Result<(), SchemaError> {
        let target = value.as_str().unwrap_or_default();
        let pointer = target.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let Some(pointer) = pointer else {
            let why = "a reference must be `#` or start with `#/`: nothing is fetched, and names are not looked up";
            return Err(self.refuse(from, "$ref", why));
        };
        self.references.push((from, pointer.to_owned()));
        Ok(())
    }

    fn dialect(&mut self, from: usize, value: &Value) -> Result<(), SchemaError> {
        let known = value.as_str().is_some_and(|dialect| DIALECTS.contains(&dialect));
        if from == 0 && known {
            return Ok(());
        }
        Err(self.refuse(from, "$schema", "only JSON Schema 2020-12 is read, named at the root or not at all"))
    }

    /// A reference must name a place we know by the very pointer we know it
    /// by, so that the validator can't understand it differently.
    fn resolve(&mut self) -> Result<(), SchemaError> {
        for (from, pointer) in std::mem::take(&mut self.references) {
            let Some(&to) = self.by_pointer.get(&pointer) else {
                let why = format!("the document has no schema at {}", place(&pointer));
                return Err(self.refuse(from, "$ref", why));
            };
            self.link(from, "$ref", Some(Via::Here), to);
        }
        Ok(())
    }

    fn refuse(&self, from: usize, keyword: &'static str, why: impl Into<Cow<'static, str>>) -> SchemaError {
        SchemaError::Keyword { at: place(&self.places[from].pointer), keyword, why: why.into() }
    }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn count_values(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(count_values).sum::<u64>(),
        Value::Object(map) => 1 + map.values().map(count_values).sum::<u64>(),
        _ => 1,
    }
}
