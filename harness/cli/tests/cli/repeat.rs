//! Runs that can be repeated.

use serde_json::{Value, json};

use crate::support::{House, hostile};

#[test]
fn one_seed_gives_the_same_result_and_the_report_names_it() {
    let house = House::new();
    let file = house.file("hostile.wasm", hostile());
    house.run(&["tool", "add", &file, "--name", "my.tool"]).ok();
    let seen = |told: &str, flags: &[&str]| -> Value {
        house.run(&[&["run", "my.tool", "--json", "--args", told], flags].concat()).ok().json()
    };
    let random = r#"{"do": "random", "bytes": 64}"#;
    let [one, again, other, real] =
        [&["--seed", "7"][..], &["--seed", "7"], &["--seed", "8"], &[]].map(|flags| seen(random, flags));
    assert_eq!((&one["data"], &one["output"]), (&again["data"], &again["output"]));
    assert!(one["data"] != other["data"] && one["data"] != real["data"]);
    assert_ne!(one["intent"], other["intent"], "another seed is another intent");

    let clause = |seen: &Value| {
        let all = seen["enforcement"].as_array().unwrap().clone();
        all.into_iter().find(|line| line["clause"] == "wasm.deterministic")
    };
    assert_eq!(clause(&one).unwrap()["value"], "seed 7, from 2000-01-01T00:00:00Z");
    assert_eq!(clause(&real), None);

    let waits = r#"{"do": "clock", "seconds": 7200}"#;
    let late = seen(waits, &["--seed", "7", "--time", "2026-01-01T00:00:00Z"]);
    let told: Value = serde_json::from_str(late["data"].as_str().unwrap()).unwrap();
    assert_eq!(told["wall"][0], 1_767_225_600);
    assert_eq!(clause(&late).unwrap()["value"], "seed 7, from 2026-01-01T00:00:00Z");
    let ran = house.run(&["run", "my.tool", "--time", "2026-01-01T00:00:00Z"]);
    assert!(ran.code == 2 && ran.stderr.contains("--seed"), "{}", ran.stderr);
    let ran = house.run(&["run", "my.tool", "--seed", "7", "--time", "noon"]);
    assert!(ran.code == 2 && ran.stderr.contains("not a moment"), "{}", ran.stderr);
}

/// A seed takes something away from a tool, and adds nothing.
#[test]
fn a_seed_leaves_the_rest_of_the_contract_as_it_is() {
    let house = House::new();
    let file = house.file("unknown.wasm", crate::support::guest("imports-unknown.wat"));
    house.run(&["tool", "add", &file, "--name", "my.tool"]).ok();
    let seen = house.run(&["run", "my.tool", "--seed", "7", "--json"]).json();
    // It has stubs by its manifest, and runs as far as it did.
    assert_eq!(seen["outcome"]["code"], json!("tool-trapped"), "{seen}");
    let file = house.file("stricter.toml", "[wasm]\nimports = \"refuse\"\n");
    let seen = house.run(&["run", "my.tool", "--seed", "7", "--contract", &file, "--json"]).json();
    assert_eq!(seen["outcome"]["code"], json!("component-imports"), "{seen}");
}
