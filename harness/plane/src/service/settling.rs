//! What follows an answer: the end of what was declined or given, and the next
//! question about what was edited.

use std::sync::Arc;

use env_contracts::{Code, Outcome, OutcomeKind, Problem};
use glovebox_events::{Action, ActionState, Answer, Asks, Control, Grant};
use glovebox_runtime::Stop;
use glovebox_store::{ActionFilter, Conflict, Thing};

use super::flight::{Flight, Halt};
use super::halting::word;
use super::journal::Lost;
use super::people::Signed;
use super::{ActionService, Asking, Submitted, looking, submitting};
use crate::observe::Refusal;
use crate::watch::Unwatched;

impl ActionService {
    /// Writes down what there is so far.
    pub(super) async fn write(&self, flight: &mut Flight) -> Result<(), Halt> {
        match flight.journal.commit(&*self.parts.store).await {
            Ok(_) => Ok(()),
            Err(Lost::Changed | Lost::Refused(Conflict::Version { of: Thing::Task(_), .. })) => Err(Halt::Changed),
            Err(lost) => Err(Halt::Failed(self.lost(lost))),
        }
    }

    /// Ends a declined action, with the person's words in its Observation.
    pub(super) async fn declined(&self, flight: &mut Flight, answer: &Answer, words: Option<&str>) -> Result<(), Halt> {
        waited(flight, answer);
        let said = words.map_or_else(String::new, |words| format!(": {words}"));
        let mut message = format!("`{}` declined{said}", answer.by.name);
        if answer.control == Control::StopTask {
            message.push_str(" (and stopped the task)");
        }
        if matches!(flight.action().asks, Asks::Plan | Asks::Result) {
            flight.story.0.data = submitting::verdict(false, &answer.by.name, words);
        }
        let outcome = Refusal::new(OutcomeKind::Declined, Problem::new(Code::Declined, message)).0;
        self.end(flight, outcome).await.map(drop)
    }

    /// Ends what was asked for and is given with the answer: a permission with
    /// what was granted, a plan or a result with who accepted it.
    pub(super) async fn given(
        &self,
        flight: &mut Flight,
        answer: &Answer,
        grant: Option<&Grant>,
        words: Option<&str>,
    ) -> Result<(), Halt> {
        waited(flight, answer);
        if flight.action().asks != Asks::Permission {
            return self.accepted(flight, &answer.by.name, words).await.map(drop);
        }
        flight.story.0.data = grant.map_or(
            serde_json::Value::Null,
            |grant| serde_json::json!({ "grant": grant.id, "matcher": grant.matcher, "expires_ms": grant.expires_ms }),
        );
        self.end(flight, Outcome::succeeded(None)).await.map(drop)
    }

    /// Cancels what else the task has under way.
    pub(super) async fn stop_task(&self, flight: &Flight, by: &Signed<'_>) -> Result<(), Halt> {
        let task = &flight.kept.context.task;
        let filter = ActionFilter {
            session: Some(flight.kept.context.session.clone()),
            task: Some(task.clone()),
            user: Some(flight.principal.user.clone()),
            states: looking::open_states(),
            ..ActionFilter::default()
        };
        for action in self.parts.store.actions(&by.principal.tenant, &filter)?.items {
            let stop = glovebox_events::StopAsked {
                by: by.name(),
                at_ms: self.now_ms(),
                why: word("task-stopped"),
                grace_ms: None,
            };
            match self.stop_one(action, stop).await {
                // It went on by itself meanwhile, or ended.
                Ok(()) | Err(Halt::Changed | Halt::Refused(_)) => {}
                Err(failed) => return Err(failed),
            }
        }
        Ok(())
    }

    /// Plans and decides what was edited, so that the next question is there
    /// at once. It never runs: that is for whoever asked.
    pub(super) async fn propose_edit(&self, action: Action) -> Result<(), Halt> {
        debug_assert_eq!(action.state, ActionState::Requested);
        let mut flight = Flight::of(&self.parts, action, Asking::Leave).map_err(Halt::Failed)?;
        flight.proposing = true;
        match Box::pin(self.go_on(flight, Arc::new(Unwatched), &Stop::default())).await.map_err(Halt::Failed)? {
            Submitted::Done(_) | Submitted::Waiting(_) => Ok(()),
        }
    }
}

/// How long the question waited for its answer: shown apart from what ran.
fn waited(flight: &mut Flight, answer: &Answer) {
    let opened = flight.action().approval.as_ref().map_or(answer.at_ms, |approval| approval.opened_ms);
    flight.story.0.times.waiting_us = answer.at_ms.saturating_sub(opened).saturating_mul(1000);
}
