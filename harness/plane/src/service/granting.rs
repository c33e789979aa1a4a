//! Grants: what was allowed for more than once.

use env_contracts::{BoundFacts, Contract, Digest, Id, Principal, Problem};
use glovebox_events::{Action, Grant, GrantScope, Matcher};
use glovebox_policy::Decision;
use glovebox_runtime::algebra;
use glovebox_store::{ActionFilter, GrantFilter};

use super::ActionService;
use super::binding::Ready;
use super::deciding::granted;
use super::flight::{Flight, Halt};
use super::submission::Edit;
use super::{looking, permission};
use crate::planning::Planned;

impl ActionService {
    /// The grant by which policy allows this, if there is one. Policy is asked
    /// with the real facts: a grant is an approval like others, not a rule.
    pub(super) fn grant_for(&self, flight: &mut Flight, ready: &Ready) -> Result<Option<Id>, Halt> {
        let found = self.granting(flight, &ready.planned, &ready.bound.intent, &ready.bound.facts)?;
        let Some((id, decision)) = found else { return Ok(None) };
        flight.journal.event(self.now_ms(), super::deciding::decided(glovebox_events::DecidedAt::Claim, &decision))?;
        Ok(Some(id))
    }

    /// The first grant that policy honours for this, and what policy said.
    pub(super) fn granting(
        &self,
        flight: &mut Flight,
        planned: &Planned,
        intent: &Digest,
        facts: &BoundFacts,
    ) -> Result<Option<(Id, Decision)>, Problem> {
        for grant in self.live_grants(flight, self.now_ms())? {
            if !covers(&grant, flight, planned, Some((intent, facts))) {
                continue;
            }
            if self.real(&grant, flight).is_err() {
                flight.story.notice("grant-forged", format!("grant {} is not what anybody signed", grant.id));
                continue;
            }
            let sight = self.sight(flight, planned, Some(facts))?;
            let policy = self.parts.policy.current();
            if let Matcher::Permission { .. } = grant.matcher {
                // It gives what goes beyond the tool's contract, and no right
                // to what has to be asked about anyway.
                let mut plain = sight.facts(None);
                plain.delta = &[];
                if policy.decide(&plain).verdict != env_contracts::Verdict::Allow {
                    continue;
                }
            }
            let decision = policy.decide(&sight.facts(Some(granted(&grant))));
            if decision.verdict == env_contracts::Verdict::Allow {
                return Ok(Some((grant.id.clone(), decision)));
            }
        }
        Ok(None)
    }

    /// What a matcher covers, for people.
    pub fn describe(&self, matcher: &Matcher) -> String {
        describe(matcher)
    }

    /// Whether the grant is what its approval's answer says, by who signed it.
    fn real(&self, grant: &Grant, flight: &Flight) -> Result<(), Problem> {
        let forged = || Problem::new(env_contracts::Code::SignatureInvalid, "no answer made this grant");
        let tenant = &grant.principal.tenant;
        let action = self.parts.store.by_approval(tenant, &grant.approval)?.ok_or_else(forged)?;
        let approval = self.that_approval(&action, &grant.approval)?;
        let answer = approval.answer.clone().ok_or_else(forged)?;
        let offer = approval.offers.iter().find(|offer| offer.id == answer.offer).ok_or_else(forged)?;
        let mut matcher = offer.matcher.clone();
        if let (Some(offered), Some(edit)) = (&offer.matcher, &answer.edit) {
            // The person gave less than was asked; what they left is signed too.
            let edit: Edit = looking::payload(&self.parts, &action, edit)?;
            let scope = edit.scope.ok_or_else(forged)?;
            matcher = Some(permission::narrowed(offered, &scope, &flight.tool()?.manifest.contract)?);
        }
        let made = answer.by == grant.by
            && answer.scope == grant.scope
            && (grant.session.clone(), grant.task.clone(), grant.turn) == place(answer.scope, &action)
            && matcher.as_ref() == Some(&grant.matcher)
            && offer.lasts_ms.is_some_and(|lasts| answer.at_ms.saturating_add(lasts) >= grant.expires_ms)
            && action.principal == grant.principal;
        if !made {
            return Err(forged());
        }
        self.signed(&action, &approval, &answer)
    }

    /// The grants that hold for whoever asks, here.
    pub(super) fn live_grants(&self, flight: &Flight, now: u64) -> Result<Vec<Grant>, Problem> {
        let context = &flight.kept.context;
        let filter = GrantFilter {
            live_at: Some(now),
            user: Some(flight.principal.user.clone()),
            session: Some(context.session.clone()),
        };
        let mut grants = self.parts.store.grants(&flight.principal.tenant, &filter)?;
        grants.retain(|grant| {
            grant.live(now)
                && same(&grant.principal, &flight.principal)
                && grant.session.as_ref().is_none_or(|session| *session == context.session)
                && grant.task.as_ref().is_none_or(|task| *task == context.task)
                && grant.turn.is_none_or(|turn| context.turn == Some(turn))
        });
        Ok(grants)
    }

