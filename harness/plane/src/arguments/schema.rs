//! A compiled schema.

use env_contracts::canon::Canonical;
use serde_json::Value;

use super::effort::{self, Explain, TooMuch};
use super::error::{ArgumentsError, SchemaError};
use super::explain::{self, Violation};
use super::fills::Fills;
use glovebox_runtime::bind::PathArgument;

use super::marks;
use super::outline::{MAX_SCHEMA_BYTES, Outline};
use super::patterns;
use super::words::place;

/// A JSON Schema that was found harmless, ready to check arguments (or, by
/// the same rules, a result).
#[derive(Debug)]
pub struct Schema {
    document: Value,
    outline: Outline,
    fills: Fills,
    validator: jsonschema::Validator,
    subject: &'static str,
}

impl Schema {
    /// Bounds and compiles a schema.
    ///
    /// # Errors
    /// [`SchemaError`] names the place and what to write instead.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        // Canonical first: that bounds the depth, on which all else recurses.
        let document = Canonical::from_value(schema).map_err(SchemaError::Unreadable)?;
        let size = document.as_str().len();
        if size > MAX_SCHEMA_BYTES {
            return Err(SchemaError::TooLarge { size, limit: MAX_SCHEMA_BYTES });
        }
        let outline = Outline::of(schema)?;
        let fills = Fills::of(&outline, schema)?;
        let validator = patterns::build(schema).map_err(|error| SchemaError::Invalid {
            at: place(error.instance_path().as_str()),
            message: explain::of_schema(&error),
        })?;
        let document = document.value().clone();
        Ok(Self { document, outline, fills, validator, subject: "the arguments" })
    }

    /// The same schema, for what a tool answers: violations then speak of
    /// "the result".
    #[must_use]
    pub fn for_result(self) -> Self {
        Self { subject: "the result", ..self }
    }

    /// Takes arguments as they were sent and returns those that will be used:
    /// strings of digits are integers where the schema says `"format":
    /// "uint64"` or `"int64"`, and everything was checked.
    ///
    /// # Errors
    /// [`ArgumentsError::Rejected`] with what is wrong with them.
    pub fn accept(&self, sent: &Canonical) -> Result<Canonical, ArgumentsError> {
        self.measure(sent).map_err(ArgumentsError::Rejected)?;
        let used = match marks::with_integers(&self.outline, sent.value()) {
            Some(value) => Canonical::from_value(&value)?,
            None => sent.clone(),
        };
        self.check(&used).map_err(ArgumentsError::Rejected)?;
        Ok(used)
    }

    /// The argument that says which version of its object the caller means,
    /// where the schema marks one with `x-glovebox-version`.
    pub fn version(&self) -> Option<&str> {
        self.fills.version()
    }

    /// Arguments with the key that the schema wants with `x-glovebox-key`.
    ///
    /// # Errors
    /// [`ArgumentsError::Rejected`] where they have another one.
    pub fn keyed(&self, sent: Canonical, key: &str) -> Result<Canonical, ArgumentsError> {
        self.fills.keyed(sent, key, self.subject)
    }

    /// Whether it has an argument of this name.
    pub fn names(&self, argument: &str) -> bool {
        self.outline.places[0].properties.contains_key(argument)
    }

    /// Checks a value as it is. Never takes longer than a fixed amount of work
    /// that real schemas and arguments stay far below.
    ///
    /// # Errors
    /// At least one and at most [`MAX_VIOLATIONS`](super::MAX_VIOLATIONS) violations.
    pub fn check(&self, value: &Canonical) -> Result<(), Vec<Violation>> {
        let explain = self.measure(value)?;
        let value = value.value();
        let mut found = Vec::new();
        if !self.validator.is_valid(value) {
            let report = explain::Report { document: &self.document, subject: self.subject };
            match explain {
                Explain::All => {
                    self.validator.iter_errors(value).for_each(|error| report.add(&error, &mut found));
                }
                Explain::First => {
                    if let Err(error) = self.validator.validate(value) {
                        report.add(&error, &mut found);
                    }
                }
                Explain::Nothing => {}
            }
            if found.is_empty() {
                found.push(Violation::whole(self.subject, "what the schema describes", "something else"));
            }
        }
        for (pointer, wide) in marks::out_of_range(&self.outline, value) {
            let got = value.pointer(&pointer).unwrap_or(&Value::Null);
            found.push(Violation::value(self.subject, &pointer, wide.expected(), got));
        }
        if found.is_empty() { Ok(()) } else { Err(explain::few(found)) }
    }

    /// The strings of checked arguments whose schema says `x-glovebox-path`:
    /// through `properties`, `items`, `prefixItems`, `additionalProperties`,
    /// `$ref`, `allOf`, and every branch of `anyOf`, `oneOf`, `then`, `else`
    /// and `dependentSchemas` whether it holds or not. A schema that marks
    /// paths elsewhere does not compile.
    ///
    /// # Errors
    /// If the arguments are such that [`Schema::check`] refuses to look at
    /// them for the work it would take.
    pub fn path_arguments(&self, arguments: &Canonical) -> Result<Vec<PathArgument>, ArgumentsError> {
        self.measure(arguments).map_err(ArgumentsError::Rejected)?;
        Ok(marks::paths(&self.outline, arguments.value()))
    }

    fn measure(&self, value: &Canonical) -> Result<Explain, Vec<Violation>> {
        effort::measure(&self.outline, value.value())
            .map_err(|TooMuch(why)| vec![Violation::whole(self.subject, "less to check", why)])
    }
}
