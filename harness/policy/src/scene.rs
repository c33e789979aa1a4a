//! Who asks and what would run, as Cedar's entities.
//!
//! They are the same from action to action while the same one calls the same
//! tool, so some are kept. What they are made of is compared, all of it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::str::FromStr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use cedar_policy::{Entities, Entity, EntityId, EntityTypeName, EntityUid};
use env_contracts::{CapabilityRef, DeclaredEffects, Digest, ManifestEntry, Name, Principal};

use crate::Facts;
use crate::context::{Expr, count, strings, text};
use crate::request::{Fault, RUN};

/// How many are kept: an agent has some tens of tools, and each takes a few
/// kilobytes.
const KEPT: usize = 64;

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

/// Who asks and what would run.
pub(crate) struct Scene {
    of: Of,
    pub(crate) principal: EntityUid,
    pub(crate) action: EntityUid,
    pub(crate) resource: EntityUid,
    pub(crate) entities: Entities,
}

/// All that a scene is made of.
struct Of {
    principal: Principal,
    capability: CapabilityRef,
    artifact: Digest,
    builtin: bool,
    accepted: bool,
    effects: DeclaredEffects,
    preview: bool,
    decision: bool,
}

impl Of {
    fn new(facts: &Facts<'_>) -> Self {
        let manifest = facts.tool.manifest;
        Self {
            principal: facts.principal.clone(),
            capability: manifest.capability(),
            artifact: facts.tool.artifact.clone(),
            builtin: facts.tool.builtin,
            accepted: facts.tool.accepted,
            effects: manifest.effects.clone(),
            preview: manifest.preview.is_some(),
            decision: manifest.entry == ManifestEntry::Decision,
        }
    }

    fn is(&self, facts: &Facts<'_>) -> bool {
        let (tool, manifest) = (&facts.tool, facts.tool.manifest);
        self.artifact == *tool.artifact
            && self.capability.name == manifest.name
            && self.capability.version == manifest.version
            && self.principal == *facts.principal
            && (self.builtin, self.accepted) == (tool.builtin, tool.accepted)
            && self.effects == manifest.effects
            && self.preview == manifest.preview.is_some()
            && self.decision == (manifest.entry == ManifestEntry::Decision)
    }
}

/// Scenes that were made before.
#[derive(Default)]
pub(crate) struct Scenes(Mutex<VecDeque<Arc<Scene>>>);

impl Scenes {
    /// The scene of these facts.
    pub(crate) fn of(&self, facts: &Facts<'_>) -> Result<Arc<Scene>, Fault> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scene) = kept().iter().find(|scene| scene.of.is(facts)) {
            return Ok(scene.clone());
        }
        let scene = Arc::new(Scene::new(facts)?);
        let mut kept = kept();
        kept.truncate(KEPT - 1);
        kept.push_front(scene.clone());
        Ok(scene)
    }
}

impl Scene {
    pub(crate) fn new(facts: &Facts<'_>) -> Result<Self, Fault> {
        let of = Of::new(facts);
        let (name, capability) = (of.capability.name.as_str(), of.capability.to_string());
        let (principal, mut entities) = principal(&of.principal)?;
        let run = uid(&ACTION, RUN);
        let group = uid(&ACTION, name);
        let action = uid(&ACTION, &capability);
        entities.push(Entity::new_no_attrs(action.clone(), HashSet::from([group.clone()])));
        // A tool of that name is the group itself.
        if name != RUN {
            entities.push(Entity::new_no_attrs(group, HashSet::from([run])));
        }
        let resource = uid(&CAPABILITY, &capability);
        entities.push(entity(resource.clone(), tool(&of), [])?);
        let entities = Entities::from_entities(entities, None).map_err(|error| error.to_string())?;
        Ok(Self { principal, action, resource, entities, of })
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
fn principal(who: &Principal) -> Result<(EntityUid, Vec<Entity>), Fault> {
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
fn tool(of: &Of) -> Vec<(&'static str, Expr)> {
    let trusted = of.builtin || of.accepted;
    vec![
        ("name", text(&of.capability.name)),
        ("version", text(&of.capability.version)),
        ("artifact", text(&of.artifact)),
        ("builtin", Expr::new_bool(of.builtin)),
        ("accepted", Expr::new_bool(of.accepted)),
        ("classes", strings(of.effects.classes.iter().map(|class| class.as_str()))),
        ("idempotent", Expr::new_bool(trusted && of.effects.idempotent)),
        ("reversible", Expr::new_bool(trusted && of.effects.reversible)),
        ("has_preview", Expr::new_bool(of.preview)),
        ("decision", Expr::new_bool(of.decision)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;
    use crate::schema;

    /// What is taken for the same is the same in all that rules can see.
    #[test]
    fn a_scene_is_kept_for_what_it_was_made_of_and_for_nothing_else() {
        let changes: &[fn(&mut Sample)] = &[
            |sample| sample.principal.tenant = "other".parse().unwrap(),
            |sample| sample.principal.user = "bob".parse().unwrap(),
            |sample| sample.principal.agent = None,
            |sample| sample.principal.agent = Some("other".parse().unwrap()),
            |sample| sample.principal.agent_version = None,
            |sample| sample.principal.chain.clear(),
            |sample| sample.manifest.name = "other.tool".parse().unwrap(),
            |sample| sample.manifest.version = "2.0.0".parse().unwrap(),
            |sample| sample.manifest.effects.idempotent = true,
            |sample| sample.manifest.effects.reversible = true,
            |sample| sample.manifest.effects.classes.extend([env_contracts::EffectClass::Delete]),
            |sample| sample.manifest.preview = Some(sample.manifest.capability()),
            |sample| sample.manifest.entry = ManifestEntry::Decision,
            |sample| sample.artifact = Digest::of(b"other"),
            |sample| sample.builtin = true,
            |sample| sample.accepted = true,
        ];
        let scenes = Scenes::default();
        let of = |sample: &Sample| sample.facts(|facts| scenes.of(facts)).unwrap();
        let base = schema::tests::full();
        let first = of(&base);
        assert!(Arc::ptr_eq(&first, &of(&base)));
        for (number, change) in changes.iter().enumerate() {
            let mut other = base.clone();
            change(&mut other);
            assert!(!Arc::ptr_eq(&first, &of(&other)), "change {number}");
        }
    }

    #[test]
    fn only_so_many_are_kept() {
        let scenes = Scenes::default();
        let mut sample = schema::tests::full();
        for number in 0..2 * KEPT {
            sample.principal.user = format!("user-{number}").parse().unwrap();
            sample.facts(|facts| scenes.of(facts)).unwrap();
        }
        assert_eq!(scenes.0.lock().unwrap().len(), KEPT);
    }
}
