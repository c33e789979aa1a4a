//! The arguments that Glovebox fills in: the version of the object that a
//! preview saw, and the key that makes a call one call.

use env_contracts::canon::Canonical;
use serde_json::{Map, Value};

use super::Violation;
use super::error::{ArgumentsError, SchemaError};
use super::outline::Outline;
use super::words::place;

const VERSION: &str = "x-glovebox-version";
const KEY: &str = "x-glovebox-key";

/// Which of the two an argument is marked as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    Version,
    Key,
}

impl Fill {
    const fn keyword(self) -> &'static str {
        match self {
            Self::Version => VERSION,
            Self::Key => KEY,
        }
    }

    /// What a subschema is marked as.
    pub(super) fn of(at: &str, keywords: &Map<String, Value>) -> Result<Option<Self>, SchemaError> {
        let refuse = |fill: Self, why: &'static str| {
            Err(SchemaError::Keyword { at: at.to_owned(), keyword: fill.keyword(), why: why.into() })
        };
        let mut found = None;
        for fill in [Self::Version, Self::Key] {
            let Some(mark) = keywords.get(fill.keyword()) else { continue };
            if *mark != Value::Bool(true) {
                return refuse(fill, "it is `true`, or not there");
            }
            if keywords.get("type").and_then(Value::as_str) != Some("string") {
                return refuse(fill, "it stands beside `\"type\": \"string\"` only: what is filled in is a text");
            }
            if found.replace(fill).is_some() {
                return refuse(fill, "one argument can't be both version and key");
            }
        }
        Ok(found)
    }
}

/// The names of the arguments that are filled in.
#[derive(Debug, Default)]
pub(super) struct Fills {
    version: Option<String>,
    key: Option<String>,
}

impl Fills {
    /// Those of a schema, which marks no other place than an argument itself.
    pub(super) fn of(outline: &Outline, schema: &Value) -> Result<Self, SchemaError> {
        let refuse = |index: usize, fill: Fill, why: &'static str| {
            let at = place(&outline.places[index].pointer);
            Err(SchemaError::Keyword { at, keyword: fill.keyword(), why: why.into() })
        };
        let arguments = &outline.places[0].properties;
        let mut fills = Self::default();
        for (index, found) in outline.places.iter().enumerate() {
            let Some(fill) = found.marks.fill else { continue };
            let Some((name, _)) = arguments.iter().find(|(_, at)| **at == index) else {
                return refuse(index, fill, "it marks an argument itself, in `properties` of the whole schema");
            };
            let required = schema.get("required").and_then(Value::as_array);
            let required = required.is_some_and(|names| names.iter().any(|required| required == name));
            let slot = match fill {
                Fill::Version if required => {
                    return refuse(index, fill, "it is filled in after the arguments were checked: don't require it");
                }
                Fill::Version => &mut fills.version,
                Fill::Key => &mut fills.key,
            };
            if slot.replace(name.clone()).is_some() {
                return refuse(index, fill, "one argument is marked so, not two");
            }
        }
        Ok(fills)
    }

    /// The argument that takes the version of the object.
    pub(super) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Arguments with their key. Another one than ours would let two calls
    /// pass for one, or one for two.
    pub(super) fn keyed(&self, sent: Canonical, key: &str, subject: &'static str) -> Result<Canonical, ArgumentsError> {
        let Some(name) = &self.key else { return Ok(sent) };
        let Value::Object(values) = sent.value() else { return Ok(sent) };
        match values.get(name) {
            Some(Value::String(given)) if given == key => Ok(sent),
            Some(given) => {
                let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
                let expected = "nothing, because Glovebox fills it in".to_owned();
                Err(ArgumentsError::Rejected(vec![Violation::value(subject, &pointer, expected, given)]))
            }
            None => {
                let mut values = values.clone();
                values.insert(name.clone(), Value::String(key.to_owned()));
                Ok(Canonical::from_value(&Value::Object(values))?)
            }
        }
    }
}
