//! Reviewers that are no persons: a class of approvers that is a capability.
//! It gets a bounded view and a time limit, and whatever is not a clear yes in
//! time approves nothing.

use env_contracts::{Code, Digest, Name, Observation, OutcomeKind, Plan, Principal, Problem};
use glovebox_events::{
    Action, Answer, Answered, Approval, Approver, Asks, Control, GrantScope, Review, Reviewed, What,
};
use glovebox_policy::{Decision, Reviewer};
use glovebox_runtime::{Stop, algebra};
use serde_json::{Map, Value, json};

use super::companion::{Companion, Errand};
use super::flight::{Flight, Halt, Step};
use super::running::interrupted;
use super::{ActionService, Asking, looking};
use crate::machine::REVIEWER;
use crate::observe::Refusal;

/// What of the arguments a reviewer sees, in bytes of their canonical form. It
/// is told where that is not all.
const MAX_ARGUMENTS: usize = 16 << 10;

/// The most reasons of a reviewer, and the longest one in bytes: people read
/// them on a card.
const MAX_REASONS: usize = 16;
const MAX_REASON: usize = 500;

/// Whether an answer is a reviewer's, and no person's.
pub(super) fn is_reviewer(answer: &Answer) -> bool {
    answer.by.channel.as_str() == REVIEWER
}

/// Whether a reviewer said no: then a person can let this one action past, and
/// nothing else with it.
pub(super) fn denied(approval: &Approval) -> bool {
    approval.reviews.iter().any(|review| review.verdict == Reviewed::Denied)
}

impl ActionService {
    /// Whether nobody can decide here: neither a person, because none can be
    /// asked, nor a reviewer.
    pub(super) fn nobody_decides(&self, flight: &Flight, decision: &Decision) -> bool {
        self.who_decides(flight, decision).is_empty()
    }

    /// The classes that can answer: where no person can be asked, those of
    /// reviewers. A reviewer says yes once, and so gives no permission; and
    /// nobody reviews what belongs to another action.
    pub(super) fn who_decides(&self, flight: &Flight, decision: &Decision) -> Vec<Name> {
        let mut classes = decision.classes.clone();
        let reviewers = self.reviewers_of(&classes);
        let reviews = |class: &Name| reviewers.iter().any(|reviewer| reviewer.class == *class);
        if flight.action().asks == Asks::Permission || flight.companion.is_some() {
            classes.retain(|class| !reviews(class));
        }
        if flight.asking == Asking::Never {
            classes.retain(reviews);
        }
        classes
    }

    /// Of these classes those that are reviewers.
    pub(super) fn reviewers_of(&self, classes: &[Name]) -> Vec<Reviewer> {
        let mut reviewers = self.parts.policy.current().reviewers();
        reviewers.retain(|reviewer| classes.contains(&reviewer.class));
        reviewers
    }

    /// Asks the next reviewer that was not asked yet about an approval, and
    /// records what it said. `None`: there is none to ask.
    pub(super) async fn review(
        &self,
        flight: &mut Flight,
        approval: &Approval,
        stop: &Stop,
    ) -> Result<Option<Step>, Halt> {
        let reviewers = self.reviewers_of(&approval.classes);
        let asked = |class: &Name| approval.reviews.iter().any(|review| review.class == *class);
        let next = reviewers.iter().find(|reviewer| !asked(&reviewer.class) && !denied(approval));
        let Some(reviewer) = next.cloned() else { return Ok(None) };
        let review = self.ask_reviewer(flight, approval, &reviewer, stop).await?;
        let now = self.now_ms().max(approval.opened_ms);
        if approval.expires_ms.is_some_and(|expires| now >= expires) {
            return self.expire(flight, &approval.id, "nobody answered in time").await.map(Some);
        }
        flight.journal.event(now, What::Reviewed { review: review.clone() })?;
        if review.verdict == Reviewed::Approved {
            if let Some(refusal) = self.answerable(flight)? {
                return Err(refusal.into());
            }
            let answer = yes(approval, &reviewer.class, now)?;
            flight.journal.event(now, What::ApprovalAnswered { answer: Box::new(answer.clone()) })?;
            if flight.action().asks.runs() {
                self.write(flight).await?;
            } else {
                self.given(flight, &answer, None, None).await?;
            }
            return Ok(Some(Step::Again));
        }
        let no = review.verdict == Reviewed::Denied;
        let left = approval.classes.iter().any(|class| {
            let reviews = reviewers.iter().any(|reviewer| reviewer.class == *class);
            !reviews || (!no && !asked(class) && *class != review.class)
        });
        if left {
            // A person decides, or the next reviewer.
            self.write(flight).await?;
            return Ok(Some(Step::Again));
        }
        let outcome = refused(&review).0;
        self.end(flight, outcome).await.map(|observation| Some(Step::Done(Box::new(observation))))
    }

