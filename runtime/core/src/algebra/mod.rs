//! The algebra of contracts: what lies within what, and what both allow.
//!
//! Every section that grants something has a partial order [`Narrow::le`]
//! ("asks for no more than") and a greatest lower bound [`Narrow::narrow`]
//! ("what both allow"). The laws are property-tested: the order is reflexive
//! and transitive, what both allow lies within each, and nothing that lies
//! within each is lost. Platform, packages and needs grant nothing and have
//! no part in it.

mod bounds;
mod network;
mod sections;

pub use bounds::{effective_bounds, excess, fill};

use env_contracts::{Clause, ClausePath, Contract, Mount, Scope};

/// A section of a contract that can be compared and narrowed.
pub trait Narrow: Sized {
    /// Whether this asks for no more than the other.
    fn le(&self, other: &Self) -> bool;

    /// What both allow: the most that lies within each.
    #[must_use]
    fn narrow(&self, other: &Self) -> Self;
}

/// What a request asks beyond the tool's contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// Which clause.
    pub clause: ClausePath,
    /// What was asked for.
    pub asked: String,
    /// What the tool's contract has there.
    pub had: Option<String>,
}

/// Whether a contract asks for no more than another, section by section.
pub fn le(a: &Contract, b: &Contract) -> bool {
    a.filesystem.le(&b.filesystem)
        && a.network.le(&b.network)
        && a.secrets.le(&b.secrets)
        && a.identity.le(&b.identity)
        && a.limits.le(&b.limits)
        && a.state.le(&b.state)
        && a.isolation.le(&b.isolation)
        && a.data.le(&b.data)
        && a.audit.le(&b.audit)
        && a.cleanup.le(&b.cleanup)
        && a.wasm.le(&b.wasm)
}

/// The tool's contract narrowed by the sections that the request has. It is
/// never more than the tool's, whatever the request asks.
pub fn narrow(tool: &Contract, scope: &Scope) -> Contract {
    let mut out = tool.clone();
    section(&mut out.filesystem, scope.filesystem.as_ref());
    section(&mut out.network, scope.network.as_ref());
    section(&mut out.secrets, scope.secrets.as_ref());
    section(&mut out.identity, scope.identity.as_ref());
    section(&mut out.limits, scope.limits.as_ref());
    section(&mut out.state, scope.state.as_ref());
    section(&mut out.isolation, scope.isolation.as_ref());
    section(&mut out.data, scope.data.as_ref());
    section(&mut out.audit, scope.audit.as_ref());
    section(&mut out.cleanup, scope.cleanup.as_ref());
    section(&mut out.wasm, scope.wasm.as_ref());
    // What is no longer granted can't degrade either.
    let left: Vec<ClausePath> = out.clauses().iter().map(Clause::path).collect();
    out.degrade.retain(|path, _| left.contains(path));
    out
}

/// The tool's contract with the sections that the request has put in place of
/// its own: what the request would get if all of its [`delta`] were granted.
pub fn widen(tool: &Contract, scope: &Scope) -> Contract {
    // What only ever narrows is taken from there, the rest as it is asked.
    let mut out = narrow(tool, scope);
    replace(&mut out.filesystem, scope.filesystem.as_ref());
    replace(&mut out.network, scope.network.as_ref());
    replace(&mut out.secrets, scope.secrets.as_ref());
    replace(&mut out.identity, scope.identity.as_ref());
    if let Some(limits) = &scope.limits {
        out.limits = sections::limits_over(&tool.limits, limits);
    }
    replace(&mut out.state, scope.state.as_ref());
    if let Some(isolation) = &scope.isolation {
        out.isolation.sharing = isolation.sharing;
    }
    replace(&mut out.data, scope.data.as_ref());
    if let Some(wasm) = &scope.wasm {
        out.wasm.imports = wasm.imports;
    }
    out
}

fn replace<T: Clone>(tool: &mut T, asked: Option<&T>) {
    if let Some(asked) = asked {
        tool.clone_from(asked);
    }
}

fn section<T: Narrow>(tool: &mut T, asked: Option<&T>) {
    if let Some(asked) = asked {
        *tool = tool.narrow(asked);
    }
}

/// Whether a mount shows what the tool's own of the same folder hides.
fn unhidden(mount: &Mount, tool: &[Mount]) -> bool {
    let own = tool.iter().find(|own| own.guest == mount.guest && own.source == mount.source);
    own.is_some_and(|own| {
        let hidden = mount.hidden();
        own.hidden().iter().any(|glob| !hidden.contains(glob))
    })
}

/// What the tool's own mount of the same folder hides.
fn hidden_there(mount: &Mount, tool: &[Mount]) -> Option<Vec<String>> {
    let own = tool.iter().find(|own| own.guest == mount.guest && own.source == mount.source)?;
    Some(own.hidden().into_iter().map(Into::into).collect())
}

/// What the request asks beyond the tool's contract, clause by clause. Empty:
/// the request only narrows.
pub fn delta(tool: &Contract, scope: &Scope) -> Vec<Delta> {
    let mut out = Vec::new();
    let asked = scope.as_contract();
    let had = |clause: &Clause<'_>| {
        let path = clause.path();
        tool.clauses().iter().find(|clause| clause.path() == path).map(Clause::value)
    };
    let mut push = |clause: Clause<'_>, within: bool| {
        if !within {
            out.push(Delta { clause: clause.path(), asked: clause.value(), had: had(&clause) });
        }
    };
    for mount in &asked.filesystem {
        let shown = unhidden(mount, &tool.filesystem);
        // Without what it unhides, the folder may lie within the tool's.
        let rest =
            if shown { Mount { hide: hidden_there(mount, &tool.filesystem), ..mount.clone() } } else { mount.clone() };
        push(Clause::Mount(mount), vec![rest].le(&tool.filesystem));
        push(Clause::Hide(mount), !shown);
    }
    for rule in &asked.network.egress {
        push(Clause::Egress(rule), tool.network.egress.iter().any(|had| network::rule_le(rule, had)));
    }
    for port in &asked.network.ingress {
        push(Clause::Ingress(port), tool.network.ingress.contains(port));
    }
    for secret in &asked.secrets {
        push(Clause::Secret(secret), vec![secret.clone()].le(&tool.secrets));
    }
    if scope.identity.is_some() {
        push(Clause::Delegation(&asked.identity), asked.identity.le(&tool.identity));
    }
    let limits = Contract { limits: asked.limits.clone(), ..Contract::default() };
    for clause in limits.clauses() {
        if let Some(within) = sections::limit_within(&clause, &tool.limits) {
            push(clause, within);
        }
    }
    if scope.state.is_some() {
        push(Clause::Persistence(asked.state.persistence), asked.state.le(&tool.state));
    }
    if scope.isolation.is_some() {
        push(Clause::Sharing(asked.isolation.sharing), asked.isolation.sharing <= tool.isolation.sharing);
    }
    if scope.data.is_some() {
        push(Clause::Label(asked.data.label), asked.data.le(&tool.data));
    }
    if scope.wasm.is_some() {
        push(Clause::Imports(asked.wasm.imports), asked.wasm.imports <= tool.wasm.imports);
    }
    // Audit, cleanup, walls and determinism can't be asked down: narrowing takes
    // the stricter of both, so that asking for less is no delta, only without
    // effect.
    out
}
