//! What happens to sessions, tasks and questions on its way to the store:
//! events, records and conditions of one log, in one transaction.

use env_contracts::{Code, Digest, Id, Problem};
use glovebox_events::{
    Event, Grant, LogKey, Owner, Payload, PayloadRole, Question, QuestionEvent, Revoked, Session, SessionEvent, Task,
    TaskEvent, What,
};
use glovebox_store::{Commit, Condition, Conflict, Record, Store, StoreError, Thing};
use serde::Serialize;

use super::journal::Lost;
use crate::machine::{Illegal, question_step, session_step, task_step};

/// What happens to a session and what is in it, before it is written down.
pub(super) struct Deed {
    at_ms: u64,
    commit: Commit,
}

impl Deed {
    /// Nothing yet, in this log.
    pub(super) fn new(log: LogKey, at_ms: u64) -> Self {
        Self { at_ms, commit: Commit::new(log) }
    }

    pub(super) fn at_ms(&self) -> u64 {
        self.at_ms
    }

    /// An event of the session.
    pub(super) fn session(&mut self, before: Option<Session>, event: SessionEvent) -> Result<Session, Problem> {
        let of = Thing::Session(self.commit.log.session.clone());
        self.version(of, before.as_ref().map_or(0, |session| session.version));
        let session = session_step(before, &self.commit.log, self.at_ms, &event).map_err(wrong)?;
        self.push(What::Session { event });
        self.commit.records.retain(|record| !matches!(record, Record::Session(_)));
        self.commit.records.push(Record::Session(Box::new(session.clone())));
        Ok(session)
    }

    /// An event of a task.
    pub(super) fn task(&mut self, before: Option<Task>, id: &Id, event: TaskEvent) -> Result<Task, Problem> {
        self.version(Thing::Task(id.clone()), before.as_ref().map_or(0, |task| task.version));
        let task = task_step(before, &self.commit.log, id, self.at_ms, &event).map_err(wrong)?;
        self.push(What::Task { task: id.clone(), event });
        self.commit.records.retain(|record| !matches!(record, Record::Task(known) if known.id == *id));
        self.commit.records.push(Record::Task(Box::new(task.clone())));
        Ok(task)
    }

    /// An event of a question.
    pub(super) fn question(
        &mut self,
        before: Option<Question>,
        (id, task): (&Id, &Id),
        event: QuestionEvent,
    ) -> Result<Question, Problem> {
        self.version(Thing::Question(id.clone()), before.as_ref().map_or(0, |question| question.version));
        let question = question_step(before, &self.commit.log, id, self.at_ms, &event).map_err(wrong)?;
        self.push(What::Question { question: id.clone(), task: task.clone(), event });
        self.commit.records.retain(|record| !matches!(record, Record::Question(known) if known.id == *id));
        self.commit.records.push(Record::Question(Box::new(question.clone())));
        Ok(question)
    }

    /// A grant that ends here.
    pub(super) fn revoke(&mut self, mut grant: Grant, by: &env_contracts::Name) {
        grant.revoked = Some(Revoked { at_ms: self.at_ms, by: by.clone() });
        self.push(What::GrantRevoked { grant: grant.id.clone(), by: by.clone() });
        self.commit.records.push(Record::Grant(Box::new(grant)));
    }

    /// Words that belong to a task.
    pub(super) fn text(&mut self, task: &Id, role: PayloadRole, text: &str) -> Digest {
        self.keep(Payload::new(Owner::Task(task.clone()), role, text.as_bytes().to_vec()))
    }

    /// A document that belongs to a task.
    pub(super) fn json(&mut self, task: &Id, role: PayloadRole, value: &impl Serialize) -> Digest {
        self.keep(Payload::json(Owner::Task(task.clone()), role, value))
    }

    fn keep(&mut self, payload: Payload) -> Digest {
        let sha256 = payload.sha256.clone();
        if !self.commit.payloads.contains(&payload) {
            self.commit.payloads.push(payload);
        }
        sha256
    }

    /// What else has to hold.
    pub(super) fn condition(&mut self, condition: Condition) {
        self.commit.conditions.push(condition);
    }

    /// Writes it down.
    pub(super) async fn commit(self, store: &dyn Store) -> Result<(), Lost> {
        match store.commit(self.commit).await {
            Ok(_) => Ok(()),
            Err(StoreError::Conflict(Conflict::Version { .. })) => Err(Lost::Changed),
            Err(StoreError::Conflict(conflict)) => Err(Lost::Refused(conflict)),
            Err(StoreError::Problem(problem)) => Err(Lost::Failed(problem)),
        }
    }

    fn push(&mut self, what: What) {
        self.commit.events.push(Event { at_ms: self.at_ms, action: None, what });
    }

    /// The version that the store has to have: the one of the first event.
    fn version(&mut self, of: Thing, version: u64) {
        let known = |condition: &Condition| matches!(condition, Condition::Version { of: known, .. } if *known == of);
        if !self.commit.conditions.iter().any(known) {
            self.commit.conditions.push(Condition::Version { of, version });
        }
    }
}

/// An event that must not follow: a mistake of ours, which the machine stops.
fn wrong(illegal: Illegal) -> Problem {
    Problem::new(Code::BackendError, format!("the action plane took a wrong step: {illegal}"))
}
