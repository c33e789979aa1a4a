//! The mapping of arguments, row by row, and what becomes of what it leaves out.

use env_contracts::{Manifest, Verdict};
use glovebox_policy::{Reason, hidden_arguments, schema_text};
use serde_json::{Value, json};

use crate::support::{World, policy, taking, tool};

/// A tool with the argument `x` of this schema, which has to be there.
fn with(schema: &Value) -> Manifest {
    tool(json!({ "type": "object", "properties": { "x": schema }, "required": ["x"] }), json!({}))
}

/// Whether a rule that is met by the condition, and only by it, permits. Loading
/// checks the rule against the schema, so the types are tested as well.
fn met(manifest: &Manifest, condition: &str, arguments: Value) -> bool {
    let rule = format!("permit (principal, action in Action::\"run\", resource) when {{ {condition} }};");
    let set = policy(&rule, std::slice::from_ref(manifest));
    let decision = World::new(manifest.clone()).with(arguments).decide(&set);
    assert_eq!(decision.errors, Vec::<String>::new(), "{condition}");
    decision.verdict == Verdict::Allow
}

#[test]
fn every_row_of_the_mapping_holds() {
    let string = json!({ "type": "string" });
    let integers = json!({ "type": "array", "items": { "type": "integer" } });
    let record = json!({ "type": "object", "required": ["a"], "properties": {
        "a": { "type": "integer" }, "b": { "type": "object", "properties": { "c": { "type": "boolean" } } },
    } });
    for (schema, ty, value, condition) in [
        (&string, "String", json!("5"), "context.args.x == \"5\""),
        (&json!({ "enum": ["a", "b"] }), "String", json!("a"), "context.args.x == \"a\""),
        (&json!({ "const": "a" }), "String", json!("a"), "context.args.x == \"a\""),
        (&json!({ "type": "integer" }), "Long", json!(5), "context.args.x == 5"),
        (&json!({ "type": "integer" }), "Long", json!(5.0), "context.args.x == 5"),
        (&json!({ "type": "integer" }), "Long", json!(i64::MIN), "context.args.x < -9223372036854775807"),
        (&json!({ "type": "integer" }), "Long", json!(i64::MAX), "context.args.x == 9223372036854775807"),
        (&json!({ "type": "integer", "format": "int64" }), "Long", json!("-7"), "context.args.x == -7"),
        (&json!({ "type": "boolean" }), "Bool", json!(true), "context.args.x"),
        (
            &json!({ "type": "array", "items": string }),
            "Set<String>",
            json!(["b", "a", "b"]),
            "context.args.x == [\"a\", \"b\"]",
        ),
        (&integers, "Set<Long>", json!([1, 2]), "context.args.x.contains(2)"),
        (&integers, "Set<Long>", json!([]), "context.args.x.isEmpty()"),
        (
            &json!({ "type": "array", "items": { "enum": ["a"] } }),
            "Set<String>",
            json!(["a"]),
            "context.args.x.contains(\"a\")",
        ),
        (
            &record,
            "{ \"a\": Long, \"b\"?: { \"c\"?: Bool } }",
            json!({ "a": 1, "b": { "c": true } }),
            "context.args.x.a == 1 && context.args.x has b && context.args.x.b has c && context.args.x.b.c",
        ),
    ] {
        let manifest = with(schema);
        assert_eq!(hidden_arguments(&manifest), [], "{schema}");
        let text = schema_text([&manifest]);
        assert!(text.contains(&format!("\"x\": {ty} ")), "{schema}: {ty} in {text}");
        assert!(met(&manifest, condition, json!({ "x": value })), "{schema} {value}: {condition}");
    }
}

#[test]
fn what_may_be_null_is_absent_where_it_is() {
    for schema in [json!({ "type": ["string", "null"] }), json!({ "enum": ["a", null] })] {
        let manifest = with(&schema);
        let there = "context.args has x && context.args.x == \"a\"";
        assert!(met(&manifest, there, json!({ "x": "a" })), "{schema}");
        for absent in [json!({ "x": null }), json!({})] {
            assert!(met(&manifest, "!(context.args has x)", absent), "{schema}");
        }
    }
    let optional = taking(json!({ "x": { "type": "string" } }));
    assert!(schema_text([&optional]).contains("\"x\"?: String"));
}