    async fn ask_reviewer(
        &self,
        flight: &Flight,
        approval: &Approval,
        reviewer: &Reviewer,
        stop: &Stop,
    ) -> Result<Review, Halt> {
        let own = Stop::default();
        let asked = self.look_at(flight, approval, reviewer, &own);
        tokio::pin!(asked);
        let late = tokio::time::sleep(reviewer.limit.0);
        tokio::pin!(late);
        let (mut timed_out, mut stopped) = (false, false);
        let seen = loop {
            tokio::select! {
                biased;
                seen = &mut asked => break seen,
                () = &mut late, if !timed_out => {
                    timed_out = true;
                    own.request();
                }
                () = stop.requested(), if !stopped => {
                    stopped = true;
                    own.request();
                }
            }
        };
        if stopped {
            return Err(interrupted("approval").into());
        }
        let action = seen.as_ref().ok().map(|seen| seen.action_id.clone());
        let (verdict, reasons) = if timed_out {
            (Reviewed::TimedOut, vec![format!("it did not answer within {}", reviewer.limit)])
        } else {
            judged(seen)
        };
        Ok(Review { approval: approval.id.clone(), class: reviewer.class.clone(), action, verdict, reasons })
    }

    async fn look_at(
        &self,
        flight: &Flight,
        approval: &Approval,
        reviewer: &Reviewer,
        stop: &Stop,
    ) -> Result<Observation, Problem> {
        let errand = Errand {
            role: Companion::Review,
            capability: reviewer.capability.clone(),
            // It acts for the user, and not for the agent that it looks at.
            principal: Principal { agent: None, agent_version: None, chain: Vec::new(), ..flight.principal.clone() },
            arguments: self.view_of(flight, approval)?,
            limit: Some(reviewer.limit),
        };
        self.send_out(flight, errand, stop).await
    }

    /// What a reviewer may see of an action.
    fn view_of(&self, flight: &Flight, approval: &Approval) -> Result<Value, Problem> {
        let action = flight.action();
        let plan = action.plan.as_ref().ok_or_else(|| Problem::new(Code::BackendError, "it waits without a plan"))?;
        let plan: Plan = looking::payload(&self.parts, action, plan)?;
        let mut end = plan.arguments.len().min(MAX_ARGUMENTS);
        while !plan.arguments.is_char_boundary(end) {
            end -= 1;
        }
        let clauses: Vec<Value> = plan.contract.clauses().iter().map(clause).collect();
        let own = &flight.tool()?.manifest.contract;
        let delta = flight.kept.request.scope.as_ref().map(|scope| algebra::delta(own, scope)).unwrap_or_default();
        let delta: Vec<Value> = delta
            .iter()
            .map(|delta| json!({ "clause": delta.clause, "asked": delta.asked, "had": delta.had }))
            .collect();
        Ok(json!({
            // Which plan it is that it says yes to.
            "approval": approval.id,
            "plan": approval.digest,
            "capability": plan.capability,
            "asks": action.asks,
            "arguments": &plan.arguments[..end],
            "cut": end < plan.arguments.len(),
            "contract": clauses,
            "effects": plan.effects,
            "delta": delta,
            "reasons": approval.reasons,
        }))
    }

    /// Refuses a reviewer's answer that no review of this very plan stands
    /// behind: a row in the database is no review.
    pub(super) fn reviewed(&self, approval: &Approval, answer: &Answer, tenant: &Name) -> Result<(), Problem> {
        let forged = |why: &str| Problem::new(Code::SignatureInvalid, why);
        let said = |review: &&Review| review.class == answer.by.name && review.verdict == Reviewed::Approved;
        let review = approval.reviews.iter().find(said).ok_or_else(|| forged("there is no review"))?;
        let id = review.action.as_ref().ok_or_else(|| forged("its review is no action"))?;
        let looked = self.parts.store.action(tenant, id)?.ok_or_else(|| forged("its review is none that was made"))?;
        let reviewers = self.reviewers_of(std::slice::from_ref(&answer.by.name));
        if !reviewers.iter().any(|reviewer| reviewer.capability == looked.capability) {
            return Err(forged("its review is no reviewer's"));
        }
        let seen = self.observation(&looked)?;
        if judged(Ok(seen)).0 != Reviewed::Approved {
            return Err(forged("its review does not say yes"));
        }
        let about = self.argument(&looked, "plan")?;
        if about.as_deref() != Some(answer.seen.as_str()) || answer.seen != approval.digest {
            return Err(forged("its review is of another plan"));
        }
        if self.argument(&looked, "approval")?.as_deref() != Some(approval.id.as_str()) {
            return Err(forged("its review is of another approval"));
        }
        Ok(())
    }

