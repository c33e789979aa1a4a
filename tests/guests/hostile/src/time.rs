//! Using time up.

use std::io::Write as _;

use serde_json::{Value, json};
use wasip2::clocks::monotonic_clock::{Duration, now, subscribe_duration};
use wasip2::clocks::wall_clock;
use wasip2::io::poll::poll;

use crate::Told;

/// Computes for ever.
pub(crate) fn spin() -> ! {
    let mut counter = 0_u64;
    loop {
        counter = std::hint::black_box(counter.wrapping_add(1));
    }
}

/// Waits in one host call for `seconds`; for ever by default.
pub(crate) fn sleep(told: &Told) -> Value {
    block(told.number("seconds", u64::MAX).saturating_mul(1_000_000_000));
    json!({ "slept": true })
}

/// Prints a line, then computes (`how` = "loop") or waits for ever.
pub(crate) fn print_then_hang(told: &Told) -> Value {
    println!("{}", told.text("text", "ready"));
    flush();
    if told.text("how", "sleep") == "loop" { spin() } else { sleep(told) }
}

/// Prints `count` lines, one every `every_ms` milliseconds.
pub(crate) fn drip(told: &Told) -> Value {
    for line in 0..told.number("count", 10) {
        println!("{line}");
        flush();
        block(told.number("every_ms", 100) * 1_000_000);
    }
    json!({ "dripped": true })
}

/// Reads the clocks before and after it waits for the first of an hour and a
/// minute, and then `seconds` more.
pub(crate) fn clock(told: &Told) -> Value {
    let (before, wall) = (now(), wall_clock::now());
    let (long, short) = (subscribe_duration(3_600_000_000_000), subscribe_duration(60_000_000_000));
    let first = poll(&[&long, &short]);
    let (between, long_is_ready) = (now(), long.ready());
    block(told.number("seconds", 1).saturating_mul(1_000_000_000));
    json!({
        "before": before,
        "first": first,
        "long_is_ready": long_is_ready,
        "between": between,
        "after": now(),
        "wall": [wall.seconds, u64::from(wall.nanoseconds)],
        "wall_after": wall_clock::now().seconds,
    })
}

fn block(nanoseconds: Duration) {
    subscribe_duration(nanoseconds).block();
}

fn flush() {
    std::io::stdout().flush().expect("a standard output");
}
