//! Sessions, tasks and questions on their way into the tables, and what was
//! said in them. All of a task stands in the log of its session.

use env_contracts::{Id, Principal};
use glovebox_events::{AskedOf, Payload, Question, QuestionState, Session, Task, TaskEvent, What};
use rusqlite::{Params, ToSql, params, params_from_iter};

use super::apply::{Writing, int, json, role};
use super::fault::Fault;
use crate::chain::raw;

impl Writing<'_> {
    pub(super) fn session(&self, session: &Session) -> Result<(), Fault> {
        self.owned("session", &session.id, &session.principal, &session.id)?;
        self.put(
            "session",
            &session.id,
            "INSERT INTO sessions (tenant, id, log, user, parent, stopping, version, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?) \
             ON CONFLICT (tenant, id) DO UPDATE SET stopping = excluded.stopping, version = excluded.version, \
             body = excluded.body \
             WHERE log = excluded.log AND user = excluded.user AND parent IS excluded.parent",
            params![
                self.tenant().as_str(),
                session.id.as_str(),
                self.log,
                session.principal.user.as_str(),
                session.parent.as_ref().map(Id::as_str),
                session.stopping().is_some(),
                int(session.version),
                json(session)
            ],
        )
    }

    pub(super) fn task(&self, task: &Task) -> Result<(), Fault> {
        self.owned("task", &task.id, &task.principal, &task.session)?;
        self.not_elsewhere(&task.id)?;
        self.put(
            "task",
            &task.id,
            "INSERT INTO task_records (tenant, id, log, state, stopping, version, body) VALUES (?, ?, ?, ?, ?, ?, ?) \
             ON CONFLICT (tenant, id) DO UPDATE SET state = excluded.state, stopping = excluded.stopping, \
             version = excluded.version, body = excluded.body WHERE log = excluded.log",
            params![
                self.tenant().as_str(),
                task.id.as_str(),
                self.log,
                task.state.as_str(),
                task.stopping().is_some(),
                int(task.version),
                json(task)
            ],
        )
    }

    pub(super) fn question(&self, question: &Question) -> Result<(), Fault> {
        self.owned("question", &question.id, &question.principal, &question.session)?;
        self.not_elsewhere(&question.task)?;
        self.put(
            "question",
            &question.id,
            "INSERT INTO questions (tenant, id, log, root, task, topic, goal, asked_of, state, untold, opened_ms, \
             expires_ms, version, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
             ON CONFLICT (tenant, id) DO UPDATE SET asked_of = excluded.asked_of, state = excluded.state, \
             untold = excluded.untold, expires_ms = excluded.expires_ms, version = excluded.version, \
             body = excluded.body WHERE log = excluded.log AND root = excluded.root AND task = excluded.task \
             AND topic = excluded.topic AND goal = excluded.goal",
            params![
                self.tenant().as_str(),
                question.id.as_str(),
                self.log,
                question.root.as_str(),
                question.task.as_str(),
                question.topic.as_str(),
                question.goal,
                asked_of(question.to),
                question.state.as_str(),
                untold(question),
                int(question.opened_ms),
                question.expires_ms.map(int),
                int(question.version),
                json(question)
            ],
        )
    }

    /// Whether the record belongs to the log of the commit.
    fn owned(&self, what: &str, id: &Id, principal: &Principal, session: &Id) -> Result<(), Fault> {
        if principal.tenant == *self.tenant() && *session == self.commit.log.session {
            return Ok(());
        }
        Err(Fault::Misuse(format!("{what} `{id}` belongs to another log")))
    }

    /// Writes a row over the older one of the same thing, and over no other.
    fn put(&self, what: &str, id: &Id, statement: &'static str, params: impl Params) -> Result<(), Fault> {
        if self.sql.prepare_cached(statement)?.execute(params)? == 0 {
            return Err(Fault::Misuse(format!("{what} `{id}` is already something else")));
        }
        Ok(())
    }

    /// An event of a session, a task or a question: that has to be of this
    /// log, and the event is filed under its task.
    pub(super) fn filed(&self, event: i64, what: &What) -> Result<(), Fault> {
        let tenant = self.tenant().as_str();
        let task = match what {
            What::Session { .. } => {
                let session = &self.commit.log.session;
                if !self.exists(
                    "SELECT 1 FROM sessions WHERE log = ? AND tenant = ? AND id = ?",
                    [tenant, session.as_str()],
                )? {
                    return Err(Fault::Misuse(format!("session `{session}` was not opened")));
                }
                return Ok(());
            }
            What::Task { task, event } => {
                // Questions can be asked in a task that nobody opened: then
                // there are words to erase.
                let erased = matches!(event, TaskEvent::Erased { .. }) && self.erase(task)?;
                if !erased
                    && !self.exists(
                        "SELECT 1 FROM task_records WHERE log = ? AND tenant = ? AND id = ?",
                        [tenant, task.as_str()],
                    )?
                {
                    return Err(Fault::Misuse(format!("task `{task}` was not opened in this session")));
                }
                task
            }
            What::Question { question, task, .. } => {
                if !self.exists(
                    "SELECT 1 FROM questions WHERE log = ? AND tenant = ? AND id = ? AND task = ?",
                    [tenant, question.as_str(), task.as_str()],
                )? {
                    return Err(Fault::Misuse(format!("question `{question}` was not asked in task `{task}`")));
                }
                task
            }
            _ => return Ok(()),
        };
        self.sql.prepare_cached("INSERT INTO task_events (log, task, event) VALUES (?, ?, ?)")?.execute(params![
            self.log,
            task.as_str(),
            event
        ])?;
        Ok(())
    }

    /// Whether there is such a row of this log.
    fn exists<const N: usize>(&self, statement: &'static str, names: [&str; N]) -> Result<bool, Fault> {
        let names = names.iter().map(|name| name as &dyn ToSql);
        let mut statement = self.sql.prepare_cached(statement)?;
        Ok(statement.exists(params_from_iter(std::iter::once(&self.log as &dyn ToSql).chain(names)))?)
    }

    /// Whether there were words to erase.
    fn erase(&self, task: &Id) -> Result<bool, Fault> {
        let erased = self
            .sql
            .prepare_cached("UPDATE texts SET bytes = NULL WHERE log = ? AND tenant = ? AND task = ?")?
            .execute(params![self.log, self.tenant().as_str(), task.as_str()])?;
        Ok(erased > 0)
    }

    /// Words of a task.
    pub(super) fn text(&self, task: &Id, payload: &Payload) -> Result<(), Fault> {
        self.not_elsewhere(task)?;
        // Who says again what was erased has said it anew.
        self.sql
            .prepare_cached(
                "INSERT INTO texts (tenant, task, log, role, sha256, bytes) VALUES (?, ?, ?, ?, ?, ?) \
                 ON CONFLICT (tenant, task, sha256) DO UPDATE SET bytes = excluded.bytes WHERE texts.bytes IS NULL",
            )?
            .execute(params![
                self.tenant().as_str(),
                task.as_str(),
                self.log,
                role(payload.role),
                raw(&payload.sha256),
                payload.bytes
            ])?;
        Ok(())
    }

    /// A task belongs to the session that opened it, or else to the first that
    /// said something in it.
    fn not_elsewhere(&self, task: &Id) -> Result<(), Fault> {
        let log: Option<i64> = self
            .sql
            .prepare_cached(
                "SELECT coalesce((SELECT log FROM task_records WHERE tenant = ?1 AND id = ?2), \
                 (SELECT log FROM texts WHERE tenant = ?1 AND task = ?2 LIMIT 1))",
            )?
            .query_row([self.tenant().as_str(), task.as_str()], |row| row.get(0))?;
        if log.is_some_and(|log| log != self.log) {
            return Err(Fault::Misuse(format!("task `{task}` belongs to another session")));
        }
        Ok(())
    }
}

/// As it is stored.
pub(super) fn asked_of(to: AskedOf) -> &'static str {
    match to {
        AskedOf::Root => "root",
        AskedOf::Person => "person",
    }
}

/// Whether it has ended and no turn was told how.
pub(super) fn untold(question: &Question) -> bool {
    question.state != QuestionState::Pending && question.told.is_none()
}
