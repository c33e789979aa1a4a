//! Facts as Cedar sees them: entities, action, context. `schema.rs` declares the
//! same shapes for validation, and a test holds the two together.

use std::collections::{HashMap, HashSet};
use std::str::FromStr;
use std::sync::LazyLock;

use cedar_policy::{Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, Request, RestrictedExpression};
use env_contracts::{
    Access, Assurance, Contract, Delegation, DerivedEffects, Digest, Label, Name, Source as MountSource, Span,
};
use serde_json::Value;

use crate::arguments::{self, Mapped};
use crate::facets::Facet;
use crate::{Facts, GivenScope, Source};

/// The group that every action is in.
pub(crate) const RUN: &str = "run";

/// From this lifetime on a secret is a long-lived one: a working day's token
/// is not, a key that somebody has to remember to change is.
pub const LONG_LIVED: Span = Span::secs(24 * 3600);

/// An approval as rules see it.
#[derive(Debug, Clone)]
pub(crate) struct Approval<'a> {
    pub(crate) assurance: Assurance,
    pub(crate) classes: Vec<&'a str>,
    pub(crate) source: Source,
    pub(crate) scope: GivenScope,
}

/// Facts that are ready to be decided upon.
pub(crate) struct Prepared {
    principal: EntityUid,
    action: EntityUid,
    resource: EntityUid,
    pub(crate) entities: Entities,
    context: Vec<(String, RestrictedExpression)>,
    /// Arguments that are there and that rules can't see.
    pub(crate) unseen: Vec<Vec<String>>,
}

type Expr = RestrictedExpression;

macro_rules! type_name {
    ($name:ident, $text:literal) => {
        static $name: LazyLock<EntityTypeName> = LazyLock::new(|| {
            EntityTypeName::from_str($text).unwrap_or_else(|error| unreachable!("a name of ours: {error}"))
        });
    };
}
type_name!(ACTION, "Action");
type_name!(AGENT, "Agent");
type_name!(CAPABILITY, "Capability");
type_name!(TENANT, "Tenant");
type_name!(USER, "User");

fn uid(ty: &EntityTypeName, id: impl AsRef<str>) -> EntityUid {
    EntityUid::from_type_name_and_id(ty.clone(), EntityId::new(id))
}

/// What went wrong while facts were prepared: nothing that facts of ours bring
/// about, and a denial if it happens.
type Fault = String;

impl Prepared {
    pub(crate) fn new(facts: &Facts<'_>) -> Result<Self, Fault> {
        let manifest = facts.tool.manifest;
        let mapped = arguments::of_schema(&manifest.input);
        let (args, unseen) = arguments::of_value(&mapped, facts.arguments);
        let (name, capability) = (manifest.name.as_str(), manifest.capability().to_string());
        let (principal, mut entities) = principal(facts)?;
        let run = uid(&ACTION, RUN);
        let group = uid(&ACTION, name);
        let action = uid(&ACTION, &capability);
        entities.push(Entity::new_no_attrs(action.clone(), HashSet::from([group.clone()])));
        // A tool of that name is the group itself.
        if name != RUN {
            entities.push(Entity::new_no_attrs(group, HashSet::from([run])));
        }
        let resource = uid(&CAPABILITY, &capability);
        entities.push(entity(resource.clone(), tool(facts), [])?);
        let entities = Entities::from_entities(entities, None).map_err(|error| error.to_string())?;
        let context = context(facts, args, &mapped)?;
        Ok(Self { principal, action, resource, entities, context, unseen })
    }

    /// The request, as if this approval had been given.
    pub(crate) fn request(&self, approval: Option<&Approval<'_>>) -> Result<Request, Fault> {
        let mut pairs = self.context.clone();
        if let Some(approval) = approval {
            pairs.push(("approval".into(), given(approval)?));
        }
        let context = Context::from_pairs(pairs).map_err(|error| error.to_string())?;
        Request::new(self.principal.clone(), self.action.clone(), self.resource.clone(), context, None)
            .map_err(|error| error.to_string())
    }
}

fn entity<const N: usize>(
    id: EntityUid,
    attributes: Vec<(&str, Expr)>,
    parents: [EntityUid; N],
) -> Result<Entity, Fault> {
    let attributes: HashMap<String, Expr> =
        attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Entity::new(id, attributes, HashSet::from(parents)).map_err(|error| error.to_string())
}

