//! Waiting: for a person's answer, for a run that others carry.

use std::time::Duration;

use env_contracts::{Code, Id, OutcomeKind, Problem};
use glovebox_events::{Action, ActionState, ApprovalState, Reach, What};
use glovebox_runtime::Stop;

use super::flight::{Flight, Halt, Step};
use super::running::interrupted;
use super::{ActionService, Asking, halting};
use crate::observe::Refusal;
use crate::watch::Watch;

/// The longest that is waited without looking at the clock: a clock that is
/// set forward must not let a deadline pass unnoticed for long.
const LOOK: Duration = Duration::from_secs(30);

impl ActionService {
    /// Waits for the answer, where the door waits.
    pub(super) async fn wait(&self, flight: &mut Flight, watch: &dyn Watch, stop: &Stop) -> Result<Step, Halt> {
        let parts = &self.parts;
        if flight.proposing {
            return Ok(Step::Left);
        }
        let mut changes = parts.store.changes()?;
        loop {
            flight.reload(parts)?;
            let Some(approval) = flight.action().pending().cloned() else {
                if let Some(told) = flight.told.take() {
                    watch.retired(&told);
                }
                return Ok(Step::Again);
            };
            let now = self.now_ms();
            if approval.expires_ms.is_some_and(|expires| now >= expires) {
                return self.expire(flight, &approval.id, "nobody answered in time").await;
            }
            self.not_stopped(flight)?;
            if let Some(step) = self.review(flight, &approval, stop).await? {
                return Ok(step);
            }
            if flight.asking != Asking::Wait {
                return Ok(Step::Left);
            }
            if flight.told.as_ref() != Some(&approval.id) {
                // Somebody may have put another plan in its place before we looked.
                if let Some(told) = flight.told.replace(approval.id.clone()) {
                    watch.retired(&told);
                }
                watch.asked(&self.card(flight.action().clone())?);
            }
            let left = approval.expires_ms.map_or(LOOK, |expires| Duration::from_millis(expires.saturating_sub(now)));
            tokio::select! {
                biased;
                () = stop.requested() => return Err(interrupted("approval").into()),
                changed = changes.changed() => {
                    if changed.is_err() {
                        changes = parts.store.changes()?;
                    }
                }
                () = tokio::time::sleep(left.min(LOOK)) => {}
            }
        }
    }

    /// Ends an action whose approval nobody gave, or used, in time.
    pub(super) async fn expire(&self, flight: &mut Flight, approval: &Id, why: &str) -> Result<Step, Halt> {
        flight.journal.event(self.now_ms(), What::ApprovalExpired { approval: approval.clone() })?;
        let outcome = expired(why).0;
        self.end(flight, outcome).await.map(|observation| Step::Done(Box::new(observation)))
    }

    /// Refuses to go on with what a person edited so long ago that the question
    /// it answered would have ended by now.
    pub(super) fn not_too_late(&self, flight: &Flight) -> Result<(), Halt> {
        if edited_until(flight.action()).is_some_and(|expires| self.now_ms() >= expires) {
            return Err(expired("nobody came back for what was edited").into());
        }
        Ok(())
    }

    /// Waits for the end of a run that another process, or another caller of
    /// this one, carries.
    pub(super) async fn join(&self, flight: &mut Flight, stop: &Stop) -> Result<Step, Halt> {
        let parts = &self.parts;
        let mut changes = parts.store.changes()?;
        loop {
            flight.reload(parts)?;
            let action = flight.action();
            if action.state != ActionState::Running {
                return Ok(Step::Again);
            }
            let alive = action.holder.as_ref().map_or(Ok(false), |holder| parts.holders.alive(holder))?;
            if !alive {
                self.lost_holder(action.clone()).await?;
                continue;
            }
            if flight.asking != Asking::Wait {
                return Ok(Step::Left);
            }
            tokio::select! {
                biased;
                // Whoever only waits for it stops waiting, not the run.
                () = stop.requested() => return Ok(Step::Left),
                changed = changes.changed() => {
                    if changed.is_err() {
                        changes = parts.store.changes()?;
                    }
                }
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Refuses to go on with what somebody wants stopped.
    pub(super) fn not_stopped(&self, flight: &Flight) -> Result<(), Halt> {
        if let Some(halt) = self.parts.store.halted()? {
            return Err(Refusal::from(halting::halted(&halt)).into());
        }
        match &flight.action().stop {
            Some(stop) => Err(halting::stopped(stop, "approval").into()),
            None => Ok(()),
        }
    }

    /// Writes down that an action runs, now that it takes a while, and listens
    /// for whoever wants it stopped.
    pub(super) async fn seen(&self, flight: &mut Flight) -> Option<tokio::sync::watch::Receiver<u64>> {
        let changes = self.parts.store.changes().ok();
        // If it fails now, the end will say so.
        let _ = flight.journal.commit(&*self.parts.store).await;
        changes
    }

    /// Whether somebody wants a run stopped, and how long it may still go on.
    pub(super) fn to_stop(&self, flight: &Flight) -> Option<Duration> {
        let store = &self.parts.store;
        if store.halted().is_ok_and(|halt| halt.is_some()) {
            return Some(Duration::ZERO);
        }
        let known = store.action(&flight.principal.tenant, flight.journal.id());
        let until = match known.ok().flatten().and_then(|action| action.stop) {
            Some(stop) => stop.grace_ms.unwrap_or_default(),
            None => self.interrupted_since(flight)?,
        };
        Some(Duration::from_millis(until.saturating_sub(self.now_ms())))
    }

    /// Until when a run may go on whose task was interrupted before it was
    /// written down that it runs: nobody could tell it.
    fn interrupted_since(&self, flight: &Flight) -> Option<u64> {
        let action = flight.action();
        let task = self.parts.store.task(&flight.principal.tenant, &action.task).ok()?.record?;
        let interrupt = task.interrupt.as_ref()?;
        let turn = task.turn.as_ref().map(|turn| turn.number);
        let meant = interrupt.reach != Reach::Turn || action.turn.is_none() || action.turn == turn;
        (meant && Some(&interrupt.id) != flight.standing.interrupt.as_ref()).then_some(interrupt.grace_ms)
    }
}

/// Until when an action that was edited waits to be gone on with: as long as the
/// question would have waited.
pub(super) fn edited_until(action: &Action) -> Option<u64> {
    let approval = action.approval.as_ref().filter(|_| action.state == ActionState::Requested)?;
    approval.expires_ms.filter(|_| approval.state == ApprovalState::Edited)
}

/// The end of an action that waited too long.
pub(super) fn expired(why: &str) -> Refusal {
    let problem = Problem::new(Code::Expired, format!("the approval expired: {why}"));
    Refusal::new(OutcomeKind::Expired, problem)
}
