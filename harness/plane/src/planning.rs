//! Planning: from a request to what exactly would run.
//!
//! It is pure: it reads the registry's entry, the ceiling and what the
//! backends say they can enforce. No file of the request's is opened, so that
//! a refusal costs nothing and reveals nothing.

use env_contracts::canon::{Canonical, ParseLimits};
use env_contracts::{
    ActionRequest, AuditLevel, AuditNeed, Ceiling, Code, Contract, Enforced, Id, ManifestEntry, OutcomeKind, Plan,
    Principal, Problem, Snapshot,
};
use glovebox_runtime::algebra::{self, Delta};
use glovebox_runtime::bind::PathArgument;
use glovebox_runtime::{Backend, enforcement_report};

use crate::arguments::ArgumentsError;
use crate::observe::Refusal;
use crate::registry::Tool;

/// The backend of what runs nowhere.
const NOWHERE: &str = "none";

/// The backend of what an agent's own process carries out.
pub const NATIVE: &str = "native";

/// What the enforcement report says of it, in place of clauses.
pub(crate) const UNCONTAINED: &str = "nothing: the agent's own process carries it out, as the user that it runs as";

/// A plan and what the plan alone does not hold.
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Each clause and what will enforce it.
    pub enforcement: Vec<Enforced>,
    /// The arguments that name paths.
    pub paths: Vec<PathArgument>,
    /// The arguments as a value, for command templates.
    pub arguments: Canonical,
    /// What the request asks beyond the tool's contract. It is part of the
    /// plan's contract, and nothing of it is granted by that.
    pub delta: Vec<Delta>,
}

/// Who wants what.
pub struct Asked<'a> {
    /// The tool.
    pub tool: &'a Tool,
    /// The request.
    pub request: &'a ActionRequest,
    /// The arguments as they were received, where a door received bytes.
    pub received: Option<&'a [u8]>,
    /// Who asks.
    pub principal: &'a Principal,
    /// The action's id.
    pub action_id: Id,
    /// Which plan of the action it would be, counted from 1.
    pub revision: u32,
    /// Whether only a permission is asked for: there are no arguments then.
    pub permission: bool,
}

/// Makes the plan, or says why there can't be one.
///
/// # Errors
/// A [`Refusal`] with the outcome: `schema-rejected`, `contract-unsatisfied`
/// for what goes beyond the ceiling or can't be enforced by any backend.
pub fn plan<'a>(
    asked: Asked<'_>,
    ceiling: &Ceiling,
    backends: impl Iterator<Item = &'a dyn Backend> + Clone,
) -> Result<Planned, Refusal> {
    let Asked { tool, request, received, principal, action_id, revision, permission } = asked;
    let arguments = if permission { nothing()? } else { arguments(tool, request, received, &action_id)? };
    let (backend, contract, enforcement, delta) = match tool.manifest.entry {
        ManifestEntry::Native => {
            let (contract, enforcement) = uncontained(tool, request)?;
            (NATIVE, contract, enforcement, Vec::new())
        }
        // Nothing runs, and so nothing has to be enforced.
        ManifestEntry::Decision => {
            let (contract, delta) = effective(tool, request, principal, ceiling)?;
            (NOWHERE, contract, Vec::new(), delta)
        }
        _ => {
            let (contract, delta) = effective(tool, request, principal, ceiling)?;
            let takes = |contract: &Contract| -> Vec<&dyn Backend> {
                backends.clone().filter(|backend| backend.takes(&tool.manifest.entry, contract)).collect()
            };
            let mut able = takes(&contract);
            if able.is_empty() {
                // Where nobody has images, the others say that they have none.
                let mut without = contract.clone();
                without.platform.image = None;
                able = takes(&without);
            }
            let (backend, contract, enforcement) = choose(able.into_iter(), &contract)?;
            (backend, contract, enforcement, delta)
        }
    };
    let rejected = |error: ArgumentsError| Refusal::new(OutcomeKind::SchemaRejected, Problem::of(&error));
    let paths = if permission { Vec::new() } else { tool.input.path_arguments(&arguments).map_err(rejected)? };
    let plan = Plan {
        action_id,
        revision,
        capability: tool.manifest.capability(),
        artifact: tool.registered.digest.clone(),
        arguments: arguments.as_str().to_owned(),
        effects: tool.manifest.effects_under(&contract),
        contract,
        principal: principal.clone(),
        backend: backend.to_owned(),
    };
    Ok(Planned { plan, enforcement, paths, arguments, delta })
}

/// The contract and the report of what nothing holds to a contract: no limit is
/// filled in, because none would be kept, and nothing is promised to who asks
/// for less.
fn uncontained(tool: &Tool, request: &ActionRequest) -> Result<(Contract, Vec<Enforced>), Refusal> {
    if request.scope.is_some() || request.timeout.is_some() {
        let message =
            format!("`{}` is carried out by the agent itself: no scope and no timeout can be kept", tool.manifest.name);
        let problem = Problem::new(Code::ContractUnsatisfied, message)
            .with_help("ask without them, or for a tool that runs here");
        return Err(Refusal::new(OutcomeKind::ContractUnsatisfied, problem));
    }
    let clause = "isolation".parse().unwrap_or_else(|error| unreachable!("a clause of ours: {error}"));
    let report = Enforced { clause, value: "none".to_owned(), enforced_by: UNCONTAINED.to_owned(), content: None };
    Ok((tool.manifest.contract.clone(), vec![report]))
}