/// Who asks: a user, or an agent below its user and below those that handed the
/// work down.
fn principal(facts: &Facts<'_>) -> Result<(EntityUid, Vec<Entity>), Fault> {
    let who = facts.principal;
    let inside = |name: &str| format!("{}/{name}", who.tenant);
    let tenant = uid(&TENANT, who.tenant.as_str());
    let user = uid(&USER, inside(who.user.as_str()));
    let mut entities = vec![
        Entity::new_no_attrs(tenant.clone(), HashSet::new()),
        entity(user.clone(), vec![("name", text(&who.user)), ("tenant", text(&who.tenant))], [tenant.clone()])?,
    ];
    let Some(agent) = &who.agent else { return Ok((user, entities)) };
    let id = uid(&AGENT, inside(agent.as_str()));
    let mut attributes = vec![
        ("name", text(agent)),
        ("tenant", text(&who.tenant)),
        ("user", text(&who.user)),
        ("chain", strings(who.chain.iter().map(Name::as_str))),
        ("depth", Expr::new_long(count(who.chain.len() as u64))),
    ];
    attributes.extend(who.agent_version.as_ref().map(|version| ("version", text(version))));
    let attributes = attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let above = who.chain.iter().filter(|name| *name != agent).map(|name| uid(&AGENT, inside(name.as_str())));
    let parents = above.chain([user, tenant]).collect();
    entities.push(Entity::new(id.clone(), attributes, parents).map_err(|error| error.to_string())?);
    Ok((id, entities))
}

/// The capability. What its author claims to be less than derived counts only
/// where an operator, or Glovebox itself, stands for it.
fn tool(facts: &Facts<'_>) -> Vec<(&'static str, Expr)> {
    let tool = &facts.tool;
    let (manifest, trusted) = (tool.manifest, tool.builtin || tool.accepted);
    vec![
        ("name", text(&manifest.name)),
        ("version", text(&manifest.version)),
        ("artifact", text(tool.artifact)),
        ("builtin", Expr::new_bool(tool.builtin)),
        ("accepted", Expr::new_bool(tool.accepted)),
        ("classes", strings(manifest.effects.classes.iter().map(|class| class.as_str()))),
        ("idempotent", Expr::new_bool(trusted && manifest.effects.idempotent)),
        ("reversible", Expr::new_bool(trusted && manifest.effects.reversible)),
        ("has_preview", Expr::new_bool(manifest.preview.is_some())),
    ]
}

