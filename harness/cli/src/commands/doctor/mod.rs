//! `glovebox doctor`: what this host offers, and whether each wall stands.

mod containers;
mod decisions;
mod host;
mod second_wall;
mod walls;

use std::io::Write;
use std::process::ExitCode;

use env_contracts::{Code, Problem};
use serde::Serialize;

use super::printed;
use crate::args::DoctorArgs;
use crate::ceiling;
use crate::config::{self, Config};
use crate::places::Places;
use crate::print::{self, FAILED, FAINT, SUCCEEDED};
use crate::terminal::{escaped, escaped_line};

/// With a configuration that could not be read, what can be looked at still is.
pub(crate) fn run(args: &DoctorArgs, config: Result<Config, Problem>) -> Result<ExitCode, Problem> {
    let mut lines = host::facts();
    match config {
        Ok(config) => {
            let sound = is_sound(&lines);
            lines.extend(look(&config, sound)?);
        }
        Err(problem) => {
            lines.push(Line::required("configuration", Err(problem)));
            let why = "not looked at: the configuration says where it is";
            lines.extend(["state folder", "ceiling", SELF_TESTS].map(|what| Line::skipped(what, why)));
        }
    }
    let report = Report { healthy: is_sound(&lines), lines };
    let code = if report.healthy { 0 } else { Code::BackendUnavailable.exit_code() };
    printed(if args.json { print::json(&report) } else { report.print() }, code)
}

/// All self-tests, as one line where none could run.
const SELF_TESTS: &str = "self-tests";

fn is_sound(lines: &[Line]) -> bool {
    lines.iter().all(|line| line.status != Status::Failed)
}

/// What the configuration names, and the self-tests if all of it can be used
/// on a host that is sound itself.
fn look(config: &Config, sound: bool) -> Result<Vec<Line>, Problem> {
    let file = config::file_path();
    let there = if file.exists() { "" } else { " (there is none: defaults and the environment hold)" };
    let mut lines = vec![Line::ok("configuration", format!("`{}`{there}", file.display()))];
    lines.push(Line::required("state folder", host::state(&Places::of(config))));
    let ceiling = ceiling::read(config).and_then(|_| {
        let none = ceiling::text(config)?.is_none();
        let shipped = if none { " (there is none: the shipped one holds)" } else { "" };
        Ok(format!("`{}`{shipped}", config.entry("ceiling").0))
    });
    lines.push(Line::required("ceiling", ceiling));
    lines.extend(decisions::look(config));
    lines.push(containers::look(config));
    if sound && is_sound(&lines) {
        lines.extend(walls::test(config)?);
        lines.extend(second_wall::test(config)?);
    } else {
        lines.push(Line::skipped(SELF_TESTS, "not run: what failed above comes first"));
    }
    Ok(lines)
}

#[derive(Debug, Serialize)]
struct Report {
    healthy: bool,
    lines: Vec<Line>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Line {
    what: String,
    status: Status,
    found: String,
    /// What to do, where there is something to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Status {
    /// It is as it should be.
    Ok,
    /// It is not, and actions can't be trusted or can't run.
    Failed,
    /// This host or this version does not have it; nothing relies on it.
    NotHere,
    /// It was not looked at, because of what failed before.
    Skipped,
}

impl Line {
    fn ok(what: &str, found: impl Into<String>) -> Self {
        Self { what: what.to_owned(), status: Status::Ok, found: found.into(), help: None }
    }

    fn not_here(what: &str, found: impl Into<String>) -> Self {
        Self { status: Status::NotHere, ..Self::ok(what, found) }
    }

    fn skipped(what: &str, why: &str) -> Self {
        Self { status: Status::Skipped, ..Self::ok(what, why) }
    }

    fn required(what: &str, result: Result<String, Problem>) -> Self {
        match result {
            Ok(found) => Self::ok(what, found),
            Err(problem) => {
                Self { status: Status::Failed, help: Some(problem.help), ..Self::ok(what, problem.message) }
            }
        }
    }
}

impl Report {
    fn print(&self) -> std::io::Result<()> {
        let mut out = anstream::stdout().lock();
        let width = self.lines.iter().map(|line| line.what.chars().count()).max().unwrap_or(0);
        for Line { what, status, found, help } in &self.lines {
            let (style, word) = match status {
                Status::Ok => (SUCCEEDED, "ok"),
                Status::Failed => (FAILED, "failed"),
                Status::NotHere => (FAINT, "not here"),
                Status::Skipped => (FAINT, "skipped"),
            };
            writeln!(out, "{style}{word:8}{style:#}  {what:width$}  {}", escaped_line(found))?;
            if let Some(help) = help {
                writeln!(out, "{:8}  {:width$}  hint: {}", "", "", escaped(help))?;
            }
        }
        Ok(())
    }
}
