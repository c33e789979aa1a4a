//! One commit, inside a savepoint: the conditions, then everything else.

use std::borrow::Cow;

use env_contracts::{Digest, Id, Name};
use glovebox_events::{Action, Event, Grant, Halt, Owner, Payload, PayloadRole, QuestionEvent, What};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Serialize, de::DeserializeOwned};

use super::approvals;
use super::conditions;
use super::fault::Fault;
use crate::chain::{Link, raw};
use crate::{Commit, Conflict, Record, TaskUse};

/// Why a commit was not written, while others of its batch may be.
#[derive(Debug)]
pub(super) enum Stop {
    Conflict(Conflict),
    Fault(Fault),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Fault(Fault::Sql(error))
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// An action that a commit is about: its row, and what it is after it.
pub(super) struct Known<'a> {
    pub(super) row: i64,
    pub(super) action: Cow<'a, Action>,
}

/// A commit on its way into the tables.
pub(super) struct Writing<'a> {
    pub(super) sql: &'a Connection,
    pub(super) commit: &'a Commit,
    pub(super) log: i64,
    known: Vec<Known<'a>>,
}

/// Writes it, and answers with the number of each event.
pub(super) fn apply(sql: &Connection, commit: &Commit) -> Result<Vec<u64>, Stop> {
    conditions::check(sql, commit)?;
    let (log, seq, head) = open_log(sql, commit)?;
    let mut writing = Writing { sql, commit, log, known: Vec::new() };
    for record in &commit.records {
        match record {
            Record::Action(action) => writing.action(action)?,
            Record::Session(session) => writing.session(session)?,
            Record::Task(task) => writing.task(task)?,
            Record::Question(question) => writing.question(question)?,
            Record::Grant(grant) => writing.grant(grant)?,
            Record::Halt(halt) => writing.halt(halt.as_ref())?,
        }
    }
    conditions::claim_keys(sql, commit)?;
    let seqs = writing.events(seq, head)?;
    for payload in &commit.payloads {
        writing.payload(payload)?;
    }
    approvals::project(&mut writing)?;
    writing.uses()?;
    Ok(seqs)
}

