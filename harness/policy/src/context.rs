//! The context of a request: what of the facts a rule can look at by
//! `context.NAME`, name by name.
//!
//! Only what some rule looks at is made. That is most of what a decision would
//! cost otherwise, and rules can't tell: an attribute that none of them names
//! can't change what they say. `looks.rs` finds the names, and takes every name
//! where it can't be sure.

use cedar_policy::RestrictedExpression;
use env_contracts::{Access, Assurance, Delegation, Digest, Label, ManifestEntry, Name, Source as MountSource};

use crate::facets::Facet;
use crate::request::{Approval, Fault, LONG_LIVED, effects};
use crate::{Facts, arguments};

pub(crate) type Expr = RestrictedExpression;

/// An attribute as a fact makes it. `None` where it is absent.
type Made = Result<Option<Expr>, Fault>;

/// How an attribute is made.
type Make = fn(&Sight<'_>) -> Made;

/// Every attribute but the approval, with how it is made.
const TABLE: &[(&str, Make)] = &[
    (ARGS, |sight| some(sight.args.clone())),
    ("simple", |sight| yes(sight.facets.iter().all(|(facet, _)| facet.simple))),
    ("wrapper", |sight| yes(sight.facets.iter().any(|(facet, _)| facet.wrapper))),
    ("may_run", |sight| words(sight.facets.iter().flat_map(|(facet, _)| &facet.may_run).map(String::as_str))),
    ("facets", |sight| sight.facet_records()),
    ("effects", |sight| word(effects(sight.facts.effects))),
    ("reaches_out", |sight| sight.reaches_out()),
    ("egress", |sight| list(sight.facts.contract.network.egress.iter().map(|rule| rule.host.to_string()))),
    ("egress_methods", |sight| sight.egress_methods()),
    ("ingress", |sight| sight.ingress()),
    ("writes", |sight| sight.writes()),
    ("workspace", |sight| sight.workspace()),
    ("hosts", |sight| sight.hosts()),
    ("secrets", |sight| words(sight.facts.contract.secrets.iter().map(|secret| secret.reference.as_str()))),
    ("long_lived_secrets", |sight| sight.long_lived_secrets()),
    ("delegation", |sight| sight.delegation()),
    ("walls", |sight| some(Expr::new_long(walls(sight.facts)))),
    ("limits", |sight| sight.limits()),
    ("delta", |sight| words(sight.delta())),
    ("bypass", |sight| yes(sight.delta().any(is_bypass))),
    ("data", |sight| sight.data()),
    ("cross_tenant", |sight| yes(sight.tenants().any(|name| name != sight.facts.principal.tenant.as_str()))),
    ("budget", |sight| sight.budget()),
    ("past", |sight| sight.past()),
    ("task", |sight| sight.task()),
    ("attended", |sight| yes(sight.facts.attended)),
    ("backend", |sight| word(sight.facts.backend)),
    ("bound", |sight| sight.bound()),
];

/// The arguments.
const ARGS: &str = "args";

/// What is made of the arguments that are command lines.
const OF_COMMANDS: &[&str] = &["simple", "wrapper", "may_run", "facets"];

/// Some of the attributes in the table, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Attributes(u32);

impl Attributes {
    /// All of them.
    pub(crate) const ALL: Self = Self(u32::MAX);

    /// The one of this name: none where there is no such attribute.
    pub(crate) fn named(name: &str) -> Self {
        const { assert!(TABLE.len() <= u32::BITS as usize) };
        TABLE.iter().position(|(known, _)| *known == name).map_or(Self::default(), |place| Self(1 << place))
    }

    /// These and those.
    #[must_use]
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn meets(self, names: &[&str]) -> bool {
        names.iter().any(|name| self.0 & Self::named(name).0 != 0)
    }
}

/// What context there is besides the approval.
pub(crate) struct Seen {
    /// By name.
    pub(crate) pairs: Vec<(String, Expr)>,
    /// Arguments that are there and that rules can't see.
    pub(crate) unseen: Vec<Vec<String>>,
}

/// Makes the attributes that rules look at.
pub(crate) fn of(facts: &Facts<'_>, wanted: Attributes) -> Result<Seen, Fault> {
    let (mut args, mut unseen, mut facets) = (Expr::new_bool(false), Vec::new(), Vec::new());
    let (all, commands) = (wanted.meets(&[ARGS]), wanted.meets(OF_COMMANDS));
    if all || commands {
        let mapped = arguments::of_schema(&facts.tool.manifest.input);
        if all {
            (args, unseen) = arguments::of_value(&mapped, facts.arguments);
        }
        let facet = |name: String| Some((facts.arguments.get(&name).and_then(Facet::of)?, name));
        facets.extend(mapped.argv.into_iter().filter_map(facet));
    }
    let sight = Sight { facts, args, facets };
    let mut pairs = Vec::new();
    for (place, (name, make)) in TABLE.iter().enumerate() {
        if wanted.0 & (1 << place) != 0
            && let Some(value) = make(&sight)?
        {
            pairs.push(((*name).to_owned(), value));
        }
    }
    Ok(Seen { pairs, unseen })
}

/// An approval as rules see it.
pub(crate) fn given(approval: &Approval<'_>) -> Result<Expr, Fault> {
    record(vec![
        ("assurance", Expr::new_long(level(&ASSURANCES, approval.assurance))),
        ("at_least", at_least(&ASSURANCES, approval.assurance)),
        ("classes", strings(approval.classes.iter().copied())),
        ("source", Expr::new_string(approval.source.as_str().into())),
        ("scope", Expr::new_string(approval.scope.as_str().into())),
    ])
}

/// What attributes are made of.
struct Sight<'a> {
    facts: &'a Facts<'a>,
    args: Expr,
    /// What is known of the arguments that are command lines, with their names.
    facets: Vec<(Facet, String)>,
}

