//! `glovebox hook`: decides on what an agent does with tools of its own.
//!
//! An agent takes a hook that crashes, or that takes too long, for one that has
//! nothing to say, and goes ahead: only exit code 2 and a denial stop it. So
//! there are two processes. The outer one waits for the inner one, knows nothing
//! of policies or databases, and says no to whatever is not a clean answer in
//! time. The inner one decides.

mod answer;
mod call;
mod decide;
mod install;
mod outer;
mod place;

pub(crate) use outer::guard;

use std::process::ExitCode;

use env_contracts::Problem;

use crate::args::{HookArgs, HookCommand};
use crate::config::Config;

pub(crate) fn run(args: &HookArgs, config: &Config) -> Result<ExitCode, Problem> {
    match &args.command {
        Some(HookCommand::Install(install)) => install::install(install),
        None => decide::decide(args, config),
    }
}
