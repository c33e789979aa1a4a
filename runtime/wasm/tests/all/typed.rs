//! Functions with types of their own, called with JSON.

use std::sync::{Arc, LazyLock};

use env_contracts::Code;
use glovebox_runtime::job::{End, Entry, Limit};
use glovebox_wasm::Loaded;
use glovebox_wasm::typed::{ExportedFunction, exports};
use serde_json::{Value, json};

use crate::harness::{Act, Came, built, executor, load};

const SHAPES: &str = "example:typed/shapes@1.0.0";
const DATA: &str = "example:typed/data@1.0.0";

fn bytes() -> Vec<u8> {
    built("tests/guests/dist/typed.wasm")
}

fn typed() -> &'static Loaded {
    static TYPED: LazyLock<Arc<Loaded>> = LazyLock::new(|| load(&bytes()));
    &TYPED
}

pub(crate) fn call_in(loaded: &Loaded, interface: Option<&str>, function: &str, args: &Value) -> Came {
    let entry = Entry::Export { interface: interface.map(str::to_owned), function: function.into() };
    Act::new(entry, &args.to_string()).run(loaded)
}

fn call(interface: Option<&str>, function: &str, args: &Value) -> End {
    call_in(typed(), interface, function, args).end
}

/// The result of a call that succeeds.
pub(crate) fn returned(end: End) -> Value {
    let End::Returned { content, artifacts } = end else { panic!("{end:?}") };
    assert!(artifacts.is_empty());
    serde_json::from_str(&content).unwrap()
}

fn everything() -> Value {
    json!({
        "truth": true,
        "a-s8": -128, "a-u8": 255, "a-s16": -32768, "a-u16": 65535, "a-s32": i32::MIN, "a-u32": u32::MAX,
        "a-s64": i64::MIN, "a-u64": u64::MAX,
        "a-f32": 0.1, "a-f64": -0.0,
        "letter": "\u{1F9E4}", "text": "ä\u{0}\n", "bytes": "AP+A",
        "colours": ["blue", "red"], "rights": ["read", "exec"], "pair": [7, "seven"],
        "shape": { "tag": "polygon", "val": [{ "x": 1.5, "y": "NaN", "label": "a" }, { "x": "-Infinity", "y": 1e300 }] },
        "maybe": 5, "nested": { "some": null }, "outcome": { "tag": "err", "val": "no" }, "quiet": { "tag": "ok" },
    })
}

#[test]
fn every_type_comes_back_as_it_went() {
    let sent = everything();
    let given = returned(call(Some(SHAPES), "echo", &json!({ "all": sent })));
    assert_eq!(given.to_string(), sent.to_string());
}

#[test]
fn what_is_left_out_and_what_is_null_are_none() {
    let mut sent = everything();
    let fields = sent.as_object_mut().unwrap();
    fields.remove("nested");
    fields["maybe"] = Value::Null;
    // What is spelled otherwise comes back in the one usual way.
    fields["rights"] = json!(["exec", "read"]);
    fields["a-u64"] = json!(1e19);
    fields["a-u8"] = json!(255.0);
    let given = returned(call(Some(SHAPES), "echo", &json!({ "all": sent })));
    assert!(given.get("maybe").is_none() && given.get("nested").is_none(), "{given}");
    assert_eq!(given["rights"], json!(["read", "exec"]));
    assert_eq!((&given["a-u64"], &given["a-u8"]), (&json!(10_000_000_000_000_000_000_u64), &json!(255)));
    assert_eq!(returned(call(Some(SHAPES), "centre", &json!({ "shape": { "tag": "nothing" } }))), Value::Null);
    let circle = json!({ "shape": { "tag": "circle", "val": 2 }, "scale": null });
    assert_eq!(returned(call(Some(SHAPES), "centre", &circle))["label"], "circle");
}

#[test]
fn functions_of_no_interface_are_called_too() {
    assert_eq!(returned(call(None, "greet", &json!({ "name": "Ada" }))), "Hello, Ada!");
    assert_eq!(
        returned(call(None, "whole", &json!({ "names": { "first": "Ada", "last": "Lovelace" } }))),
        "Ada Lovelace"
    );
    assert_eq!(returned(call(None, "nothing", &json!({}))), Value::Null);
    let end = call(None, "crash", &json!({}));
    assert!(matches!(end, End::Trapped(_)), "{end:?}");
}

