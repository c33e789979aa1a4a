//! `cargo xtask check` and `ci`: everything a change must pass, in the order
//! that finds the cheap faults first.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::install::CARGO_DENY;
use crate::process;
use crate::root::Root;
use crate::{references, test, tidy, tools};

/// One check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// `cargo fmt --check`.
    Fmt,
    /// The rules of the house.
    Tidy,
    /// Committed references against the product.
    Gen,
    /// Lints, with warnings as errors.
    Clippy,
    /// Documentation, with warnings as errors.
    Doc,
    /// Shipped tools against their sources.
    Tools,
    /// Bans, licences and sources of dependencies.
    Deny,
}

impl Step {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    // Clippy and doc take the release profile: build scripts and macros are then
    // those that the tests use, and doc reuses the metadata that clippy made.
    fn run(self, root: &Root) -> Result<()> {
        match self {
            Self::Fmt => format(root),
            Self::Tidy => tidy::run(root),
            Self::Gen => references::check(root),
            Self::Clippy => lint(root),
            Self::Doc => process::run(
                root.cargo().args(["doc", "--release", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
            ),
            Self::Tools => tools::check(root),
            // An exception whose reason is gone is an error, not a warning.
            Self::Deny => process::run(root.command(CARGO_DENY.path(root)?).args([
                "check",
                "--deny",
                "unmatched-skip",
                "--deny",
                "unnecessary-skip",
                "bans",
                "licenses",
                "sources",
            ])),
        }
    }
}

/// Every workspace of the checkout, so that no corner looks different.
fn format(root: &Root) -> Result<()> {
    process::run(root.cargo().args(["fmt", "--all", "--check"]))?;
    for manifest in root.other_workspaces()? {
        process::run(root.cargo().args(["fmt", "--all", "--check", "--manifest-path"]).arg(manifest))?;
    }
    Ok(())
}

fn lint(root: &Root) -> Result<()> {
    const DENY: [&str; 3] = ["--", "-D", "warnings"];
    process::run(root.cargo().args(["clippy", "--release", "--workspace", "--all-targets"]).args(DENY))?;
    process::run(root.cargo_tools("clippy").args(["--workspace", "--all-targets"]).args(DENY))
}

/// Runs the given steps, or all where none is given.
pub(crate) fn check(root: &Root, steps: &[Step]) -> Result<()> {
    let mut report = Report::default();
    for &step in Step::value_variants() {
        if steps.is_empty() || steps.contains(&step) {
            report.step(&step.name(), || step.run(root));
        }
    }
    report.finish()
}

/// All checks, then all tests with provisioning.
pub(crate) fn ci(root: &Root) -> Result<()> {
    let mut report = Report::default();
    for &step in Step::value_variants() {
        report.step(&step.name(), || step.run(root));
    }
    report.step("test", || test::run(root, true, &[]));
    report.finish()
}

/// What ran, how long it took and whether it passed. A failed step does not
/// hide the ones after it.
#[derive(Default)]
struct Report {
    rows: Vec<Row>,
}

struct Row {
    name: String,
    took: Duration,
    failure: Option<String>,
}

impl Report {
    fn step(&mut self, name: &str, run: impl FnOnce() -> Result<()>) {
        println!("==> {name}");
        let start = Instant::now();
        let failure = run().err().map(|error| format!("{error:#}"));
        let took = start.elapsed();
        if let Some(failure) = &failure {
            println!("{failure}");
        }
        println!("<== {name}: {} after {:.1} s", verdict(&failure), took.as_secs_f64());
        self.rows.push(Row { name: name.to_owned(), took, failure });
    }

    fn finish(&self) -> Result<()> {
        println!("\nsummary");
        for row in &self.rows {
            println!("  {:8} {:6} {:7.1} s", row.name, verdict(&row.failure), row.took.as_secs_f64());
        }
        let failed = self.failed();
        if !failed.is_empty() {
            bail!("{} failed; what they found is above, after each `==>`", failed.join(", "));
        }
        Ok(())
    }

    fn failed(&self) -> Vec<&str> {
        let failed = self.rows.iter().filter(|row| row.failure.is_some());
        failed.map(|row| row.name.as_str()).collect()
    }
}

fn verdict(failure: &Option<String>) -> &'static str {
    if failure.is_none() { "passed" } else { "FAILED" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_fails_the_report_and_hides_no_other() {
        let mut report = Report::default();
        report.step("one", || Ok(()));
        assert!(report.finish().is_ok());
        report.step("two", || bail!("broken"));
        report.step("three", || Ok(()));
        assert_eq!(report.rows.len(), 3);
        assert_eq!(report.failed(), ["two"]);
        assert!(report.finish().is_err());
    }
}
