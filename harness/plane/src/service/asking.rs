//! Opening an approval: the question that a person gets.

use env_contracts::{ApprovalNeed, Assurance, Code, Digest, Name, OutcomeKind, Problem};
use glovebox_events::{Approval, ApprovalState, AskedFor, Offer, What};
use glovebox_policy::{Decision, Effect};
use glovebox_store::{Condition, Conflict};

use super::binding::Ready;
use super::flight::{Flight, Halt, Step};
use super::journal::Lost;
use super::{ActionService, looking};
use crate::observe::Refusal;

impl ActionService {
    /// The question about what is bound, unless it was declined before or
    /// nobody can answer.
    pub(super) fn question(&self, flight: &mut Flight, ready: &Ready, decision: &Decision) -> Result<Approval, Halt> {
        self.declined_before(flight, &ready.bound.intent)?;
        if self.nobody_decides(flight, decision) {
            return Err(unattended(decision).into());
        }
        let offers = self.offers(flight, ready, decision)?;
        let reason = if !flight.drift.is_empty() {
            AskedFor::Drift
        } else if !ready.planned.delta.is_empty() {
            AskedFor::Delta
        } else if flight.kept.request.approval == ApprovalNeed::Always {
            AskedFor::Requester
        } else {
            AskedFor::Policy
        };
        let of = (ready.bound.intent.clone(), ready.bound.digest.clone());
        let opening = self.new_approval(flight, decision, of, reason, offers);
        Ok(Approval { changed: std::mem::take(&mut flight.drift), preview: decision.preview, ..opening })
    }

    /// An approval as it begins, of this intent and plan digest.
    pub(super) fn new_approval(
        &self,
        flight: &Flight,
        decision: &Decision,
        (intent, digest): (Digest, Digest),
        asked_for: AskedFor,
        offers: Vec<Offer>,
    ) -> Approval {
        Approval {
            id: self.parts.ids.random(),
            revision: flight.action().revision,
            digest,
            intent,
            asked_for,
            changed: Vec::new(),
            rules: causes(decision),
            reasons: decision.for_people.clone(),
            classes: self.who_decides(flight, decision),
            offers,
            preview: false,
            reviews: Vec::new(),
            opened_ms: self.now_ms(),
            expires_ms: None,
            nobody_reachable: false,
            state: ApprovalState::Pending,
            answer: None,
        }
    }

    /// Writes an approval down, unless too much was asked. What was asked is
    /// durable before anybody is told.
    pub(super) async fn put_question(&self, flight: &mut Flight, mut approval: Approval) -> Result<Step, Halt> {
        let (now, settings) = (approval.opened_ms, &self.parts.settings);
        let after = |span: std::time::Duration| now.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
        approval.expires_ms = settings.ttl.map(after);
        if !self.reachable(flight, &approval.classes)? {
            approval.nobody_reachable = true;
            let grace = after(settings.grace);
            approval.expires_ms = Some(approval.expires_ms.map_or(grace, |expires| expires.min(grace)));
        }
        let since_ms = now.saturating_sub(u64::try_from(settings.asks.per.as_millis()).unwrap_or(u64::MAX));
        let session = flight.kept.context.session.clone();
        flight.journal.mark();
        flight.journal.event(now, What::ApprovalOpened { approval: Box::new(approval) })?;
        flight.journal.condition(Condition::AsksBelow { session, since_ms, most: settings.asks.most });
        flight.journal.condition(Condition::NotHalted);
        for standing in flight.standing.conditions(flight.action(), true) {
            flight.journal.condition(standing);
        }
        match flight.journal.commit(&*self.parts.store).await {
            Ok(_) => Ok(Step::Again),
            Err(Lost::Changed) => Err(Halt::Changed),
            Err(Lost::Refused(Conflict::Asks)) => {
                flight.journal.back();
                let per = env_contracts::Span(settings.asks.per);
                let message = format!(
                    "this session asked {} times within {per}, which is as often as it may",
                    settings.asks.most
                );
                let problem = Problem::new(Code::AskLimited, message);
                Err(Refusal::new(OutcomeKind::AskLimited, problem).into())
            }
            Err(Lost::Refused(Conflict::Halted(halt))) => {
                flight.journal.back();
                Err(Refusal::from(super::halting::halted(&halt)).into())
            }
            Err(Lost::Refused(Conflict::Task(moved))) => {
                flight.journal.back();
                Err(super::standing::moved(&moved).into())
            }
            Err(lost) => Err(Halt::Failed(self.lost(lost))),
        }
    }

    /// A person said no to exactly this in this task: it is not asked again.
    pub(super) fn declined_before(&self, flight: &Flight, intent: &Digest) -> Result<(), Halt> {
        let task = &flight.kept.context.task;
        let Some(action) = self.parts.store.declined(&flight.principal.tenant, task, intent)? else { return Ok(()) };
        let before = looking::said(&self.parts, &action)?;
        let message = format!("the same was declined in this task before, by {before}");
        Err(Refusal::new(OutcomeKind::Declined, Problem::new(Code::Declined, message)).which("before").into())
    }

    /// Whether anybody is known who may answer.
    fn reachable(&self, flight: &Flight, classes: &[Name]) -> Result<bool, Problem> {
        let reviewers = self.reviewers_of(classes);
        if reviewers.len() == classes.len() {
            // No person is waited for.
            return Ok(true);
        }
        let policy = self.parts.policy.current();
        let may = |name: &Name, assurance: Assurance| {
            let own = policy.classes_of(name.as_str(), assurance, &flight.principal);
            own.iter().any(|class| classes.contains(class))
        };
        if may(&flight.principal.user, Assurance::SameUser) {
            return Ok(true);
        }
        Ok(self.parts.people.known()?.iter().any(|(name, assurance)| may(name, *assurance)))
    }
}

/// The rules because of which a person is asked: those that forbid it without
/// one, or else those that permit it with one.
pub(super) fn causes(decision: &Decision) -> Vec<String> {
    let of = |effect| decision.rules.iter().filter(move |rule| rule.effect == effect).map(|rule| rule.id.clone());
    let forbids: Vec<String> = of(Effect::Forbid).collect();
    if forbids.is_empty() { of(Effect::Permit).collect() } else { forbids }
}

/// The end of an action for which somebody would have to be asked, where
/// nobody is.
pub(super) fn unattended(decision: &Decision) -> Refusal {
    let why = decision.for_model.first().map_or_else(String::new, |why| format!(" ({why})"));
    let classes: Vec<&str> = decision.classes.iter().map(Name::as_str).collect();
    let message = format!(
        "approval unavailable (unattended): policy wants it decided by {}{why}, and nobody can be asked here",
        classes.join(" or ")
    );
    Refusal::new(OutcomeKind::Unattended, Problem::new(Code::Unattended, message))
}
