//! The rules in the order in which decisions want them: by what their scope lets
//! them concern, and by whether they look at the approval.
//!
//! A decision does not ask of each rule what is known of all of a group: that the
//! action is in its scope. And where many rules look at the approval, it asks
//! first whether one can hold at all, so that not each class of approvers asks
//! all of them. What is decided is what Cedar's own authorizer decides over all
//! rules; a test holds the two together.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use cedar_policy::{
    Entities, EvalResult, Expression, Policy as CedarPolicy, PolicyId, PrincipalConstraint, Request,
    ResourceConstraint, eval_expression,
};
use serde_json::{Value, json};

use crate::context::Attributes;
use crate::looks::Looks;
use crate::request::RUN;
use crate::rules::Known;

/// From so many rules of a group on, those that look at the approval are read a
/// second time. Below, the time that it takes to start a command counts for more
/// than that of a decision.
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

/// A rule as decisions want it.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) id: PolicyId,
    /// All of it, but for the action where its group stands for that.
    condition: Expression,
    /// What has to hold before the approval matters.
    guard: Option<Expression>,
}

/// Rules with the same scope.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Those that say the same whoever approved.
    pub(crate) fixed: Vec<Arc<Ready>>,
    /// Those that look at the approval.
    asked: Vec<Arc<Ready>>,
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
            let guard = if many { guard(id, rule)? } else { None };
            let ready = Arc::new(Ready { id: id.clone(), condition: condition(&rule.cedar), guard });
            for key in keys(rule) {
                let group = groups.0.entry(key.clone()).or_default();
                group.wanted = group.wanted.and(rule.looks.context);
                let part = if rule.looks.approval { &mut group.asked } else { &mut group.fixed };
                part.push(ready.clone());
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
    pub(crate) fn asked(&self, request: &Request, entities: &Entities) -> impl Iterator<Item = &Ready> {
        self.asked.iter().map(AsRef::as_ref).filter(|rule| match &rule.guard {
            // Where it fails the whole rule fails as well, and says so.
            Some(guard) => !matches!(eval_expression(request, entities, guard), Ok(EvalResult::Bool(false))),
            None => true,
        })
    }
}

impl Ready {
    /// Whether it holds.
    ///
    /// # Errors
    /// Why that can't be said. Such a rule must not be left out.
    pub(crate) fn holds(&self, request: &Request, entities: &Entities) -> Result<bool, String> {
        match eval_expression(request, entities, &self.condition) {
            Ok(EvalResult::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("a condition is true or false, and this one is {other}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A rule's scopes, each once.
fn keys(rule: &Known) -> BTreeSet<&Scope> {
    rule.actions.iter().collect()
}

/// The condition of a rule. Its group says what its scope says of the action, so
/// where the scope says nothing else only `when` and `unless` are left.
fn condition(policy: &CedarPolicy) -> Expression {
    let anybody = policy.principal_constraint() == PrincipalConstraint::Any;
    let anything = policy.resource_constraint() == ResourceConstraint::Any;
    match policy.as_ref().non_scope_constraints() {
        Some(conditions) if anybody && anything => conditions.clone().into(),
        _ => policy.as_ref().condition().into(),
    }
}

/// What has to hold of a rule before the approval matters, where that is
/// something.
fn guard(id: &PolicyId, rule: &Known) -> Result<Option<Expression>, String> {
    if !rule.looks.approval {
        return Ok(None);
    }
    let mut policy = rule.cedar.to_json().map_err(|error| error.to_string())?;
    let Some(Value::Array(conditions)) = policy.get_mut("conditions") else { return Ok(None) };
    // Only what stands first: whoever evaluates the whole rule comes to the rest
    // only where that holds, so nothing is skipped that could have failed.
    let asks = |condition: &Value| Looks::of_json(&json!({ "conditions": [condition] })).approval;
    conditions.truncate(conditions.iter().position(asks).unwrap_or(conditions.len()));
    if conditions.is_empty() {
        return Ok(None);
    }
    let first = CedarPolicy::from_json(Some(id.clone()), policy).map_err(|error| error.to_string())?;
    Ok(Some(condition(&first)))
}
