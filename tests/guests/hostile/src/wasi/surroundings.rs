//! What a guest can see without asking for anything.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wasip2::cli::environment::{get_arguments, get_environment, initial_cwd};
use wasip2::cli::{terminal_stderr, terminal_stdin, terminal_stdout};
use wasip2::clocks::{monotonic_clock, wall_clock};
use wasip2::filesystem::preopens::get_directories;

/// Prints everything that is visible.
pub(crate) fn dump(stdin: &[u8]) -> Value {
    let environment: BTreeMap<String, String> = get_environment().into_iter().collect();
    let folders: Vec<String> = get_directories().into_iter().map(|(_, path)| path).collect();
    json!({
        "arguments": get_arguments(),
        "environment": environment,
        "cwd": initial_cwd(),
        "folders": folders,
        "stdin": String::from_utf8_lossy(stdin),
        "terminal": {
            "stdin": terminal_stdin::get_terminal_stdin().is_some(),
            "stdout": terminal_stdout::get_terminal_stdout().is_some(),
            "stderr": terminal_stderr::get_terminal_stderr().is_some(),
        },
        "monotonic_ns": monotonic_clock::now(),
        "wall_s": wall_clock::now().seconds,
    })
}