fn context(facts: &Facts<'_>, args: Expr, mapped: &Mapped) -> Result<Vec<(String, Expr)>, Fault> {
    let facets: Vec<(&str, Facet)> =
        mapped.argv.iter().filter_map(|name| Some((name.as_str(), Facet::of(facts.arguments.get(name)?)?))).collect();
    let label = facts.contract.data.label.max(facts.labels.inputs);
    let delta = || facts.delta.iter().map(|fact| fact.clause.as_str());
    let tenants = || facts.labels.tenants.iter().map(Name::as_str);
    let budget = &facts.budget;
    let mut out = contract(facts.contract, facts)?;
    out.extend([
        ("args", args),
        ("simple", Expr::new_bool(facets.iter().all(|(_, facet)| facet.simple))),
        ("wrapper", Expr::new_bool(facets.iter().any(|(_, facet)| facet.wrapper))),
        ("may_run", strings(facets.iter().flat_map(|(_, facet)| &facet.may_run).map(String::as_str))),
        (
            "facets",
            record(
                facets.iter().map(|(name, facet)| Ok((*name, facet_record(facet)?))).collect::<Result<_, Fault>>()?,
            )?,
        ),
        ("effects", Expr::new_string(effects(facts.effects).into())),
        ("delta", strings(delta())),
        ("bypass", Expr::new_bool(delta().any(is_bypass))),
        ("cross_tenant", Expr::new_bool(tenants().any(|name| name != facts.principal.tenant.as_str()))),
        ("backend", Expr::new_string(facts.backend.into())),
        ("attended", Expr::new_bool(facts.attended)),
        (
            "data",
            record(vec![
                ("label", Expr::new_long(level(&LABELS, label))),
                ("at_least", at_least(&LABELS, label)),
                ("tenants", strings(tenants())),
            ])?,
        ),
        (
            "budget",
            record(vec![
                ("actions", Expr::new_long(count(budget.actions))),
                ("run_ms", Expr::new_long(count(budget.run_ms))),
                ("cost_micros", Expr::new_long(count(budget.cost_micros))),
                ("artifact_bytes", Expr::new_long(count(budget.artifact_bytes))),
            ])?,
        ),
        (
            "past",
            record(vec![
                ("approvals", Expr::new_long(count(facts.past.approvals))),
                ("declines", Expr::new_long(count(facts.past.declines))),
                ("grants", Expr::new_long(count(facts.past.grants))),
            ])?,
        ),
        ("task", task(facts)?),
    ]);
    if let Some(bound) = facts.bound {
        let mut fields = vec![
            ("inputs", strings(bound.inputs.values().map(Digest::as_str))),
            ("paths", strings(bound.paths.values().map(Digest::as_str))),
        ];
        fields
            .extend(bound.workspace.as_ref().map(|workspace| ("workspace", Expr::new_string(workspace.path.clone()))));
        out.push(("bound", record(fields)?));
    }
    Ok(out.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn task(facts: &Facts<'_>) -> Result<Expr, Fault> {
    let task = &facts.task;
    let mut fields = vec![("session", text(task.session)), ("task", text(task.task))];
    fields.extend(task.purpose.map(|purpose| ("purpose", Expr::new_string(purpose.into()))));
    fields.extend(task.stage.map(|stage| ("stage", Expr::new_string(stage.into()))));
    record(fields)
}

/// What the effective contract grants.
fn contract(contract: &Contract, facts: &Facts<'_>) -> Result<Vec<(&'static str, Expr)>, Fault> {
    let network = &contract.network;
    let own = |source: &MountSource| matches!(source, MountSource::Scratch | MountSource::Outputs);
    let written = contract.filesystem.iter().filter(|mount| mount.access == Access::Write && !own(&mount.source));
    let hosts = contract.filesystem.iter().filter_map(|mount| match &mount.source {
        MountSource::Host(path) => Some(path.as_str()),
        _ => None,
    });
    let methods = network.egress.iter().flat_map(|rule| match &rule.methods {
        Some(methods) => methods.iter().map(String::as_str).collect(),
        None => vec!["*"],
    });
    let known = |name: &Name| facts.secrets.iter().find(|fact| fact.reference == name).and_then(|fact| fact.lifetime);
    let long_lived = contract
        .secrets
        .iter()
        .map(|secret| &secret.reference)
        .filter(|name| known(name).is_none_or(|lifetime| lifetime >= LONG_LIVED));
    let outside = !network.egress.is_empty()
        || !network.ingress.is_empty()
        || !contract.secrets.is_empty()
        || contract.identity.delegation != Delegation::None;
    let delegation = match contract.identity.delegation {
        Delegation::None => "none",
        Delegation::Agent => "agent",
        Delegation::User => "user",
    };
    let mut limits = Vec::new();
    limits.extend(
        contract
            .limits
            .wall
            .map(|wall| ("wall_ms", Expr::new_long(count(u64::try_from(wall.0.as_millis()).unwrap_or(u64::MAX))))),
    );
    limits.extend(contract.limits.memory.map(|memory| ("memory", Expr::new_long(count(memory.0)))));
    let mut out = vec![
        ("egress", strings_owned(network.egress.iter().map(|rule| rule.host.to_string()))),
        ("egress_methods", strings(methods)),
        ("ingress", Expr::new_set(network.ingress.iter().map(|way| Expr::new_long(i64::from(way.port))))),
        ("reaches_out", Expr::new_bool(outside)),
        ("writes", strings_owned(written.map(|mount| mount.source.to_string()))),
        ("hosts", strings(hosts)),
        ("secrets", strings(contract.secrets.iter().map(|secret| secret.reference.as_str()))),
        ("long_lived_secrets", strings(long_lived.map(Name::as_str))),
        ("delegation", Expr::new_string(delegation.into())),
        ("walls", Expr::new_long(i64::from(contract.isolation.walls.0))),
        ("limits", record(limits)?),
    ];
    let workspace = contract.filesystem.iter().filter(|mount| mount.source == MountSource::Workspace);
    if let Some(access) = workspace.map(|mount| mount.access).max() {
        out.push(("workspace", text(&access)));
    }
    Ok(out)
}

fn given(approval: &Approval<'_>) -> Result<Expr, Fault> {
    record(vec![
        ("assurance", Expr::new_long(level(&ASSURANCES, approval.assurance))),
        ("at_least", at_least(&ASSURANCES, approval.assurance)),
        ("classes", strings(approval.classes.iter().copied())),
        ("source", Expr::new_string(approval.source.as_str().into())),
        ("scope", Expr::new_string(approval.scope.as_str().into())),
    ])
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

const LABELS: [Label; 4] = [Label::Public, Label::Internal, Label::Confidential, Label::Restricted];
const ASSURANCES: [Assurance; 4] =
    [Assurance::SameUser, Assurance::ConsoleLogin, Assurance::SeparateUser, Assurance::Passkey];

/// Where something stands in its order, from 0.
fn level<T: PartialOrd>(order: &[T], value: T) -> i64 {
    count(order.iter().filter(|step| **step < value).count() as u64)
}

/// The names of all steps up to this one: `at_least.contains("confidential")`
/// reads as what it means.
fn at_least<T: PartialOrd + serde::Serialize>(order: &[T], value: T) -> Expr {
    let names = order.iter().filter(|step| **step <= value).filter_map(|step| serde_json::to_value(step).ok());
    strings_owned(names.filter_map(|name| match name {
        Value::String(name) => Some(name),
        _ => None,
    }))
}

/// Derived effects as policies spell them.
pub(crate) const fn effects(effects: DerivedEffects) -> &'static str {
    match effects {
        DerivedEffects::None => "none",
        DerivedEffects::Workspace => "workspace",
        DerivedEffects::External => "external",
    }
}

fn record(fields: Vec<(&str, Expr)>) -> Result<Expr, Fault> {
    Expr::new_record(fields.into_iter().map(|(name, value)| (name.to_owned(), value)))
        .map_err(|error| error.to_string())
}

fn text(value: &impl std::fmt::Display) -> Expr {
    Expr::new_string(value.to_string())
}

fn strings<'a>(values: impl Iterator<Item = &'a str>) -> Expr {
    Expr::new_set(values.map(|value| Expr::new_string(value.to_owned())))
}

fn strings_owned(values: impl Iterator<Item = String>) -> Expr {
    Expr::new_set(values.map(Expr::new_string))
}

/// A count of ours; the largest that policy can hold stands for more.
fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
