//! Memory, as one sum over everything that a guest can make grow.

use serde_json::json;

use super::{NO_WEBASSEMBLY, Row, row};
use crate::guests::{Guest, core_command};
use crate::house::House;

const MIB: u64 = 1 << 20;

pub(super) const ROWS: &[Row] = &[
    row("memory grows to `limits.memory` and no further; the guest is told and goes on", one_memory).of_components(
        "the kernel tells no process: it ends the one that takes more, in the row \"a guest that dies\"",
    ),
    row("three memories together grow to `limits.memory` and no further", three_memories).of_components(NO_WEBASSEMBLY),
    row("tables count as memory", tables).of_components(NO_WEBASSEMBLY),
    row("a guest that dies of too little memory ran into the limit, and its words are kept", allocations),
    row("a tool that needs more memory than it gets does not start", too_small),
];

fn one_memory(house: &House) {
    let told = json!({ "do": "memory", "touch": true });
    let seen = house.command(&told).limit("memory = \"16MiB\"").run().ends("completed(0)");
    assert_eq!(seen.data()["refused"], true, "{seen:?}");
    let size = seen.number("pages") * (64 << 10);
    assert!(size <= 16 * MIB && size > 14 * MIB, "{seen:?}");
    assert!(seen.usage.memory_peak <= 16 * MIB && seen.usage.memory_peak > 14 * MIB, "{seen:?}");
    assert!(seen.noticed("limit-refused"), "{seen:?}");
}

/// By the guest's own count: it fails unless it got so many MiB.
fn three_memories(house: &House) {
    let memories = r#"
      (core module $one
        (memory 1)
        (func (export "grow") (result i32) (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
      (core instance $a (instantiate $one))
      (core instance $b (instantiate $one))
      (core instance $c (instantiate $one))"#;
    let body = |expected: u32| {
        format!(
            r#"(import "a" "grow" (func $a (result i32)))
               (import "b" "grow" (func $b (result i32)))
               (import "c" "grow" (func $c (result i32)))
               (func (export "run") (result i32)
                 (local $got i32) (local $turn i32)
                 (loop $again
                   (local.set $got (i32.add (local.get $got) (call $a)))
                   (local.set $got (i32.add (local.get $got) (call $b)))
                   (local.set $got (i32.add (local.get $got) (call $c)))
                   (local.set $turn (i32.add (local.get $turn) (i32.const 1)))
                   (br_if $again (i32.lt_u (local.get $turn) (i32.const 20))))
                 (i32.ne (local.get $got) (i32.const {expected})))"#
        )
    };
    let with = r#"(with "a" (instance $a)) (with "b" (instance $b)) (with "c" (instance $c))"#;
    // The three first pages leave room for seven.
    for (limit, got) in [("memory = \"8MiB\"", 7), ("memory = \"1GiB\"", 60)] {
        let guest = core_command(memories, with, &body(got));
        let seen = house.act(&guest, &json!({})).text().limit(limit).run().ends("completed(0)");
        assert_eq!(seen.noticed("limit-refused"), got == 7, "{seen:?}");
    }
    let seen = house.act(&Guest::Wat("three-memories"), &json!({})).text().limit("memory = \"8MiB\"").run();
    assert!(seen.succeeds().usage.memory_peak <= 8 * MIB);
}

fn tables(house: &House) {
    let seen = house.act(&Guest::Wat("tables"), &json!({})).text().limit("memory = \"128KiB\"").run();
    let seen = seen.ends("completed(0)");
    assert!(seen.usage.memory_peak <= 128 << 10 && seen.usage.memory_peak > 100 << 10, "{seen:?}");
    assert!(seen.noticed("limit-refused"), "{seen:?}");
}

fn allocations(house: &House) {
    let act = house.command(&json!({ "do": "allocate" })).limit("memory = \"16MiB\"");
    let seen = act.run().ends("limit-hit(memory)");
    // The kernel ends a process without a word of its own.
    let last = if house.has_components() { "memory allocation of" } else { "allocating" };
    assert!(seen.err().starts_with("allocating\n") && seen.err().contains(last), "{seen:?}");
    assert!(seen.usage.memory_peak <= 16 * MIB, "{seen:?}");
}

fn too_small(house: &House) {
    let act = house.command(&json!({ "do": "nothing" })).limit("memory = \"512KiB\"");
    // An engine makes no container with so little.
    let end = if house.has_components() { "limit-hit(memory)" } else { "backend-error" };
    let seen = act.run().ends(end);
    assert_eq!((seen.times.run_us, seen.output.stdout.total), (0, 0), "{seen:?}");
}
