//! Clocks, chance, handles, and ways to end.

use serde_json::{Value, json};
use wasip2::clocks::monotonic_clock::{now, subscribe_duration};
use wasip2::clocks::wall_clock;
use wasip2::filesystem::types::{DescriptorFlags, OpenFlags, PathFlags};
use wasip2::io::poll::poll;
use wasip2::random::insecure::get_insecure_random_bytes;
use wasip2::random::insecure_seed::insecure_seed;
use wasip2::random::random::{get_random_bytes, get_random_u64};

use crate::{Told, paths};

/// Waits in one host call.
pub(crate) fn wait(nanoseconds: u64) {
    subscribe_duration(nanoseconds).block();
}

/// Reads the clocks before and after it waits for the first of an hour and a
/// minute, and then `seconds` more.
pub(crate) fn clock(told: &Told) -> Value {
    let (before, wall) = (now(), wall_clock::now());
    let (long, short) = (subscribe_duration(3_600_000_000_000), subscribe_duration(60_000_000_000));
    let first = poll(&[&long, &short]);
    let (between, long_is_ready) = (now(), long.ready());
    wait(told.number("seconds", 1).saturating_mul(1_000_000_000));
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

/// Makes `count` streams that read one file; there is no error to return when
/// the host has no room.
pub(crate) fn streams(told: &Told) -> Value {
    let (root, rest) = match paths::locate(told.text("path", "/workspace/a.txt")) {
        Ok(found) => found,
        Err(error) => return crate::refused(error),
    };
    let file = match root.open_at(PathFlags::empty(), &rest, OpenFlags::empty(), DescriptorFlags::READ) {
        Ok(file) => file,
        Err(error) => return crate::refused(error),
    };
    let mut streams = Vec::new();
    while (streams.len() as u64) < told.number("count", u64::MAX) {
        match file.read_via_stream(0) {
            Ok(stream) => streams.push(stream),
            Err(error) => return json!({ "made": streams.len(), "refused": format!("{error:?}") }),
        }
    }
    json!({ "made": streams.len() })
}

/// Makes `count` timers; there is no error to return when the host has no room.
pub(crate) fn pollables(told: &Told) -> Value {
    let mut pollables = Vec::new();
    while (pollables.len() as u64) < told.number("count", u64::MAX) {
        pollables.push(subscribe_duration(u64::MAX));
    }
    json!({ "made": pollables.len() })
}

/// Asks for `bytes` random bytes in one call; 1 GiB by default. Says how many
/// came, the first of them, and what the other sources of randomness say.
pub(crate) fn random(told: &Told) -> Value {
    let bytes = get_random_bytes(told.number("bytes", 1 << 30));
    json!({
        "received": bytes.len(),
        "first": bytes.iter().take(16).collect::<Vec<_>>(),
        "number": get_random_u64(),
        "insecure": get_insecure_random_bytes(8),
        "insecure_seed": [insecure_seed().0, insecure_seed().1],
    })
}

/// Executes the instruction that always traps.
pub(crate) fn trap() -> ! {
    core::arch::wasm32::unreachable()
}

/// Ends with a code.
pub(crate) fn exit(code: u8) -> ! {
    bindings::wasi::cli::exit::exit_with_code(code);
    unreachable!()
}

/// The call that carries a code; the other bindings are older than it.
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package hostile:exit;
            package wasi:cli@0.2.12 {
                interface exit {
                    exit: func(status: result);
                    exit-with-code: func(status-code: u8);
                }
            }
            world imports {
                import wasi:cli/exit@0.2.12;
            }
        ",
        generate_all,
    });
}
