//! Contracts against the operator's ceiling.

use env_contracts::{Bounds, Ceiling, Clause, Contract, MountBound, Source};

use super::sections::{limit_within, source_bounded};
use super::{Delta, Narrow, network};

/// The ceiling for a tenant and an agent: the install's, narrowed by theirs.
pub fn effective_bounds(ceiling: &Ceiling, tenant: &str, agent: Option<&str>) -> Bounds {
    let mut bounds = ceiling.install.clone();
    let specific = ceiling.tenant.get(tenant).into_iter().chain(agent.and_then(|agent| ceiling.agent.get(agent)));
    for narrower in specific {
        bounds = bounds.narrow(narrower);
    }
    bounds
}

/// The contract with every absent limit filled in from the ceiling's, and with
/// no less audit, cleanup and walls than the ceiling wants: those take nothing
/// from the tool.
#[must_use]
pub fn fill(contract: &Contract, bounds: &Bounds) -> Contract {
    let mut out = contract.clone();
    out.audit = out.audit.narrow(&bounds.audit);
    out.cleanup = out.cleanup.narrow(&bounds.cleanup);
    out.isolation.walls = out.isolation.walls.max(bounds.isolation.walls);
    // Nor the real clock, where the operator gives none.
    if out.wasm.deterministic.is_none() {
        out.wasm.deterministic.clone_from(&bounds.wasm.deterministic);
    }
    let own = out.limits.clone();
    out.limits = own.narrow(&bounds.limits);
    // A limit that is written stays as it is written, so that asking for more
    // than the ceiling is refused and not silently lowered.
    macro_rules! keep {
        ($($field:ident)+) => { $( if own.$field.is_some() { out.limits.$field = own.$field; } )+ };
    }
    keep!(wall idle cpu cpus memory pids storage inodes gpu output concurrency);
    out
}

/// Where a contract asks for more than the ceiling allows. Empty: it lies
/// inside.
pub fn excess(contract: &Contract, bounds: &Bounds) -> Vec<Delta> {
    contract
        .clauses()
        .iter()
        .filter_map(|clause| {
            let (inside, allowed) = judge(clause, contract, bounds);
            (!inside).then(|| Delta { clause: clause.path(), asked: clause.value(), had: allowed })
        })
        .collect()
}

/// Whether a clause lies inside, and what the ceiling has for it.
fn judge(clause: &Clause<'_>, contract: &Contract, bounds: &Bounds) -> (bool, Option<String>) {
    if let Some(inside) = limit_within(clause, &bounds.limits) {
        let ceiling = Contract { limits: bounds.limits.clone(), ..Contract::default() };
        let path = clause.path();
        return (inside, ceiling.clauses().iter().find(|clause| clause.path() == path).map(Clause::value));
    }
    match clause {
        Clause::Mount(mount) => match &mount.source {
            Source::Workspace | Source::Host(_) => {
                let mut fitting = bounds.filesystem.iter().filter(|bound| {
                    source_bounded(&mount.source, &bound.source)
                        && bound.guest.as_ref().is_none_or(|guest| *guest == mount.guest)
                });
                let most = fitting.clone().map(|bound| bound.access).max();
                (
                    fitting.any(|bound| mount.access <= bound.access),
                    most.map(|access| format!("{access} {}", mount.source)),
                )
            }
            // These hold what the request itself brings or makes.
            Source::Input(_) | Source::Artifact(_) | Source::Scratch | Source::Outputs => (true, None),
        },
        Clause::Egress(rule) => (bounds.network.egress.iter().any(|outer| network::rule_le(rule, outer)), None),
        Clause::Ingress(port) => (bounds.network.ingress.contains(port), None),
        Clause::Secret(secret) => (vec![(*secret).clone()].le(&bounds.secrets), None),
        Clause::Delegation(identity) => {
            (identity.delegation <= bounds.delegation, Some(format!("{:?}", bounds.delegation).to_lowercase()))
        }
        Clause::Persistence(_) | Clause::Snapshot(_) => (contract.state.le(&bounds.state), None),
        Clause::Sharing(sharing) => {
            (*sharing <= bounds.isolation.sharing, Some(Clause::Sharing(bounds.isolation.sharing).value()))
        }
        Clause::Walls(walls) => (*walls >= bounds.isolation.walls, Some(Clause::Walls(bounds.isolation.walls).value())),
        Clause::Label(_) => (contract.data.le(&bounds.data), Some(Clause::Label(bounds.data.label).value())),
        Clause::Audit(_) | Clause::Retain(_) => {
            (contract.audit.le(&bounds.audit), Some(Clause::Audit(bounds.audit.level).value()))
        }
        Clause::CleanScratch(_) => {
            (contract.cleanup.le(&bounds.cleanup), Some(Clause::CleanScratch(bounds.cleanup.scratch).value()))
        }
        Clause::Imports(imports) => {
            (*imports <= bounds.wasm.imports, Some(Clause::Imports(bounds.wasm.imports).value()))
        }
        // These ask the host for something it has or has not; they grant nothing.
        Clause::Os(_)
        | Clause::Arch(_)
        | Clause::Image(_)
        | Clause::Runtime(_)
        | Clause::Hide(_)
        | Clause::Package(_)
        | Clause::Deterministic(_) => (true, None),
        // A need above the limit was refused with the contract; above the
        // ceiling it is the filled-in limit that is exceeded.
        Clause::NeedMemory(size) => {
            (bounds.limits.memory.is_none_or(|most| *size <= most), bounds.limits.memory.map(|m| m.to_string()))
        }
        Clause::NeedStorage(size) => {
            (bounds.limits.storage.is_none_or(|most| *size <= most), bounds.limits.storage.map(|m| m.to_string()))
        }
        Clause::NeedCpus(cpus) => {
            (bounds.limits.cpus.is_none_or(|most| *cpus <= most), bounds.limits.cpus.map(|m| m.to_string()))
        }
        Clause::NeedGpu(count) => {
            (bounds.limits.gpu.is_none_or(|most| *count <= most), bounds.limits.gpu.map(|m| m.to_string()))
        }
        Clause::Wall(_)
        | Clause::Idle(_)
        | Clause::Cpu(_)
        | Clause::Cpus(_)
        | Clause::Memory(_)
        | Clause::Pids(_)
        | Clause::Storage(_)
        | Clause::Inodes(_)
        | Clause::Gpu(_)
        | Clause::Output(_)
        | Clause::Concurrency(_) => (true, None),
    }
}

