//! What is not as it was when a person approved it, in words.

use env_contracts::{BoundFacts, Digest, Plan, Problem};
use glovebox_events::What;
use glovebox_store::{EventFilter, EventsOf};

use super::ActionService;
use super::binding::Ready;
use super::flight::Flight;
use super::looking;

impl ActionService {
    /// What changed between the plan that was approved and the one that would
    /// run now.
    pub(super) fn differences(&self, flight: &Flight, ready: &Ready) -> Result<Vec<String>, Problem> {
        let action = flight.action();
        let mut changed = Vec::new();
        if let Some(plan) = &action.plan {
            let before: Plan = looking::payload(&self.parts, action, plan)?;
            plans(&before, &ready.bound.plan, &mut changed);
        }
        if let Some(facts) = self.facts_digest(flight)? {
            let before: BoundFacts = looking::payload(&self.parts, action, &facts)?;
            facts_changed(&before, &ready.bound.facts, &mut changed);
        }
        if changed.is_empty() {
            changed.push("what would run".to_owned());
        }
        Ok(changed)
    }

    /// The payload of what binding found when the person was asked.
    fn facts_digest(&self, flight: &Flight) -> Result<Option<Digest>, Problem> {
        let filter = EventFilter { of: EventsOf::Action(flight.journal.id().clone()), after: 0, limit: 0 };
        let events = self.parts.store.events(&flight.principal.tenant, &filter)?;
        Ok(events.into_iter().rev().find_map(|logged| match logged.event.what {
            What::Bound { facts, .. } => Some(facts),
            _ => None,
        }))
    }
}

fn plans(before: &Plan, now: &Plan, changed: &mut Vec<String>) {
    if before.capability != now.capability {
        changed.push(format!("the tool: `{}`, was `{}`", now.capability, before.capability));
    }
    if before.artifact != now.artifact {
        changed.push(format!("the tool's component: {}, was {}", now.artifact.short(), before.artifact.short()));
    }
    if before.arguments != now.arguments {
        changed.push("the arguments".to_owned());
    }
    if before.contract != now.contract {
        let text = |contract: &env_contracts::Contract| -> std::collections::BTreeMap<String, String> {
            contract.clauses().iter().map(|clause| (clause.path().to_string(), clause.value())).collect()
        };
        let (was, is) = (text(&before.contract), text(&now.contract));
        let mut clauses: Vec<&String> = was.keys().chain(is.keys()).collect();
        clauses.sort();
        clauses.dedup();
        for clause in clauses {
            let (had, has) = (was.get(clause), is.get(clause));
            if had != has {
                let shown = |value: Option<&String>| value.map_or("nothing", String::as_str).to_owned();
                changed.push(format!("`{clause}`: {}, was {}", shown(has), shown(had)));
            }
        }
    }
}

fn facts_changed(before: &BoundFacts, now: &BoundFacts, changed: &mut Vec<String>) {
    let names: std::collections::BTreeSet<_> = before.inputs.keys().chain(now.inputs.keys()).collect();
    for name in names {
        if before.inputs.get(name) != now.inputs.get(name) {
            changed.push(format!("the content of input `{name}`"));
        }
    }
    let paths: std::collections::BTreeSet<_> = before.paths.keys().chain(now.paths.keys()).collect();
    for path in paths {
        match (before.paths.get(path), now.paths.get(path)) {
            (Some(was), Some(is)) if was == is => {}
            (Some(was), Some(is)) => {
                changed.push(format!("the content of `{path}`: {}, was {}", is.short(), was.short()));
            }
            (None, _) => changed.push(format!("`{path}`: it was no file")),
            (_, None) => changed.push(format!("`{path}`: it is no file any more")),
        }
    }
    if before.workspace != now.workspace {
        changed.push("the workspace: it is another folder now".to_owned());
    }
    if before.environment != now.environment {
        changed.push(match (&before.environment, &now.environment) {
            (Some(was), Some(is)) if was.id == is.id => format!("the environment {}: a snapshot was restored", is.id),
            (_, Some(is)) => format!("the environment: it is {} now", is.id),
            (_, None) => "the environment: nothing is kept any more".to_owned(),
        });
    }
    if before.drifted != now.drifted {
        match &now.drifted {
            Some(drifted) => changed.extend(drifted.changed.iter().cloned()),
            None => changed.push("its server says of the tool again what was registered".to_owned()),
        }
    }
    if before.hosts != now.hosts {
        changed.push("a host folder: it is another one now".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_change_is_named() {
        let digest = |text: &str| Digest::of(text.as_bytes());
        let before = BoundFacts {
            inputs: [("a".parse().unwrap(), digest("1"))].into(),
            paths: [("/workspace/t.sh".to_owned(), digest("1"))].into(),
            ..BoundFacts::default()
        };
        let now = BoundFacts {
            inputs: [("a".parse().unwrap(), digest("2"))].into(),
            paths: [("/workspace/t.sh".to_owned(), digest("2"))].into(),
            ..BoundFacts::default()
        };
        let mut changed = Vec::new();
        facts_changed(&before, &now, &mut changed);
        assert_eq!(changed.len(), 2, "{changed:?}");
        assert!(changed[1].contains("/workspace/t.sh"), "{changed:?}");
        let mut none = Vec::new();
        facts_changed(&now, &now, &mut none);
        assert!(none.is_empty());
    }
}
