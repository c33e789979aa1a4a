//! Schemas by people who mean harm. None of these tests measures time: without
//! the bounds they take hours, gigabytes, or the stack.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use env_contracts::canon::{Canonical, MAX_DEPTH};
use env_contracts::{Code, Diagnose};
use glovebox_plane::arguments::{ArgumentsError, MAX_SCHEMA_BYTES, MAX_SCHEMA_PLACES, MAX_VIOLATIONS, Schema};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn refused(schema: &Value) -> String {
    let error = Schema::compile(schema).map(drop).unwrap_err();
    assert_eq!(error.code(), Code::ManifestInvalid);
    assert!(!error.help().is_empty());
    error.to_string()
}

/// Whether the arguments are accepted, or why not.
fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let schema = Schema::compile(schema).unwrap();
    let value = Canonical::from_value(value).unwrap();
    schema.accept(&value).map(drop).map_err(|error| error.to_string())
}

const TOO_LONG: &str = "the arguments: expected less to check, got the schema would take too long on them";
const TOO_DEEP: &str = "the arguments: expected less to check, got the schema nests too deep on them";

#[test]
fn schemas_that_are_refused() {
    let cases = [
        (json!(5), "the schema is not valid JSON Schema 2020-12 at the root: expected a schema"),
        (json!({"properties": {"a": 5}}), "at `#/properties/a`: expected a schema"),
        (json!({"type": "text"}), "at `#/type`: \"text\" is not what this keyword takes"),
        (json!({"required": "a"}), "at `#/required`"),
        (json!({"properties": []}), "at `#/properties`"),
        (json!({"minLength": -1}), "at `#/minLength`"),
        (
            json!({"$ref": "https://example.com/schema.json"}),
            "`$ref` at the root is not accepted: a reference must be `#`",
        ),
        (json!({"$ref": "file:///etc/passwd"}), "a reference must be"),
        (json!({"$ref": "other.json#/a"}), "a reference must be"),
        (json!({"$ref": "#name"}), "a reference must be"),
        (json!({"$ref": 5}), "a reference must be"),
        (
            json!({"items": {"$ref": "#/$defs/none"}}),
            "`$ref` at `#/items` is not accepted: the document has no schema at `#/$defs/none`",
        ),
        // Known places only, by the one way to write them.
        (json!({"x-hidden": {"type": "string"}, "items": {"$ref": "#/x-hidden"}}), "no schema at"),
        (json!({"$defs": {"a b": true}, "items": {"$ref": "#/$defs/a%20b"}}), "no schema at"),
        (json!({"const": {"$ref": "#"}, "items": {"$ref": "#/const"}}), "no schema at"),
        (json!({"$id": "https://json-schema.org/draft/2020-12/schema"}), "`$id` at the root"),
        (json!({"items": {"$id": "x"}}), "`$id` at `#/items`"),
        (json!({"$defs": {"a": {"$anchor": "x"}}}), "`$anchor`"),
        (json!({"$dynamicRef": "#x"}), "`$dynamicRef`"),
        (json!({"$dynamicAnchor": "x"}), "`$dynamicAnchor`"),
        (json!({"$recursiveRef": "#"}), "`$recursiveRef`"),
        (json!({"$vocabulary": {}}), "`$vocabulary`"),
        (json!({"dependencies": {}}), "`dependencies`"),
        (json!({"additionalItems": false}), "`additionalItems`"),
        (json!({"$schema": "http://json-schema.org/draft-07/schema#"}), "only JSON Schema 2020-12"),
        (json!({"items": {"$schema": "https://json-schema.org/draft/2020-12/schema"}}), "`$schema` at `#/items`"),
        // Loops that consume nothing.
        (json!({"$ref": "#"}), "the references at the root lead back"),
        (json!({"allOf": [{"anyOf": [{"$ref": "#"}]}]}), "lead back"),
        (json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}), "lead back"),
        (json!({"not": {"$ref": "#"}}), "lead back"),
        (json!({"if": {"$ref": "#"}}), "lead back"),
        (json!({"dependentSchemas": {"a": {"$ref": "#"}}}), "lead back"),
        (json!({"$defs": {"unused": {"$ref": "#/$defs/unused"}}}), "lead back"),
        // Patterns.
        (json!({"pattern": "(?=a)b"}), "the pattern \"(?=a)b\" at the root can't be used"),
        (json!({"pattern": "(a)\\1"}), "can't be used"),
        (json!({"pattern": "("}), "can't be used"),
        (json!({"pattern": "x{1000}{1000}"}), "can't be used"),
        (json!({"pattern": "(((((((((a{9}){9}){9}){9}){9}){9}){9}){9}){9})"}), "can't be used"),
        (json!({"patternProperties": {"(?!a)": true}}), "at `#/patternProperties/(?!a)` can't be used"),
        // Paths that would not be found.
        (json!({"not": {"type": "string", "x-glovebox-path": "/w"}}), "paths are found through"),
        (json!({"contains": {"type": "string", "x-glovebox-path": "/w"}}), "paths are found through"),
        (json!({"if": {"type": "string", "x-glovebox-path": "/w"}}), "paths are found through"),
        (json!({"propertyNames": {"type": "string", "x-glovebox-path": "/w"}}), "paths are found through"),
        (json!({"unevaluatedItems": {"type": "string", "x-glovebox-path": "/w"}}), "paths are found through"),
        (json!({"patternProperties": {"a": {"type": "string", "x-glovebox-path": "/w"}}}), "paths are found through"),
        (
            json!({"patternProperties": {"a": true}, "additionalProperties": {"type": "string", "x-glovebox-path": "/w"}}),
            "paths are found through",
        ),
        (
            json!({"unevaluatedProperties": {"$ref": "#/$defs/p"}, "$defs": {"p": {"type": "string", "x-glovebox-path": "/w"}}}),
            "paths are found through",
        ),
        // Marks that do not say enough.
        (json!({"x-glovebox-path": "/w"}), "it stands beside `\"type\": \"string\"` only"),
        (json!({"type": ["string", "array"], "x-glovebox-path": "/w"}), "it stands beside"),
        (json!({"type": "string", "x-glovebox-path": true}), "it names a mount"),
        (json!({"type": "string", "x-glovebox-path": "workspace"}), "it names a mount"),
        (json!({"type": "string", "x-glovebox-path": "/w/../etc"}), "it names a mount"),
        (json!({"type": "string", "x-glovebox-path": "/"}), "it names a mount"),
    ];
    for (schema, expected) in cases {
        let message = refused(&schema);
        assert!(message.contains(expected), "{schema}: {message}");
    }
}

