//! Using up the right to run, right before the run.

use std::sync::Arc;

use env_contracts::{Code, DerivedEffects, OutcomeKind, Problem, Rate, Verdict};
use glovebox_events::{Action, ActionState, Answer, ApprovalState, DecidedAt, LogKey, Right, What};
use glovebox_runtime::{Room as Admitted, Stop};
use glovebox_store::{Commit, Condition, Conflict, Moved, session_moved};

use super::binding::Ready;
use super::environments::Inside;
use super::flight::{Flight, Halt, Step};
use super::journal::Lost;
use super::running::{micros, unless_stopped};
use super::{ActionService, halting, reviewing, standing};
use crate::machine::{Change, Pending, Then, after};
use crate::observe::Refusal;
use crate::planning::Planned;
use crate::slots::Slot;
use crate::watch::Watch;

/// Room to run in: a slot of the capability, a share of the host, and the
/// environment to itself.
pub(super) struct Room {
    _slot: Slot,
    _room: Admitted,
    pub(super) environment: Option<Inside>,
}

impl ActionService {
    /// Waits for room.
    pub(super) async fn enter(&self, flight: &mut Flight, planned: &Planned, stop: &Stop) -> Result<Room, Halt> {
        let parts = &self.parts;
        let queued = std::time::Instant::now();
        let limits = &planned.plan.contract.limits;
        let slot = self.slots.enter(&planned.plan.capability, limits.concurrency)?;
        let room = parts.admission.enter(flight.principal.tenant.as_str(), limits.memory.unwrap_or_default());
        let room = unless_stopped(stop, "queue", room).await??;
        // Last: who waits for an environment keeps no other out of it.
        let environment = match planned.plan.contract.keeps() {
            false => None,
            true => Some(unless_stopped(stop, "queue", Box::pin(self.step_in(flight, planned))).await??),
        };
        flight.story.0.times.queued_us += micros(queued.elapsed());
        Ok(Room { _slot: slot, _room: room, environment })
    }

    /// Goes on with what a person approved: everything is bound again and
    /// compared, and policy is asked again.
    pub(super) async fn approved(
        &self,
        flight: &mut Flight,
        watch: &Arc<dyn Watch>,
        stop: &Stop,
    ) -> Result<Step, Halt> {
        if flight.proposing {
            return Ok(Step::Left);
        }
        self.not_stopped(flight)?;
        if flight.standing.outlived(flight.action()) && after(Pending::Approved, Change::Goal) == Then::AskRequester {
            // The goal is another by now: whoever asked has to want it still.
            return Ok(Step::Left);
        }
        let approval = flight.action().approval.clone();
        let approval = approval.filter(|approval| approval.state == ApprovalState::Approved);
        let (approval, answer) = match approval.and_then(|approval| Some((approval.clone(), approval.answer?))) {
            Some(found) => found,
            None => return Err(Problem::new(Code::BackendError, "an action was approved without an answer").into()),
        };
        let now = self.now_ms();
        if approval.expires_ms.is_some_and(|expires| now >= expires) {
            return self.expire(flight, &approval.id, "nobody came back for it").await;
        }
        self.genuine(flight.action(), &answer)?;
        if reviewing::denied(&approval) {
            let message = format!("`{}` approved what a reviewer denied", answer.by.name);
            flight.story.notice("review-overridden", message);
        }
        flight.story.0.times.waiting_us = answer.at_ms.saturating_sub(approval.opened_ms).saturating_mul(1000);
        self.refresh_policy(flight).await?;
        let planned = self.plan(flight)?;
        let room = self.enter(flight, &planned, stop).await?;
        let ready = unless_stopped(stop, "setup", self.bind(flight, planned, Some(&room), &**watch)).await??;
        if ready.bound.digest != approval.digest {
            let changed = self.differences(flight, &ready)?;
            flight.drift.clone_from(&changed);
            let what = What::Drifted { approval: approval.id.clone(), changed };
            flight.journal.event(now, what)?;
            // It is another plan: planned, decided and asked about as that.
            return Ok(Step::Again);
        }
        let bound = &ready.bound;
        flight.story.bound(&bound.intent, &bound.digest, bound.files.evidence.clone());
        flight.story.sealed(&bound.facts);
        flight.story.0.times.setup_us += ready.setup_us;
        let classes = self.classes_of(&answer, &flight.principal, &approval.classes);
        let given: Option<(&Answer, &[_])> = Some((&answer, &classes));
        let decision = self.decide(flight, &ready.planned, Some(&ready.bound.facts), DecidedAt::Claim, given)?;
        if decision.verdict == Verdict::Ask {
            // The policy of today wants somebody else.
            let why = halting::word("policy-changed");
            let what = What::ApprovalWithdrawn { approval: approval.id.clone(), why };
            flight.journal.event(now, what)?;
            flight.drift = vec!["the policy: it wants another approver now".to_owned()];
            drop(room);
            return self.settle(flight, ready, None, None, watch, stop).await;
        }
        let right = Right::Approval { approval: approval.id };
        Box::pin(self.claim(flight, ready, room, right, watch, stop)).await
    }

