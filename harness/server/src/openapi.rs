//! The OpenAPI document, made from the table of routes and the types that the
//! handlers really use.

use std::collections::BTreeSet;

use env_contracts::{Id, Wanted};
use glovebox_identity::Role;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::events::Wire;
use crate::problem::{PROBLEM_JSON, ProblemBody};
use crate::table::{Answer, Route, all};

/// Where the schemas of a document are.
const SCHEMAS: &str = "#/components/schemas/";

/// Where those of requests are, until they are put to the others.
const INPUTS: &str = "#/inputs/";

/// What an id looks like, for whoever reads the document or tries it out.
const AN_ID: &str = "01999999-9999-7999-8999-999999999999";

/// The OpenAPI 3.1 document of everything but the pages, the same every time.
/// Beside what OpenAPI knows, `x-roles` of an operation are the roles that may
/// use it; where there are none, anybody may, without a credential.
pub fn document() -> Value {
    let settings = |place: &str| {
        SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = place.to_owned().into();
            settings.meta_schema = None;
        })
    };
    // What may be left out of a request is not what may be missing in an answer.
    let mut taken = settings("/inputs").for_deserialize().into_generator();
    let mut given = settings("/components/schemas").for_serialize().into_generator();
    let problem = given.subschema_for::<ProblemBody<'_>>();
    let mut paths = Map::new();
    for route in all().filter(|route| !route.page) {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method] = operation(route, &mut taken, &mut given);
    }
    let mut paths = Value::Object(paths);
    let mut schemas: Map<String, Value> = given.take_definitions(true).into_iter().collect();
    let inputs = taken.take_definitions(true).into_iter().collect();
    merge(&mut paths, inputs, &mut schemas);
    let used = used(&[&paths, problem.as_value()], &schemas);
    schemas.retain(|name, _| used.contains(name));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Glovebox",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Actions of agents: asked for, decided, executed in a sandbox, observed.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "responses": {
                "Problem": {
                    "description": "What went wrong, and what helps (RFC 9457)",
                    "content": { PROBLEM_JSON: { "schema": problem } },
                },
            },
            "schemas": schemas,
        },
    })
}

