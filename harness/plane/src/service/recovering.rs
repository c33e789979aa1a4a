//! After a crash: what ran in a process that is gone, and what waited too
//! long.

use std::time::Duration;

use env_contracts::{Code, DerivedEffects, Id, OutcomeKind, Plan, Problem, SideEffects};
use glovebox_events::{Action, ActionState, What};
use glovebox_store::{DueOf, Sqlite};

use super::ActionService;
use super::Asking;
use super::flight::{Flight, Halt};
use super::running::micros;
use super::verify::after_unknown;
use super::{looking, standing, waiting};
use crate::machine::{Change, Then, after};
use crate::observe::Refusal;

/// Which processes live: one that is gone ran its actions for the last time.
pub trait Holders: Send + Sync {
    /// This process.
    fn me(&self) -> &Id;

    /// Whether a process lives.
    ///
    /// # Errors
    /// Those of where it is kept.
    fn alive(&self, holder: &Id) -> Result<bool, Problem>;
}

impl Holders for Sqlite {
    fn me(&self) -> &Id {
        self.holder()
    }

    fn alive(&self, holder: &Id) -> Result<bool, Problem> {
        self.holder_alive(holder)
    }
}

/// How much is looked at in one go; what is left is found by the next look.
const BATCH: u32 = 1000;

/// What was found and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, schemars::JsonSchema)]
pub struct Recovered {
    /// Actions whose process is gone.
    pub lost: u64,
    /// Actions whose approval expired, and questions that nobody answered.
    pub expired: u64,
}

impl ActionService {
    /// Ends what ran in processes that are gone, and what waited too long.
    /// Nothing is run again: what may have changed something is `unknown`
    /// until somebody looks. Cheap where there is nothing to do.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn recover(&self) -> Result<Recovered, Problem> {
        let store = &self.parts.store;
        let mut out = Recovered::default();
        for action in store.running(BATCH)? {
            let alive = action.holder.as_ref().map_or(Ok(false), |holder| self.parts.holders.alive(holder))?;
            if !alive && Box::pin(self.lost_holder(action)).await? {
                out.lost += 1;
            }
        }
        for session in store.stopping_sessions(BATCH)? {
            Box::pin(self.go_on_stopping_session(&session)).await?;
        }
        for task in store.stopping(BATCH)? {
            Box::pin(self.go_on_stopping(&task)).await?;
        }
        for due in store.expiring(self.now_ms(), BATCH)? {
            let (action, approval) = match due.what {
                DueOf::Approval { action, approval } => (action, approval),
                DueOf::Question(id) => {
                    if let Some(question) = store.question(&due.tenant, &id)? {
                        self.expire_question(question).await?;
                        out.expired += 1;
                    }
                    continue;
                }
            };
            let Some(action) = store.action(&due.tenant, &action)? else { continue };
            let Ok(mut flight) = Flight::of(&self.parts, action, Asking::Leave) else { continue };
            let approved = flight.state() == ActionState::Authorized;
            let why = if approved { "nobody came back for it" } else { "nobody answered in time" };
            match Box::pin(self.expire(&mut flight, &approval, why)).await {
                Ok(_) => out.expired += 1,
                Err(Halt::Changed | Halt::Refused(_)) => {}
                Err(Halt::Failed(problem)) => return Err(problem),
            }
        }
        for action in store.requested(BATCH)? {
            if waiting::edited_until(&action).is_none_or(|expires| self.now_ms() < expires) {
                continue;
            }
            let Ok(mut flight) = Flight::of(&self.parts, action, Asking::Leave) else { continue };
            match self.end(&mut flight, waiting::expired("nobody came back for what was edited").0).await {
                Ok(_) => out.expired += 1,
                Err(Halt::Changed | Halt::Refused(_)) => {}
                Err(Halt::Failed(problem)) => return Err(problem),
            }
        }
        Ok(out)
    }

    /// Ends an action whose process, or whoever carried it in this one, is gone. Returns whether it was we who
    /// did.
    pub(super) async fn lost_holder(&self, action: Action) -> Result<bool, Problem> {
        let Some(holder) = action.holder.clone() else { return Ok(false) };
        let effects = action.effects.unwrap_or(DerivedEffects::External);
        // Nobody knows how long it ran: not longer than until now, nor than it
        // may. Whoever kills its runs does not run for nothing.
        let until_now = Duration::from_millis(self.now_ms().saturating_sub(action.changed_ms));
        let plan = action.plan.as_ref().map(|plan| looking::payload::<Plan>(&self.parts, &action, plan));
        let wall = plan.and_then(Result::ok).and_then(|plan| plan.contract.limits.wall).map(|wall| wall.0);
        let ran = wall.map_or(until_now, |wall| wall.min(until_now));
        let mut flight = Flight::of(&self.parts, action, Asking::Leave)?;
        flight.story.0.times.run_us = micros(ran);
        let tool = flight.tool().ok().cloned();
        let verify = tool.as_ref().and_then(|tool| tool.manifest.verify.clone());
        flight.story.0.effects.derived = effects;
        let refusal = if after(standing::run(Some(effects)), Change::Restart) == Then::Unknown {
            flight.story.0.effects.side_effects = SideEffects::Possible;
            flight.story.0.next = tool.map(|tool| after_unknown(&tool.manifest)).unwrap_or_default();
            let message = "whoever ran it is gone, and whether it took effect is not known";
            let problem = Problem::new(Code::Unknown, message);
            let problem = match verify {
                Some(verify) => problem.with_help(format!("run `{verify}` to find out, before it is done again")),
                None => problem.with_help("look whether it took effect, before it is done again"),
            };
            Refusal::new(OutcomeKind::Unknown, problem).which("worker-lost")
        } else {
            let message = "whoever ran it is gone; it can't have changed anything outside";
            Refusal::new(OutcomeKind::Interrupted, Problem::new(Code::Interrupted, message)).which("worker-lost")
        };
        flight.journal.event(self.now_ms(), What::HolderLost { holder })?;
        match self.end(&mut flight, refusal.0).await {
            Ok(_) => Ok(true),
            Err(Halt::Changed | Halt::Refused(_)) => Ok(false),
            Err(Halt::Failed(problem)) => Err(problem),
        }
    }
}
