//! Processes: which are seen, which are left, how many there can be.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::Told;

/// This program.
const SELF: &str = "/proc/self/exe";

/// Every process that is seen, and what the machine is called.
pub(crate) fn visible() -> Value {
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut all: Vec<u32> = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    all.sort_unstable();
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    json!({ "own": std::process::id(), "all": all, "hostname": hostname.trim() })
}

/// Starts this program, with something to do, and a word to be known by.
pub(super) fn start(told: &Value, mark: &str, output: Stdio) -> std::io::Result<Child> {
    let mut child = Command::new(SELF).arg(mark).stdin(Stdio::piped()).stdout(output).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(told.to_string().as_bytes())?;
    }
    Ok(child)
}

/// Leaves `count` processes running that bear a `mark`, in a session of their own, which hear no
/// request to end; at the second level, nobody's children. Stays with them if
/// `hang`.
pub(crate) fn leave_running(told: &Told) -> Value {
    if told.number("level", 0) > 0 {
        let _ = rustix::process::setsid();
        // SAFETY: these signals are ignored, and no handler runs.
        unsafe {
            for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }
    match told.number("level", 0) {
        2 => crate::time::spin(),
        level => {
            let count = if level == 0 { told.number("count", 3) } else { 1 };
            let mark = told.text("mark", "");
            let more = json!({ "do": "leave-running", "level": level + 1, "mark": mark });
            let started = (0..count).filter(|_| start(&more, mark, Stdio::null()).is_ok()).count();
            // Until they are there, and have children of their own.
            std::thread::sleep(std::time::Duration::from_millis(200));
            if told.flag("hang") {
                crate::time::sleep(told);
            }
            json!({ "left": started })
        }
    }
}

/// Starts processes that sleep until one is refused, or there are `count`.
pub(crate) fn storm(told: &Told) -> Value {
    let mut started = Vec::new();
    while (started.len() as u64) < told.number("count", 10_000) {
        match start(&json!({ "do": "sleep" }), "", Stdio::null()) {
            Ok(child) => started.push(child),
            Err(error) => return json!({ "started": started.len(), "refused": format!("{error:?}") }),
        }
    }
    json!({ "started": started.len() })
}
