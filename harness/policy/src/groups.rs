//! The rules in the order in which decisions want them: by what their scope lets
//! them concern, and by whether they look at the approval.
//!
//! A policy of many rules is read a second time, so that a decision does not ask
//! of each rule what is known of all of a group: that the action is in its scope.
//! What is decided stays the same; a test decides the table of risks both ways.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use cedar_policy::{Authorizer, Entities, Policy as CedarPolicy, PolicyId, PolicySet as CedarSet, Request};
use serde_json::{Value, json};

use crate::context::Attributes;
use crate::looks::Looks;
use crate::request::RUN;
use crate::rules::Known;

/// From so many rules of a group on they are read a second time. Below, the time
/// that it takes to start a command counts for more than that of a decision.
const MANY: usize = 100;

/// What a rule's scope says of the action.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scope {
    /// It is this action, or in this group.
    In(String),
    /// It is this action: a group is none.
    Is(String),
}

impl Scope {
    /// The scopes in which a capability is.
    pub(crate) fn of(name: &str, capability: &str) -> BTreeSet<Self> {
        let inside = [RUN, name, capability].map(|group| Self::In(group.to_owned()));
        inside.into_iter().chain([Self::Is(capability.to_owned())]).collect()
    }
}

/// Rules with the same scope.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Those that say the same whoever approved.
    pub(crate) fixed: CedarSet,
    /// Those that look at the approval.
    asked: CedarSet,
    /// For some of those: what has to hold of them besides, as rules that forbid.
    guards: CedarSet,
    /// What of the context any of them looks at.
    pub(crate) wanted: Attributes,
}

/// The groups by scope.
#[derive(Debug, Default)]
pub(crate) struct Groups(HashMap<Scope, Group>);

impl Groups {
    pub(crate) fn of(known: &HashMap<PolicyId, Known>) -> Result<Self, String> {
        let mut sizes: HashMap<&Scope, usize> = HashMap::new();
        for key in known.values().flat_map(keys) {
            *sizes.entry(key).or_default() += 1;
        }
        let mut groups = Self::default();
        for (id, rule) in known {
            let many = keys(rule).iter().any(|key| sizes.get(key).is_some_and(|size| *size >= MANY));
            let (policy, guard) = if many { prepared(id, rule)? } else { (rule.cedar.clone(), None) };
            for key in keys(rule) {
                let group = groups.0.entry(key.clone()).or_default();
                group.wanted = group.wanted.and(rule.looks.context);
                let part = if rule.looks.approval { &mut group.asked } else { &mut group.fixed };
                part.add(policy.clone()).map_err(|error| error.to_string())?;
                if let Some(guard) = &guard {
                    group.guards.add(guard.clone()).map_err(|error| error.to_string())?;
                }
            }
        }
        Ok(groups)
    }

    #[cfg(test)]
    pub(crate) fn each(&mut self, change: impl FnMut(&mut Group)) {
        self.0.values_mut().for_each(change);
    }

    /// The groups of rules that can concern a capability.
    pub(crate) fn concerning(&self, name: &str, capability: &str) -> Vec<&Group> {
        Scope::of(name, capability).iter().filter_map(|scope| self.0.get(scope)).collect()
    }
}

impl Group {
    /// The rules that look at the approval and may hold, whatever it is.
    pub(crate) fn asked(&self, authorizer: &Authorizer, request: &Request, entities: &Entities) -> Cow<'_, CedarSet> {
        if self.guards.is_empty() {
            return Cow::Borrowed(&self.asked);
        }
        let response = authorizer.is_authorized(request, &self.guards, entities);
        let failed = response.diagnostics().errors().map(|error| match error {
            // The whole rule fails as well, and says so.
            cedar_policy::AuthorizationError::PolicyEvaluationError(error) => error.policy_id(),
        });
        let open: BTreeSet<&PolicyId> = response.diagnostics().reason().chain(failed).collect();
        let may = |policy: &&CedarPolicy| open.contains(policy.id()) || self.guards.policy(policy.id()).is_none();
        // They are in one set already, each under an id of its own.
        CedarSet::from_policies(self.asked.policies().filter(may).cloned())
            .map_or(Cow::Borrowed(&self.asked), Cow::Owned)
    }
}

/// A rule's scopes, each once.
fn keys(rule: &Known) -> BTreeSet<&Scope> {
    rule.actions.iter().collect()
}

/// A rule without what its group stands for, and what has to hold of it before
/// the approval matters.
fn prepared(id: &PolicyId, rule: &Known) -> Result<(CedarPolicy, Option<CedarPolicy>), String> {
    let read = |json: &Value| CedarPolicy::from_json(Some(id.clone()), json.clone()).map_err(|error| error.to_string());
    let mut policy = rule.cedar.to_json().map_err(|error| error.to_string())?;
    policy["action"] = json!({ "op": "All" });
    let whole = read(&policy)?;
    let Some(Value::Array(conditions)) = policy.get_mut("conditions").filter(|_| rule.looks.approval) else {
        return Ok((whole, None));
    };
    // Only what stands first: whoever evaluates the whole rule comes to the rest
    // only where that holds, so nothing is skipped that could have failed.
    let asks = |condition: &Value| Looks::of_json(&json!({ "conditions": [condition] })).approval;
    conditions.truncate(conditions.iter().position(asks).unwrap_or(conditions.len()));
    if conditions.is_empty() {
        return Ok((whole, None));
    }
    policy["effect"] = json!("forbid");
    Ok((whole, Some(read(&policy)?)))
}
