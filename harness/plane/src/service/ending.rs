//! How an action ends: Observation, event and state, in one transaction.

use env_contracts::{Code, Observation, Outcome, OutcomeKind, Problem, SideEffects};
use glovebox_events::{ActionState, ApprovalState, End, PayloadRole, What};
use glovebox_store::{Conflict, Thing};

use super::flight::{Flight, Halt};
use super::journal::Lost;
use super::{ActionService, halting};
use crate::observe::{Refusal, Story};

impl ActionService {
    /// Ends an action that did not run.
    pub(super) async fn end(&self, flight: &mut Flight, outcome: Outcome) -> Result<Observation, Halt> {
        let open = flight
            .action()
            .approval
            .as_ref()
            .filter(|approval| matches!(approval.state, ApprovalState::Pending | ApprovalState::Approved));
        if let Some((id, opened_ms)) = open.map(|approval| (approval.id.clone(), approval.opened_ms)) {
            flight.story.0.times.waiting_us = self.now_ms().saturating_sub(opened_ms).saturating_mul(1000);
            let why = halting::word("no-longer-needed");
            flight.journal.event(self.now_ms(), What::ApprovalWithdrawn { approval: id, why })?;
        }
        let observation = Story(flight.story.0.clone()).finish(outcome);
        self.put_end(flight, &observation)?;
        match flight.journal.commit(&*self.parts.store).await {
            Ok(_) => Ok(observation),
            Err(Lost::Changed | Lost::Refused(Conflict::Version { of: Thing::Task(_), .. })) => Err(Halt::Changed),
            Err(Lost::Refused(Conflict::Task(moved))) => {
                flight.journal.back();
                Err(super::standing::moved(&moved).into())
            }
            Err(Lost::Refused(Conflict::Halted(halt))) => {
                flight.journal.back();
                Err(Refusal::from(halting::halted(&halt)).into())
            }
            Err(lost) => Err(Halt::Failed(self.lost(lost))),
        }
    }

    /// Ends an action that ran. Its Observation is the caller's also where it
    /// can't be written down: it happened.
    pub(super) async fn ended(&self, flight: &mut Flight, done: Result<Outcome, Refusal>) -> Result<Observation, Halt> {
        let outcome = done.unwrap_or_else(|refusal| refusal.0);
        self.granted_since(flight)?;
        let mut observation = self.told(flight, &outcome)?;
        loop {
            match flight.journal.commit(&*self.parts.store).await {
                Ok(_) => return Ok(observation),
                Err(Lost::Refused(Conflict::Version { of: Thing::Task(_), .. })) => {
                    // Somebody said something meanwhile: it is told as well.
                    flight.journal.back();
                    observation = self.told(flight, &outcome)?;
                }
                Err(Lost::Changed) => {
                    // Somebody asked it to stop meanwhile, or took it for lost.
                    flight.journal.back();
                    let known = self.parts.store.action(&flight.principal.tenant, flight.journal.id());
                    match known {
                        Ok(Some(action)) if action.state == ActionState::Running => {
                            flight.journal.rebase(action)?;
                            observation = self.told(flight, &outcome)?;
                        }
                        Ok(_) => return Ok(unwritten(observation, "somebody else wrote down its end before")),
                        Err(problem) => return Ok(unwritten(observation, &problem.message)),
                    }
                }
                Err(lost) => return Ok(unwritten(observation, &self.lost(lost).message)),
            }
        }
    }

    /// Writes the end down, with what people said to a task whose loop has no
    /// turns.
    fn told(&self, flight: &mut Flight, outcome: &Outcome) -> Result<Observation, Halt> {
        flight.journal.mark();
        let mut story = Story(flight.story.0.clone());
        self.said_since(flight, &mut story)?;
        let observation = story.finish(outcome.clone());
        self.put_end(flight, &observation)?;
        Ok(observation)
    }

    fn put_end(&self, flight: &mut Flight, observation: &Observation) -> Result<(), Halt> {
        let now = self.now_ms();
        let payload = flight.journal.payload(PayloadRole::Observation, observation);
        flight.journal.event(now, What::Ended { end: end(observation, payload, now) })?;
        Ok(())
    }
}

/// The end of an Observation, without its words.
pub(super) fn end(observation: &Observation, payload: env_contracts::Digest, now: u64) -> End {
    End {
        side_effects: observation.effects.side_effects,
        run_us: observation.times.run_us,
        artifact_bytes: observation.artifacts.iter().map(|artifact| artifact.size).sum(),
        output_bytes: observation.usage.bytes_output,
        cost_micros: observation.usage.cost.as_ref().map_or(0, |cost| cost.micros),
        waiting_us: observation.times.waiting_us,
        ..End::of(&observation.outcome, payload, now)
    }
}

/// An Observation whose end is not in the log. It must not look like success:
/// whoever looks later finds that nobody knows.
fn unwritten(mut observation: Observation, why: &str) -> Observation {
    let was = &observation.outcome;
    let said = was.message.as_ref().map_or_else(String::new, |message| format!(" ({message})"));
    let message = format!("it ended as `{was}`{said}, and that could not be written down: {why}");
    let kind = match observation.effects.side_effects {
        SideEffects::None => OutcomeKind::BackendError,
        _ => OutcomeKind::Unknown,
    };
    let outcome = Refusal::new(kind, Problem::new(Code::NotRecorded, message)).which("not-recorded").0;
    observation.text.clear();
    Story(observation).finish(outcome)
}
