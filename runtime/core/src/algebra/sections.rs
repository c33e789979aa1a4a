//! The order of every section but the network.

use env_contracts::{
    Audit, Clause, Cleanup, Data, Identity, Inject, Isolation, Limits, Mount, Secret, Source, State, Wasm,
};

use super::{Narrow, network};

impl Narrow for Vec<Mount> {
    fn le(&self, other: &Self) -> bool {
        self.iter().all(|mount| other.iter().any(|outer| mount_le(mount, outer)))
    }

    fn narrow(&self, other: &Self) -> Self {
        self.iter()
            .filter_map(|mount| {
                let outer = other.iter().find(|outer| outer.guest == mount.guest && outer.source == mount.source)?;
                let access = mount.access.min(outer.access);
                let mut hide: Vec<String> = mount.hidden().into_iter().map(Into::into).collect();
                for glob in outer.hidden() {
                    if !hide.iter().any(|known| *known == glob) {
                        hide.push(glob.into_owned());
                    }
                }
                // The default list stays unwritten where it is the whole list.
                let plain = Mount { hide: None, ..mount.clone() };
                let hide = if plain.hidden() == hide { None } else { Some(hide) };
                Some(Mount { guest: mount.guest.clone(), source: mount.source.clone(), access, hide })
            })
            .collect()
    }
}

fn mount_le(mount: &Mount, outer: &Mount) -> bool {
    let hidden = mount.hidden();
    mount.guest == outer.guest
        && mount.source == outer.source
        && mount.access <= outer.access
        && outer.hidden().iter().all(|glob| hidden.contains(glob))
}

impl Narrow for Vec<Secret> {
    fn le(&self, other: &Self) -> bool {
        self.iter().all(|secret| other.iter().any(|outer| secret_le(secret, outer)))
    }

    fn narrow(&self, other: &Self) -> Self {
        self.iter().flat_map(|a| other.iter().filter_map(move |b| secret_narrow(a, b))).collect()
    }
}

/// The requests for which two secrets are both inserted; `None` where there
/// are none, or they are not the same secret in the same header.
fn secret_narrow(a: &Secret, b: &Secret) -> Option<Secret> {
    let (from, to) = (&a.inject, &b.inject);
    if a.reference != b.reference || from.header != to.header || from.format != to.format {
        return None;
    }
    let host = network::host_narrow(&from.host, &to.host)?;
    let method = match (&from.method, &to.method) {
        (Some(a), Some(b)) if a != b => return None,
        (a, b) => a.clone().or_else(|| b.clone()),
    };
    let path = match (&from.path, &to.path) {
        (Some(a), Some(b)) if a.starts_with(b.as_str()) => Some(a.clone()),
        (Some(a), Some(b)) if b.starts_with(a.as_str()) => Some(b.clone()),
        (Some(_), Some(_)) => return None,
        (a, b) => a.clone().or_else(|| b.clone()),
    };
    let inject = Inject { host, method, path, header: from.header.clone(), format: from.format.clone() };
    Some(Secret { reference: a.reference.clone(), inject })
}

/// A secret lies within another where it is the same secret in the same
/// header, inserted for no more requests.
fn secret_le(secret: &Secret, outer: &Secret) -> bool {
    let (a, b) = (&secret.inject, &outer.inject);
    secret.reference == outer.reference
        && a.header == b.header
        && a.format == b.format
        && a.host.within(&b.host)
        && (b.method.is_none() || a.method == b.method)
        && b.path.as_ref().is_none_or(|outer| a.path.as_ref().is_some_and(|path| path.starts_with(outer.as_str())))
}

impl Narrow for Identity {
    fn le(&self, other: &Self) -> bool {
        self.delegation <= other.delegation && self.audiences.iter().all(|audience| other.audiences.contains(audience))
    }

    fn narrow(&self, other: &Self) -> Self {
        Self {
            delegation: self.delegation.min(other.delegation),
            audiences: self.audiences.iter().filter(|audience| other.audiences.contains(audience)).cloned().collect(),
        }
    }
}

impl Narrow for Limits {
    fn le(&self, other: &Self) -> bool {
        let contract = env_contracts::Contract { limits: other.clone(), ..env_contracts::Contract::default() };
        // An absent limit is no limit, so each one of the other must be met.
        contract.clauses().iter().all(|clause| outer_within(clause, self))
    }

    fn narrow(&self, other: &Self) -> Self {
        Self {
            wall: lower(self.wall, other.wall),
            idle: lower(self.idle, other.idle),
            cpu: lower(self.cpu, other.cpu),
            cpus: lower(self.cpus, other.cpus),
            memory: lower(self.memory, other.memory),
            pids: lower(self.pids, other.pids),
            storage: lower(self.storage, other.storage),
            inodes: lower(self.inodes, other.inodes),
            gpu: lower(self.gpu, other.gpu),
            output: lower(self.output, other.output),
            concurrency: lower(self.concurrency, other.concurrency),
        }
    }
}

