//! What this process is: its user, its groups, what it may.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use crate::{Told, refused};

/// The lines of the kernel's report that say it.
const LINES: [&str; 10] =
    ["Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"];

/// What the kernel says that this process is.
pub(crate) fn own() -> Value {
    let status = match std::fs::read_to_string("/proc/self/status") {
        Ok(status) => status,
        Err(error) => return refused(error),
    };
    let line = |line: &str| {
        let (key, value) = line.split_once(':')?;
        let words = value.split_whitespace().collect::<Vec<_>>().join(" ");
        LINES.contains(&key).then(|| (key.to_owned(), Value::from(words)))
    };
    let mut all: Map<_, _> = status.lines().filter_map(line).collect();
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    all.insert("limits".to_owned(), json!(limits));
    all.into()
}

/// What a program at `program`, which is this one, finds itself to be.
pub(crate) fn of_program(told: &Told) -> Value {
    match ask(told.text("program", "/hostile-setuid"), &json!({ "do": "standing" })) {
        Ok(said) => said,
        Err(error) => refused(error),
    }
}

/// Starts this program from a path, and hears what it says.
pub(crate) fn ask(program: &str, told: &Value) -> std::io::Result<Value> {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(told.to_string().as_bytes())?;
    }
    let output = child.wait_with_output()?;
    Ok(serde_json::from_slice(&output.stdout).unwrap_or_else(|_| json!({ "ended": format!("{}", output.status) })))
}
