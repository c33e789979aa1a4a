//! What a guest sees without asking, and what its failures tell.

use serde_json::json;

use super::Row;
use crate::guests::Guest;
use crate::house::House;

pub(super) const ROWS: &[Row] = &[
    ("a guest has the arguments, variables and folders of its contract, and no others", seen_from_inside),
    ("a guest that is given nothing sees nothing of the host", nothing),
    ("no failure tells a path of the host", no_host_paths),
    ("random bytes differ from action to action", random),
];

fn seen_from_inside(house: &House) {
    let entry = "kind = \"command\", argv = [\"tool\", \"--flag\", \"{x}\"], env = { A = \"1\", B = \"\" }";
    let act = house.command(&json!({ "do": "surroundings", "x": "ä b" })).entry(entry);
    let act = act.input("type = \"object\", properties = { x = { type = \"string\" } }");
    let seen = act.mount("workspace read").mount("outputs").mount("scratch").run().succeeds();
    assert_eq!(seen.data()["arguments"], json!(["tool", "--flag", "ä b"]));
    assert_eq!(seen.data()["environment"], json!({ "A": "1", "B": "" }));
    assert_eq!(seen.data()["folders"], json!(["/workspace", "/outputs", "/tmp"]));
    assert_eq!(seen.data()["terminal"], json!({ "stdin": false, "stdout": false, "stderr": false }));
}

fn nothing(house: &House) {
    assert!(std::env::vars_os().count() > 0, "there is something to inherit");
    let seen = house.command(&json!({ "do": "surroundings" })).run().succeeds();
    assert_eq!((&seen.data()["environment"], &seen.data()["folders"]), (&json!({}), &json!([])), "{seen:?}");
    // A program has a name; that of the capability is no secret.
    assert_eq!(seen.data()["arguments"].as_array().unwrap().len(), 1, "{seen:?}");
    assert!(seen.data()["arguments"][0].as_str().unwrap().starts_with("guest."), "{seen:?}");
    let paths = json!(["/", "/etc/passwd", "/proc/self/environ", ".", "..", "/workspace", "/tmp", "/outputs"]);
    let seen = house.command(&json!({ "do": "escape", "paths": paths })).run().succeeds();
    assert_eq!(seen.number("reached"), 0, "{seen:?}");
}

/// [`House::after`] looks through everything that comes back from any action;
/// here are many that fail.
fn no_host_paths(house: &House) {
    house.file("a.txt", "a");
    house.file("dir/b", "b");
    let mut failed = 0;
    for told in [
        json!({ "do": "panic" }),
        json!({ "do": "unreachable" }),
        json!({ "do": "exit", "code": 9 }),
        json!({ "do": "read", "path": "/workspace/missing" }),
        json!({ "do": "open", "folder": "/workspace", "path": "..", "access": ["read"] }),
        json!({ "do": "open", "folder": "/workspace", "path": "a.txt/", "access": ["read"] }),
        json!({ "do": "rename", "from_path": "/workspace/a.txt", "to_path": "/outputs/x" }),
        json!({ "do": "copy", "from": "/workspace/dir", "to": "/outputs/x" }),
        json!({ "do": "write-file", "path": "/outputs/x" }),
        json!({ "do": "surroundings" }),
    ] {
        let act = house.command(&told).mount("workspace read").mount("outputs").limit("storage = \"64KiB\"");
        failed += usize::from(act.run().outcome.code.is_some());
    }
    for args in [json!({ "path": "missing" }), json!({ "path": "dir" }), json!({ "path": "../x" }), json!({})] {
        for tool in ["fs.read", "text.count"] {
            failed += usize::from(house.builtin(tool, &args).attempt().outcome.code.is_some());
        }
    }
    for guest in ["imports-sockets", "imports-unknown", "fails", "stack"] {
        failed += usize::from(house.act(&Guest::Wat(guest), &json!({})).attempt().outcome.code.is_some());
    }
    assert!(failed > 10, "only {failed} failed");
}

fn random(house: &House) {
    // A guest of its own, since only its exit code tells: 20 times a byte.
    let guest = crate::guests::core_command(
        r#"(import "wasi:random/random@0.2.0" (instance $random (export "get-random-u64" (func (result u64)))))
           (import "wasi:cli/exit@0.2.0" (instance $exit (export "exit-with-code" (func (param "status-code" u8)))))
           (core func $get (canon lower (func $random "get-random-u64")))
           (core func $end (canon lower (func $exit "exit-with-code")))"#,
        r#"(with "h" (instance (export "get" (func $get)) (export "end" (func $end))))"#,
        r#"(import "h" "get" (func $get (result i64)))
           (import "h" "end" (func $end (param i32)))
           (func (export "run") (result i32)
             (call $end (i32.and (i32.wrap_i64 (call $get)) (i32.const 0xff)))
             unreachable)"#,
    );
    let code = || house.act(&guest, &json!({})).text().run().outcome.exit.unwrap();
    let codes: std::collections::BTreeSet<u32> = (0..20).map(|_| code()).collect();
    assert!(codes.len() > 5, "{codes:?}");
}
