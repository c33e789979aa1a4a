//! Tests that run themselves again as another process, which then dies, is
//! stopped or competes.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// Where the child finds its folder; without it, this is the parent.
pub(crate) const FOLDER: &str = "GLOVEBOX_TEST_FOLDER";

/// In the child, the folder of its store.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// This test again, as a child with this folder.
pub(crate) fn again(name: &str, folder: &std::path::Path) -> Command {
    let mut command = command(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--quiet"]).env(FOLDER, folder);
    command
}

#[expect(clippy::disallowed_methods, reason = "it takes a process to die or to compete")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}
