//! `glovebox contract check`: what this host can enforce of a contract.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use env_contracts::{Code, Contract, Manifest, Problem};
use glovebox_runtime::{Backend, BackendAnswer, ClauseAnswer, ContractReport, algebra};

use super::printed;
use crate::args::ContractCommand;
use crate::config::Config;
use crate::places::Places;
use crate::print::{self, FAILED, FAINT, SUCCEEDED};
use crate::terminal::escaped_line;
use crate::{backends, ceiling, house};

pub(crate) fn run(command: ContractCommand, config: &Config) -> Result<ExitCode, Problem> {
    let ContractCommand::Check { file, json } = command;
    let contract = read(&file)?;
    let places = Places::of(config);
    places.make()?;
    let backends: Vec<Arc<dyn Backend>> =
        vec![Arc::new(backends::wasm(config, &places, 1)?), Arc::new(backends::container(config, &places)?)];
    let report = report(&contract, config, &backends)?;
    let code = if report.satisfiable { 0 } else { Code::ContractUnsatisfied.exit_code() };
    printed(if json { print::json(&report) } else { shown(&report) }, code)
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

/// What this host makes of a contract, for whoever sits here.
///
/// # Errors
/// As of [`ContractReport::of`].
pub(super) fn report(
    contract: &Contract,
    config: &Config,
    backends: &[Arc<dyn Backend>],
) -> Result<ContractReport, Problem> {
    let bounds = algebra::effective_bounds(&ceiling::read(config)?, house::TENANT, None);
    ContractReport::of(contract, &bounds, backends)
}

fn shown(report: &ContractReport) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    for line in &report.clauses {
        let from = if line.filled_in { format!("  {FAINT}the ceiling's{FAINT:#}") } else { String::new() };
        writeln!(out, "{}  {}{from}", escaped_line(&line.clause), escaped_line(&line.value))?;
        if let Some(had) = &line.above_ceiling {
            writeln!(out, "  {FAILED}above the ceiling{FAILED:#}  it has {}", escaped_line(had))?;
        }
        for BackendAnswer { backend, kind } in &line.answers {
            match kind {
                ClauseAnswer::Enforced { by } => writeln!(out, "  {backend}  {SUCCEEDED}enforced{SUCCEEDED:#}  {by}")?,
                ClauseAnswer::Dropped { reason } => {
                    writeln!(out, "  {backend}  dropped, as the contract allows: {}", escaped_line(reason))?;
                }
                ClauseAnswer::Refused { reason, remedy } => {
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
    if report.satisfiable {
        return writeln!(out, "\n{SUCCEEDED}can be met{SUCCEEDED:#} by {}", report.backends.join(", "));
    }
    let why = if report.backends.is_empty() {
        "no backend here enforces all of it"
    } else {
        "it asks for more than the ceiling allows"
    };
    writeln!(out, "\n{FAILED}can't be met{FAILED:#}: {why}")
}
