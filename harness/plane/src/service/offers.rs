//! What a person can answer. We make the offers; nobody can ask for another.

use std::time::Duration;

use env_contracts::{Assurance, ManifestEntry, Name, Problem, Verdict};
use glovebox_events::{Answered, Control, GrantScope, Matcher, Offer};
use glovebox_policy::{Decision, Given, GivenScope, Source};

use super::ActionService;
use super::binding::Ready;
use super::flight::Flight;
use super::granting::contract_digest;
use super::halting::word;
use crate::registry::Tool;

/// How long a grant for a task holds: tasks that go on longer ask again.
const TASK: Duration = Duration::from_secs(24 * 3600);

/// How long a grant for a session holds: a working day.
const SESSION: Duration = Duration::from_secs(12 * 3600);

/// How long a rule holds: long enough to be worth it, short enough that
/// somebody looks at it again.
const RULE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The arguments that say what a program does: a grant never leaves them open.
const COMMAND_MARK: &str = "x-glovebox-argv";

/// The arguments of agents' own tools that say where they reach: no contract
/// and no workspace does, and so a grant never leaves them open.
const REACH: [&str; 9] = ["workspace", "cwd", "place", "hidden", "tool", "scheme", "host", "background", "unsandboxed"];

impl ActionService {
    /// Once, what policy would honour for more than once, and no.
    pub(super) fn offers(&self, flight: &Flight, ready: &Ready, decision: &Decision) -> Result<Vec<Offer>, Problem> {
        let same = Matcher::Intent { intent: ready.bound.intent.clone() };
        let like = like(flight.tool()?, ready);
        let mut offers = vec![offer("once", Answered::Approve, GrantScope::Once, Control::Continue, None)];
        let turn = flight.action().turn.map(|_| ("turn", GrantScope::Turn, &same, TASK));
        let always = [
            ("task", GrantScope::Task, &same, TASK),
            ("session", GrantScope::Session, &like, SESSION),
            ("rule", GrantScope::Rule, &like, RULE),
        ];
        let drifted = ready.bound.facts.drifted.is_some();
        for (id, scope, matcher, lasts) in turn.into_iter().chain(always) {
            // What nobody registered is not allowed for all that is like it.
            if drifted && matches!(matcher, Matcher::Capability { .. }) {
                continue;
            }
            if self.honoured(flight, ready, decision, scope)? {
                let grant = Some((matcher.clone(), lasts));
                offers.push(offer(id, Answered::Approve, scope, Control::Continue, grant));
            }
        }
        offers.extend(declines());
        Ok(offers)
    }

    /// Whether policy would let a grant of this scope through, by anybody
    /// who is asked.
    fn honoured(
        &self,
        flight: &Flight,
        ready: &Ready,
        decision: &Decision,
        scope: GrantScope,
    ) -> Result<bool, Problem> {
        let sight = self.sight(flight, &ready.planned, Some(&ready.bound.facts))?;
        let policy = self.parts.policy.current();
        let scope = match scope {
            GrantScope::Once => GivenScope::Once,
            GrantScope::Turn => GivenScope::Turn,
            GrantScope::Task => GivenScope::Task,
            GrantScope::Session => GivenScope::Session,
            GrantScope::Rule => GivenScope::Rule,
        };
        // Whoever is known to be in one of the classes stands for them.
        let mut people = self.parts.people.known()?;
        people.push((flight.principal.user.clone(), Assurance::SameUser));
        let honoured = people.iter().any(|(name, assurance)| {
            let mut classes: Vec<Name> = policy.classes_of(name.as_str(), *assurance, &flight.principal);
            classes.retain(|class| decision.classes.contains(class));
            let given = Given {
                approver: name.as_str(),
                assurance: *assurance,
                classes: &classes,
                source: Source::Grant,
                scope,
            };
            !classes.is_empty() && policy.decide(&sight.facts(Some(given))).verdict == Verdict::Allow
        });
        Ok(honoured)
    }
}

/// This capability, under this contract, on this workspace.
fn like(tool: &Tool, ready: &Ready) -> Matcher {
    let plan = &ready.bound.plan;
    let properties = tool.manifest.input.get("properties").and_then(serde_json::Value::as_object);
    let native = tool.manifest.entry == ManifestEntry::Native;
    let reach = |name: &String| native && REACH.contains(&name.as_str());
    let marked = |name: &String| {
        properties
            .and_then(|all| all.get(name))
            .and_then(|schema| schema.get(COMMAND_MARK))
            .is_some_and(|mark| *mark == true)
    };
    let values = ready.planned.arguments.value().as_object();
    let fixed = values.into_iter().flatten().filter(|(name, _)| marked(name) || reach(name));
    Matcher::Capability {
        capability: plan.capability.clone(),
        artifact: plan.artifact.clone(),
        contract: contract_digest(&plan.contract),
        workspace: ready.bound.facts.workspace.clone(),
        arguments: fixed.map(|(name, value)| (name.clone(), value.clone())).collect(),
    }
}

/// What a person who gives a permission can answer.
pub(super) fn permissions(matcher: &Matcher) -> Vec<Offer> {
    let grant = |lasts| Some((matcher.clone(), lasts));
    let mut offers = vec![
        offer("task", Answered::Approve, GrantScope::Task, Control::Continue, grant(TASK)),
        offer("session", Answered::Approve, GrantScope::Session, Control::Continue, grant(SESSION)),
        offer("rule", Answered::Approve, GrantScope::Rule, Control::Continue, grant(RULE)),
    ];
    offers.extend(declines());
    offers
}

/// What a person can answer who decides on a plan or a result: it is taken as
/// it is, or not.
pub(super) fn decisions() -> Vec<Offer> {
    let mut offers = vec![offer("once", Answered::Approve, GrantScope::Once, Control::Continue, None)];
    offers.extend(declines());
    offers
}

fn declines() -> [Offer; 2] {
    [
        offer("decline", Answered::Decline, GrantScope::Once, Control::Continue, None),
        offer("decline-and-stop", Answered::Decline, GrantScope::Task, Control::StopTask, None),
    ]
}

fn offer(id: &str, answer: Answered, scope: GrantScope, control: Control, grant: Option<(Matcher, Duration)>) -> Offer {
    let (matcher, lasts_ms) = match grant {
        Some((matcher, lasts)) => (Some(matcher), Some(u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX))),
        None => (None, None),
    };
    let id = word(id).as_str().parse().unwrap_or_else(|error| unreachable!("a word of ours: {error}"));
    Offer { id, answer, scope, control, matcher, lasts_ms }
}
