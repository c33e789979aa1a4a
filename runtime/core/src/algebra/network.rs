//! The order of network clauses.

use std::collections::BTreeSet;

use env_contracts::{Egress, HostPattern, Network, Tls};

use super::Narrow;

impl Narrow for Network {
    fn le(&self, other: &Self) -> bool {
        self.egress.iter().all(|rule| other.egress.iter().any(|outer| rule_le(rule, outer)))
            && self.ingress.iter().all(|port| other.ingress.contains(port))
    }

    fn narrow(&self, other: &Self) -> Self {
        let egress =
            self.egress.iter().flat_map(|a| other.egress.iter().filter_map(move |b| rule_narrow(a, b))).collect();
        let ingress = self.ingress.iter().filter(|port| other.ingress.contains(port)).cloned().collect();
        Self { egress, ingress }
    }
}

/// Whether a rule lets nothing out that the other does not.
pub(super) fn rule_le(a: &Egress, b: &Egress) -> bool {
    let subset = |a: &Option<Vec<String>>, b: &Option<Vec<String>>| match (a, b) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(a), Some(b)) => a.iter().all(|item| b.contains(item)),
    };
    let prefixed = |a: &Option<Vec<String>>, b: &Option<Vec<String>>| match (a, b) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(a), Some(b)) => a.iter().all(|path| b.iter().any(|outer| path.starts_with(outer.as_str()))),
    };
    a.host.within(&b.host)
        && a.ports.iter().all(|port| b.ports.contains(port))
        && subset(&a.methods, &b.methods)
        && prefixed(&a.paths, &b.paths)
        && capped(a.max, b.max)
        && capped(a.connections, b.connections)
        && (a.tls == b.tls || a.tls == Tls::Terminate)
}

fn capped<T: Ord>(a: Option<T>, b: Option<T>) -> bool {
    match (a, b) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(a), Some(b)) => a <= b,
    }
}

/// What two rules both let out; `None` where that is nothing.
fn rule_narrow(a: &Egress, b: &Egress) -> Option<Egress> {
    let host = host_narrow(&a.host, &b.host)?;
    let ports: Vec<u16> = a.ports.iter().filter(|port| b.ports.contains(port)).copied().collect();
    let methods = match (&a.methods, &b.methods) {
        (Some(a), Some(b)) => Some(a.iter().filter(|method| b.contains(method)).cloned().collect::<Vec<_>>()),
        (a, b) => a.clone().or_else(|| b.clone()),
    };
    let paths = match (&a.paths, &b.paths) {
        (Some(a), Some(b)) => Some(paths_narrow(a, b)),
        (a, b) => a.clone().or_else(|| b.clone()),
    };
    let empty = |list: &Option<Vec<String>>| list.as_ref().is_some_and(Vec::is_empty);
    if ports.is_empty() || empty(&methods) || empty(&paths) {
        return None;
    }
    let lower = |a: Option<u32>, b: Option<u32>| a.into_iter().chain(b).min();
    Some(Egress {
        host,
        ports,
        methods,
        paths,
        max: a.max.into_iter().chain(b.max).min(),
        connections: lower(a.connections, b.connections),
        tls: if a.tls == b.tls { a.tls } else { Tls::Terminate },
    })
}

/// The hosts that both patterns cover: two patterns overlap only where one
/// lies within the other.
pub(super) fn host_narrow(a: &HostPattern, b: &HostPattern) -> Option<HostPattern> {
    if a.within(b) {
        Some(a.clone())
    } else if b.within(a) {
        Some(b.clone())
    } else {
        None
    }
}

/// The prefixes that lie within both lists: of each overlapping pair the
/// longer one.
fn paths_narrow(a: &[String], b: &[String]) -> Vec<String> {
    let mut out = BTreeSet::new();
    for (a, b) in a.iter().flat_map(|a| b.iter().map(move |b| (a, b))) {
        if a.starts_with(b.as_str()) {
            out.insert(a.clone());
        } else if b.starts_with(a.as_str()) {
            out.insert(b.clone());
        }
    }
    out.into_iter().collect()
}