#[test]
fn every_row_of_what_is_hidden_is_hidden_and_listed() {
    for (schema, why) in [
        (json!({ "type": "number" }), "fraction"),
        (json!({ "type": "array" }), "items"),
        (json!({ "type": "array", "items": { "type": "number" } }), "fraction"),
        (json!({ "type": "array", "items": { "type": "array", "items": { "type": "string" } } }), "arrays"),
        (
            json!({ "type": "array", "items": { "type": "object", "properties": { "a": { "type": "string" } } } }),
            "objects",
        ),
        (json!({ "type": "array", "items": { "type": ["string", "null"] } }), "null"),
        (json!({ "type": "array", "items": { "type": "string" }, "prefixItems": [] }), "different"),
        (json!({ "type": "object" }), "does not name"),
        (json!({ "type": "object", "additionalProperties": { "type": "string" } }), "does not name"),
        (json!({ "type": ["string", "integer"] }), "several types"),
        (json!({ "type": "null" }), "null"),
        (json!({ "anyOf": [{ "type": "string" }] }), "anyOf"),
        (json!({ "oneOf": [{ "type": "string" }] }), "oneOf"),
        (json!({ "type": "string", "allOf": [{ "maxLength": 3 }] }), "allOf"),
        (json!({ "type": "string", "not": { "const": "a" } }), "not"),
        (json!({ "type": "string", "if": { "const": "a" } }), "if"),
        (json!({ "$ref": "#/$defs/a" }), "$ref"),
        (json!({ "enum": ["a", 1] }), "not all strings"),
        (json!({ "const": 1 }), "not all strings"),
        (json!({}), "no type"),
        (json!(true), "says nothing"),
    ] {
        let manifest = with(&schema);
        let hidden = hidden_arguments(&manifest);
        assert_eq!(hidden.len(), 1, "{schema}");
        assert!(hidden[0].path == ["x"] && hidden[0].why.contains(why), "{schema}: {hidden:?}");
        assert!(schema_text([&manifest]).contains("args: {  }"), "{schema}");
    }
    let nested =
        with(&json!({ "type": "object", "properties": { "a": { "type": "number" }, "b": { "type": "string" } } }));
    assert_eq!(hidden_arguments(&nested)[0].path, ["x", "a"]);
}

/// A value that a rule can't see is no way around a rule that looks there: where
/// it is left out, `has` would be false and the rule would not hold.
#[test]
fn a_hidden_value_is_no_way_around_a_rule() {
    let tool = taking(json!({
        "amount": { "type": "integer" }, "options": { "type": "object", "properties": { "n": { "type": "integer" } } },
        "sizes": { "type": "array", "items": { "type": "integer" } }, "note": {}, "name": { "type": "string" },
    }));
    let allow = "permit (principal, action in Action::\"run\", resource) when { true };\n";
    let decide = |condition: &str, arguments: Value| {
        let rule = format!(
            "@id(\"looks\")\nforbid (principal, action in Action::\"run\", resource) when {{ {condition} }};\n{allow}"
        );
        World::new(tool.clone()).with(arguments).decide(&policy(&rule, std::slice::from_ref(&tool)))
    };
    let amount = "context.args has amount && context.args.amount > 100";
    assert_eq!(decide(amount, json!({ "amount": 100 })).verdict, Verdict::Allow);
    assert_eq!(decide(amount, json!({ "amount": 101 })).reason, Reason::Forbidden);
    let deep = "context.args has options && context.args.options has n && context.args.options.n > 100";
    for (condition, arguments) in [
        (amount, json!({ "amount": u64::MAX })),
        (amount, json!({ "amount": 1e30 })),
        (deep, json!({ "options": { "n": u64::MAX } })),
        ("context.args has sizes && context.args.sizes.contains(7)", json!({ "sizes": [7, u64::MAX] })),
        ("context.args has note", json!({ "note": [1] })),
        ("context.args == context.args && false", json!({ "amount": u64::MAX })),
    ] {
        let decision = decide(condition, arguments.clone());
        assert_eq!((decision.verdict, decision.reason), (Verdict::Deny, Reason::EvaluationError), "{condition}");
        assert!(decision.errors[0].contains("rule `looks` (rules.cedar:1)"), "{:?}", decision.errors);
    }
    // Where no rule looks, nothing is wrong with it.
    for arguments in [
        json!({ "amount": 5, "note": [1] }),
        json!({ "amount": 5, "options": { "other": 1 } }),
        json!({ "amount": 5, "undeclared": 1 }),
    ] {
        assert_eq!(decide(amount, arguments.clone()).verdict, Verdict::Allow, "{arguments}");
    }
}

/// A rule about another tool does not look at this one's arguments.
#[test]
fn a_rule_about_another_tool_does_not_count_as_looking() {
    let (tool, mut other) =
        (taking(json!({ "n": { "type": "integer" } })), taking(json!({ "n": { "type": "integer" } })));
    other.name = "other.tool".parse().unwrap();
    let rules = "permit (principal, action in Action::\"run\", resource) when { true };\n\
         forbid (principal, action == Action::\"other.tool@1.0.0\", resource) when { context.args has n && context.args.n > 1 };";
    let set = policy(rules, &[tool.clone(), other.clone()]);
    let arguments = json!({ "n": u64::MAX });
    assert_eq!(World::new(tool).with(arguments.clone()).decide(&set).verdict, Verdict::Allow);
    assert_eq!(World::new(other).with(arguments).decide(&set).verdict, Verdict::Deny);
}

/// Names that Cedar or its JSON could take for something else.
#[test]
fn odd_names_and_values_are_plain_data() {
    for name in ["a b", "a\"b", "__entity", "__extn", "type", "é\u{1}", "a.b", "${x}"] {
        let manifest = taking(json!({ name: { "type": "string" } }));
        let quoted = format!("\"{}\"", name.escape_default());
        let condition = format!("context.args has {quoted} && context.args[{quoted}] == \"*\\\" || true\"");
        assert!(met(&manifest, &condition, json!({ name: "*\" || true" })), "{name}");
        assert!(!met(&manifest, &condition, json!({ name: "other" })), "{name}");
    }
}
