//! What a host can enforce of a contract, asked before anything runs.

use std::sync::Arc;

use env_contracts::{Bounds, Clause, Code, Contract, Degrade, Problem};
use schemars::JsonSchema;
use serde::Serialize;

use crate::algebra;
use crate::backend::{Backend, Enforcement};

/// Each clause of a contract and what comes of it here.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ContractReport {
    /// Whether at least one backend enforces all of it, inside the ceiling.
    pub satisfiable: bool,
    /// The backends that enforce all of it.
    pub backends: Vec<&'static str>,
    /// The clauses, in their order.
    pub clauses: Vec<ClauseReport>,
}

/// One clause.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ClauseReport {
    /// Its path.
    pub clause: String,
    /// What it says.
    pub value: String,
    /// Whether it is the ceiling's, because the contract does not say.
    pub filled_in: bool,
    /// What the ceiling has, where the clause asks for more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above_ceiling: Option<String>,
    /// What each backend makes of it.
    pub answers: Vec<BackendAnswer>,
}

/// What one backend makes of one clause.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BackendAnswer {
    /// Which one.
    pub backend: &'static str,
    /// What it makes of it.
    #[serde(flatten)]
    pub kind: ClauseAnswer,
}

/// What comes of a clause.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum ClauseAnswer {
    /// It holds.
    Enforced {
        /// By what.
        by: &'static str,
    },
    /// It is left out, as the contract allows.
    Dropped {
        /// Why.
        reason: String,
    },
    /// Nothing with it runs there.
    Refused {
        /// Why.
        reason: String,
        /// What would do.
        remedy: String,
    },
}

impl ContractReport {
    /// Asks every backend for every clause, those included that the ceiling
    /// fills in, as an action would.
    ///
    /// # Errors
    /// `contract-unsatisfied` if limits that were filled in contradict what
    /// the contract needs.
    pub fn of(own: &Contract, bounds: &Bounds, backends: &[Arc<dyn Backend>]) -> Result<Self, Problem> {
        let contract = algebra::fill(own, bounds);
        contract.validate().map_err(|error| Problem::new(Code::ContractUnsatisfied, error.to_string()))?;
        let above = algebra::excess(&contract, bounds);
        let own: Vec<_> = own.clauses().iter().map(Clause::path).collect();
        let lines = contract.clauses().into_iter().map(|clause| {
            let path = clause.path();
            let answer = |backend: &dyn Backend| match backend.enforce(&clause) {
                Enforcement::By(by) => ClauseAnswer::Enforced { by },
                Enforcement::Refused { reason, .. } if contract.degrade.get(&path) == Some(&Degrade::Allow) => {
                    ClauseAnswer::Dropped { reason }
                }
                Enforcement::Refused { reason, remedy } => ClauseAnswer::Refused { reason, remedy },
            };
            ClauseReport {
                value: clause.value(),
                filled_in: !own.contains(&path),
                above_ceiling: above
                    .iter()
                    .find(|delta| delta.clause == path)
                    .map(|delta| delta.had.clone().unwrap_or_else(|| "nothing".into())),
                answers: backends
                    .iter()
                    .map(|backend| BackendAnswer { backend: backend.name(), kind: answer(&**backend) })
                    .collect(),
                clause: path.to_string(),
            }
        });
        let clauses: Vec<ClauseReport> = lines.collect();
        let enforces = |name: &str| {
            let mut answers = clauses.iter().flat_map(|line| &line.answers).filter(|answer| answer.backend == name);
            !answers.any(|answer| matches!(answer.kind, ClauseAnswer::Refused { .. }))
        };
        let able: Vec<&str> = backends.iter().map(|backend| backend.name()).filter(|name| enforces(name)).collect();
        Ok(Self { satisfiable: above.is_empty() && !able.is_empty(), backends: able, clauses })
    }
}