#[test]
fn what_only_looks_like_a_keyword_is_accepted() {
    let schemas = [
        json!({"properties": {"$ref": {"type": "string"}, "$id": true, "pattern": {"type": "string"}}}),
        json!({"const": {"$id": 1, "$ref": "https://example.com"}}),
        json!({"enum": [{"$ref": "x"}], "default": {"$anchor": 1}, "examples": [{"pattern": "("}]}),
        json!({"x-vendor": {"$ref": "https://example.com", "pattern": "("}, "format": "made-up"}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema"}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema#", "type": "object"}),
        json!({"definitions": {"a": {"type": "string"}}, "items": {"$ref": "#/definitions/a"}}),
        json!({"items": {"$ref": "#"}}),
        json!({"properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}}),
        json!({"patternProperties": {"^[^/]{1,255}(/[^/]{1,255})*$": {"type": "string"}}}),
        json!(true),
        json!(false),
    ];
    for schema in schemas {
        assert!(Schema::compile(&schema).is_ok(), "{schema}");
    }
}

#[test]
fn size_and_depth_are_bounded() {
    let mut deep = json!(true);
    for _ in 0..10_000 {
        // Not by `json!`, which recurses over what it is given.
        deep = Value::Object(Map::from_iter([("not".to_owned(), deep)]));
    }
    assert_eq!(refused(&deep), "the schema can't be read");
    // Dropping it would recurse 10 000 deep.
    std::mem::forget(deep);

    let long = json!({"description": "x".repeat(MAX_SCHEMA_BYTES)});
    assert!(refused(&long).ends_with(&format!("the limit is {MAX_SCHEMA_BYTES}")));

    let wide = json!({"anyOf": vec![json!({}); MAX_SCHEMA_PLACES]});
    assert_eq!(refused(&wide), format!("the schema has more than {MAX_SCHEMA_PLACES} subschemas"));

    let patterns: Vec<_> = (0..600).map(|n| json!({"pattern": format!("[^a]b{n}")})).collect();
    let message = refused(&json!({"anyOf": patterns}));
    assert!(message.starts_with("the patterns of the schema need more than"), "{message}");
}

/// `$defs` d0, d1, … each referring to the next, the last one being `end`.
fn chain(length: usize, step: impl Fn(Value) -> Value, end: &Value) -> Value {
    let mut defs = Map::new();
    for n in 0..length {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        defs.insert(format!("d{n}"), step(next));
    }
    defs.insert(format!("d{length}"), end.clone());
    json!({"$ref": "#/$defs/d0", "$defs": defs})
}

#[test]
fn long_chains_do_not_exhaust_the_stack() {
    let end = json!({"type": "string"});
    let steps: [fn(Value) -> Value; 5] = [
        |next| next,
        |next| json!({"allOf": [next, true]}),
        |next| json!({"anyOf": [next, {"type": "null"}]}),
        |next| json!({"not": {"not": next}}),
        |next| json!({"properties": {"a": next}}),
    ];
    for step in steps {
        // The longest that compiles.
        let schema = chain(600, step, &end);
        let verdict = check(&schema, &json!(5));
        let deep = verdict == Err(TOO_DEEP.to_owned());
        assert!(deep || check(&schema, &json!("x")) == Ok(()), "{verdict:?}");
    }
    // As deep as a check may go.
    let schema = chain(500, |next| json!({"anyOf": [next, {"type": "null"}]}), &end);
    assert!(check(&schema, &json!(5)).is_err_and(|message| message != TOO_DEEP));
    assert_eq!(check(&schema, &json!("x")), Ok(()));
    // Each level of the value goes through the chain again.
    let mut value = json!("x");
    for _ in 0..MAX_DEPTH {
        value = json!({"a": value});
    }
    let recursive = chain(30, |next| json!({"allOf": [next]}), &json!({"properties": {"a": {"$ref": "#"}}}));
    assert_eq!(check(&recursive, &value), Err(TOO_DEEP.to_owned()));
    let recursive = chain(3, |next| json!({"allOf": [next]}), &json!({"properties": {"a": {"$ref": "#"}}}));
    assert_eq!(check(&recursive, &value), Ok(()));
}

#[test]
fn exponential_schemas_are_stopped() {
    // Twice the work at each step, on any value.
    let twice = chain(60, |next| json!({"allOf": [next, next]}), &json!({"type": "string"}));
    assert_eq!(check(&twice, &json!("x")), Err(TOO_LONG.to_owned()));

    // Twice the work at each level of the value.
    let levels = json!({"allOf": [
        {"properties": {"a": {"$ref": "#"}}},
        {"additionalProperties": {"$ref": "#"}}
    ]});
    let mut value = json!(1);
    for _ in 0..60 {
        value = json!({"a": value});
    }
    assert_eq!(check(&levels, &value), Err(TOO_LONG.to_owned()));
    assert_eq!(check(&levels, &json!({"a": {"b": 1}})), Ok(()));

    // The validator evaluates neighbours of these again and again.
    let mut again = json!({"properties": {"a": true}, "unevaluatedProperties": false});
    for _ in 0..28 {
        again = json!({"allOf": [again], "unevaluatedProperties": false});
    }
    assert_eq!(check(&again, &json!({"a": 1})), Err(TOO_LONG.to_owned()));
}

#[test]
fn large_schemas_times_large_values_are_stopped() {
    let items = json!(vec![0; 200_000]);
    let choices: Vec<_> = (1..20_000).collect();
    assert_eq!(check(&json!({"items": {"enum": choices}}), &items), Err(TOO_LONG.to_owned()));

    let branches: Vec<_> = (0..1000).map(|n| json!({"const": n + 1})).collect();
    assert_eq!(check(&json!({"items": {"anyOf": branches}}), &items), Err(TOO_LONG.to_owned()));

    let required: Vec<_> = (0..10_000).map(|n| format!("p{n}")).collect();
    let objects = json!(vec![json!({}); 10_000]);
    assert_eq!(check(&json!({"items": {"required": required}}), &objects), Err(TOO_LONG.to_owned()));
}

#[test]
fn failed_branches_do_not_multiply_a_large_value() {
    // A thousand branches that fail would each keep a copy of 4 MB.
    let branches = vec![json!({"type": "integer"}); 1000];
    let schema = json!({"type": "object", "anyOf": branches});
    let value = json!({"content": "x".repeat(4_000_000)});
    let message = check(&schema, &value).unwrap_err();
    assert_eq!(message, "the arguments: expected what the schema describes, got something else");
    // A large neighbour does not cost a small value its explanation.
    let schema = json!({"properties": {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}});
    let value = json!({"content": "x".repeat(4_000_000), "n": "a"});
    assert_eq!(check(&schema, &value).unwrap_err(), "at `/n`: expected an integer or null, got \"a\"");
}

#[test]
fn many_violations_are_not_all_collected() {
    let schema = Schema::compile(&json!({"items": {"type": "string"}})).unwrap();
    let count = |items: usize| {
        let value = Canonical::from_value(&json!(vec![0; items])).unwrap();
        schema.check(&value).unwrap_err().len()
    };
    assert_eq!(count(3), 3);
    assert_eq!(count(1000), MAX_VIOLATIONS);
    assert_eq!(count(200_000), 1);
}

#[test]
fn patterns_never_take_more_than_linear_time() {
    // Exponential for an engine that backtracks.
    let value = json!("a".repeat(100_000) + "!");
    for pattern in ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a*)*b"] {
        let message = check(&json!({"pattern": pattern}), &value).unwrap_err();
        assert!(message.starts_with("the arguments: expected a string that matches"), "{message}");
    }
    // Linear, but a thousand steps for each byte.
    let mut seed = 1u32;
    let noise: String = (0..3_000_000)
        .map(|_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if seed >> 31 == 0 { 'a' } else { 'b' }
        })
        .collect();
    let slow = json!({"pattern": "(a[ab]{900}|b[ab]{900})[c-z]"});
    assert_eq!(check(&slow, &json!(noise)), Err(TOO_LONG.to_owned()));
    let slow = json!({"patternProperties": {"(a[ab]{900}|b[ab]{900})[c-z]": true}});
    let mut map = Map::new();
    map.insert(noise, json!(1));
    assert_eq!(check(&slow, &Value::Object(map)), Err(TOO_LONG.to_owned()));
}