fn operation(route: &Route, taken: &mut SchemaGenerator, given: &mut SchemaGenerator) -> Value {
    let roles: Vec<&str> = route.who.iter().copied().map(Role::as_str).collect();
    let mut parameters: Vec<Value> = in_path(route.path).map(|name| path_parameter(name, taken)).collect();
    if let Some(query) = route.query {
        let query = query(taken);
        parameters.extend(in_query(&query, taken));
    }
    parameters.extend(
        route.headers.iter().map(
            |(name, kind, text)| json!({ "name": name, "in": "header", "schema": kind(taken), "description": text }),
        ),
    );
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.does,
        "x-roles": roles,
        "responses": responses(route.answer, given),
    });
    if route.who.is_empty() {
        operation["security"] = json!([]);
    }
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = route.body {
        let schema = body(taken);
        // Where every field may be left out, so may the body.
        let required = resolved(&schema, taken)["required"].as_array().is_some_and(|fields| !fields.is_empty());
        let required = required || resolved(&schema, taken)["type"] != "object";
        operation["requestBody"] =
            json!({ "required": required, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

/// The names in braces of a path.
fn in_path(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// What stands in a path is an id, but for these.
fn path_parameter(name: &str, generator: &mut SchemaGenerator) -> Value {
    let (schema, example) = match name {
        "capability" => (generator.subschema_for::<Wanted>().to_value(), json!("text.count")),
        "stream" => (json!({ "enum": ["stdout", "stderr"] }), json!("stdout")),
        "number" => (json!({ "type": "integer", "minimum": 1 }), json!(1)),
        _ => (generator.subschema_for::<Id>().to_value(), json!(AN_ID)),
    };
    json!({ "name": name, "in": "path", "required": true, "schema": schema, "example": example })
}

/// Puts the schemas of requests to those of answers. Where the same type is
/// another as a request, it has a name of its own there.
fn merge(paths: &mut Value, mut inputs: Map<String, Value>, schemas: &mut Map<String, Value>) {
    // A schema that leads to such a one is another as well.
    let mut own: BTreeSet<String> = BTreeSet::new();
    loop {
        let alike = |name: &String| {
            let mut input = inputs[name].clone();
            rename(&mut input, &own);
            schemas.get(name).is_none_or(|schema| *schema == input)
        };
        let next: BTreeSet<String> = inputs.keys().filter(|name| !alike(name)).cloned().collect();
        let grown = !next.is_subset(&own);
        own.extend(next);
        if !grown {
            break;
        }
    }
    rename(paths, &own);
    for (name, input) in &mut inputs {
        rename(input, &own);
        schemas.insert(named(name, &own), input.take());
    }
}

/// Leads from the places of requests to where they are in the document.
fn rename(part: &mut Value, own: &BTreeSet<String>) {
    match part {
        Value::Array(parts) => parts.iter_mut().for_each(|part| rename(part, own)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rename(field, own)),
        Value::String(text) => {
            if let Some(name) = text.strip_prefix(INPUTS) {
                *text = format!("{SCHEMAS}{}", named(name, own));
            }
        }
        _ => {}
    }
}

fn named(name: &str, own: &BTreeSet<String>) -> String {
    if own.contains(name) { format!("{name}Input") } else { name.to_owned() }
}

/// The schemas that these parts lead to. Those of queries are not among them:
/// they are parameters.
fn used(from: &[&Value], schemas: &Map<String, Value>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut todo: Vec<&Value> = from.to_vec();
    while let Some(part) = todo.pop() {
        match part {
            Value::Array(parts) => todo.extend(parts),
            Value::Object(fields) => todo.extend(fields.values()),
            Value::String(text) => {
                if let Some(name) = text.strip_prefix(SCHEMAS)
                    && found.insert(name.to_owned())
                {
                    todo.extend(schemas.get(name));
                }
            }
            _ => {}
        }
    }
    found
}

/// The schemas of a document that one of them leads to.
pub(crate) fn leads_to(schema: &Value, document: &Value) -> Map<String, Value> {
    let mut schemas = document["components"]["schemas"].as_object().cloned().unwrap_or_default();
    let used = used(&[schema], &schemas);
    schemas.retain(|name, _| used.contains(name));
    schemas
}

/// What a schema leads to.
fn resolved(schema: &Schema, generator: &SchemaGenerator) -> Value {
    let named = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    match named {
        Some(name) => generator.definitions().get(name).cloned().unwrap_or_default(),
        None => schema.clone().to_value(),
    }
}

/// The fields of a query, one parameter each.
fn in_query(schema: &Schema, generator: &SchemaGenerator) -> Vec<Value> {
    let schema = resolved(schema, generator);
    let required = schema["required"].clone();
    let required = |name: &str| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let Some(fields) = schema["properties"].as_object() else { return Vec::new() };
    let parameter = |(name, field): (&String, &Value)| {
        let mut field = field.clone();
        let described = field.as_object_mut().and_then(|field| field.remove("description"));
        not_null(&mut field);
        let mut parameter = json!({ "name": name, "in": "query", "required": required(name), "schema": field });
        if let Some(text) = described {
            parameter["description"] = text;
        }
        parameter
    };
    fields.iter().map(parameter).collect()
}

/// What stands in a query is there or not; it is never null.
fn not_null(field: &mut Value) {
    if let Some(kind) = field["type"].as_array().and_then(|kinds| kinds.iter().find(|kind| *kind != "null")).cloned() {
        field["type"] = kind;
    }
    if let Some(values) = field.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|value| !value.is_null());
    }
    let either = field.get("anyOf").and_then(Value::as_array);
    if let Some(only) = either.and_then(|all| all.iter().find(|one| one["type"] != "null")).cloned() {
        *field = only;
    }
}

fn responses(answer: Answer, generator: &mut SchemaGenerator) -> Value {
    let json = |schema: Schema| json!({ "application/json": { "schema": schema } });
    let problem = json!({ "$ref": "#/components/responses/Problem" });
    let mut all = match answer {
        Answer::Json(schema) => json!({ "200": { "description": "As asked", "content": json(schema(generator)) } }),
        Answer::Action(schema) => {
            let schema = schema(generator);
            json!({
                "200": { "description": "It ended; how, its Observation says", "content": json(schema.clone()) },
                "202": { "description": "It waits or runs", "content": json(schema) },
            })
        }
        Answer::Events => {
            // OpenAPI 3.1 has no word for what the `data` of each event is.
            let each = generator.subschema_for::<Wire>();
            let stream = json!({ "text/event-stream": { "schema": { "type": "string" }, "x-data": each } });
            json!({
                "200": { "description": "Events as they happen", "content": stream },
                "204": { "description": "Nothing will come any more" },
            })
        }
        Answer::Bytes => json!({ "200": { "description": "As asked", "content": bytes() } }),
        Answer::Ranges => json!({
            "200": { "description": "All of it", "content": bytes() },
            "206": { "description": "A part of it", "content": bytes() },
            "304": { "description": "It is what `if-none-match` names" },
            "416": { "description": "It has no such part" },
        }),
        Answer::Text(kind) => {
            json!({ "200": { "description": "As asked", "content": { kind: { "schema": { "type": "string" } } } } })
        }
        Answer::Messages => json!({
            "200": {
                "description": "Messages of the server, the answer last",
                "content": { "text/event-stream": { "schema": { "type": "string" } }, "application/json": {} },
            },
            "202": { "description": "Nothing is answered to such a message" },
            "4XX": {
                "description": "What went wrong (RFC 9457), or an error as the protocol says it",
                "content": { PROBLEM_JSON: { "schema": generator.subschema_for::<ProblemBody<'_>>() }, "application/json": {} },
            },
        }),
    };
    if all.get("4XX").is_none() {
        all["4XX"] = problem.clone();
    }
    all["5XX"] = problem;
    all
}

/// Bytes need no schema in OpenAPI 3.1.
fn bytes() -> Value {
    json!({ "application/octet-stream": {} })
}
