//! The OpenAPI document, made from the table of routes and the types that the
//! handlers really use.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::problem::{PROBLEM_JSON, ProblemBody};
use crate::table::{Answer, Route, all};

/// The document, the same every time.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<ProblemBody<'_>>();
    let mut paths = Map::new();
    for route in all().filter(|route| !route.page) {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method] = operation(route, &mut generator);
    }
    let schemas: Map<String, Value> = generator.take_definitions(true).into_iter().collect();
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

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let roles: Vec<&str> = route.who.iter().map(|role| role.as_str()).collect();
    let mut parameters: Vec<Value> = in_path(route.path)
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 } }))
        .collect();
    if let Some(query) = route.query {
        parameters.extend(in_query(query(generator), generator));
    }
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.does,
        "x-roles": roles,
        "responses": responses(route.answer, generator),
    });
    if route.who.is_empty() {
        operation["security"] = json!([]);
    }
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = route.body {
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": body(generator) } } });
    }
    operation
}

/// The names in braces of a path.
fn in_path(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// The fields of a query, one parameter each.
fn in_query(schema: Schema, generator: &mut SchemaGenerator) -> Vec<Value> {
    let mut schema = schema.to_value();
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        schema = generator.definitions().get(name).cloned().unwrap_or_default();
    }
    let required = schema["required"].clone();
    let required = |name: &str| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let Some(fields) = schema["properties"].as_object() else { return Vec::new() };
    let parameter = |(name, field): (&String, &Value)| {
        let mut field = field.clone();
        let described = field.as_object_mut().and_then(|field| field.remove("description"));
        // What stands in a query is there or not; it is never null.
        let kind = field["type"].as_array().and_then(|kinds| kinds.iter().find(|kind| *kind != "null")).cloned();
        if let Some(kind) = kind {
            field["type"] = kind;
        }
        let mut parameter = json!({ "name": name, "in": "query", "required": required(name), "schema": field });
        if let Some(text) = described {
            parameter["description"] = text;
        }
        parameter
    };
    fields.iter().map(parameter).collect()
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
        Answer::Events => json!({
            "200": { "description": "Events as they happen", "content": { "text/event-stream": { "schema": { "type": "string" } } } },
            "204": { "description": "Nothing will come any more" },
        }),
        Answer::Bytes => {
            let bytes = json!({ "*/*": { "schema": { "type": "string", "format": "binary" } } });
            json!({
                "200": { "description": "All of it", "content": bytes },
                "206": { "description": "A part of it", "content": bytes },
            })
        }
        Answer::Text(kind) => {
            json!({ "200": { "description": "As asked", "content": { kind: { "schema": { "type": "string" } } } } })
        }
    };
    all["4XX"] = problem.clone();
    all["5XX"] = problem;
    all
}
