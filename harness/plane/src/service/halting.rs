//! Stopping: one action, or everything.

use env_contracts::{Code, Id, Name, OutcomeKind, Principal, Problem};
use glovebox_events::{ActionState, Event, Halt as Stand, LogKey, Revoked, StopAsked, What};
use glovebox_store::{ActionFilter, Commit, GrantFilter, Record, StoreError};

use super::flight::{Flight, Halt};
use super::{ActionService, Asking};
use crate::observe::Refusal;

/// What a stop of everything did.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Halted {
    /// So many runs were told to stop.
    pub running: u64,
    /// So many actions that waited were ended.
    pub waiting: u64,
    /// So many grants were taken back.
    pub grants: u64,
}

impl ActionService {
    /// Asks an action to stop: ends one that waits, tells one that runs.
    ///
    /// # Errors
    /// `action-unknown`; nothing happens to an action that has ended.
    pub async fn cancel(&self, principal: &Principal, id: &Id, why: &str) -> Result<super::ActionView, Problem> {
        let mut action = self.visible(principal, id)?;
        while !action.state.ended() {
            let stop = StopAsked { by: principal.user.clone(), at_ms: self.now_ms(), why: word(why), grace_ms: None };
            match self.stop_one(action, stop).await {
                Ok(()) => break,
                Err(Halt::Changed) => action = self.visible(principal, id)?,
                Err(Halt::Failed(problem)) => return Err(problem),
                Err(Halt::Refused(refusal)) => return Err(problem_of(refusal)),
            }
        }
        self.view(self.shown(principal, id)?)
    }

    /// Stops one action, unless it was stopped already. Whoever wants it sooner
    /// than somebody before is heard.
    pub(super) async fn stop_one(&self, action: glovebox_events::Action, stop: StopAsked) -> Result<(), Halt> {
        let running = action.state == ActionState::Running;
        let until = |stop: &StopAsked| stop.grace_ms.unwrap_or_default();
        let stopping = action.stop.as_ref().is_some_and(|known| until(known) <= until(&stop));
        let mut flight = Flight::of(&self.parts, action, Asking::Leave).map_err(Halt::Failed)?;
        if !stopping {
            flight.journal.event(stop.at_ms, What::StopAsked { stop: stop.clone() })?;
        }
        if running {
            return match flight.journal.commit(&*self.parts.store).await {
                Ok(_) => Ok(()),
                Err(super::journal::Lost::Changed) => Err(Halt::Changed),
                Err(lost) => Err(Halt::Failed(self.lost(lost))),
            };
        }
        let outcome = stopped(&stop, "approval").0;
        self.end(&mut flight, outcome).await.map(drop)
    }

    /// The kill switch: from here on nothing is let past, what runs is told to
    /// stop, what waits is ended, and every grant is taken back.
    ///
    /// # Errors
    /// `not-eligible` for an agent; those of the store: the stop itself stands
    /// before the rest is done.
    pub async fn stop_all(&self, by: &Principal, reason: Option<String>) -> Result<Halted, Problem> {
        person(by)?;
        let store = &self.parts.store;
        let tenant = &by.tenant;
        let now = self.now_ms();
        let halt = Stand { by: by.user.clone(), at_ms: now, reason };
        let what = What::Halted { halt: halt.clone() };
        self.operate(tenant, vec![what], vec![Record::Halt(Some(halt))]).await?;
        let mut out = Halted { running: 0, waiting: 0, grants: 0 };
        let mut failed = None;
        for grant in store.grants(tenant, &GrantFilter { live_at: Some(now), ..GrantFilter::default() })? {
            self.take_back(tenant, grant, &by.user).await?;
            out.grants += 1;
        }
        let states = [
            ActionState::Running,
            ActionState::WaitingApproval,
            ActionState::Authorized,
            ActionState::Requested,
            ActionState::Validated,
        ];
        for state in states {
            // What is looked at again and again must get less.
            let mut seen = std::collections::BTreeSet::new();
            loop {
                let filter = ActionFilter { states: vec![state], ..ActionFilter::default() };
                let page = store.actions(tenant, &filter)?;
                let new: Vec<_> = page.items.into_iter().filter(|action| seen.insert(action.id.clone())).collect();
                if new.is_empty() {
                    break;
                }
                for action in new {
                    let stop = StopAsked { by: by.user.clone(), at_ms: now, why: word("halted"), grace_ms: None };
                    match self.stop_one(action, stop).await {
                        Ok(()) if state == ActionState::Running => out.running += 1,
                        Ok(()) => out.waiting += 1,
                        // It went on by itself, to where the stop stands.
                        Err(Halt::Changed | Halt::Refused(_)) => {}
                        // The others are stopped all the same.
                        Err(Halt::Failed(problem)) => failed = failed.or(Some(problem)),
                    }
                }
            }
        }
        match failed {
            None => Ok(out),
            Some(problem) => Err(problem),
        }
    }

