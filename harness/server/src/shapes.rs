//! What bodies have to be like: the schemas that the OpenAPI document shows.
//!
//! The types of handlers read more than is written down: a list for a struct,
//! a key that nobody knows beside fields of another type. What a client learns
//! from the document is what is taken, and nothing else.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use env_contracts::{Code, Problem};
use jsonschema::{PatternOptions, Validator};
use serde_json::{Value, json};

use crate::openapi;
use crate::problem::usage;
use crate::table::{self, Route};

/// The schemas of all bodies, by the names of their routes. Worked out once,
/// when the first body comes.
static SHAPES: LazyLock<BTreeMap<&'static str, Result<Validator, String>>> = LazyLock::new(all);

fn all() -> BTreeMap<&'static str, Result<Validator, String>> {
    let document = openapi::document();
    let made = |route: &'static Route| {
        let operation = &document["paths"][route.path][route.method];
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        (route.id, made(schema, &document))
    };
    table::all().filter(|route| route.body.is_some()).map(made).collect()
}

fn made(schema: &Value, document: &Value) -> Result<Validator, String> {
    let whole = json!({ "allOf": [schema], "components": { "schemas": openapi::leads_to(schema, document) } });
    // An engine that never backtracks: whoever sends a text must not be able to
    // keep a thread.
    let options = jsonschema::options().offline().should_validate_formats(false);
    options.with_pattern_options(PatternOptions::regex()).build(&whole).map_err(|error| error.to_string())
}

/// Refuses a body that is not as the document says.
///
/// # Errors
/// `usage`, with the place in the body.
pub(crate) fn check(route: &Route, body: &[u8]) -> Result<(), Problem> {
    let shape = match SHAPES.get(route.id) {
        Some(Ok(shape)) => shape,
        Some(Err(error)) => return Err(Problem::new(Code::BackendError, error.clone())),
        None => return Ok(()),
    };
    let body: Value = serde_json::from_slice(body).map_err(|error| usage(format!("body: {error}")))?;
    match shape.validate(&body) {
        Ok(()) => Ok(()),
        // What was sent is not said back: it may be long, and a secret.
        Err(error) => Err(usage(format!("body{}: {}", error.instance_path(), error.masked_with("it")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_has_a_shape_that_takes_an_object_alone() {
        for (id, shape) in &*SHAPES {
            let shape = shape.as_ref().unwrap_or_else(|error| panic!("{id}: {error}"));
            for not in [json!([]), json!(null), json!("text"), json!(1), json!(true)] {
                assert!(!shape.is_valid(&not), "{id} takes {not}");
            }
            // Messages of a protocol are its own.
            let open = *id == "mcp";
            assert_eq!(shape.is_valid(&json!({ "nobody-knows": 1 })), open, "{id} takes keys that it does not know");
        }
        assert_eq!(SHAPES.len(), table::all().filter(|route| route.body.is_some()).count());
    }

    #[test]
    fn a_refusal_names_the_place_and_says_nothing_back() {
        let route = table::all().find(|route| route.id == "answerApproval").unwrap();
        let body = br#"{ "plan": ["a-secret-of-somebody"], "offer": "once" }"#;
        let text = check(route, body).unwrap_err().to_string();
        assert!(text.contains("body/plan") && !text.contains("a-secret"), "{text}");
    }
}
