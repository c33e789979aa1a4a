//! `glovebox completions`: scripts for shells.

use std::io::Write as _;
use std::process::ExitCode;

use clap::CommandFactory as _;
use env_contracts::Problem;

use super::printed;
use crate::args::{Cli, CompletionsArgs};

pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitCode, Problem> {
    // Made in memory first: the generator panics where a pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "glovebox", &mut script);
    let mut out = std::io::stdout().lock();
    printed(out.write_all(&script).and_then(|()| out.flush()), 0)
}