    /// Whether nobody can be asked and no grant could help.
    pub(super) fn asks_in_vain(&self, flight: &Flight, decision: &Decision) -> Result<bool, Problem> {
        if !self.nobody_decides(flight, decision) {
            return Ok(false);
        }
        Ok(self.live_grants(flight, self.now_ms())?.is_empty())
    }

    /// Tells the loop what it may do more, or less, than at its last step:
    /// doors without turns say so in the next Observation.
    pub(super) fn granted_since(&self, flight: &mut Flight) -> Result<(), Problem> {
        let store = &self.parts.store;
        let context = &flight.kept.context;
        let filter = GrantFilter {
            live_at: None,
            user: Some(flight.principal.user.clone()),
            session: Some(context.session.clone()),
        };
        let grants = store.grants(&flight.principal.tenant, &filter)?;
        if grants.is_empty() {
            return Ok(());
        }
        let filter = ActionFilter {
            session: Some(context.session.clone()),
            user: Some(flight.principal.user.clone()),
            limit: 2,
            ..ActionFilter::default()
        };
        let id = flight.journal.id();
        let before = store.actions(&flight.principal.tenant, &filter)?;
        let since = before.items.iter().find(|action| action.id != *id).map_or(0, |action| action.changed_ms);
        for grant in grants.iter().filter(|grant| same(&grant.principal, &flight.principal)) {
            if grant.made_ms >= since && grant.revoked.is_none() {
                flight.story.notice("permission-granted", format!("grant {}: {}", grant.id, describe(&grant.matcher)));
            } else if grant.revoked.as_ref().is_some_and(|revoked| revoked.at_ms >= since) {
                flight.story.notice("permission-revoked", format!("grant {}: {}", grant.id, describe(&grant.matcher)));
            }
        }
        Ok(())
    }
}

/// Where a grant of this scope holds that was given with this action.
pub(super) fn place(scope: GrantScope, action: &Action) -> (Option<Id>, Option<Id>, Option<u64>) {
    let (session, task) = (Some(action.session.clone()), Some(action.task.clone()));
    match scope {
        GrantScope::Once | GrantScope::Rule => (None, None, None),
        GrantScope::Session => (session, None, None),
        GrantScope::Task => (session, task, None),
        GrantScope::Turn => (session, task, action.turn),
    }
}

/// Whether two requesters are the same: an approval is never lent out.
fn same(a: &Principal, b: &Principal) -> bool {
    a.tenant == b.tenant && a.user == b.user && a.agent == b.agent && a.chain == b.chain
}

/// Whether a grant covers what would run. What goes beyond the tool's contract
/// has to be named by it.
pub(super) fn covers(grant: &Grant, flight: &Flight, planned: &Planned, bound: Option<(&Digest, &BoundFacts)>) -> bool {
    let drifted = bound.is_some_and(|(_, facts)| facts.drifted.is_some());
    match &grant.matcher {
        // What differs is part of the intent; other matchers are about what was registered.
        Matcher::Capability { .. } | Matcher::Permission { .. } if drifted => false,
        Matcher::Intent { intent } => bound.is_some_and(|(own, _)| own == intent),
        Matcher::Capability { capability, artifact, contract, workspace, arguments } => {
            let plan = &planned.plan;
            let folder = bound.and_then(|(_, facts)| facts.workspace.clone());
            let values = planned.arguments.value();
            plan.capability == *capability
                && plan.artifact == *artifact
                && contract_digest(&plan.contract) == *contract
                && folder == *workspace
                && arguments.iter().all(|(name, value)| values.get(name) == Some(value))
        }
        Matcher::Permission { capability, artifact, scope } => {
            let Some(asked) = &flight.kept.request.scope else { return false };
            let plan = &planned.plan;
            let Ok(tool) = flight.tool() else { return false };
            let widened = algebra::widen(&tool.manifest.contract, scope);
            plan.capability == *capability
                && plan.artifact == *artifact
                && !planned.delta.is_empty()
                && algebra::delta(&widened, asked).is_empty()
        }
    }
}

/// The digest of a contract, for a matcher.
pub(super) fn contract_digest(contract: &Contract) -> Digest {
    Digest::of(&crate::json(contract))
}

/// What a matcher covers, for people.
pub(crate) fn describe(matcher: &Matcher) -> String {
    match matcher {
        Matcher::Intent { intent } => format!("the same thing again, to the last byte (intent {})", intent.short()),
        Matcher::Capability { capability, workspace, arguments, .. } => {
            let place = if workspace.is_some() { " in this workspace" } else { "" };
            let fixed: Vec<String> = arguments.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            let with = if fixed.is_empty() { "any arguments".to_owned() } else { fixed.join(", ") };
            format!("`{capability}`{place} under this contract, with {with}")
        }
        Matcher::Permission { capability, scope, .. } => {
            // The sections that were named, and nothing that they imply.
            let mut named = serde_json::to_value(scope).unwrap_or_default();
            if let Some(sections) = named.as_object_mut() {
                sections.remove("schema");
            }
            format!("`{capability}` with more than its contract gives: {named}")
        }
    }
}