/// An error that the function says is a failure of the tool, never a result.
#[test]
fn an_error_of_the_function_is_a_failure() {
    assert_eq!(returned(call(Some(SHAPES), "add", &json!({ "a": 2, "b": 3 }))), 5);
    let cases = [
        (SHAPES, "add", json!({ "a": u32::MAX, "b": 1 }), "blue", "\"blue\""),
        (DATA, "encode", json!({ "text": "" }), "there is no text", "\"there is no text\""),
        (DATA, "decode", json!({ "bytes": "/w==", "name": "it" }), "it is no text", "\"it is no text\""),
    ];
    for (interface, function, args, message, details) in cases {
        let End::Failed(failure) = call(Some(interface), function, &args) else { panic!("{function}") };
        assert_eq!((failure.kind.as_str(), failure.message.as_str()), ("tool-error", message));
        assert_eq!(failure.details.as_deref(), Some(details));
    }
}

#[test]
fn what_does_not_fit_the_types_never_reaches_the_guest() {
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut sent = everything();
        change(&mut sent);
        match call(Some(SHAPES), "echo", &json!({ "all": sent })) {
            End::Refused(problem) if problem.code == Code::SchemaRejected => problem.message,
            other => panic!("{other:?}"),
        }
    };
    for (field, value, place) in [
        ("a-u8", json!(256), "/all/a-u8"),
        ("a-u8", json!(1.5), "/all/a-u8"),
        ("a-s8", json!(-129), "/all/a-s8"),
        ("a-u64", json!(-1), "/all/a-u64"),
        ("a-u64", json!(18_446_744_073_709_551_616.0), "/all/a-u64"),
        ("a-f32", json!(1e39), "/all/a-f32"),
        ("a-f64", json!("nan"), "/all/a-f64"),
        ("letter", json!("ab"), "/all/letter"),
        ("letter", json!(""), "/all/letter"),
        ("bytes", json!("AP+"), "/all/bytes"),
        ("colours", json!(["pink"]), "/all/colours/0"),
        ("rights", json!(["read", "read"]), "/all/rights/1"),
        ("pair", json!([1]), "/all/pair"),
        ("shape", json!({ "tag": "circle" }), "/all/shape/val"),
        ("shape", json!({ "tag": "nothing", "val": 1 }), "/all/shape/val"),
        ("shape", json!({ "tag": "nothing", "more": 1 }), "/all/shape"),
        ("shape", json!({ "tag": "square" }), "/all/shape/tag"),
        ("nested", json!(5), "/all/nested"),
        ("outcome", json!({ "tag": "maybe" }), "/all/outcome/tag"),
        ("truth", json!(1), "/all/truth"),
        ("extra", json!(1), "/all/extra"),
        ("truth", Value::Null, "/all/truth"),
    ] {
        let message = wrong(&|sent| sent[field] = value.clone());
        assert!(message.contains(&format!("`{place}`")), "{field} = {value}: {message}");
    }
    let message = wrong(&|sent| drop(sent.as_object_mut().unwrap().remove("text")));
    assert!(message.contains("`/all/text`"), "{message}");
}

#[test]
fn bytes_go_through_whole_where_the_signature_allows_and_are_bounded_where_not() {
    let mib = vec![5_u8; 1 << 20];
    let base64 = data_encoding::BASE64.encode(&mib);
    let act = |function: &str, args: Value| {
        let entry = Entry::Export { interface: Some(DATA.into()), function: function.into() };
        Act::new(entry, &args.to_string())
    };
    let whole = act("reverse", json!({ "bytes": base64 })).run(typed());
    assert!(returned(whole.end) == base64.as_str());
    let refused = act("tail", json!({ "bytes": base64, "skip": 1 })).run(typed()).end;
    let End::Refused(problem) = refused else { panic!("{refused:?}") };
    assert!(problem.message.contains("at most 256 KiB") && problem.message.contains("--input"), "{}", problem.message);
    let short = data_encoding::BASE64.encode(&mib[..100_000]);
    let given = returned(act("tail", json!({ "bytes": short, "skip": 99_997 })).run(typed()).end);
    assert_eq!(given, "BQUF");
    // What comes out is bounded by what one call may bring.
    let came = act("many", json!({ "count": 4 << 20 })).limit(|limits| limits.memory = 256 << 20).run(typed());
    assert_eq!(came.end, End::LimitHit(Limit::HostCall));
}

