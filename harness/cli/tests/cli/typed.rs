//! Any component is a tool: functions with types of their own.

use std::os::unix::fs::MetadataExt as _;

use serde_json::{Value, json};

use crate::support::{House, guest, typed};

#[test]
fn every_function_of_a_component_becomes_a_tool() {
    let house = House::new();
    let file = house.file("typed.wasm", typed());
    let added = house.run(&["tool", "add", &file]).ok();
    assert!(added.stderr.contains("registered shapes.add@0.1.0"), "{}", added.stderr);
    let listed = house.run(&["tool", "list"]).ok().stdout;
    for name in ["shapes.add", "shapes.centre", "data.reverse", "typed.greet"] {
        assert!(listed.contains(&format!("{name}@0.1.0")), "{listed}");
    }
    // Its component is on disk once.
    let file_of = |name: &str| {
        let path = house.state().join(format!("tools/{name}/0.1.0/component.wasm"));
        fs_err::metadata(path).unwrap().ino()
    };
    assert_eq!(file_of("shapes.add"), file_of("data.tail"));
    // Its schema is read from its types, and is what arguments are held against.
    let shown = house.run(&["tool", "show", "shapes.add"]).ok().stdout;
    for words in ["a  integer  required", "function example:typed/shapes@1.0.0#add"] {
        assert!(shown.contains(words), "`{words}` is missing: {shown}");
    }
    // It names a type of its world as an import, which nobody has to grant.
    let whole = house.run(&["tool", "show", "typed.whole", "--json"]).ok().json();
    assert_eq!(whole["manifest"]["contract"]["wasm"], Value::Null, "{whole}");
    let seen = house.run(&["run", "shapes.add", "--arg", "a=2", "--arg", "b=3", "--json"]).ok().json();
    assert_eq!(seen["data"], 5);
    let point =
        json!({ "shape": { "tag": "polygon", "val": [{ "x": 1, "y": "Infinity" }] }, "scale": 2.5 }).to_string();
    let seen = house.run(&["run", "shapes.centre", "--args", &point, "--json"]).ok().json();
    assert_eq!(seen["data"], json!({ "x": 2.5, "y": "Infinity" }));
    assert_eq!(house.run(&["run", "typed.greet", "--arg", "name=5", "--raw"]).ok().stdout, "Hello, 5!");
    let square = house.run(&["run", "shapes.centre", "--args", r#"{"shape": {"tag": "square"}}"#]);
    assert!(square.code == 20 && square.stdout.contains("an object whose `tag` is \"circle\" or"), "{}", square.stdout);
    let wide = json!({ "bytes": "AQID", "skip": "1" }).to_string();
    assert_eq!(house.run(&["run", "data.tail", "--args", &wide]).code, 20);
    house.is_tidy();
}

#[test]
fn an_error_of_the_function_is_a_failure_of_the_tool_with_its_details() {
    let house = House::new();
    let file = house.file("typed.wasm", typed());
    house.run(&["tool", "add", &file, "--export", "example:typed/shapes@1.0.0#add", "--name", "my.sum"]).ok();
    let ran = house.run(&["run", "my.sum", "--arg", "a=4294967295", "--arg", "b=1", "--json"]);
    assert_eq!(ran.code, 1);
    let seen = ran.json();
    assert_eq!((&seen["outcome"]["which"], &seen["outcome"]["code"]), (&json!("tool-error"), &json!("tool-failed")));
    assert_eq!(seen["data"], "blue");
}

#[test]
fn a_person_chooses_and_the_manifest_that_was_made_can_be_changed() {
    let house = House::new();
    let file = house.file("typed.wasm", typed());
    let made = house.run(&["tool", "add", &file, "--export", "greet", "--name", "my.greeting"]).ok().stdout;
    assert!(made.contains("kind = \"export\"") && made.contains("function = \"greet\""), "{made}");
    let own = made.replace("my.greeting", "my.other").replace("Calls the function `greet`.", "Greets.");
    let own = house.file("own.toml", own);
    house.run(&["tool", "check", &file, "--manifest", &own]).ok();
    house.run(&["tool", "add", &file, "--manifest", &own]).ok();
    assert!(house.run(&["tool", "show", "my.other"]).ok().stdout.contains("\nGreets.\n"));
    assert_eq!(house.run(&["run", "my.other", "--arg", "name=Ada", "--json"]).ok().json()["data"], "Hello, Ada!");

    let add = |more: &[&'static str]| [&["tool", "add", file.as_str()], more].concat();
    house.refuses(&add(&["--export", "no"]), 2, "usage", &["no function `no`", "shapes@1.0.0#echo"]);
    house.refuses(&add(&["--name", "one"]), 2, "usage", &["several functions", "--export"]);
    house.refuses(&add(&["--export", "greet", "--name", "fs.read"]), 2, "tool-reserved", &["--name"]);
    house.refuses(&["tool", "check", &file], 2, "usage", &["12 functions"]);
    let gone = fs_err::read_to_string(&own).unwrap().replace("function = \"greet\"", "function = \"meet\"");
    let gone = house.file("gone.toml", gone.replace("my.other", "my.third"));
    house.refuses(&add(&["--manifest", "../gone.toml"]), 2, "component-exports", &["does not export"]);
    assert!(!gone.is_empty());
}

#[test]
fn what_has_no_json_is_left_out_with_the_reason() {
    let house = House::new();
    let file = house.file("things.wasm", guest("resources.wat"));
    let added = house.run(&["tool", "add", &file]).ok();
    for words in ["registered things.plain@0.1.0", "parameter `it` of `take`, field `inner`, item: resource `thing`"] {
        assert!(added.stderr.contains(words), "`{words}` is missing: {}", added.stderr);
    }
    assert_eq!(house.run(&["run", "things.plain", "--arg", "n=5", "--json"]).ok().json()["data"], 5);
    house.refuses(&["tool", "add", &file, "--export", "make"], 2, "component-exports", &["result of `make`: resource"]);
}

#[test]
fn long_names_end_in_a_hash() {
    let house = House::new();
    let name = format!("{}-end", "a-long".repeat(30));
    let text = format!(
        r#"(component
            (core module $m (func (export "f")))
            (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i "f")))
            (export "{name}" (func $f)))"#
    );
    let file = house.file("long.wasm", wat::parse_str(text).unwrap());
    let made = house.run(&["tool", "add", &file]).ok().stdout;
    let manifest: toml::Table = made.parse().unwrap();
    let own = manifest["name"].as_str().unwrap();
    assert!(own.starts_with("long.a-long") && own.len() <= 64, "{own}");
    assert_eq!(house.run(&["run", own, "--json"]).ok().json()["data"], Value::Null);
}