/// The row of the commit's log, its last number and its last hash.
fn open_log(sql: &Connection, commit: &Commit) -> Result<(i64, u64, Option<Digest>), Fault> {
    let found = sql
        .prepare_cached("SELECT log, seq, head FROM logs WHERE tenant = ? AND session = ?")?
        .query_row(params![commit.log.tenant.as_str(), commit.log.session.as_str()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    if let Some((log, seq, head)) = found {
        return Ok((log, seq, (seq > 0).then(|| Digest::from_bytes(head))));
    }
    // The head is written with the first events.
    sql.prepare_cached("INSERT INTO logs (tenant, session, seq, head) VALUES (?, ?, 0, zeroblob(32))")?
        .execute(params![commit.log.tenant.as_str(), commit.log.session.as_str()])?;
    Ok((sql.last_insert_rowid(), 0, None))
}

impl<'a> Writing<'a> {
    pub(super) fn tenant(&self) -> &'a Name {
        &self.commit.log.tenant
    }

    /// An action that the commit is about.
    pub(super) fn known(&mut self, id: &Id) -> Result<&Known<'a>, Fault> {
        if let Some(place) = self.known.iter().position(|known| known.action.id == *id) {
            return Ok(&self.known[place]);
        }
        let found = self
            .sql
            .prepare_cached("SELECT action, body FROM actions WHERE tenant = ? AND id = ?")?
            .query_row(params![self.tenant().as_str(), id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((row, body)) = found else {
            return Err(Fault::Misuse(format!("action `{id}` does not exist")));
        };
        let body: Vec<u8> = body;
        let known = Known { row, action: Cow::Owned(parse("an action", &body)?) };
        Ok(self.known.push_mut(known))
    }

    fn action(&mut self, action: &'a Action) -> Result<(), Fault> {
        if action.principal.tenant != *self.tenant() || action.session != self.commit.log.session {
            return Err(Fault::Misuse(format!("action `{}` belongs to another log", action.id)));
        }
        let written: Option<i64> = self
            .sql
            .prepare_cached(
                "INSERT INTO actions (tenant, id, log, task, user, state, version, body, turn) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) \
                 ON CONFLICT (tenant, id) DO UPDATE SET state = excluded.state, version = excluded.version, \
                 body = excluded.body, turn = excluded.turn WHERE log = excluded.log RETURNING action",
            )?
            .query_row(
                params![
                    self.tenant().as_str(),
                    action.id.as_str(),
                    self.log,
                    action.task.as_str(),
                    action.principal.user.as_str(),
                    action.state.as_str(),
                    int(action.version),
                    json(action),
                    action.turn.map(int)
                ],
                |row| row.get(0),
            )
            .optional()?;
        let row = written.ok_or_else(|| Fault::Misuse(format!("action `{}` belongs to another session", action.id)))?;
        self.known.push(Known { row, action: Cow::Borrowed(action) });
        Ok(())
    }

    fn grant(&self, grant: &Grant) -> Result<(), Fault> {
        if grant.principal.tenant != *self.tenant() {
            return Err(Fault::Misuse(format!("grant `{}` belongs to another tenant", grant.id)));
        }
        self.sql
            .prepare_cached(
                "INSERT INTO grants (tenant, id, user, session, expires_ms, revoked, body) \
                 VALUES (?, ?, ?, ?, ?, ?, ?) \
                 ON CONFLICT (tenant, id) DO UPDATE SET expires_ms = excluded.expires_ms, \
                 revoked = excluded.revoked, body = excluded.body",
            )?
            .execute(params![
                self.tenant().as_str(),
                grant.id.as_str(),
                grant.principal.user.as_str(),
                grant.session.as_ref().map(Id::as_str),
                int(grant.expires_ms),
                grant.revoked.is_some(),
                json(grant)
            ])?;
        Ok(())
    }

    fn halt(&self, halt: Option<&Halt>) -> Result<(), Fault> {
        match halt {
            Some(halt) => self
                .sql
                .prepare_cached("INSERT OR REPLACE INTO facts (name, value) VALUES ('halt', ?)")?
                .execute(params![json(halt)])?,
            None => self.sql.prepare_cached("DELETE FROM facts WHERE name = 'halt'")?.execute([])?,
        };
        Ok(())
    }

    fn events(&mut self, mut seq: u64, mut head: Option<Digest>) -> Result<Vec<u64>, Fault> {
        let commit = self.commit;
        let mut seqs = Vec::with_capacity(commit.events.len());
        for event in &commit.events {
            seq += 1;
            head = Some(self.event(seq, event, head.as_ref())?);
            seqs.push(seq);
        }
        if let (Some(head), false) = (&head, seqs.is_empty()) {
            self.sql.prepare_cached("UPDATE logs SET seq = ?, head = ? WHERE log = ?")?.execute(params![
                int(seq),
                raw(head),
                self.log
            ])?;
        }
        Ok(seqs)
    }

    fn event(&mut self, seq: u64, event: &Event, previous: Option<&Digest>) -> Result<Digest, Fault> {
        let at_ms = i64::try_from(event.at_ms)
            .map_err(|_| Fault::Misuse(format!("{} is no moment in milliseconds since 1970", event.at_ms)))?;
        let action = event.action.as_ref().map(|id| self.known(id).map(|known| known.row)).transpose()?;
        let body = json(&event.what);
        let link = Link { log: &self.commit.log, seq, at_ms: event.at_ms, action: event.action.as_ref(), body: &body };
        let hash = link.hash(previous);
        self.sql
            .prepare_cached("INSERT INTO events (log, seq, at_ms, action, body, hash) VALUES (?, ?, ?, ?, ?, ?)")?
            .execute(params![self.log, int(seq), at_ms, action, body, raw(&hash)])?;
        match &event.what {
            What::Erased { .. } => {
                let action = action.ok_or_else(|| Fault::Misuse("erasing names an action".into()))?;
                self.sql.prepare_cached("UPDATE payloads SET bytes = NULL WHERE action = ?")?.execute([action])?;
            }
            What::Session { .. } | What::Task { .. } | What::Question { .. } => {
                self.filed(self.sql.last_insert_rowid(), &event.what)?;
            }
            _ => {}
        }
        Ok(hash)
    }

    fn payload(&mut self, payload: &Payload) -> Result<(), Fault> {
        let id = match &payload.of {
            Owner::Action(id) => id,
            Owner::Task(task) => return self.text(task, payload),
        };
        let action = self.known(id)?.row;
        // The same content again is already there.
        self.sql
            .prepare_cached("INSERT OR IGNORE INTO payloads (action, role, sha256, bytes) VALUES (?, ?, ?, ?)")?
            .execute(params![action, role(payload.role), raw(&payload.sha256), payload.bytes])?;
        Ok(())
    }

    /// What tasks used, and the runs that limits count.
    fn uses(&mut self) -> Result<(), Fault> {
        let commit = self.commit;
        let tenant = self.tenant().as_str();
        let mut uses: Vec<(Id, TaskUse)> = Vec::new();
        for event in &commit.events {
            let task = match (&event.what, &event.action) {
                (What::Claimed { .. } | What::Ended { .. } | What::ApprovalOpened { .. }, Some(id)) => {
                    let known = self.known(id)?;
                    let (row, task) = (known.row, known.action.task.clone());
                    if let What::Claimed { .. } = event.what {
                        let capability = known.action.capability.name.clone();
                        self.sql
                            .prepare_cached(
                                "INSERT OR IGNORE INTO claims (tenant, capability, at_ms, action) VALUES (?, ?, ?, ?)",
                            )?
                            .execute(params![tenant, capability.as_str(), int(event.at_ms), row])?;
                    }
                    task
                }
                (What::Question { task, event: QuestionEvent::Opened { .. }, .. }, _) => task.clone(),
                _ => continue,
            };
            let used = match uses.iter().position(|(of, _)| *of == task) {
                Some(place) => &mut uses[place].1,
                None => &mut uses.push_mut((task, TaskUse::default())).1,
            };
            used.count(&event.what);
        }
        for (task, used) in uses.iter().filter(|(_, used)| *used != TaskUse::default()) {
            // What tools say of themselves can be any number: a sum stays one
            // that can be read again.
            self.sql
                .prepare_cached(
                    "INSERT INTO tasks (tenant, task, actions, asks, run_us, artifact_bytes, output_bytes, \
                     egress_bytes, cost_micros, waiting_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
                     ON CONFLICT DO UPDATE SET actions = actions + excluded.actions, asks = asks + excluded.asks, \
                     run_us = min(run_us + excluded.run_us, 0x7fffffffffffffff), \
                     artifact_bytes = min(artifact_bytes + excluded.artifact_bytes, 0x7fffffffffffffff), \
                     output_bytes = min(output_bytes + excluded.output_bytes, 0x7fffffffffffffff), \
                     egress_bytes = min(egress_bytes + excluded.egress_bytes, 0x7fffffffffffffff), \
                     cost_micros = min(cost_micros + excluded.cost_micros, 0x7fffffffffffffff), \
                     waiting_us = min(waiting_us + excluded.waiting_us, 0x7fffffffffffffff)",
                )?
                .execute(params![
                    tenant,
                    task.as_str(),
                    int(used.actions),
                    int(used.asks),
                    int(used.run_us),
                    int(used.artifact_bytes),
                    int(used.output_bytes),
                    int(used.egress_bytes),
                    int(used.cost_micros),
                    int(used.waiting_us)
                ])?;
        }
        Ok(())
    }
}

impl TaskUse {
    /// Adds what this event says.
    pub(super) fn count(&mut self, what: &What) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        match what {
            What::Claimed { .. } => self.actions += 1,
            What::ApprovalOpened { .. } | What::Question { event: QuestionEvent::Opened { .. }, .. } => self.asks += 1,
            What::Ended { end } => {
                add(&mut self.run_us, end.run_us);
                add(&mut self.artifact_bytes, end.artifact_bytes);
                add(&mut self.output_bytes, end.output_bytes);
                add(&mut self.egress_bytes, end.egress_bytes);
                add(&mut self.cost_micros, end.cost_micros);
                add(&mut self.waiting_us, end.waiting_us);
            }
            _ => {}
        }
    }
}

/// As it is stored.
pub(super) fn role(role: PayloadRole) -> &'static str {
    match role {
        PayloadRole::Submission => "submission",
        PayloadRole::Plan => "plan",
        PayloadRole::Facts => "facts",
        PayloadRole::Words => "words",
        PayloadRole::Edit => "edit",
        PayloadRole::Observation => "observation",
        PayloadRole::Goal => "goal",
        PayloadRole::Remark => "remark",
        PayloadRole::Start => "start",
        PayloadRole::Entry => "entry",
        PayloadRole::Question => "question",
        PayloadRole::Answer => "answer",
    }
}

/// SQLite's integers are signed; nothing that we count comes near the end.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Our own types as they are stored.
pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|error| unreachable!("our own types always serialise: {error}"))
}

/// And back.
pub(super) fn parse<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(bytes).map_err(|error| Fault::Damaged(format!("{what} can't be read: {error}")))
}