    /// Uses up the right, and runs.
    pub(super) async fn claim(
        &self,
        flight: &mut Flight,
        ready: Ready,
        room: Room,
        right: Right,
        watch: &Arc<dyn Watch>,
        stop: &Stop,
    ) -> Result<Step, Halt> {
        let store = &*self.parts.store;
        let now = self.now_ms();
        let digest = ready.bound.digest.clone();
        let rate = self.rate(flight)?;
        if ready.planned.plan.effects != DerivedEffects::None {
            self.no_question_waits(flight)?;
        }
        // What can change nothing outside, uses nothing up and is not counted
        // is written down with its end: if we die before, nothing happened.
        let first = flight.journal.is_recorded()
            || right != Right::Policy
            || rate.is_some()
            || ready.planned.plan.effects != DerivedEffects::None;
        let approved = matches!(right, Right::Approval { .. });
        if let Right::Grant { grant } = &right {
            flight.journal.condition(Condition::GrantLive { grant: grant.clone(), now_ms: now });
        }
        if let Some(rate) = rate {
            let per = u64::try_from(rate.per.0.as_millis()).unwrap_or(u64::MAX);
            let since_ms = now.saturating_sub(per);
            let capability = ready.planned.plan.capability.name.clone();
            flight.journal.condition(Condition::CallsBelow { capability, since_ms, most: rate.calls });
        }
        flight.journal.mark();
        let holder = self.parts.holders.me().clone();
        flight.journal.event(now, What::Claimed { right, digest, holder })?;
        let mut carried = Carried { service: self.clone(), action: Some(flight.action().clone()) };
        if first {
            flight.journal.condition(Condition::NotHalted);
            // What a person approved outlives its turn.
            for standing in flight.standing.conditions(flight.action(), !approved) {
                flight.journal.condition(standing);
            }
            if let Err(lost) = flight.journal.commit(store).await {
                carried.action = None;
                return Err(match lost {
                    Lost::Refused(Conflict::Task(Moved::Goal)) if approved => Halt::Changed,
                    lost => self.unclaimed(flight, lost),
                });
            }
        } else if let Some(refusal) = self.elsewhere(flight)? {
            carried.action = None;
            flight.journal.back();
            return Err(refusal.into());
        }
        if flight.state() != ActionState::Running {
            // Only the machine lets anything run.
            return Err(Halt::Failed(Problem::new(Code::BackendError, "a claim did not lead to a run")));
        }
        let arguments = ready.planned.arguments.value().clone();
        let mut done = self.run(flight, ready, room, watch, stop).await;
        if let Ok(outcome) = &mut done {
            self.verify(flight, &arguments, outcome, stop).await;
        }
        let ended = self.ended(flight, done).await;
        carried.action = None;
        ended.map(|observation| Step::Done(Box::new(observation)))
    }

    /// Why what is written down once, with its end, must not begin: it has the
    /// same conditions as a claim, looked at right before.
    fn elsewhere(&self, flight: &Flight) -> Result<Option<Refusal>, Problem> {
        let store = &self.parts.store;
        if let Some(halt) = store.halted()? {
            return Ok(Some(Refusal::from(halting::halted(&halt))));
        }
        let action = flight.action();
        let session = store.session(&flight.principal.tenant, &action.session)?;
        let seen = store.task(&flight.principal.tenant, &action.task)?;
        let moved = seen.moved(action.goal, action.turn, flight.standing.interrupt.as_ref());
        let moved = session_moved(session.as_ref(), flight.standing.session.as_ref()).or(moved);
        Ok(moved.as_ref().map(standing::moved))
    }

    /// How often the capability may be called: the tightest of what its
    /// manifest and the profile of who asks say.
    fn rate(&self, flight: &Flight) -> Result<Option<Rate>, Problem> {
        let own = flight.tool()?.manifest.rate;
        let profile = self.parts.operator.current()?.profiles.of(&flight.principal).rate;
        Ok(match (own, profile) {
            // Fewer in the same time is tighter, whatever the time is.
            (Some(a), Some(b)) => Some(if slower(&a, &b) { a } else { b }),
            (a, b) => a.or(b),
        })
    }

    /// A claim that did not go through leaves the action as it was recorded.
    fn unclaimed(&self, flight: &mut Flight, lost: Lost) -> Halt {
        let refused = match lost {
            Lost::Changed => return Halt::Changed,
            Lost::Failed(problem) => return Halt::Failed(problem),
            Lost::Refused(conflict) => conflict,
        };
        flight.journal.back();
        match refused {
            Conflict::Halted(halt) => Refusal::from(halting::halted(&halt)).into(),
            Conflict::Task(moved) => standing::moved(&moved).into(),
            // It was taken back meanwhile: a person decides.
            Conflict::Grant => Halt::Changed,
            Conflict::Calls { capability } => {
                let message = format!("`{capability}` was called as often as it may be for now");
                let problem = Problem::new(Code::RateLimited, message);
                Refusal::new(OutcomeKind::Busy, problem).which("rate").into()
            }
            other => Problem::new(Code::BackendError, format!("not expected at a claim: {other:?}")).into(),
        }
    }
}

/// A run that somebody carries. If they stop in the middle, because their
/// caller is gone, it has an end all the same: nobody else takes it for lost
/// while this process lives.
struct Carried {
    service: ActionService,
    action: Option<Action>,
}

impl Drop for Carried {
    fn drop(&mut self) {
        let (Some(action), Ok(tokio)) = (self.action.take(), tokio::runtime::Handle::try_current()) else { return };
        let service = self.service.clone();
        tokio.spawn(async move {
            // A claim that was on its way to the store is there after this.
            let log = LogKey { tenant: action.principal.tenant.clone(), session: action.session.clone() };
            let _ = service.parts.store.commit(Commit::new(log)).await;
            let known = service.parts.store.action(&action.principal.tenant, &action.id);
            let running = |now: &Action| now.state == ActionState::Running && now.holder == action.holder;
            if let Some(now) = known.ok().flatten().filter(running) {
                // If it can't be written down now, the next process does it.
                let _ = service.lost_holder(now).await;
            }
        });
    }
}

/// Whether one rate lets less through than another in the long run.
fn slower(a: &Rate, b: &Rate) -> bool {
    u128::from(a.calls) * b.per.0.as_millis() < u128::from(b.calls) * a.per.0.as_millis()
}
