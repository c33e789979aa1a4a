//! Memory, handles, output and what passes in one call.

use env_contracts::{Code, Diagnose as _};
use glovebox_runtime::job::{End, Limit, UngrantedImports};
use serde_json::json;

use crate::harness::{Act, compile, executor, hostile, load, still_usable, text, told, wat};

const MIB: u64 = 1 << 20;

#[test]
fn memory_is_refused_counted_and_survivable() {
    let came = told(json!({ "do": "memory", "touch": true })).limit(|limits| limits.memory = 16 * MIB).run(hostile());
    assert_eq!(came.end, End::Exited { code: 0 }, "a guest that copes is no failure");
    assert_eq!(came.json()["refused"], true);
    let usage = came.report.usage;
    assert!(usage.denied_memory >= 1 && usage.memory_peak <= 16 * MIB && usage.memory_peak > 12 * MIB, "{usage:?}");

    let came = told(json!({ "do": "allocate" })).limit(|limits| limits.memory = 16 * MIB).run(hostile());
    assert_eq!(came.end, End::LimitHit(Limit::Memory), "{came:?}");
    still_usable();
}

/// More than a slot of the pool holds: the component is at fault, not the host.
#[test]
fn a_component_that_wants_more_than_any_gets_is_refused_as_such() {
    for parts in
        ["(memory 65536)", "(table 10000000 funcref)", "(memory 1) (memory 1) (memory 1) (memory 1) (memory 1)"]
    {
        let guest = format!(
            r#"(component
              (core module $m {parts} (func (export "run") (result i32) (i32.const 0)))
              (core instance $i (instantiate $m))
              (func $f (result (result)) (canon lift (core func $i "run")))
              (instance $r (export "run" (func $f)))
              (export "wasi:cli/run@0.2.0" (instance $r)))"#
        );
        let artefact = compile(&wat::parse_str(guest).unwrap()).unwrap();
        let error = executor().load(&artefact, UngrantedImports::Refuse).unwrap_err();
        assert_eq!(error.code(), Code::ComponentInvalid, "{parts}: {error}");
    }
}