#[test]
fn the_entry_has_to_be_exported() {
    for (interface, function) in [(Some(SHAPES), "no"), (Some("example:other/shapes"), "add"), (None, "add")] {
        let End::Refused(problem) = call(interface, function, &json!({})) else { panic!("{function}") };
        assert_eq!(problem.code, Code::ComponentExports);
        assert!(typed().exports(interface, function) == (problem.code != Code::ComponentExports));
    }
    assert!(typed().exports(Some(SHAPES), "add") && !typed().is_tool() && !typed().is_command());
}

fn of<'a>(all: &'a [ExportedFunction], function: &str) -> &'a ExportedFunction {
    all.iter().find(|known| known.function == function).unwrap_or_else(|| panic!("{function}: {all:?}"))
}

/// The committed text is what a person reviews.
#[test]
fn the_schemas_say_what_the_types_say() {
    let all = exports(&with_docs(&bytes())).unwrap();
    let mut text = String::new();
    for known in &all {
        let signature = known.signature.as_ref().unwrap();
        text.push_str(&format!("{}\n", known.place()));
        let mut line = |name: &str, value: &dyn std::fmt::Display| text.push_str(&format!("  {name}: {value}\n"));
        line("docs", &json!(known.docs));
        lines("input", &signature.input, &mut line);
        lines("output", &signature.output, &mut line);
        line("error", &json!(signature.error));
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/typed.txt");
    let committed = fs_err::read_to_string(&path).unwrap_or_default();
    if committed != text {
        fs_err::write(path.with_extension("new"), &text).unwrap();
        panic!("the schemas changed; compare {} and typed.new beside it", path.display());
    }
}

/// A schema, the fields of an object and of the objects in it a line each.
fn lines(name: &str, schema: &Value, line: &mut dyn FnMut(&str, &dyn std::fmt::Display)) {
    let mut outline = schema.clone();
    let fields = outline.as_object_mut().and_then(|schema| schema.remove("properties"));
    line(name, &outline);
    for (field, schema) in fields.iter().filter_map(Value::as_object).flatten() {
        lines(&format!("{name}.{field}"), schema, line);
    }
}

/// The component with a section of doc comments, as tools write it.
fn with_docs(component: &[u8]) -> Vec<u8> {
    let docs = json!({
        "worlds": { "typed": {
            "func_exports": { "greet": { "docs": "Greets somebody." } },
            "types": { "names": { "docs": "What somebody is called." } },
        } },
        "interfaces": { "shapes": {
            "funcs": { "add": { "docs": "The sum of both, if it fits." }, "centre": "Where the shape lies, if it does." },
            "types": {
                "colour": { "docs": "A colour of the rainbow.", "items": { "red": "Like a rose.", "blue": "Like the sky." } },
                "rights": { "items": { "exec": "Run it as a program." } },
                "point": { "docs": "A place on a plane.", "items": { "x": "To the right.", "label": "What it is called." } },
                "shape": { "items": { "circle": "A circle by its radius." } },
            },
        } },
    });
    section(component, &[&[1], docs.to_string().as_bytes()].concat())
}

/// The component with a custom section of this content.
fn section(component: &[u8], content: &[u8]) -> Vec<u8> {
    let leb = |mut value: usize| {
        let mut out = Vec::new();
        loop {
            let more = value > 0x7f;
            out.push(u8::try_from(value & 0x7f).unwrap() | if more { 0x80 } else { 0 });
            value >>= 7;
            if !more {
                return out;
            }
        }
    };
    let name = b"package-docs";
    let body = [&leb(name.len())[..], name, content].concat();
    [component, &[0], &leb(body.len()), &body].concat()
}

#[test]
fn comments_that_are_none_do_no_harm() {
    let plain = exports(&bytes()).unwrap();
    assert_eq!(of(&plain, "greet").docs, None);
    let other_world = br#"{"worlds":{"other":{"docs":"x"}},"interfaces":{"other":{}}}"#;
    let deep = "[".repeat(100_000);
    for content in [&b""[..], b"\x01", b"\x01[]", b"\x07{}", b"\x01{\"interfaces\":5}", deep.as_bytes()] {
        assert_eq!(exports(&section(&bytes(), content)).unwrap(), plain);
    }
    assert_eq!(exports(&section(&bytes(), &[&[1], &other_world[..]].concat())).unwrap(), plain);
    let twice = section(&with_docs(&bytes()), b"\x01{}");
    assert_eq!(of(&exports(&twice).unwrap(), "greet").docs.as_deref(), Some("Greets somebody."));
}

#[test]
fn types_without_json_are_refused_with_their_place() {
    let resources = wat::parse_bytes(&built("tests/guests/wat/resources.wat")).unwrap().into_owned();
    let all = exports(&resources).unwrap();
    let reason = |function: &str| of(&all, function).signature.clone().unwrap_err();
    assert_eq!(reason("take"), "parameter `it` of `take`, field `inner`, item: resource `thing`");
    assert_eq!(reason("make"), "result of `make`: resource `thing`");
    assert_eq!(reason("fail"), "error of `fail`: resource `thing`");
    assert_eq!(reason("[method]thing.touch"), "it belongs to resource `thing`");
    assert!(of(&all, "plain").signature.is_ok());
    // It can still be loaded, and what has JSON can be called.
    let loaded = load(&resources);
    assert_eq!(returned(call_in(&loaded, Some("test:guests/things"), "plain", &json!({ "n": 5 })).end), 5);
    // A manifest may still name one of the others.
    let end = call_in(&loaded, Some("test:guests/things"), "take", &json!({ "it": { "inner": [1] } })).end;
    assert!(matches!(&end, End::Refused(problem) if problem.message.contains("JSON")), "{end:?}");
}

#[test]
fn types_of_strangers_are_bounded() {
    // Each type holds the one before twice: small to write, huge as a schema.
    let doubling: String = (1..13)
        .map(|n| format!("(type $r{n}' (record (field \"a\" $r{0}) (field \"b\" $r{0}))) (import \"r{n}\" (type $r{n} (eq $r{n}')))\n", n - 1))
        .collect();
    let deep: String = (1..60).map(|n| format!("(type $r{n} (list $r{}))\n", n - 1)).collect();
    let first = "(type $r0' (record (field \"x\" u8))) (import \"r0\" (type $r0 (eq $r0')))\n";
    for (types, last, why) in [(doubling, 12, "types within types"), (deep, 59, "in one another")] {
        let component = wat::parse_str(format!(
            r#"(component
                (core module $m (memory (export "memory") 1)
                    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0))
                    (func (export "f") (param i32 i32)))
                (core instance $i (instantiate $m))
                {first}{types}
                (func $f (param "x" (list $r{last})) (canon lift (core func $i "f") (memory (core memory $i "memory"))
                    (realloc (core func $i "realloc"))))
                (export "f" (func $f)))"#
        ));
        let all = exports(&component.unwrap()).unwrap();
        let reason = all[0].signature.clone().unwrap_err();
        assert!(reason.starts_with("parameter `x` of `f`, item") && reason.contains(why), "{reason}");
    }
    let many: String = (0..20_000).map(|_| "(type u8)\n").collect();
    let error = exports(&wat::parse_str(format!("(component {many})")).unwrap()).unwrap_err();
    assert!(error.to_string().contains("more than 10000 types"), "{error}");
    for file in [&b"\0asm\x01\0\0\0"[..], b"\0asm", b"", &bytes()[..2000]] {
        exports(file).unwrap_err();
    }
}

#[test]
fn nothing_is_kept_between_calls() {
    for _ in 0..2 {
        assert_eq!(returned(call(Some(DATA), "many", &json!({ "count": 2 }))), "Bwc=");
    }
    assert!(executor().loaded(typed().component(), glovebox_runtime::job::UngrantedImports::Refuse).is_some());
}
