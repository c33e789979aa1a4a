//! `cargo xtask bench`: benches in the profile of the tests.

use std::ffi::OsString;

use anyhow::Result;
use clap::ValueEnum;

use crate::process;
use crate::root::Root;

/// The benches of the workspace, by the name of their cargo target.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Bench {
    /// WASM actions and the one-shot CLI against bare wasmtime in the same run.
    Wasm,
    /// Cells against execution in process and against `bwrap`.
    Cell,
    /// Containers, new and standing, against `docker run` and `docker exec`; output and files of gigabytes (takes an engine).
    Container,
    /// Decisions of policy: 500 rules against their budget of a millisecond.
    Policy,
    /// The action plane without the run, against bare SQLite; `--large` adds a log of ten million events.
    Plane,
    /// HTTP and MCP over the plane, readers of events, pages.
    Doors,
    /// Commits against bare SQLite with the same rows; `--large` adds a log of ten million events.
    Store,
}

/// Runs one; `args` are its own.
pub(crate) fn run(root: &Root, bench: Bench, args: &[OsString]) -> Result<()> {
    let targets: &[&str] = match bench {
        Bench::Wasm => &["wasm", "one_shot"],
        Bench::Cell => &["cell"],
        Bench::Container => &["container"],
        Bench::Policy => &["policy"],
        Bench::Plane => &["plane"],
        Bench::Doors => &["doors"],
        Bench::Store => &["store"],
    };
    // `--workspace` keeps the feature set of the tests, and with it their build of wasmtime.
    let mut cargo = root.cargo();
    cargo.args(["bench", "--quiet", "--profile", "release", "--workspace"]);
    for target in targets {
        cargo.args(["--bench", target]);
    }
    process::run(cargo.arg("--").args(args))
}
