//! Arguments against schemas: what is said, what is marked, what is refused.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use env_contracts::canon::{Canonical, ParseLimits};
use env_contracts::{Code, Diagnose};
use glovebox_plane::arguments::{ArgumentsError, MAX_VIOLATIONS, PathArgument, Schema, ViolationKind};
use serde_json::{Value, json};

fn arguments(text: &str) -> Canonical {
    Canonical::parse(text.as_bytes(), ParseLimits::default()).unwrap()
}

fn compile(schema: &Value) -> Schema {
    Schema::compile(schema).unwrap_or_else(|error| panic!("{error}: {schema}"))
}

/// The violations as text; empty when accepted.
fn violations(schema: &Value, value: &Value) -> Vec<String> {
    match compile(schema).check(&Canonical::from_value(value).unwrap()) {
        Ok(()) => vec![],
        Err(found) => found.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn violations_can_be_acted_upon() {
    let search = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "count": {"type": "integer", "minimum": 1, "maximum": 100},
            "ratio": {"type": "number", "exclusiveMinimum": 0},
            "mode": {"enum": ["fast", "exact"]},
            "version": {"const": 2},
            "tags": {"type": "array", "maxItems": 2, "uniqueItems": true, "items": {"$ref": "#/$defs/tag"}},
            "when": {"type": ["string", "null"], "pattern": "^\\d{4}$"},
            "range": {"anyOf": [
                {"type": "object", "required": ["from"], "additionalProperties": false,
                 "properties": {"from": {"type": "integer"}}},
                {"type": "string"}
            ]},
            "id": {"oneOf": [{"type": "integer"}, {"type": "string", "maxLength": 3}]},
            "flag": {"type": "boolean"},
            "never": false,
            "not": {"not": {"type": "string"}},
            "map": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}},
            "some": {"type": "array", "contains": {"type": "integer"}}
        },
        "$defs": {"tag": {"type": "string", "maxLength": 4}}
    });
    let cases = [
        (json!({"path": "a"}), vec![]),
        (json!(5), vec!["the arguments: expected an object whose `version` is 2, got 5"]),
        (json!({}), vec!["missing `path` (a string of at least 1 character)"]),
        (
            json!({"pth": "a"}),
            vec!["missing `path` (a string of at least 1 character)", "unknown property `pth`, did you mean `path`?"],
        ),
        (
            json!({"path": "a", "zzzzzz": 1}),
            vec![
                "unknown property `zzzzzz`, expected `path`, `count`, `ratio`, `mode`, `version`, `tags`, `when`, `range`, …",
            ],
        ),
        (json!({"path": "a", "count": "abc"}), vec!["at `/count`: expected an integer from 1 to 100, got \"abc\""]),
        (json!({"path": "a", "count": 101}), vec!["at `/count`: expected an integer from 1 to 100, got 101"]),
        (json!({"path": "a", "ratio": 0.0}), vec!["at `/ratio`: expected a number, above 0, got 0.0"]),
        (json!({"path": "a", "mode": "quick"}), vec!["at `/mode`: expected one of \"fast\", \"exact\", got \"quick\""]),
        (json!({"path": "a", "version": 3}), vec!["at `/version`: expected 2, got 3"]),
        (
            json!({"path": "a", "tags": ["a", "bcdef"]}),
            vec!["at `/tags/1`: expected a string of at most 4 characters, got \"bcdef\""],
        ),
        (
            json!({"path": "a", "tags": ["a", "b", "c"]}),
            vec!["at `/tags`: expected an array of at most 2 items, all of them different, got an array with 3 items"],
        ),
        (
            json!({"path": "a", "tags": ["a", "a"]}),
            vec!["at `/tags`: expected an array without equal items, got an array with 2 items"],
        ),
        (
            json!({"path": "a", "when": "x"}),
            vec!["at `/when`: expected a string that matches `^\\\\d{4}$` or null, got \"x\""],
        ),
        (json!({"path": "a", "range": {"from": "x"}}), vec!["at `/range/from`: expected an integer, got \"x\""]),
        (json!({"path": "a", "range": {}}), vec!["at `/range`: missing `from` (an integer)"]),
        (json!({"path": "a", "range": 5}), vec!["at `/range`: expected an object or a string, got 5"]),
        (
            json!({"path": "a", "id": "long"}),
            vec!["at `/id`: expected an integer or a string of at most 3 characters, got \"long\""],
        ),
        (json!({"path": "a", "flag": null}), vec!["at `/flag`: expected true or false, got null"]),
        (json!({"path": "a", "never": 1}), vec!["at `/never`: expected nothing at all, got 1"]),
        (json!({"path": "a", "not": "x"}), vec!["at `/not`: expected something else, got \"x\""]),
        (
            json!({"path": "a", "map": {"A": 1}}),
            vec!["at `/map`: expected property names to be a string that matches `^[a-z]+$`, got \"A\""],
        ),
        (
            json!({"path": "a", "some": ["x"]}),
            vec!["at `/some`: expected an array that has an integer, got an array with 1 item"],
        ),
    ];
    for (value, expected) in cases {
        assert_eq!(violations(&search, &value), expected, "{value}");
    }
    let result = compile(&search).for_result();
    let found = result.check(&arguments("5")).unwrap_err();
    assert_eq!(found[0].to_string(), "the result: expected an object whose `version` is 2, got 5");
}

