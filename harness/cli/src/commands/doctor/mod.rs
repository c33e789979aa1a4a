//! `glovebox doctor`: what this host offers, and whether each wall stands.

mod host;
mod walls;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use env_contracts::{Code, Problem};
use serde::Serialize;

use super::printed;
use crate::args::DoctorArgs;
use crate::config::Config;
use crate::house::{self, Places};
use crate::print::{self, FAILED, FAINT, SUCCEEDED};
use crate::terminal::{escaped, escaped_line};

pub(crate) fn run(args: &DoctorArgs, config: &Config) -> Result<ExitCode, Problem> {
    let places = Places::of(config);
    let mut lines = host::facts();
    lines.push(Line::required("state folder", host::state(&places)));
    let path = config.entry("ceiling").0;
    let shipped = if Path::new(path).exists() { "" } else { " (there is none: the shipped one holds)" };
    let ceiling = house::ceiling(config).map(|_| format!("`{path}`{shipped}"));
    lines.push(Line::required("ceiling", ceiling));
    if lines.iter().all(|line| line.status != Status::Failed) {
        lines.extend(walls::test(config)?);
    }
    let report = Report { healthy: lines.iter().all(|line| line.status != Status::Failed), lines };
    let code = if report.healthy { 0 } else { Code::BackendUnavailable.exit_code() };
    printed(if args.json { print::json(&report) } else { report.print() }, code)
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
}

impl Line {
    fn ok(what: &str, found: impl Into<String>) -> Self {
        Self { what: what.to_owned(), status: Status::Ok, found: found.into(), help: None }
    }

    fn not_here(what: &str, found: impl Into<String>) -> Self {
        Self { status: Status::NotHere, ..Self::ok(what, found) }
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
            };
            writeln!(out, "{style}{word:8}{style:#}  {what:width$}  {}", escaped_line(found))?;
            if let Some(help) = help {
                writeln!(out, "{:8}  {:width$}  hint: {}", "", "", escaped(help))?;
            }
        }
        Ok(())
    }
}
