//! What is wrong with a value, in words that a model can act upon.

use std::fmt;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use super::nearest;
use super::words::{brief, describe, name, names, shown};

/// How many violations are reported at most: enough to correct everything at
/// once in real arguments, too few to flood a model.
pub const MAX_VIOLATIONS: usize = 8;

/// One thing that is wrong. All text is escaped and short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where: a JSON Pointer, or `the arguments` for all of them.
    pub at: String,
    /// What would have been right, in plain words.
    pub expected: String,
    /// What is there instead.
    pub got: String,
    /// Which of the usual mistakes it is.
    pub kind: ViolationKind,
}

/// The usual mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ViolationKind {
    /// A property is missing there; `expected` names and describes it.
    Missing,
    /// A property is there that is not known; `got` names it, and `expected`
    /// the one that was probably meant.
    Misspelled,
    /// A property is there that is not known; `got` names it, and `expected`
    /// says what is known.
    Unknown,
    /// The value there is not acceptable.
    Value,
}

impl Violation {
    /// A value that is not acceptable.
    pub(super) fn value(subject: &str, pointer: &str, expected: String, got: &Value) -> Self {
        let kind = ViolationKind::Value;
        Self { at: at(subject, pointer), expected, got: brief(got), kind }
    }

    /// All of it is not acceptable.
    pub(super) fn whole(subject: &str, expected: &str, got: &str) -> Self {
        let kind = ViolationKind::Value;
        Self { at: subject.to_owned(), expected: expected.to_owned(), got: got.to_owned(), kind }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, expected, got, kind } = self;
        match (is_pointer(at), kind) {
            (true, _) => write!(f, "at `{at}`: ")?,
            (false, ViolationKind::Value) => write!(f, "{at}: ")?,
            (false, _) => {}
        }
        match kind {
            ViolationKind::Value => write!(f, "expected {expected}, got {got}"),
            ViolationKind::Missing => write!(f, "missing {expected}"),
            ViolationKind::Misspelled => {
                write!(f, "unknown property {got}, did you mean {expected}?")
            }
            ViolationKind::Unknown => write!(f, "unknown property {got}, expected {expected}"),
        }
    }
}

/// The first few violations, each once. The order is of our own making: that
/// in which the validator finds them depends on how the build orders maps.
pub(super) fn few(mut found: Vec<Violation>) -> Vec<Violation> {
    fn order(violation: &Violation) -> (bool, &str, ViolationKind, &str, &str) {
        let Violation { at, expected, got, kind } = violation;
        (is_pointer(at), at, *kind, expected, got)
    }
    found.sort_by(|a, b| order(a).cmp(&order(b)));
    found.dedup();
    found.truncate(MAX_VIOLATIONS);
    found
}

/// Why a schema itself breaks the rules of JSON Schema.
pub(super) fn of_schema(error: &ValidationError<'_>) -> String {
    let got = brief(error.instance());
    match error.kind() {
        Kind::Type { .. } | Kind::AnyOf { .. } | Kind::Enum { .. } => {
            format!("{got} is not what this keyword takes")
        }
        kind => format!("{got} breaks the rule `{}`", kind.keyword()),
    }
}

/// Turns the validator's errors into violations.
pub(super) struct Report<'a> {
    /// The schema.
    pub(super) document: &'a Value,
    /// What the whole value is called.
    pub(super) subject: &'static str,
}

impl Report<'_> {
    /// Adds what an error says.
    pub(super) fn add(&self, error: &ValidationError<'_>, found: &mut Vec<Violation>) {
        let pointer = error.instance_path().as_str();
        // The subschema that holds the keyword.
        let keyword = error.schema_path().as_str();
        let schema = keyword.rsplit_once('/').map_or("", |(schema, _)| schema);
        let value = |expected: String| Violation::value(self.subject, pointer, expected, error.instance());
        let violation = match error.kind() {
            Kind::Required { property } => self.missing(pointer, schema, property.as_str().unwrap_or_default()),
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                let unknown = unexpected.iter().take(MAX_VIOLATIONS);
                found.extend(unknown.map(|property| self.unknown(pointer, schema, property)));
                return;
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                if let Some(branch) = meant_branch(pointer, context) {
                    branch.iter().for_each(|error| self.add(error, found));
                    return;
                }
                value(describe(self.document, schema))
            }
            Kind::OneOfMultipleValid { .. } => value(format!("exactly one of: {}", describe(self.document, schema))),
            Kind::PropertyNames { error } => {
                let rule = error.schema_path().as_str();
                let rule = rule.rsplit_once('/').map_or("", |(schema, _)| schema);
                Violation {
                    at: at(self.subject, pointer),
                    expected: format!("property names to be {}", describe(self.document, rule)),
                    got: brief(error.instance()),
                    kind: ViolationKind::Value,
                }
            }
            Kind::Not { .. } => value("something else".to_owned()),
            Kind::FalseSchema => value("nothing at all".to_owned()),
            Kind::UniqueItems => value("an array without equal items".to_owned()),
            Kind::Contains => {
                let contains = format!("{schema}/contains");
                value(format!("an array that has {}", describe(self.document, &contains)))
            }
            Kind::AdditionalItems { .. } | Kind::UnevaluatedItems { .. } => {
                value("an array with fewer items".to_owned())
            }
            _ => value(describe(self.document, schema)),
        };
        found.push(violation);
    }

    fn missing(&self, pointer: &str, schema: &str, property: &str) -> Violation {
        let escaped = property.replace('~', "~0").replace('/', "~1");
        let rule = format!("{schema}/properties/{escaped}");
        let described = match self.document.pointer(&rule) {
            Some(_) => format!("{} ({})", name(property), describe(self.document, &rule)),
            None => name(property),
        };
        Violation {
            at: at(self.subject, pointer),
            expected: described,
            got: "nothing".to_owned(),
            kind: ViolationKind::Missing,
        }
    }

    fn unknown(&self, pointer: &str, schema: &str, property: &str) -> Violation {
        let known = self.document.pointer(&format!("{schema}/properties")).and_then(Value::as_object);
        let known = || known.into_iter().flat_map(|map| map.keys()).map(String::as_str);
        let (expected, kind) = match nearest(property, known()) {
            Some(meant) => (name(meant), ViolationKind::Misspelled),
            None if known().next().is_none() => ("no properties".to_owned(), ViolationKind::Unknown),
            None => (names(known()), ViolationKind::Unknown),
        };
        Violation { at: at(self.subject, pointer), expected, got: name(property), kind }
    }
}

/// The branch that was probably meant: the only one whose errors all lie
/// inside the value, so that its outside fits.
fn meant_branch<'a>(
    pointer: &str,
    branches: &'a [Vec<ValidationError<'static>>],
) -> Option<&'a [ValidationError<'static>]> {
    let inside = |error: &ValidationError<'_>| {
        error.instance_path().as_str().len() > pointer.len()
            || matches!(error.kind(), Kind::Required { .. } | Kind::AdditionalProperties { .. })
    };
    let mut fitting = branches.iter().filter(|errors| !errors.is_empty() && errors.iter().all(inside));
    let branch = fitting.next()?;
    fitting.next().is_none().then_some(branch.as_slice())
}

fn at(subject: &str, pointer: &str) -> String {
    if pointer.is_empty() { subject.to_owned() } else { shown(pointer) }
}

fn is_pointer(at: &str) -> bool {
    at.starts_with(['/', '…'])
}
