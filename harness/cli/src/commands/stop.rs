//! `glovebox stop`: everything, at once.

use std::io::Write as _;
use std::process::ExitCode;

use env_contracts::{Code, Problem};

use super::printed;
use crate::args::StopArgs;
use crate::config::Config;
use crate::places::Places;
use crate::{house, print, who};

pub(crate) fn run(args: &StopArgs, config: &Config) -> Result<ExitCode, Problem> {
    let principal = who::requester_of_answers(config);
    let runtime = house::tokio_runtime()?;
    if args.release {
        runtime.block_on(house::overseer(config)?.release(&principal))?;
        let mut out = anstream::stdout().lock();
        if args.json {
            drop(out);
            return printed(print::json(&serde_json::json!({ "halted": false })), 0);
        }
        return printed(writeln!(out, "things go on"), 0);
    }
    let stop = || runtime.block_on(house::overseer(config)?.stop_all(&principal, args.reason.clone()));
    let halted = match stop() {
        // What was set aside for this; whatever writes now is to stop anyway.
        Err(problem) if problem.code == Code::DiskFull && Places::of(config).give_back() => stop(),
        stopped => stopped,
    }?;
    let mut out = anstream::stdout().lock();
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
