//! The events of one action on their way to the store.
//!
//! What can change nothing outside is written down once, with its end; before
//! anything that can, everything up to then is durable.

use env_contracts::{Code, Digest, Id, Problem};
use glovebox_events::{Action, Asks, Event, LogKey, Owner, Payload, PayloadRole, What};
use glovebox_store::{Commit, Condition, Conflict, Record, Store, StoreError, Thing};
use serde::Serialize;

use crate::machine::{Illegal, step};

/// An action as it is now, and what of it the store does not know yet.
pub(crate) struct Journal {
    log: LogKey,
    id: Id,
    now: Option<Action>,
    /// The version that the store has; 0: it has none.
    recorded: u64,
    events: Vec<Event>,
    payloads: Vec<Payload>,
    records: Vec<Record>,
    conditions: Vec<Condition>,
    /// What to go back to where the next step is not taken.
    mark: Option<Mark>,
}

/// A place to go back to.
struct Mark {
    now: Option<Action>,
    events: usize,
    payloads: usize,
    records: usize,
}

/// Why something could not be written down.
#[derive(Debug)]
pub(crate) enum Lost {
    /// Somebody else changed the action meanwhile: what it is has to be looked
    /// at anew.
    Changed,
    /// A condition besides did not hold.
    Refused(Conflict),
    /// The store failed.
    Failed(Problem),
}

impl Journal {
    /// Of an action that nobody knows yet.
    pub(crate) fn new(log: LogKey, id: Id) -> Self {
        Self {
            log,
            id,
            now: None,
            recorded: 0,
            events: Vec::new(),
            payloads: Vec::new(),
            records: Vec::new(),
            conditions: Vec::new(),
            mark: None,
        }
    }

    /// Of an action that the store knows.
    pub(crate) fn of(action: Action) -> Self {
        let log = LogKey { tenant: action.principal.tenant.clone(), session: action.session.clone() };
        let recorded = action.version;
        Self { recorded, now: Some(action.clone()), ..Self::new(log, action.id) }
    }

    pub(crate) fn id(&self) -> &Id {
        &self.id
    }

    /// What it is now, with what the store does not know yet.
    pub(crate) fn action(&self) -> Option<&Action> {
        self.now.as_ref()
    }

    /// The version that the store has; 0: it has none.
    pub(crate) fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Whether the store knows of it.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorded > 0
    }

    /// Adds an event of this action.
    ///
    /// # Errors
    /// `backend-error` for an event that must not follow: a mistake of ours,
    /// which the machine stops.
    pub(crate) fn event(&mut self, at_ms: u64, what: What) -> Result<(), Problem> {
        let event = Event { at_ms, action: Some(self.id.clone()), what };
        // A copy, so that an event that must not follow changes nothing.
        let stepped = step(self.now.clone(), &self.log, &event);
        let action = stepped.map_err(|illegal: Illegal| {
            Problem::new(Code::BackendError, format!("the action plane took a wrong step: {illegal}"))
        })?;
        self.now = Some(action);
        self.events.push(event);
        Ok(())
    }

    /// Adds an event that is no action's, with the record that it changes.
    pub(crate) fn beside(&mut self, at_ms: u64, what: What, record: Option<Record>) {
        self.events.push(Event { at_ms, action: None, what });
        self.records.extend(record);
    }

    /// Adds a payload, and says how events name it.
    pub(crate) fn payload(&mut self, role: PayloadRole, value: &impl Serialize) -> Digest {
        let payload = Payload::json(Owner::Action(self.id.clone()), role, value);
        self.keep(payload)
    }

    /// Adds a text.
    pub(crate) fn text(&mut self, role: PayloadRole, text: &str) -> Digest {
        let payload = Payload::new(Owner::Action(self.id.clone()), role, text.as_bytes().to_vec());
        self.keep(payload)
    }

    fn keep(&mut self, payload: Payload) -> Digest {
        let sha256 = payload.sha256.clone();
        if !self.payloads.contains(&payload) {
            self.payloads.push(payload);
        }
        sha256
    }

    /// What else has to hold when this is written down.
    pub(crate) fn condition(&mut self, condition: Condition) {
        self.conditions.push(condition);
    }

    /// Remembers this place.
    pub(crate) fn mark(&mut self) {
        self.mark = Some(Mark {
            now: self.now.clone(),
            events: self.events.len(),
            payloads: self.payloads.len(),
            records: self.records.len(),
        });
    }

    /// Goes back to the place that was marked: what came after it was not
    /// taken by the store, and did not happen.
    pub(crate) fn back(&mut self) {
        if let Some(mark) = self.mark.take() {
            self.now = mark.now;
            self.events.truncate(mark.events);
            self.payloads.truncate(mark.payloads);
            self.records.truncate(mark.records);
            self.conditions.clear();
        }
    }

    /// Writes everything down in one transaction.
    pub(crate) async fn commit(&mut self, store: &dyn Store) -> Result<(), Lost> {
        if self.events.is_empty() {
            return Ok(());
        }
        let mut conditions = self.conditions.clone();
        let mut records = self.records.clone();
        if let Some(action) = &self.now {
            conditions.push(Condition::Version { of: Thing::Action(action.id.clone()), version: self.recorded });
            records.push(Record::Action(Box::new(action.clone())));
        }
        let commit = Commit {
            log: self.log.clone(),
            events: self.events.clone(),
            payloads: self.payloads.clone(),
            records,
            conditions,
        };
        match store.commit(commit).await {
            Ok(_) => {
                self.recorded = self.now.as_ref().map_or(0, |action| action.version);
                self.events.clear();
                self.payloads.clear();
                self.records.clear();
                self.conditions.clear();
                self.mark = None;
                Ok(())
            }
            Err(StoreError::Conflict(Conflict::Version { of: Thing::Action(id), .. })) if id == self.id => {
                Err(Lost::Changed)
            }
            Err(StoreError::Conflict(conflict)) => Err(Lost::Refused(conflict)),
            Err(StoreError::Problem(problem)) => Err(Lost::Failed(problem)),
        }
    }

    /// The events, payloads and records that the store does not know, on top
    /// of what somebody else made of the action.
    ///
    /// # Errors
    /// `backend-error` if they can't follow any more.
    pub(crate) fn rebase(&mut self, onto: Action) -> Result<(), Problem> {
        let events = std::mem::take(&mut self.events);
        self.recorded = onto.version;
        self.mark = None;
        self.now = Some(onto);
        for event in events {
            if event.action.is_some() { self.event(event.at_ms, event.what)? } else { self.events.push(event) }
        }
        Ok(())
    }
}

/// Asks for a run.
pub(crate) struct Requested {
    pub(crate) task: Id,
    pub(crate) principal: env_contracts::Principal,
    pub(crate) capability: env_contracts::CapabilityRef,
    pub(crate) asks: Asks,
    pub(crate) parents: Vec<Id>,
    pub(crate) key: Option<glovebox_events::KeyClaim>,
    pub(crate) turn: Option<u64>,
    pub(crate) goal: Option<u32>,
    pub(crate) held: bool,
}

impl Requested {
    /// The event, with the submission as its payload.
    pub(crate) fn event(self, submission: Digest) -> What {
        let Self { task, principal, capability, asks, parents, key, turn, goal, held } = self;
        What::Requested { task, principal, capability, asks, submission, parents, key, turn, goal, held }
    }
}
