//! `glovebox db`: looking after the database.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use env_contracts::{Code, Problem};
use glovebox_store::{Options, Sqlite};

use super::audit::replay;
use super::printed;
use crate::args::DbCommand;
use crate::config::Config;
use crate::places::Places;
use crate::print::{self, FAILED, SUCCEEDED};
use crate::terminal::escaped_line;
use crate::who;

pub(crate) fn run(command: DbCommand, config: &Config) -> Result<ExitCode, Problem> {
    match command {
        DbCommand::Check { json } => check(json, config),
        DbCommand::Backup { file } => backup(&file, config),
    }
}

/// The store of this state folder. Who looks after it does not want an empty
/// one made.
///
/// # Errors
/// `state-unavailable` where there is none, `store-corrupt`, `store-newer`.
pub(super) fn store(config: &Config) -> Result<Sqlite, Problem> {
    Sqlite::open(&Places::of(config).state, &Options { create: false })
}

fn check(json: bool, config: &Config) -> Result<ExitCode, Problem> {
    let mut faults = Sqlite::check(&Places::of(config).state)?;
    if faults.is_empty() {
        // What the log adds up to says what has to stand beside it. One that adds up to nothing is broken.
        match replay::compare(&store(config)?) {
            Ok(state) => faults = state.findings,
            Err(problem) => faults.push(format!("the log does not add up: {}", problem.message)),
        }
    }
    let code = if faults.is_empty() { 0 } else { Code::StoreCorrupt.exit_code() };
    if json {
        return printed(print::json(&serde_json::json!({ "sound": faults.is_empty(), "faults": faults })), code);
    }
    let mut out = anstream::stdout().lock();
    let mut shown = Ok(());
    for fault in &faults {
        shown = shown.and_then(|()| writeln!(out, "{FAILED}fault{FAILED:#}  {}", escaped_line(fault)));
    }
    shown = shown.and_then(|()| match faults.len() {
        0 => writeln!(
            out,
            "{SUCCEEDED}sound{SUCCEEDED:#}  the file is whole, and its tables are what the log adds up to"
        ),
        _ => writeln!(out, "  hint: {}", Code::StoreCorrupt.remedy()),
    });
    drop(out);
    printed(shown, code)
}

fn backup(file: &Path, config: &Config) -> Result<ExitCode, Problem> {
    // All that is recorded, also of others.
    who::person(config)?;
    store(config)?.backup(file)?;
    let shown = escaped_line(&file.display().to_string());
    printed(writeln!(anstream::stdout().lock(), "`{shown}` is a copy of all that is recorded now"), 0)
}