#[test]
fn memory_is_summed_over_all_memories() {
    let came = Act::command("").limit(|limits| limits.memory = 8 * MIB).run(&load(&wat("three-memories")));
    assert_eq!(came.end, End::Exited { code: 0 });
    let usage = came.report.usage;
    assert!(usage.denied_memory >= 3 && usage.memory_peak <= 8 * MIB && usage.memory_peak > 6 * MIB, "{usage:?}");

    // By the guest's own count: three memories of one page, grown by 1 MiB
    // each in turn; it reports the number of MiB that it got.
    let guest = text(
        r#"(component
          (import "glovebox:tool/host@0.1.0" (instance $host
            (export "progress" (func (param "done" u64) (param "total" (option u64)) (param "message" string)))))
          (core module $one
            (memory (export "memory") 1)
            (func (export "grow") (result i32) (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
          (core instance $a (instantiate $one))
          (core instance $b (instantiate $one))
          (core instance $c (instantiate $one))
          (alias core export $a "memory" (core memory $memory))
          (core func $report (canon lower (func $host "progress") (memory $memory)))
          (core module $m
            (import "a" "grow" (func $a (result i32)))
            (import "b" "grow" (func $b (result i32)))
            (import "c" "grow" (func $c (result i32)))
            (import "h" "report" (func $report (param i64 i32 i64 i32 i32)))
            (func (export "run") (result i32)
              (local $got i32) (local $turn i32)
              (loop $again
                (local.set $got (i32.add (local.get $got) (call $a)))
                (local.set $got (i32.add (local.get $got) (call $b)))
                (local.set $got (i32.add (local.get $got) (call $c)))
                (local.set $turn (i32.add (local.get $turn) (i32.const 1)))
                (br_if $again (i32.lt_u (local.get $turn) (i32.const 50))))
              (call $report (i64.extend_i32_u (local.get $got)) (i32.const 0) (i64.const 0) (i32.const 0) (i32.const 0))
              (i32.const 0)))
          (core instance $i (instantiate $m
            (with "a" (instance $a)) (with "b" (instance $b)) (with "c" (instance $c))
            (with "h" (instance (export "report" (func $report))))))
          (func $f (result (result)) (canon lift (core func $i "run")))
          (instance $r (export "run" (func $f)))
          (export "wasi:cli/run@0.2.0" (instance $r)))"#,
    );
    // The three first pages leave room for seven.
    for (limit, got) in [(8 * MIB, 7), (1024 * MIB, 150)] {
        let came = Act::command("").limit(|limits| limits.memory = limit).run(&guest);
        assert_eq!(came.end, End::Exited { code: 0 });
        assert_eq!(came.heard.progress[0].0, got, "{came:?}");
    }
}

#[test]
fn tables_are_memory() {
    let came = Act::command("").limit(|limits| limits.memory = 128 << 10).run(&load(&wat("tables")));
    assert_eq!(came.end, End::Exited { code: 0 });
    let usage = came.report.usage;
    assert!(usage.denied_memory >= 1 && usage.memory_peak <= 128 << 10 && usage.memory_peak > 100 << 10, "{usage:?}");
}

#[test]
fn a_growth_that_fails_gives_nothing_back() {
    // Grows by 1 MiB, then asks for what no memory can have, again and again:
    // if the failure were given back, the limit would never be met.
    let guest = text(
        r#"(component
          (core module $m
            (memory 1)
            (func (export "run") (result i32)
              (local $n i32)
              (loop $again
                (drop (memory.grow (i32.const 16)))
                (drop (memory.grow (i32.const 65536)))
                (local.set $n (i32.add (local.get $n) (i32.const 1)))
                (br_if $again (i32.lt_u (local.get $n) (i32.const 100)))
              )
              (i32.const 0)))
          (core instance $i (instantiate $m))
          (func $f (result (result)) (canon lift (core func $i "run")))
          (instance $r (export "run" (func $f)))
          (export "wasi:cli/run@0.2.0" (instance $r)))"#,
    );
    let came = Act::command("").limit(|limits| limits.memory = 8 * MIB).run(&guest);
    assert_eq!(came.end, End::Exited { code: 0 });
    assert!(came.report.usage.denied_memory >= 92, "{:?}", came.report.usage);
}

#[test]
fn a_guest_that_needs_more_than_it_gets_does_not_start() {
    let came = told(json!({ "do": "nothing" })).limit(|limits| limits.memory = MIB / 2).run(hostile());
    assert_eq!(came.end, End::LimitHit(Limit::Memory), "{came:?}");
    assert!(came.report.usage.run.is_zero());
}

#[test]
fn instances_are_limited() {
    let instances: String = (0..40).map(|n| format!("(core instance $i{n} (instantiate $m))")).collect();
    let guest = text(&format!(
        r#"(component
          (core module $m (func (export "run") (result i32) (i32.const 0)))
          {instances}
          (func $f (result (result)) (canon lift (core func $i0 "run")))
          (instance $r (export "run" (func $f)))
          (export "wasi:cli/run@0.2.0" (instance $r)))"#
    ));
    assert_eq!(Act::command("").run(&guest).end, End::LimitHit(Limit::Instances));
    still_usable();
}

#[test]
fn handles_are_limited() {
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join("a.txt"), "x").unwrap();
    for what in ["open-files", "streams", "pollables"] {
        let came =
            told(json!({ "do": what, "count": 100_000 })).mount("/workspace", folder.path(), false).run(hostile());
        assert_eq!(came.end, End::LimitHit(Limit::Handles), "{what}");
        let came = told(json!({ "do": what, "count": 400 })).mount("/workspace", folder.path(), false).run(hostile());
        assert_eq!(came.end, End::Exited { code: 0 }, "{what}: {came:?}");
    }
    still_usable();
}

#[test]
fn one_call_moves_only_so_much() {
    let came = told(json!({ "do": "random" })).limit(|limits| limits.memory = 2048 * MIB).run(hostile());
    assert_eq!(came.end, End::LimitHit(Limit::HostCall), "{came:?}");
    let came = told(json!({ "do": "random", "bytes": MIB })).run(hostile());
    assert_eq!(came.json()["received"], MIB);
    still_usable();
}

#[test]
fn output_ends_at_its_limit_and_is_kept_until_there() {
    for stream in ["stdout", "stderr"] {
        let came = told(json!({ "do": stream })).limit(|limits| limits.output = 100_000).run(hostile());
        assert_eq!(came.end, End::LimitHit(Limit::Output), "{stream}");
        let heard = if stream == "stdout" { &came.heard.stdout } else { &came.heard.stderr };
        assert_eq!(heard.len(), 100_000);
        // To the byte, in order.
        assert!(
            heard.chunks(64).enumerate().all(|(line, text)| text == &format!("{line:063}\n").as_bytes()[..text.len()])
        );
    }
    still_usable();
}

#[test]
fn output_up_to_the_limit_is_no_failure() {
    let came = told(json!({ "do": "stdout", "bytes": 100_000 })).limit(|limits| limits.output = 100_200).run(hostile());
    assert_eq!(came.end, End::Exited { code: 0 });
    assert_eq!(came.heard.stdout.len(), 100_000);
}