/// No arguments.
fn nothing() -> Result<Canonical, Refusal> {
    let empty = serde_json::Value::Object(serde_json::Map::new());
    Canonical::from_value(&empty).map_err(|error| Refusal::from(Problem::of(&ArgumentsError::from(error))))
}

fn arguments(tool: &Tool, request: &ActionRequest, received: Option<&[u8]>, action: &Id) -> Result<Canonical, Refusal> {
    let sent = match received {
        Some(bytes) => Canonical::parse(bytes, ParseLimits::default()),
        None => Canonical::from_value(&request.arguments),
    };
    let key = request.idempotency_key.as_ref().map_or(action.as_str(), env_contracts::Name::as_str);
    let keyed = sent.map_err(ArgumentsError::from).and_then(|sent| tool.input.keyed(sent, key));
    let accepted = keyed.and_then(|sent| tool.input.accept(&sent));
    accepted.map_err(|error| Refusal::new(OutcomeKind::SchemaRejected, Problem::of(&error)))
}

/// The contract that would be in force: the tool's, narrowed by the request,
/// with what it asks beyond that, every limit filled in, inside the ceiling.
fn effective(
    tool: &Tool,
    request: &ActionRequest,
    principal: &Principal,
    ceiling: &Ceiling,
) -> Result<(Contract, Vec<Delta>), Refusal> {
    let mut contract = tool.manifest.contract.clone();
    let mut beyond = Vec::new();
    if let Some(scope) = &request.scope {
        beyond = algebra::delta(&contract, scope);
        contract = if beyond.is_empty() { algebra::narrow(&contract, scope) } else { algebra::widen(&contract, scope) };
    }
    if let Some(timeout) = request.timeout {
        contract.limits.wall = Some(contract.limits.wall.map_or(timeout, |wall| wall.min(timeout)));
    }
    if request.audit == AuditNeed::Output {
        contract.audit.level = AuditLevel::Output;
    }
    let agent = principal.agent.as_ref().map(env_contracts::Name::as_str);
    let bounds = algebra::effective_bounds(ceiling, principal.tenant.as_str(), agent);
    let contract = algebra::fill(&contract, &bounds);
    let above = algebra::excess(&contract, &bounds);
    if !above.is_empty() {
        let message = format!("beyond the ceiling: {}", list(&above, "the ceiling has"));
        let problem = Problem::new(Code::ContractUnsatisfied, message).with_help(
            "ask for less, or let the operator raise ceiling.toml (`glovebox config show --origin` says where it is)",
        );
        return Err(Refusal::new(OutcomeKind::ContractUnsatisfied, problem).which(above[0].clause.as_str()));
    }
    // Limits may have been filled in below what the tool needs.
    contract.validate().map_err(|error| {
        Refusal::new(OutcomeKind::ContractUnsatisfied, Problem::new(Code::ContractUnsatisfied, error.to_string()))
    })?;
    if contract.state.snapshot != Snapshot::Never && !contract.keeps() {
        let message = "`state.snapshot` is of what an environment keeps, and nothing is kept";
        let problem = Problem::new(Code::ContractUnsatisfied, message).with_help(
            "`state.persistence = \"environment\"`, `isolation.sharing = \"task\"` and a `scratch` folder to write; \
             or leave the snapshot out",
        );
        return Err(Refusal::new(OutcomeKind::ContractUnsatisfied, problem).which("state.snapshot"));
    }
    Ok((contract, beyond))
}

/// The first backend that enforces every clause.
fn choose<'a>(
    backends: impl Iterator<Item = &'a dyn Backend>,
    contract: &Contract,
) -> Result<(&'a str, Contract, Vec<Enforced>), Refusal> {
    let mut first = None;
    for backend in backends {
        match enforcement_report(backend, contract) {
            Ok((contract, report)) => return Ok((backend.name(), contract, report)),
            Err(refused) => first = first.or(Some(refused)),
        }
    }
    let problem = first.unwrap_or_else(|| Problem::new(Code::BackendUnavailable, "there is no backend on this host"));
    let kind = if problem.code == Code::BackendUnavailable {
        OutcomeKind::BackendUnavailable
    } else {
        OutcomeKind::ContractUnsatisfied
    };
    let which = problem.message.split('`').nth(1).map(str::to_owned);
    let refusal = Refusal::new(kind, problem);
    Err(match which {
        Some(which) if kind == OutcomeKind::ContractUnsatisfied => refusal.which(which),
        _ => refusal,
    })
}

fn list(deltas: &[Delta], had: &str) -> String {
    let one = |delta: &Delta| {
        let limit = delta.had.as_ref().map_or_else(|| "nothing".to_owned(), Clone::clone);
        format!("`{}` asks {}, {had} {limit}", delta.clause, delta.asked)
    };
    deltas.iter().map(one).collect::<Vec<_>>().join("; ")
}