#[test]
fn ordinary_patterns_match_long_texts() {
    for (pattern, bytes) in [
        ("^[a-z]+$", 4_000_000),
        ("^[^/]{1,4000000}$", 4_000_000),
        ("^[^ ]+$", 300_000),
        ("^\\p{L}+$", 100_000),
        ("^[^/]{1,255}(/[^/]{1,255})*$", 250),
    ] {
        assert_eq!(check(&json!({"pattern": pattern}), &json!("a".repeat(bytes))), Ok(()), "{pattern}");
    }
}

#[test]
fn marks_are_bounded_like_checks() {
    let end = json!({"type": "string", "x-glovebox-path": "/workspace"});
    let twice = chain(60, |next| json!({"allOf": [next, next]}), &end);
    let schema = Schema::compile(&twice).unwrap();
    let value = Canonical::from_value(&json!("x")).unwrap();
    let error = schema.path_arguments(&value).unwrap_err();
    assert!(matches!(error, ArgumentsError::Rejected(_)));
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({"type": "integer"})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"minimum": 1, "maximum": 2.5})),
        Just(json!({"minLength": 1, "pattern": "^a"})),
        Just(json!({"enum": [1, "a", null, [1]]})),
        Just(json!({"const": {"a": 1}})),
        Just(json!({"required": ["a"]})),
        Just(json!({"uniqueItems": true, "maxItems": 2})),
        Just(json!({"$ref": "#/$defs/leaf"})),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..3);
        let map = prop::collection::btree_map("[ab]", inner.clone(), 0..3);
        prop_oneof![
            list.clone().prop_map(|list| json!({"allOf": list})),
            list.clone().prop_map(|list| json!({"anyOf": list})),
            list.clone().prop_map(|list| json!({"oneOf": list})),
            list.prop_map(|list| json!({"prefixItems": list, "items": false})),
            inner.clone().prop_map(|inner| json!({"not": inner})),
            inner.clone().prop_map(|inner| json!({"items": inner})),
            inner.clone().prop_map(|inner| json!({"contains": inner})),
            inner.clone().prop_map(|inner| json!({"propertyNames": inner})),
            (map.clone(), inner.clone())
                .prop_map(|(map, inner)| json!({"properties": map, "additionalProperties": inner})),
            (map.clone(), inner.clone())
                .prop_map(|(map, inner)| json!({"patternProperties": map, "unevaluatedProperties": inner})),
            (map, inner.clone()).prop_map(|(map, inner)| json!({"dependentSchemas": map, "else": inner})),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| json!({"if": a, "then": b, "else": c})),
        ]
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(1)),
        Just(json!(2.0)),
        Just(json!("a")),
        Just(json!("")),
        Just(json!(true)),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn verdicts_are_the_validators(schema in schemas(), value in values()) {
        let schema = json!({"allOf": [schema], "$defs": {"leaf": {"type": "integer"}}});
        let expected = jsonschema::draft202012::is_valid(&schema, &value);
        let compiled = Schema::compile(&schema).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let canonical = Canonical::from_value(&value).unwrap();
        match compiled.check(&canonical) {
            Ok(()) => prop_assert!(expected),
            Err(found) => {
                prop_assert!(!expected, "{found:?}");
                prop_assert!((1..=MAX_VIOLATIONS).contains(&found.len()));
                for violation in found {
                    let text = violation.to_string();
                    prop_assert!(text.chars().count() < 400, "{}", text);
                }
            }
        }
        prop_assert_eq!(compiled.path_arguments(&canonical).unwrap(), []);
    }
}