impl Narrow for Bounds {
    fn le(&self, other: &Self) -> bool {
        self.filesystem.le(&other.filesystem)
            && self.network.le(&other.network)
            && self.secrets.le(&other.secrets)
            && self.delegation <= other.delegation
            && self.limits.le(&other.limits)
            && self.state.le(&other.state)
            && self.isolation.le(&other.isolation)
            && self.data.le(&other.data)
            && self.audit.le(&other.audit)
            && self.cleanup.le(&other.cleanup)
            && self.wasm.le(&other.wasm)
    }

    fn narrow(&self, other: &Self) -> Self {
        Self {
            filesystem: self.filesystem.narrow(&other.filesystem),
            network: self.network.narrow(&other.network),
            secrets: self.secrets.narrow(&other.secrets),
            delegation: self.delegation.min(other.delegation),
            limits: self.limits.narrow(&other.limits),
            state: self.state.narrow(&other.state),
            isolation: self.isolation.narrow(&other.isolation),
            data: self.data.narrow(&other.data),
            audit: self.audit.narrow(&other.audit),
            cleanup: self.cleanup.narrow(&other.cleanup),
            wasm: self.wasm.narrow(&other.wasm),
        }
    }
}

impl Narrow for Vec<MountBound> {
    fn le(&self, other: &Self) -> bool {
        self.iter().all(|bound| other.iter().any(|outer| bound_le(bound, outer)))
    }

    fn narrow(&self, other: &Self) -> Self {
        self.iter()
            .flat_map(|a| {
                other.iter().filter_map(move |b| {
                    let source = if source_bounded(&a.source, &b.source) {
                        a.source.clone()
                    } else if source_bounded(&b.source, &a.source) {
                        b.source.clone()
                    } else {
                        return None;
                    };
                    let guest = match (&a.guest, &b.guest) {
                        (Some(a), Some(b)) if a != b => return None,
                        (a, b) => a.clone().or_else(|| b.clone()),
                    };
                    Some(MountBound { source, access: a.access.min(b.access), guest })
                })
            })
            .collect()
    }
}

fn bound_le(a: &MountBound, b: &MountBound) -> bool {
    source_bounded(&a.source, &b.source) && a.access <= b.access && (b.guest.is_none() || a.guest == b.guest)
}
