//! The workspace's own tasks, reached as `cargo xtask`: tests, checks,
//! generated references, the shipped tools, benches and fuzzing.
//!
//! It is built before anything else can be checked, so it stays light: nothing
//! of the product is linked in. What needs the product runs it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task reports to the person who started it")]

mod bench;
mod check;
mod conformance;
mod engine;
mod fuzz;
mod images;
mod install;
mod process;
mod references;
mod root;
mod test;
mod tidy;
mod tools;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::root::Root;

const EXAMPLES: &str = "\
Examples:
  cargo xtask test                    all tests; what this machine lacks is skipped and named
  cargo xtask test -- digest          only tests whose name contains `digest`
  cargo xtask check                   formatting, lints, generated files, docs, dependencies
  cargo xtask check clippy doc        only these steps
  cargo xtask gen                     write schemas and references after changing the product
  cargo xtask tools build             rebuild the shipped tools after changing their source
  cargo xtask images build            the images of shell.run and python.run, for the engine
  cargo xtask bench wasm              the table of timings against bare wasmtime
  cargo xtask conformance http        a running server against its OpenAPI document
  cargo xtask conformance mcp         the MCP door against the suite of its protocol
  cargo xtask fuzz canon --seconds 60";

/// Tasks of the Glovebox workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run all tests and doctests of the workspace.
    Test {
        /// Install the system packages that tests need (as root, with apt-get).
        #[arg(long)]
        provision: bool,
        /// Passed to the test programs, for example a part of a test's name.
        #[arg(last = true)]
        args: Vec<OsString>,
    },
    /// Check everything but the tests: formatting, tidy, generated files,
    /// clippy, docs, shipped tools, dependencies.
    Check {
        /// Only these steps, in the usual order.
        #[arg(value_enum)]
        steps: Vec<check::Step>,
    },
    /// All of `check`, then all of `test --provision`: what a change must pass.
    Ci,
    /// Check the rules of the house: dependency directions, file sizes, crate docs.
    Tidy,
    /// Write the committed references: JSON Schemas, CLI, errors, configuration, promises.
    Gen {
        /// Write nothing; fail where a committed file differs.
        #[arg(long)]
        check: bool,
    },
    /// Build or check the tools that ship with Glovebox.
    #[command(subcommand)]
    Tools(Tools),
    /// Make the container images that tools of ours run in (takes Debian, and an engine).
    #[command(subcommand)]
    Images(Images),
    /// Run a bench in the profile that tests use.
    Bench {
        /// Which one.
        #[arg(value_enum)]
        name: bench::Bench,
        /// Passed to the bench.
        #[arg(last = true)]
        args: Vec<OsString>,
    },
    /// Hold a door against what is written down of it (installs helpers on first use).
    Conformance {
        /// Which one.
        #[arg(value_enum)]
        door: conformance::Door,
    },
    /// Fuzz one target (installs cargo-fuzz on first use).
    Fuzz {
        /// A target of tests/fuzz.
        name: String,
        /// How long to fuzz.
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
}

#[derive(Subcommand)]
enum Tools {
    /// Build the components into tools/dist.
    Build,
    /// Check that tools/dist belongs to the sources.
    Check,
}

#[derive(Subcommand)]
enum Images {
    /// Make them from the locked packages, and give them to the engine.
    Build,
    /// Look up which packages the wishes lead to now, and write the locks anew.
    Lock,
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    let root = Root::find()?;
    match task {
        Task::Test { provision, args } => test::run(&root, provision, &args),
        Task::Check { steps } => check::check(&root, &steps),
        Task::Ci => check::ci(&root),
        Task::Tidy => tidy::run(&root),
        Task::Gen { check: false } => references::write(&root),
        Task::Gen { check: true } => references::check(&root),
        Task::Tools(Tools::Build) => tools::build(&root),
        Task::Tools(Tools::Check) => tools::check(&root),
        Task::Images(Images::Build) => images::build(&root),
        Task::Images(Images::Lock) => images::lock(&root),
        Task::Bench { name, args } => bench::run(&root, name, &args),
        Task::Conformance { door } => conformance::run(&root, door),
        Task::Fuzz { name, seconds } => fuzz::run(&root, &name, seconds),
    }
}