    /// Lets things go on after a stop.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn release(&self, by: &Principal) -> Result<(), Problem> {
        person(by)?;
        if self.parts.store.halted()?.is_none() {
            return Ok(());
        }
        self.operate(&by.tenant, vec![What::Released { by: by.user.clone() }], vec![Record::Halt(None)]).await
    }

    /// Writes into the operator's log.
    pub(super) async fn operate(&self, tenant: &Name, what: Vec<What>, records: Vec<Record>) -> Result<(), Problem> {
        let at_ms = self.now_ms();
        let log = LogKey { tenant: tenant.clone(), session: self.parts.settings.operator_log.clone() };
        let events = what.into_iter().map(|what| Event { at_ms, action: None, what }).collect();
        let commit = Commit { log, events, payloads: Vec::new(), records, conditions: Vec::new() };
        match self.parts.store.commit(commit).await {
            Ok(_) => Ok(()),
            Err(StoreError::Problem(problem)) => Err(problem),
            Err(StoreError::Conflict(conflict)) => {
                Err(Problem::new(Code::BackendError, format!("not expected here: {conflict:?}")))
            }
        }
    }

    /// Takes a grant back.
    pub(super) async fn take_back(
        &self,
        tenant: &Name,
        mut grant: glovebox_events::Grant,
        by: &Name,
    ) -> Result<glovebox_events::Grant, Problem> {
        if grant.revoked.is_none() {
            grant.revoked = Some(Revoked { at_ms: self.now_ms(), by: by.clone() });
            let what = What::GrantRevoked { grant: grant.id.clone(), by: by.clone() };
            self.operate(tenant, vec![what], vec![Record::Grant(Box::new(grant.clone()))]).await?;
        }
        Ok(grant)
    }
}

/// What is for people alone.
fn person(by: &Principal) -> Result<(), Problem> {
    if is_person(by) {
        return Ok(());
    }
    Err(Problem::new(Code::NotEligible, "an agent neither stops everything nor lets it go on")
        .with_help("a person does: without --agent and $GLOVEBOX_AGENT"))
}

/// Whether a person acts, and nobody on their behalf.
pub(super) fn is_person(by: &Principal) -> bool {
    by.agent.is_none() && by.chain.is_empty()
}

/// Why nothing is let past.
pub(super) fn halted(halt: &Stand) -> Problem {
    let why = halt.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    Problem::new(Code::Halted, format!("`{}` stopped everything{why}", halt.by))
}

/// The end of an action that somebody wanted stopped before it ran.
pub(super) fn stopped(stop: &StopAsked, phase: &str) -> Refusal {
    let message = format!("`{}` stopped the action before it ran ({})", stop.by, stop.why);
    let (code, message) = match stop.why.as_str() {
        "turn-closed" => (Code::TurnConflict, "the turn was over before the action ran".to_owned()),
        "goal-changed" => {
            (Code::GoalChanged, format!("`{}` gave the task another goal before the action ran", stop.by))
        }
        "session-closed" => (Code::SessionConflict, format!("`{}` closed the session before the action ran", stop.by)),
        "task-ended" => (Code::TaskClosed, format!("`{}` ended the task before the action ran", stop.by)),
        _ => return Refusal::new(OutcomeKind::Interrupted, Problem::new(Code::Interrupted, message)).which(phase),
    };
    // It is not the same request any more: trying again helps nobody.
    Refusal::new(OutcomeKind::Interrupted, Problem::new(code, message)).which(stop.why.as_str())
}

/// A refusal as a door's answer.
pub(super) fn problem_of(refusal: Refusal) -> Problem {
    let outcome = refusal.0;
    let code = outcome.code.unwrap_or(Code::BackendError);
    let problem = Problem::new(code, outcome.message.unwrap_or_default());
    match outcome.help {
        Some(help) => problem.with_help(help),
        None => problem,
    }
}

/// A word of ours, as events hold it.
pub(super) fn word(text: &str) -> Name {
    text.parse().unwrap_or_else(|error| unreachable!("a word of ours: {error}"))
}
