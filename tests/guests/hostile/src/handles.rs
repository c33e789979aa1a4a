//! Using up what the host keeps for a guest.

use std::fs::File;

use serde_json::{Value, json};
use wasip2::clocks::monotonic_clock::subscribe_duration;
use wasip2::filesystem::types::{DescriptorFlags, OpenFlags, PathFlags};
use wasip2::random::insecure::get_insecure_random_bytes;
use wasip2::random::insecure_seed::insecure_seed;
use wasip2::random::random::{get_random_bytes, get_random_u64};

use crate::{Told, paths};

/// Opens `path` again and again, `count` times or until it is refused.
pub(crate) fn open_files(told: &Told) -> Value {
    let path = told.text("path", "/workspace/a.txt");
    let mut files = Vec::new();
    while (files.len() as u64) < told.number("count", u64::MAX) {
        match File::open(path) {
            Ok(file) => files.push(file),
            Err(error) => return json!({ "opened": files.len(), "refused": format!("{error:?}") }),
        }
    }
    json!({ "opened": files.len() })
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
