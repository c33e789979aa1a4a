//! `glovebox contract check`: what this host can enforce of a contract.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use env_contracts::{Clause, Code, Contract, Degrade, Manifest, Problem};
use glovebox_runtime::{Backend, Enforcement, algebra};
use serde::Serialize;

use super::printed;
use crate::args::ContractCommand;
use crate::config::Config;
use crate::house;
use crate::places::Places;
use crate::print::{self, FAILED, FAINT, SUCCEEDED};
use crate::terminal::escaped_line;

pub(crate) fn run(command: ContractCommand, config: &Config) -> Result<ExitCode, Problem> {
    let ContractCommand::Check { file, json } = command;
    let contract = read(&file)?;
    let places = Places::of(config);
    places.make()?;
    let backends: Vec<Box<dyn Backend>> = vec![Box::new(house::wasm(config, &places, 1)?)];
    let report = Report::of(&contract, &house::ceiling(config)?, &backends)?;
    let code = if report.satisfiable { 0 } else { Code::ContractUnsatisfied.exit_code() };
    printed(if json { print::json(&report) } else { report.print() }, code)
}

/// A contract, alone or in a manifest.
pub(super) fn read(file: &Path) -> Result<Contract, Problem> {
    let text = super::files::read_text(file)?;
    let is_manifest = toml::from_str::<toml::Table>(&text)
        .ok()
        .and_then(|table| table.get("schema")?.as_str().map(|schema| schema.starts_with("glovebox/tool/")))
        .unwrap_or(false);
    let problem = if is_manifest {
        Manifest::from_toml(&text).map(|manifest| manifest.contract).map_err(|error| Problem::of(&error))
    } else {
        Contract::from_toml(&text).map_err(|error| Problem::of(&error))
    };
    problem.map_err(|problem| Problem { message: format!("`{}`: {}", file.display(), problem.message), ..problem })
}

/// Each clause of a contract and what comes of it here.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Whether at least one backend enforces all of it, inside the ceiling.
    pub(super) satisfiable: bool,
    /// The backends that enforce all of it.
    backends: Vec<&'static str>,
    pub(super) clauses: Vec<Line>,
}

/// One clause.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) clause: String,
    pub(super) value: String,
    /// Whether it is the ceiling's, because the contract does not say.
    filled_in: bool,
    /// What the ceiling has, where the clause asks for more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) above_ceiling: Option<String>,
    pub(super) answers: Vec<Answer>,
}

/// What one backend makes of one clause.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    pub(super) backend: &'static str,
    #[serde(flatten)]
    pub(super) kind: Kind,
}

#[derive(Debug, Serialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub(super) enum Kind {
    Enforced { by: &'static str },
    Dropped { reason: String },
    Refused { reason: String, remedy: String },
}

impl Report {
    /// Asks every backend for every clause, those included that the ceiling
    /// fills in, as an action would.
    ///
    /// # Errors
    /// `contract-unsatisfied` if limits that were filled in contradict what
    /// the contract needs.
    pub(super) fn of(
        own: &Contract,
        ceiling: &env_contracts::Ceiling,
        backends: &[Box<dyn Backend>],
    ) -> Result<Self, Problem> {
        let bounds = algebra::effective_bounds(ceiling, house::TENANT, None);
        let contract = algebra::fill(own, &bounds);
        contract.validate().map_err(|error| Problem::new(Code::ContractUnsatisfied, error.to_string()))?;
        let above = algebra::excess(&contract, &bounds);
        let own: Vec<_> = own.clauses().iter().map(Clause::path).collect();
        let lines = contract.clauses().into_iter().map(|clause| {
            let path = clause.path();
            let answer = |backend: &dyn Backend| match backend.enforce(&clause) {
                Enforcement::By(by) => Kind::Enforced { by },
                Enforcement::Refused { reason, .. } if contract.degrade.get(&path) == Some(&Degrade::Allow) => {
                    Kind::Dropped { reason }
                }
                Enforcement::Refused { reason, remedy } => Kind::Refused { reason, remedy },
            };
            Line {
                value: clause.value(),
                filled_in: !own.contains(&path),
                above_ceiling: above
                    .iter()
                    .find(|delta| delta.clause == path)
                    .map(|delta| delta.had.clone().unwrap_or_else(|| "nothing".into())),
                answers: backends
                    .iter()
                    .map(|backend| Answer { backend: backend.name(), kind: answer(&**backend) })
                    .collect(),
                clause: path.to_string(),
            }
        });
        let clauses: Vec<Line> = lines.collect();
        let enforces = |name: &str| {
            let mut answers = clauses.iter().flat_map(|line| &line.answers).filter(|answer| answer.backend == name);
            !answers.any(|answer| matches!(answer.kind, Kind::Refused { .. }))
        };
        let able: Vec<&str> = backends.iter().map(|backend| backend.name()).filter(|name| enforces(name)).collect();
        Ok(Self { satisfiable: above.is_empty() && !able.is_empty(), backends: able, clauses })
    }

    fn print(&self) -> std::io::Result<()> {
        let mut out = anstream::stdout().lock();
        for line in &self.clauses {
            let from = if line.filled_in { format!("  {FAINT}the ceiling's{FAINT:#}") } else { String::new() };
            writeln!(out, "{}  {}{from}", escaped_line(&line.clause), escaped_line(&line.value))?;
            if let Some(had) = &line.above_ceiling {
                writeln!(out, "  {FAILED}above the ceiling{FAILED:#}  it has {}", escaped_line(had))?;
            }
            for Answer { backend, kind } in &line.answers {
                match kind {
                    Kind::Enforced { by } => writeln!(out, "  {backend}  {SUCCEEDED}enforced{SUCCEEDED:#}  {by}")?,
                    Kind::Dropped { reason } => {
                        writeln!(out, "  {backend}  dropped, as the contract allows: {}", escaped_line(reason))?;
                    }
                    Kind::Refused { reason, remedy } => {
                        writeln!(
                            out,
                            "  {backend}  {FAILED}refused{FAILED:#}  {}; what would do: {}",
                            escaped_line(reason),
                            escaped_line(remedy)
                        )?;
                    }
                }
            }
        }
        if self.satisfiable {
            return writeln!(out, "\n{SUCCEEDED}can be met{SUCCEEDED:#} by {}", self.backends.join(", "));
        }
        let why = if self.backends.is_empty() {
            "no backend here enforces all of it"
        } else {
            "it asks for more than the ceiling allows"
        };
        writeln!(out, "\n{FAILED}can't be met{FAILED:#}: {why}")
    }
}
