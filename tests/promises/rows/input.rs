//! What a guest is handed, and what is refused before it.

use env_contracts::Code;
use serde_json::json;

use super::{NO_TOOL, Row, row};
use crate::guests::Guest;
use crate::house::House;

pub(super) const ROWS: &[Row] = &[
    row("standard input is the canonical arguments, exactly, and then it ends", stdin),
    row("standard input is empty where the tool wants none", no_stdin),
    row("a tool is handed the canonical arguments, once, in a fresh instance", arguments).of_components(NO_TOOL),
    row("arguments too deep, too long, doubled or cut short never reach a guest", bad_arguments),
    row("a file brought along is what it was when it was bound, and can only be read", inputs),
];

fn stdin(house: &House) {
    // It reads until the end, and would wait for ever where there is none.
    let act = house.command(&json!({})).bytes(r#" { "z" : 1.0, "do":"surroundings","a":"ä\u00e4" } "#);
    let seen = act.run().ends("completed(0)");
    assert_eq!(seen.data()["stdin"], r#"{"a":"ää","do":"surroundings","z":1.0}"#, "{seen:?}");
    if !house.has_components() {
        return;
    }
    // A preview 1 module hears the same.
    let act = house.act(&Guest::Built("preview1"), &json!({ "b": 1, "a": "1234" }));
    let seen = act.text().mount("outputs").run();
    assert!(seen.out().ends_with(r#"{"a":"1234","b":1}"#), "{seen:?}");
}

fn no_stdin(house: &House) {
    let act = house.command(&json!({ "do": "loop" })).entry("kind = \"command\", stdin = \"none\"");
    assert_eq!(act.run().ends("completed(0)").data(), &json!({}));
}

fn arguments(house: &House) {
    for _ in 0..2 {
        let act = house.tool(&json!({})).bytes("{\"x\":\"\u{1F9E4}\",\"do\":\"echo\"}");
        let seen = act.run().succeeds();
        assert_eq!(seen.data()["args"], "{\"do\":\"echo\",\"x\":\"\u{1F9E4}\"}", "{seen:?}");
        assert_eq!((seen.number("calls"), &seen.data()["name"]), (1, &json!("hostile")));
        assert_eq!(seen.data()["context"]["request_id"], seen.action_id.as_str());
    }
}

fn bad_arguments(house: &House) {
    let deep = |depth: usize| format!("{{\"x\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    let long = format!("{{\"x\":\"{}\"}}", "x".repeat(5 << 20));
    let cases = [deep(10_000), long, "{\"a\":1,\"a\":2}".into(), "{\"a\":".into(), "{\"x\":\"\\ud800\"}".into()];
    for received in cases {
        let seen = house.command(&json!({})).bytes(received).run().ends("schema-rejected");
        seen.coded(Code::ArgumentsInvalid).ran_nothing();
    }
    let act =
        house.command(&json!({ "path": 5 })).input("type = \"object\", properties = { path = { type = \"string\" } }");
    act.run().ends("schema-rejected").coded(Code::SchemaRejected).ran_nothing();
}

fn inputs(house: &House) {
    let path = house.path("brought");
    fs_err::write(&path, "as it was").unwrap();
    let run = |told: serde_json::Value| {
        let path = path.clone();
        let bring = |submission: &mut glovebox_plane::Submission| {
            submission.inputs.insert("table".parse().unwrap(), path);
        };
        house.command(&told).mount("inputs").asking(bring).run()
    };
    let seen = run(json!({ "do": "read", "path": "/inputs/table" })).succeeds();
    assert_eq!(seen.data()["text"], "as it was");
    assert!(seen.saw(b"as it was"), "{seen:?}");
    for told in [
        json!({ "do": "open", "path": "/inputs/table", "access": ["write"], "text": "x" }),
        json!({ "do": "open", "path": "/inputs/table", "flags": ["truncate"] }),
        json!({ "do": "remove", "path": "/inputs/table" }),
        json!({ "do": "open", "path": "/inputs/new", "flags": ["create"], "access": ["write"] }),
    ] {
        assert!(run(told.clone()).succeeds().data()["refused"].is_string(), "{told}");
    }
    assert_eq!(fs_err::read_to_string(&path).unwrap(), "as it was");
}
