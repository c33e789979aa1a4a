//! What else a guest could use up.

use serde_json::json;

use super::Row;
use crate::guests::core_command;
use crate::house::House;

pub(super) const ROWS: &[Row] = &[
    ("handles are limited: files, streams, timers", handles),
    ("one host call moves only so much: a GiB of random bytes is none", host_calls),
    ("instances are limited", instances),
    ("a stack that grows without end ends the guest alone", stacks),
];

fn handles(house: &House) {
    house.file("a.txt", "x");
    for what in ["open-files", "streams", "pollables"] {
        let act = |count: u32| house.command(&json!({ "do": what, "count": count })).mount("workspace read");
        act(1_000_000).run().ends("limit-hit(handles)");
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
    // The engine's stack.
    let guest =
        core_command("", "", r#"(func $deeper (export "run") (result i32) (i32.add (call $deeper) (i32.const 1)))"#);
    house.act(&guest, &json!({})).run().ends("limit-hit(stack)");
    // The one that compiled languages keep in memory.
    house.command(&json!({ "do": "stack-overflow" })).run().ends("completed(trap)").says(&["out of bounds"]);
}
