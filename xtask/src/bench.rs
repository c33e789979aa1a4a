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
}

/// Runs one; `args` are its own.
pub(crate) fn run(root: &Root, bench: Bench, args: &[OsString]) -> Result<()> {
    let target = match bench {
        Bench::Wasm => "wasm",
    };
    process::run(
        root.cargo()
            // `--workspace` keeps the feature set of the tests, and with it their build of wasmtime.
            .args(["bench", "--profile", "release", "--workspace", "--bench", target, "--"])
            .args(args),
    )
}
