//! Clocks: none can be outlived, in code or in a host call.

use env_contracts::Span;
use serde_json::json;

use super::{NO_WEBASSEMBLY, Row, row};
use crate::guests::Guest;
use crate::house::House;

pub(super) const ROWS: &[Row] = &[
    row("a loop ends with `limits.wall`, and what it said is kept", loops_end),
    row("a wait inside one host call ends with `limits.wall`, and what was said is kept", waits_end),
    row("a start function and an instruction that takes for ever end with `limits.wall`", odd_places_end)
        .of_components(NO_WEBASSEMBLY),
    row("silence ends with `limits.idle`, and who speaks is not silent", silence_ends),
    row("processor time ends with `limits.cpu`, and waiting costs none", processor_time_ends),
    row("a requester's timeout can only shorten `limits.wall`", timeouts_only_shorten),
];

fn loops_end(house: &House) {
    hang(house, "loop", "wall = \"500ms\"", "timed-out(wall)");
}

fn waits_end(house: &House) {
    hang(house, "sleep", "wall = \"500ms\"", "timed-out(wall)");
}

/// Says a line, hangs for ever, is ended; the line is there.
fn hang(house: &House, how: &str, limit: &'static str, outcome: &str) {
    let told = json!({ "do": "print-then-hang", "how": how, "text": "so far" });
    let seen = house.command(&told).limit(limit).run().ends(outcome);
    assert_eq!(seen.out(), "so far\n", "{seen:?}");
    assert_eq!((seen.output.stdout.total, seen.output.stdout.omitted), (7, 0));
    let told = json!({ "do": "loop" });
    if how == "loop" && house.has_components() {
        // Through the tool interface too.
        house.tool(&told).limit(limit).run().ends(outcome);
    }
}

fn odd_places_end(house: &House) {
    for guest in ["start-loop", "bulk"] {
        let act = house.act(&Guest::Wat(guest), &json!({}));
        act.limit("wall = \"300ms\"").limit("memory = \"128MiB\"").run().ends("timed-out(wall)");
    }
}

fn silence_ends(house: &House) {
    for how in ["loop", "sleep"] {
        hang(house, how, "idle = \"400ms\"", "timed-out(idle)");
    }
    let drip = json!({ "do": "drip", "count": 8, "every_ms": 250 });
    house.command(&drip).text().limit("idle = \"1500ms\"").run().ends("completed(0)");
}

fn processor_time_ends(house: &House) {
    let seen = house.command(&json!({ "do": "loop" })).limit("cpu = \"200ms\"").run().ends("timed-out(cpu)");
    assert!(seen.usage.cpu_us >= 200_000, "{seen:?}");
    let drip = json!({ "do": "drip", "count": 3, "every_ms": 200 });
    house.command(&drip).text().limit("cpu = \"300ms\"").run().ends("completed(0)");
}

fn timeouts_only_shorten(house: &House) {
    let sleep = json!({ "do": "sleep" });
    let asking = |timeout, wall| {
        let act = house.command(&sleep).limit(wall);
        act.asking(move |submission| submission.request.timeout = Some(timeout)).run()
    };
    for seen in [asking(Span::secs(1), "wall = \"60s\""), asking(Span::secs(3600), "wall = \"1s\"")] {
        let seen = seen.ends("timed-out(wall)");
        let wall = seen.enforcement.iter().find(|line| line.clause.as_str() == "limits.wall").unwrap();
        assert_eq!(wall.value, "≤ 1s", "{seen:?}");
    }
}