    /// A text among the arguments that an action ran with.
    fn argument(&self, action: &Action, name: &str) -> Result<Option<String>, Problem> {
        let Some(plan) = &action.plan else { return Ok(None) };
        let plan: Plan = looking::payload(&self.parts, action, plan)?;
        let values: Map<String, Value> = looking::decode(plan.arguments.as_bytes())?;
        Ok(values.get(name).and_then(Value::as_str).map(str::to_owned))
    }
}

fn clause(clause: &env_contracts::Clause<'_>) -> Value {
    json!({ "clause": clause.path().to_string(), "value": clause.value() })
}

/// What a reviewer's Observation says. Whatever is not a clear yes or no is a
/// failure of it.
fn judged(seen: Result<Observation, Problem>) -> (Reviewed, Vec<String>) {
    let seen = match seen {
        Ok(seen) => seen,
        Err(problem) => return (Reviewed::Failed, vec![cut(&problem.message)]),
    };
    if seen.outcome.code.is_some() {
        let late = seen.outcome.kind == OutcomeKind::TimedOut;
        let why = seen.outcome.message.as_deref().map(cut).unwrap_or_default();
        return (if late { Reviewed::TimedOut } else { Reviewed::Failed }, vec![why]);
    }
    let verdict = match seen.data.get("verdict").and_then(Value::as_str) {
        Some("approve") => Reviewed::Approved,
        Some("deny") => Reviewed::Denied,
        _ => return (Reviewed::Failed, vec!["its `verdict` is neither `approve` nor `deny`".to_owned()]),
    };
    let reasons = seen.data.get("reasons").and_then(Value::as_array).into_iter().flatten();
    (verdict, reasons.filter_map(Value::as_str).take(MAX_REASONS).map(cut).collect())
}

/// A reviewer's words as one line: they can't pass for a line of ours.
fn cut(text: &str) -> String {
    let text = text.replace(char::is_control, " ");
    let mut end = text.len().min(MAX_REASON);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end < text.len() { format!("{} […]", &text[..end]) } else { text }
}

/// A reviewer's yes: to this one thing, once.
fn yes(approval: &Approval, class: &Name, at_ms: u64) -> Result<Answer, Problem> {
    let offered =
        |offer: &&glovebox_events::Offer| offer.answer == Answered::Approve && offer.scope == GrantScope::Once;
    let offer = approval.offers.iter().find(offered);
    let offer = offer.ok_or_else(|| Problem::new(Code::BackendError, "nothing is offered for once"))?;
    Ok(Answer {
        approval: approval.id.clone(),
        offer: offer.id.clone(),
        answer: Answered::Approve,
        scope: GrantScope::Once,
        control: Control::Continue,
        seen: Digest::clone(&approval.digest),
        words: None,
        edit: None,
        by: Approver {
            name: class.clone(),
            assurance: env_contracts::Assurance::SameUser,
            channel: super::halting::word(REVIEWER),
        },
        signature: None,
        at_ms,
    })
}

/// The end of an action that a reviewer did not let past, and that nobody else
/// may.
fn refused(review: &Review) -> Refusal {
    let (which, what) = match review.verdict {
        Reviewed::TimedOut => ("reviewer-timed-out", "did not answer in time, and so denies it"),
        Reviewed::Denied => ("reviewer-denied", "denies it"),
        Reviewed::Failed | Reviewed::Approved => ("reviewer-failed", "failed, and so denies it"),
    };
    let why = if review.reasons.is_empty() { String::new() } else { format!(": {}", review.reasons.join("; ")) };
    let message = format!("the reviewer `{}` {what}{why}", review.class);
    Refusal::new(OutcomeKind::Declined, Problem::new(Code::Declined, message)).which(which)
}