#[test]
fn violations_are_few_short_and_escaped() {
    let evil = format!("\u{1b}[2J\u{202e}`{}", "x".repeat(1000));
    let schema = json!({
        "type": "object",
        "additionalProperties": {"enum": [evil, 1]},
        "properties": {"known": {"type": "string", "pattern": evil.replace('[', "\\[") + "y"}}
    });
    let mut value = json!({"known": evil, evil.as_str(): evil});
    for index in 0..100 {
        value[format!("{index}{evil}")] = json!({"a": evil});
    }
    let found = compile(&schema).check(&Canonical::from_value(&value).unwrap()).unwrap_err();
    assert_eq!(found.len(), MAX_VIOLATIONS);
    for violation in found {
        let text = violation.to_string();
        assert!(text.chars().count() < 400, "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    }
}

#[test]
fn misspelled_and_missing_are_told_apart() {
    let schema = compile(&json!({
        "type": "object", "additionalProperties": false,
        "required": ["path"], "properties": {"path": {"type": "string"}}
    }));
    let found = schema.check(&arguments(r#"{"pth":1}"#)).unwrap_err();
    let kinds: Vec<_> = found.iter().map(|violation| violation.kind).collect();
    assert_eq!(kinds, [ViolationKind::Missing, ViolationKind::Misspelled]);
    assert_eq!((found[1].at.as_str(), found[1].got.as_str()), ("the arguments", "`pth`"));
    let error = schema.accept(&arguments("{}")).unwrap_err();
    assert_eq!(error.code(), Code::SchemaRejected);
    assert_eq!(error.exit_code(), 20);
}

#[test]
fn strings_of_digits_are_integers_where_the_schema_says_so() {
    let schema = compile(&json!({
        "type": "object",
        "properties": {
            "size": {"type": "integer", "format": "uint64"},
            "delta": {"type": ["integer", "null"], "format": "int64"},
            "list": {"type": "array", "items": {"$ref": "#/$defs/size"}},
            "all": {"allOf": [{"type": "integer", "format": "uint64"}]},
            "a/b": {"type": "integer", "format": "uint64"},
            "text": {"type": "string"},
            "plain": {"type": "integer"},
            "either": {"type": ["integer", "string"], "format": "uint64"},
            "branch": {"anyOf": [{"type": "string"}, {"type": "integer", "format": "uint64"}]}
        },
        "$defs": {"size": {"type": "integer", "format": "uint64"}}
    }));
    let accepted = [
        (r#"{"size":"5"}"#, r#"{"size":5}"#),
        (r#"{"size":5}"#, r#"{"size":5}"#),
        (r#"{"size":"18446744073709551615"}"#, r#"{"size":18446744073709551615}"#),
        (r#"{"delta":"-9223372036854775808"}"#, r#"{"delta":-9223372036854775808}"#),
        (r#"{"delta":null}"#, r#"{"delta":null}"#),
        (r#"{"list":["1",2]}"#, r#"{"list":[1,2]}"#),
        (r#"{"all":"7"}"#, r#"{"all":7}"#),
        (r#"{"a/b":"7"}"#, r#"{"a/b":7}"#),
        // Elsewhere a string stays a string.
        (r#"{"text":"5"}"#, r#"{"text":"5"}"#),
        (r#"{"either":"5"}"#, r#"{"either":"5"}"#),
        (r#"{"branch":"5"}"#, r#"{"branch":"5"}"#),
        (r#"{"unknown":"5"}"#, r#"{"unknown":"5"}"#),
    ];
    for (sent, used) in accepted {
        let got = schema.accept(&arguments(sent)).unwrap();
        assert_eq!(got.as_str(), used, "{sent}");
        assert_eq!(got.digest(), arguments(used).digest(), "{sent}");
    }
    let refused = [
        r#"{"size":"-1"}"#,
        r#"{"size":"05"}"#,
        r#"{"size":"+5"}"#,
        r#"{"size":" 5"}"#,
        r#"{"size":"5.0"}"#,
        r#"{"size":""}"#,
        r#"{"size":"18446744073709551616"}"#,
        r#"{"delta":"-0"}"#,
        r#"{"delta":"9223372036854775808"}"#,
        r#"{"plain":"5"}"#,
        // Numbers out of the range of the format.
        r#"{"size":-1}"#,
        r#"{"size":-1.0}"#,
        r#"{"size":1e300}"#,
        r#"{"delta":9223372036854775808}"#,
    ];
    for sent in refused {
        let error = schema.accept(&arguments(sent)).unwrap_err();
        assert_eq!(error.code(), Code::SchemaRejected, "{sent}: {error}");
    }
    let error = schema.accept(&arguments(r#"{"size":-1}"#)).unwrap_err().to_string();
    assert_eq!(error, "at `/size`: expected an integer from 0 to 18446744073709551615, got -1");
}

#[test]
fn digests_differ_where_meanings_differ() {
    let schema = compile(&json!({"type": "object", "properties": {"n": {"type": "integer", "format": "uint64"}}}));
    let digest = |text: &str| schema.accept(&arguments(text)).unwrap().digest();
    assert_eq!(digest(r#"{"n":5}"#), digest(r#"{"n":"5"}"#));
    assert_eq!(digest(r#"{"n":5,"m":1}"#), digest(r#"{"m":1,"n":5}"#));
    assert_ne!(digest(r#"{"m":5}"#), digest(r#"{"m":"5"}"#));
    assert_ne!(digest(r#"{"m":null}"#), digest("{}"));
    assert_ne!(digest(r#"{"m":[1,2]}"#), digest(r#"{"m":[2,1]}"#));
}

#[test]
fn path_arguments_are_found() {
    let marked = json!({"type": "string", "x-glovebox-path": "/workspace"});
    let input = json!({"type": ["string", "null"], "x-glovebox-path": "/inputs/data"});
    let schema = compile(&json!({
        "type": "object",
        "properties": {
            "path": marked,
            "maybe": input,
            "more": {"type": "array", "items": {"$ref": "#/$defs/file"}},
            "pair": {"prefixItems": [true, marked], "items": input},
            "named": {"type": "object", "properties": {"size": {"type": "integer"}}, "additionalProperties": marked},
            "both": {"allOf": [{"$ref": "#/$defs/file"}, {"minLength": 1}]},
            "either": {"anyOf": [marked, {"type": "integer"}]},
            "tree": {"$ref": "#/$defs/tree"},
            "a/b~": marked,
            "text": {"type": "string"},
            "x-glovebox-path": {"type": "string"}
        },
        "$defs": {
            "file": marked,
            "tree": {"type": "object", "properties": {
                "file": marked, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}
            }}
        }
    }));
    let value = arguments(
        r#"{
        "path": "p", "maybe": "m", "more": ["1", "2"], "pair": ["no", "second", "third"],
        "named": {"size": 1, "k": "v"}, "both": "b", "either": "e",
        "tree": {"file": "f0", "children": [{"children": [{"file": "f1"}]}]},
        "a/b~": "s", "text": "not a path", "x-glovebox-path": "neither", "other": "nor this"
    }"#,
    );
    schema.check(&value).unwrap();
    let found = schema.path_arguments(&value).unwrap();
    let expected = [
        ("/a~1b~0", "/workspace", "s"),
        ("/both", "/workspace", "b"),
        ("/either", "/workspace", "e"),
        ("/maybe", "/inputs/data", "m"),
        ("/more/0", "/workspace", "1"),
        ("/more/1", "/workspace", "2"),
        ("/named/k", "/workspace", "v"),
        ("/pair/1", "/workspace", "second"),
        ("/pair/2", "/inputs/data", "third"),
        ("/path", "/workspace", "p"),
        ("/tree/children/0/children/0/file", "/workspace", "f1"),
        ("/tree/file", "/workspace", "f0"),
    ];
    let expected = expected.map(|(pointer, mount, value)| PathArgument {
        pointer: pointer.into(),
        mount: mount.into(),
        value: value.into(),
    });
    assert_eq!(found, expected);
    let none = schema.path_arguments(&arguments(r#"{"maybe":null,"either":5}"#)).unwrap();
    assert_eq!(none, []);
}

#[test]
fn formats_are_annotations() {
    for format in ["email", "uri", "regex", "date-time", "made-up"] {
        let schema = json!({"type": "string", "format": format});
        assert_eq!(violations(&schema, &json!("(not one of those")), [""; 0], "{format}");
    }
}

#[test]
fn unreadable_arguments_keep_their_code() {
    let error = Canonical::parse(br#"{"a":1,"a":2}"#, ParseLimits::default()).unwrap_err();
    let help = error.help();
    let error = ArgumentsError::from(error);
    assert_eq!((error.code(), error.help()), (Code::ArgumentsInvalid, help));
}