impl Sight<'_> {
    fn facet_records(&self) -> Made {
        let facets = self.facets.iter().map(|(facet, name)| Ok((name.as_str(), facet_record(facet)?)));
        record(facets.collect::<Result<_, Fault>>()?).map(Some)
    }

    fn delta(&self) -> impl Iterator<Item = &str> {
        self.facts.delta.iter().map(|fact| fact.clause.as_str())
    }

    fn tenants(&self) -> impl Iterator<Item = &str> {
        self.facts.labels.tenants.iter().map(Name::as_str)
    }

    fn reaches_out(&self) -> Made {
        let contract = self.facts.contract;
        yes(!contract.network.egress.is_empty()
            || !contract.network.ingress.is_empty()
            || !contract.secrets.is_empty()
            || contract.identity.delegation != Delegation::None)
    }

    fn egress_methods(&self) -> Made {
        words(self.facts.contract.network.egress.iter().flat_map(|rule| match &rule.methods {
            Some(methods) => methods.iter().map(String::as_str).collect(),
            None => vec!["*"],
        }))
    }

    fn ingress(&self) -> Made {
        let ways = self.facts.contract.network.ingress.iter();
        some(Expr::new_set(ways.map(|way| Expr::new_long(i64::from(way.port)))))
    }

    fn writes(&self) -> Made {
        let own = |source: &MountSource| matches!(source, MountSource::Scratch | MountSource::Outputs);
        let mounts = self.facts.contract.filesystem.iter();
        let written = mounts.filter(|mount| mount.access == Access::Write && !own(&mount.source));
        list(written.map(|mount| mount.source.to_string()))
    }

    fn workspace(&self) -> Made {
        let mounts = self.facts.contract.filesystem.iter().filter(|mount| mount.source == MountSource::Workspace);
        Ok(mounts.map(|mount| mount.access).max().map(|access| text(&access)))
    }

    fn hosts(&self) -> Made {
        words(self.facts.contract.filesystem.iter().filter_map(|mount| match &mount.source {
            MountSource::Host(path) => Some(path.as_str()),
            _ => None,
        }))
    }

    fn long_lived_secrets(&self) -> Made {
        let known = |name: &Name| self.facts.secrets.iter().find(|fact| fact.reference == name)?.lifetime;
        let names = self.facts.contract.secrets.iter().map(|secret| &secret.reference);
        let long_lived = names.filter(|name| known(name).is_none_or(|lifetime| lifetime >= LONG_LIVED));
        words(long_lived.map(Name::as_str))
    }

    fn delegation(&self) -> Made {
        word(match self.facts.contract.identity.delegation {
            Delegation::None => "none",
            Delegation::Agent => "agent",
            Delegation::User => "user",
        })
    }

    fn limits(&self) -> Made {
        let limits = &self.facts.contract.limits;
        let millis = limits.wall.map(|wall| u64::try_from(wall.0.as_millis()).unwrap_or(u64::MAX));
        let mut fields = Vec::new();
        fields.extend(millis.map(|millis| ("wall_ms", Expr::new_long(count(millis)))));
        fields.extend(limits.memory.map(|memory| ("memory", Expr::new_long(count(memory.0)))));
        record(fields).map(Some)
    }

    fn data(&self) -> Made {
        let label = self.facts.contract.data.label.max(self.facts.labels.inputs);
        let fields = vec![
            ("label", Expr::new_long(level(&LABELS, label))),
            ("at_least", at_least(&LABELS, label)),
            ("tenants", strings(self.tenants())),
        ];
        record(fields).map(Some)
    }

    fn budget(&self) -> Made {
        let budget = &self.facts.budget;
        counts(&[
            ("actions", budget.actions),
            ("run_ms", budget.run_ms),
            ("cost_micros", budget.cost_micros),
            ("artifact_bytes", budget.artifact_bytes),
        ])
    }

    fn past(&self) -> Made {
        let past = &self.facts.past;
        counts(&[("approvals", past.approvals), ("declines", past.declines), ("grants", past.grants)])
    }

    fn task(&self) -> Made {
        let task = &self.facts.task;
        let mut fields = vec![("session", text(task.session)), ("task", text(task.task))];
        fields.extend(task.purpose.map(|purpose| ("purpose", Expr::new_string(purpose.into()))));
        fields.extend(task.stage.map(|stage| ("stage", Expr::new_string(stage.into()))));
        record(fields).map(Some)
    }

    fn bound(&self) -> Made {
        let Some(bound) = self.facts.bound else { return Ok(None) };
        let mut fields = vec![
            ("inputs", strings(bound.inputs.values().map(Digest::as_str))),
            ("paths", strings(bound.paths.values().map(Digest::as_str))),
        ];
        let workspace = bound.workspace.as_ref();
        fields.extend(workspace.map(|workspace| ("workspace", Expr::new_string(workspace.path.clone()))));
        record(fields).map(Some)
    }
}