/// The limits that are asked, and the tool's where nothing is asked.
pub(super) fn limits_over(tool: &Limits, asked: &Limits) -> Limits {
    Limits {
        wall: asked.wall.or(tool.wall),
        idle: asked.idle.or(tool.idle),
        cpu: asked.cpu.or(tool.cpu),
        cpus: asked.cpus.or(tool.cpus),
        memory: asked.memory.or(tool.memory),
        pids: asked.pids.or(tool.pids),
        storage: asked.storage.or(tool.storage),
        inodes: asked.inodes.or(tool.inodes),
        gpu: asked.gpu.or(tool.gpu),
        output: asked.output.or(tool.output),
        concurrency: asked.concurrency.or(tool.concurrency),
    }
}

/// The lower of two limits; an absent one is none.
fn lower<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Whether one limit clause lies within these limits. `None`: it is no limit.
/// An absent limit on the outer side allows anything.
pub(super) fn limit_within(clause: &Clause<'_>, outer: &Limits) -> Option<bool> {
    fn within<T: Ord>(value: T, outer: Option<T>) -> bool {
        outer.is_none_or(|outer| value <= outer)
    }
    Some(match *clause {
        Clause::Wall(span) => within(span, outer.wall),
        Clause::Idle(span) => within(span, outer.idle),
        Clause::Cpu(span) => within(span, outer.cpu),
        Clause::Cpus(cpus) => within(cpus, outer.cpus),
        Clause::Memory(size) => within(size, outer.memory),
        Clause::Pids(count) => within(count, outer.pids),
        Clause::Storage(size) => within(size, outer.storage),
        Clause::Inodes(count) => within(count, outer.inodes),
        Clause::Gpu(count) => within(count, outer.gpu),
        Clause::Output(size) => within(size, outer.output),
        Clause::Concurrency(count) => within(count, outer.concurrency),
        _ => return None,
    })
}

/// Whether these limits meet one limit of an outer set.
fn outer_within(outer: &Clause<'_>, limits: &Limits) -> bool {
    fn met<T: Ord>(value: Option<T>, outer: T) -> bool {
        value.is_some_and(|value| value <= outer)
    }
    match *outer {
        Clause::Wall(span) => met(limits.wall, span),
        Clause::Idle(span) => met(limits.idle, span),
        Clause::Cpu(span) => met(limits.cpu, span),
        Clause::Cpus(cpus) => met(limits.cpus, cpus),
        Clause::Memory(size) => met(limits.memory, size),
        Clause::Pids(count) => met(limits.pids, count),
        Clause::Storage(size) => met(limits.storage, size),
        Clause::Inodes(count) => met(limits.inodes, count),
        Clause::Gpu(count) => met(limits.gpu, count),
        Clause::Output(size) => met(limits.output, size),
        Clause::Concurrency(count) => met(limits.concurrency, count),
        _ => true,
    }
}

/// Sections that are a handful of ordered values.
macro_rules! ordered {
    ($($section:ident { $($field:ident $direction:ident),+ })+) => {
        $(impl Narrow for $section {
            fn le(&self, other: &Self) -> bool {
                true $(&& ordered!(@le $direction, self.$field, other.$field))+
            }

            fn narrow(&self, other: &Self) -> Self {
                Self { $($field: ordered!(@narrow $direction, self.$field, other.$field),)+ }
            }
        })+
    };
    // Less is narrower: it grants.
    (@le grants, $a:expr, $b:expr) => { $a <= $b };
    (@narrow grants, $a:expr, $b:expr) => { $a.min($b) };
    // More is narrower: it protects.
    (@le protects, $a:expr, $b:expr) => { $a >= $b };
    (@narrow protects, $a:expr, $b:expr) => { $a.max($b) };
}

ordered! {
    State { persistence grants, snapshot grants }
    Isolation { sharing grants, walls protects }
    Data { label grants }
    Audit { level protects, retain protects }
    Cleanup { scratch protects }
}

impl Narrow for Wasm {
    fn le(&self, other: &Self) -> bool {
        // The real clock and real random numbers are what is granted. Seeds
        // grant nothing, so that one is no more than another.
        self.imports <= other.imports && (other.deterministic.is_none() || self.deterministic.is_some())
    }

    fn narrow(&self, other: &Self) -> Self {
        Self {
            imports: self.imports.min(other.imports),
            // A request chooses its own seed.
            deterministic: other.deterministic.clone().or_else(|| self.deterministic.clone()),
        }
    }
}

/// Whether a folder of the host lies at or below another.
pub(super) fn path_within(path: &str, outer: &str) -> bool {
    let outer = outer.trim_end_matches('/');
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a bound is for this kind of source.
pub(super) fn source_bounded(source: &Source, bound: &Source) -> bool {
    match (source, bound) {
        (Source::Host(path), Source::Host(outer)) => {
            path_within(path, outer) && !path.split('/').any(|part| part == "..")
        }
        (source, bound) => source == bound,
    }
}
