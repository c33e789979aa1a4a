//! `glovebox stop`: everything, at once.

use std::io::Write as _;
use std::process::ExitCode;

use env_contracts::Problem;

use super::printed;
use crate::args::StopArgs;
use crate::config::Config;
use crate::{house, print, who};

pub(crate) fn run(args: &StopArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    let principal = who::requester_of_answers(config);
    let runtime = house::tokio_runtime()?;
    let mut out = anstream::stdout().lock();
    if args.release {
        runtime.block_on(service.release(&principal))?;
        if args.json {
            drop(out);
            return printed(print::json(&serde_json::json!({ "halted": false })), 0);
        }
        return printed(writeln!(out, "things go on"), 0);
    }
    let halted = runtime.block_on(service.stop_all(&principal, args.reason.clone()))?;
    if args.json {
        drop(out);
        return printed(print::json(&serde_json::json!({ "halted": true, "stopped": halted })), 0);
    }
    printed(
        writeln!(
            out,
            "nothing is let past: {} running told to stop, {} waiting ended, {} grants taken back",
            halted.running, halted.waiting, halted.grants
        ),
        0,
    )
}
