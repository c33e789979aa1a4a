//! What the guest asks of Linux, where WASI is another host: the same requests,
//! with the same names for refusals; and what only a process can try.

pub(crate) mod filesystem;
mod intrusion;
mod processes;
mod standing;

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::{Value, json};

use crate::Told;

/// Waits in one call; for ever where that is what is asked.
pub(crate) fn wait(nanoseconds: u64) {
    std::thread::sleep(Duration::from_nanos(nanoseconds));
}

/// Makes `count` pairs of streams, or until that is refused.
pub(crate) fn streams(told: &Told) -> Value {
    many(told, UnixStream::pair)
}

/// Makes `count` counters to wait for, or until that is refused.
pub(crate) fn pollables(told: &Told) -> Value {
    many(told, || Ok(eventfd(0, EventfdFlags::empty())?))
}

fn many<T>(told: &Told, make: impl Fn() -> std::io::Result<T>) -> Value {
    let mut made = Vec::new();
    while (made.len() as u64) < told.number("count", u64::MAX) {
        match make() {
            Ok(one) => made.push(one),
            Err(error) => return json!({ "made": made.len(), "refused": format!("{error:?}") }),
        }
    }
    json!({ "made": made.len() })
}

/// Asks for `bytes` random bytes. Says how many came, and the first of them.
pub(crate) fn random(told: &Told) -> Value {
    let mut bytes = vec![0; usize::try_from(told.number("bytes", 1 << 30)).unwrap_or(usize::MAX)];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(received) => json!({ "received": received, "first": bytes.iter().take(16).collect::<Vec<_>>() }),
        Err(error) => crate::refused(error),
    }
}

/// Executes the instruction that no processor has.
pub(crate) fn trap() -> ! {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it ends this process, and nothing else.
    unsafe {
        std::arch::asm!("ud2", options(noreturn))
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: it ends this process, and nothing else.
    unsafe {
        std::arch::asm!("udf #0", options(noreturn))
    }
}

/// Ends with a code.
pub(crate) fn exit(code: u8) -> ! {
    std::process::exit(code.into())
}

/// Prints everything that is visible.
pub(crate) fn dump(stdin: &[u8]) -> Value {
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let folders: Vec<String> = filesystem::get_directories().into_iter().map(|(_, path)| path).collect();
    json!({
        "arguments": std::env::args().collect::<Vec<_>>(),
        "environment": environment,
        "cwd": std::env::current_dir().ok(),
        "folders": folders,
        "stdin": String::from_utf8_lossy(stdin),
        "terminal": {
            "stdin": std::io::stdin().is_terminal(),
            "stdout": std::io::stdout().is_terminal(),
            "stderr": std::io::stderr().is_terminal(),
        },
    })
}

/// What only this target can try.
pub(crate) fn more(what: &str, told: &Told) -> Value {
    match what {
        "standing" => standing::own(),
        "setuid" => standing::of_program(told),
        "attempts" => intrusion::attempts(),
        "attempt" => intrusion::attempt(told),
        "reach-init" => intrusion::reach_init(),
        "cripple-init" => intrusion::cripple_init(told),
        "reach-network" => intrusion::reach_network(told),
        "devices" => intrusion::devices(),
        "write" => intrusion::write(told),
        "processes" => processes::visible(),
        "leave-running" => processes::leave_running(told),
        "storm" => processes::storm(told),
        "plant" => filesystem::plant(told),
        "owners" => filesystem::owners(told),
        other => json!({ "unknown": other }),
    }
}
