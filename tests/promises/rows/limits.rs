//! What else a guest could use up.

use serde_json::json;

use super::{NO_WEBASSEMBLY, Row, row};
use crate::guests::core_command;
use crate::house::House;

pub(super) const ROWS: &[Row] = &[
    row("handles are limited: files, streams, timers", handles),
    row("one host call moves only so much: a GiB of random bytes is none", host_calls)
        .of_components("system calls are the kernel's, which can end a process in any of them"),
    row("instances are limited", instances).of_components(NO_WEBASSEMBLY),
    row("a stack that grows without end ends the guest alone", stacks),
];

fn handles(house: &House) {
    house.file("a.txt", "x");
    for what in ["open-files", "streams", "pollables"] {
        let act = |count: u32| house.command(&json!({ "do": what, "count": count })).mount("workspace read");
        if house.has_components() {
            act(1_000_000).run().ends("limit-hit(handles)");
        } else {
            // The kernel tells whoever asks for more.
            let seen = act(1_000_000).run().succeeds();
            let count = seen.data()["opened"].as_u64().or(seen.data()["made"].as_u64());
            assert!(seen.data()["refused"].is_string() && count.is_some_and(|count| count <= 4096), "{seen:?}");
        }
        act(400).run().ends("completed(0)");
    }
}

fn host_calls(house: &House) {
    let act = house.command(&json!({ "do": "random" })).limit("memory = \"2GiB\"");
    act.run().ends("limit-hit(host-call)");
    let seen = house.command(&json!({ "do": "random", "bytes": 64 << 10 })).run().succeeds();
    assert_eq!(seen.number("received"), 64 << 10);
}

fn instances(house: &House) {
    let many: String = (0..40).map(|n| format!("(core instance $i{n} (instantiate $none))")).collect();
    let guest =
        core_command(&format!("(core module $none) {many}"), "", r#"(func (export "run") (result i32) (i32.const 0))"#);
    house.act(&guest, &json!({})).text().run().ends("limit-hit(instances)");
}

fn stacks(house: &House) {
    let seen = house.command(&json!({ "do": "stack-overflow" })).run().ends("completed(trap)");
    if !house.has_components() {
        seen.says(&["signal"]);
        return;
    }
    // The one that compiled languages keep in memory.
    seen.says(&["out of bounds"]);
    // The engine's stack.
    let guest =
        core_command("", "", r#"(func $deeper (export "run") (result i32) (i32.add (call $deeper) (i32.const 1)))"#);
    house.act(&guest, &json!({})).run().ends("limit-hit(stack)");
}
