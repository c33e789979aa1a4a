//! Starting the process that shuts itself in.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use glovebox_jail::{VIOLATION_EXIT, syscall_name, violation};

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Said(String),
    Refused(i32),
    /// The name of the forbidden call, from the frame.
    Violation(String),
    Killed(i32),
}

pub(crate) fn command(walls: &str, deed: &str) -> Command {
    #[expect(clippy::disallowed_methods, reason = "starts the program under test")]
    let mut command = Command::new(env!("CARGO_BIN_EXE_jail-inmate"));
    command.args([walls, deed]).stdin(Stdio::null()).env_clear();
    command
}

/// Runs one deed behind these walls, with these folders.
pub(crate) fn run(walls: &str, deed: &str, folders: &[(char, &Path)]) -> Outcome {
    let mut command = command(walls, deed);
    for (how, path) in folders {
        command.arg(format!("{how}:{}", path.display()));
    }
    let output = command.output().unwrap();
    if let Some(signal) = output.status.signal() {
        return Outcome::Killed(signal);
    }
    if let Some(call) = violation(&output.stdout) {
        assert_eq!(output.status.code(), Some(VIOLATION_EXIT));
        return Outcome::Violation(syscall_name(call).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{walls} {deed}: {}: {complaint}", output.status);
    let said = String::from_utf8(output.stdout).unwrap();
    match said.trim_end() {
        // `execute` became another program, which says nothing.
        "done" | "" => Outcome::Done,
        said => match said.strip_prefix("refused ") {
            Some(errno) => Outcome::Refused(errno.parse().unwrap()),
            None => Outcome::Said(said.to_owned()),
        },
    }
}
