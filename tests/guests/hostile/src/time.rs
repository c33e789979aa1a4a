//! Using time up.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::host::wait;
use crate::{Told, files};

/// Computes for ever.
pub(crate) fn spin() -> ! {
    let mut counter = 0_u64;
    loop {
        counter = std::hint::black_box(counter.wrapping_add(1));
    }
}

/// Waits in one call of the host for `seconds`; for ever by default.
pub(crate) fn sleep(told: &Told) -> Value {
    wait(told.number("seconds", u64::MAX).saturating_mul(1_000_000_000));
    json!({ "slept": true })
}

/// Writes the files of `write`, prints a line, then computes (`how` = "loop")
/// or waits for ever.
pub(crate) fn print_then_hang(told: &Told) -> Value {
    files::write_all(told);
    println!("{}", told.text("text", "ready"));
    flush();
    if told.text("how", "sleep") == "loop" { spin() } else { sleep(told) }
}

/// Prints `count` lines, one every `every_ms` milliseconds.
pub(crate) fn drip(told: &Told) -> Value {
    for line in 0..told.number("count", 10) {
        println!("{line}");
        flush();
        wait(told.number("every_ms", 100) * 1_000_000);
    }
    json!({ "dripped": true })
}

fn flush() {
    std::io::stdout().flush().expect("a standard output");
}