fn facet_record(facet: &Facet) -> Result<Expr, Fault> {
    let mut fields = vec![
        ("simple", Expr::new_bool(facet.simple)),
        ("wrapper", Expr::new_bool(facet.wrapper)),
        ("args", strings(facet.args.iter().map(String::as_str))),
        ("flags", strings(facet.flags.iter().map(String::as_str))),
        ("words", Expr::new_long(count(facet.words as u64))),
        ("may_run", strings(facet.may_run.iter().map(String::as_str))),
    ];
    fields.extend(facet.program.clone().map(|program| ("program", Expr::new_string(program))));
    fields.extend(facet.path.clone().map(|path| ("path", Expr::new_string(path))));
    record(fields)
}

/// Whether a clause takes a protection away, rather than asking for a thing.
fn is_bypass(clause: &str) -> bool {
    clause.ends_with(".hide") || ["isolation.", "audit.", "cleanup."].iter().any(|part| clause.starts_with(part))
}

/// Labels, from open to secret, as they are spelled.
const LABELS: [(Label, &str); 4] = [
    (Label::Public, "public"),
    (Label::Internal, "internal"),
    (Label::Confidential, "confidential"),
    (Label::Restricted, "restricted"),
];

/// Assurances, from least to most, as they are spelled.
const ASSURANCES: [(Assurance, &str); 4] = [
    (Assurance::SameUser, "same-user"),
    (Assurance::ConsoleLogin, "console-login"),
    (Assurance::SeparateUser, "separate-user"),
    (Assurance::Passkey, "passkey"),
];

/// Where something stands in its order, from 0.
fn level<T: PartialOrd>(order: &[(T, &str)], value: T) -> i64 {
    count(order.iter().filter(|(step, _)| *step < value).count() as u64)
}

/// The names of all steps up to this one: `at_least.contains("confidential")`
/// reads as what it means.
fn at_least<T: PartialOrd>(order: &[(T, &str)], value: T) -> Expr {
    strings(order.iter().filter(|(step, _)| *step <= value).map(|(_, name)| *name))
}

fn record(fields: Vec<(&str, Expr)>) -> Result<Expr, Fault> {
    Expr::new_record(fields.into_iter().map(|(name, value)| (name.to_owned(), value)))
        .map_err(|error| error.to_string())
}

pub(crate) fn text(value: &impl std::fmt::Display) -> Expr {
    Expr::new_string(value.to_string())
}

pub(crate) fn strings<'a>(values: impl Iterator<Item = &'a str>) -> Expr {
    Expr::new_set(values.map(|value| Expr::new_string(value.to_owned())))
}

fn some(value: Expr) -> Made {
    Ok(Some(value))
}

fn yes(value: bool) -> Made {
    some(Expr::new_bool(value))
}

fn word(value: &str) -> Made {
    some(Expr::new_string(value.to_owned()))
}

fn words<'a>(values: impl Iterator<Item = &'a str>) -> Made {
    some(strings(values))
}

fn list(values: impl Iterator<Item = String>) -> Made {
    some(Expr::new_set(values.map(Expr::new_string)))
}

fn counts(fields: &[(&str, u64)]) -> Made {
    record(fields.iter().map(|(name, value)| (*name, Expr::new_long(count(*value)))).collect()).map(Some)
}

/// How many walls stand around it: none, where its agent carries it out.
fn walls(facts: &Facts<'_>) -> i64 {
    match facts.tool.manifest.entry {
        ManifestEntry::Native => 0,
        _ => i64::from(facts.contract.isolation.walls.0),
    }
}

/// A count of ours; the largest that policy can hold stands for more.
pub(crate) fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_spelled_as_they_are_everywhere() {
        for (label, name) in LABELS {
            assert_eq!(serde_json::to_value(label).unwrap(), name);
        }
        for (assurance, name) in ASSURANCES {
            assert_eq!(serde_json::to_value(assurance).unwrap(), name);
        }
    }

    #[test]
    fn attributes_are_known_by_name_and_none_is_made_up() {
        for name in names() {
            let one = Attributes::named(name);
            assert_eq!(one.0.count_ones(), 1, "{name}");
            assert_eq!(Attributes::ALL.and(one), Attributes::ALL);
        }
        assert_eq!(Attributes::named("approval"), Attributes::default());
    }
}
