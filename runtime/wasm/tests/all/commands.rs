//! WASI commands: what they get, and nothing else.

use glovebox_runtime::job::End;
use serde_json::json;

use crate::harness::{Act, built, hostile, load, told};

#[test]
fn a_command_sees_exactly_what_the_job_says() {
    let folder = tempfile::tempdir().unwrap();
    let came = told(json!({ "do": "surroundings" }))
        .surroundings(&["tool", "--flag", "ä"], &[("A", "1"), ("B", "")])
        .mount("/workspace", folder.path(), false)
        .mount("/outputs", folder.path(), true)
        .run(hostile());
    let seen = came.json();
    assert_eq!(seen["arguments"], json!(["tool", "--flag", "ä"]));
    assert_eq!(seen["environment"], json!({ "A": "1", "B": "" }));
    assert_eq!(seen["cwd"], "/workspace");
    assert_eq!(seen["folders"], json!(["/workspace", "/outputs"]));
    assert_eq!(seen["stdin"], json!({ "do": "surroundings" }).to_string());
    assert_eq!(seen["terminal"], json!({ "stdin": false, "stdout": false, "stderr": false }));
}

#[test]
fn nothing_of_the_host_is_inherited() {
    let came = told(json!({ "do": "surroundings" })).surroundings(&[], &[]).run(hostile());
    let seen = came.json();
    assert_eq!(seen["arguments"], json!([]));
    assert_eq!(seen["environment"], json!({}));
    assert_eq!((&seen["cwd"], &seen["folders"]), (&json!(null), &json!([])));
}

#[test]
fn randomness_differs_between_executions() {
    let guest = crate::harness::text(
        r#"(component
          (import "wasi:random/random@0.2.0" (instance $random (export "get-random-u64" (func (result u64)))))
          (import "wasi:cli/exit@0.2.0" (instance $exit (export "exit-with-code" (func (param "status-code" u8)))))
          (core func $get (canon lower (func $random "get-random-u64")))
          (core func $end (canon lower (func $exit "exit-with-code")))
          (core module $m
            (import "h" "get" (func $get (result i64)))
            (import "h" "end" (func $end (param i32)))
            (func (export "run") (result i32)
              (call $end (i32.and (i32.wrap_i64 (call $get)) (i32.const 0xff)))
              unreachable))
          (core instance $i (instantiate $m (with "h" (instance (export "get" (func $get)) (export "end" (func $end))))))
          (func $f (result (result)) (canon lift (core func $i "run")))
          (instance $r (export "run" (func $f)))
          (export "wasi:cli/run@0.2.0" (instance $r)))"#,
    );
    let codes: std::collections::HashSet<u32> = (0..20)
        .map(|_| match Act::command("").run(&guest).end {
            End::Exited { code } => code,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(codes.len() > 5, "{codes:?}");
}

#[test]
fn a_preview_1_module_runs_adapted() {
    let guest = load(&built("tests/guests/dist/preview1.wasm"));
    assert!(guest.is_command());
    let folder = tempfile::tempdir().unwrap();
    let came =
        Act::command("1234567").surroundings(&["p1", "x"], &[]).mount("/outputs", folder.path(), true).run(&guest);
    // Its exit code is the length of its input, modulo 4: no mere failure.
    assert_eq!(came.end, End::Exited { code: 3 }, "{came:?}");
    assert_eq!(came.heard.out(), "p1\nx\n1234567");
    assert_eq!(fs_err::read_to_string(folder.path().join("x")).unwrap(), "p1\nx\n1234567");
}
