//! Queries about sessions, tasks and questions.

use env_contracts::{Id, Name};
use glovebox_events::{Logged, Question, Session, Task};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};

use super::apply::int;
use super::conditions::id;
use super::fault::Fault;
use super::read::{Query, bounded, collect, document, log, logged, page};
use super::records::asked_of;
use crate::{Page, QuestionFilter, SessionFilter, TaskFilter, TaskSeen, TaskUse};

pub(super) fn session(sql: &Connection, tenant: &Name, id: &Id) -> Result<Option<Session>, Fault> {
    let mut query = Query::new("SELECT body FROM sessions WHERE tenant = ?", tenant);
    query.and("id = ?", id.as_str().to_owned());
    Ok(query.rows(sql, |row| document("a session", row, 0))?.pop())
}

/// A session and all that were called from it, and from those.
const BELOW: &str = "id IN (WITH RECURSIVE below (tenant, id) AS (VALUES (?, ?) UNION \
                     SELECT child.tenant, child.id FROM below JOIN sessions AS child \
                     ON child.tenant = below.tenant AND child.parent = below.id) SELECT id FROM below)";

pub(super) fn sessions(sql: &Connection, tenant: &Name, filter: &SessionFilter) -> Result<Page<Session>, Fault> {
    let mut query = Query::new("SELECT body FROM sessions WHERE tenant = ?", tenant);
    if let Some(user) = &filter.user {
        query.and("user = ?", user.as_str().to_owned());
    }
    query.family(filter.agent.as_ref());
    if let Some(root) = &filter.root {
        query.values.push(Box::new(tenant.as_str().to_owned()));
        query.and(BELOW, root.as_str().to_owned());
    }
    if let Some(after) = &filter.after {
        let Some(rank) = rank(sql, "sessions", tenant, after)? else { return Ok(Page { items: vec![], next: None }) };
        query.and("rank < ?", rank);
    }
    let limit = bounded(filter.limit);
    // A tree is small beside the tenant: it is not to be looked for in the
    // order of all sessions.
    let order = if filter.root.is_some() { " ORDER BY +rank DESC" } else { " ORDER BY rank DESC" };
    query.limited(order, limit + 1);
    let found = query.rows(sql, |row| document("a session", row, 0))?;
    Ok(page(found, limit, |session: &Session| session.id.clone()))
}

/// Asked before every action: what it is and what it used at one moment. A
/// join of the two takes several times as long.
pub(super) fn task(sql: &Connection, tenant: &Name, task: &Id) -> Result<TaskSeen, Fault> {
    let mut statement = sql.prepare_cached(
        "SELECT body, 0, 0, 0, 0, 0, 0, 0, 0 FROM task_records WHERE tenant = ?1 AND id = ?2 UNION ALL \
         SELECT NULL, actions, run_us, artifact_bytes, output_bytes, egress_bytes, cost_micros, waiting_us, asks \
         FROM tasks WHERE tenant = ?1 AND task = ?2",
    )?;
    let mut rows = statement.query([tenant.as_str(), task.as_str()])?;
    let mut seen = TaskSeen::default();
    while let Some(row) = rows.next()? {
        if row.get_ref(0)? != ValueRef::Null {
            seen.record = Some(document("a task", row, 0)?);
            continue;
        }
        seen.used = TaskUse {
            actions: row.get(1)?,
            run_us: row.get(2)?,
            artifact_bytes: row.get(3)?,
            output_bytes: row.get(4)?,
            egress_bytes: row.get(5)?,
            cost_micros: row.get(6)?,
            waiting_us: row.get(7)?,
            asks: row.get(8)?,
        };
    }
    Ok(seen)
}

pub(super) fn tasks(sql: &Connection, tenant: &Name, filter: &TaskFilter) -> Result<Page<Task>, Fault> {
    let mut query = Query::new("SELECT body FROM task_records WHERE tenant = ?", tenant);
    if let Some(session) = &filter.session {
        let Some(log) = log(sql, tenant, session)? else { return Ok(Page { items: vec![], next: None }) };
        query.and("log = ?", log);
    }
    query.of_user(filter.user.as_ref()).family(filter.agent.as_ref());
    if filter.open {
        query.and_one_of("state", &["open"]);
    }
    if let Some(after) = &filter.after {
        let Some(rank) = rank(sql, "task_records", tenant, after)? else {
            return Ok(Page { items: vec![], next: None });
        };
        query.and("rank < ?", rank);
    }
    let limit = bounded(filter.limit);
    query.limited(" ORDER BY rank DESC", limit + 1);
    Ok(page(query.rows(sql, |row| document("a task", row, 0))?, limit, |task: &Task| task.id.clone()))
}

pub(super) fn stopping(sql: &Connection, limit: u32) -> Result<Vec<Task>, Fault> {
    let mut statement = sql.prepare_cached("SELECT body FROM task_records WHERE stopping = 1 ORDER BY rank LIMIT ?")?;
    collect(&mut statement, [bounded(limit)], |row| document("a task", row, 0))
}

pub(super) fn stopping_sessions(sql: &Connection, limit: u32) -> Result<Vec<Session>, Fault> {
    let mut statement = sql.prepare_cached("SELECT body FROM sessions WHERE stopping = 1 ORDER BY rank LIMIT ?")?;
    collect(&mut statement, [bounded(limit)], |row| document("a session", row, 0))
}

pub(super) fn question(sql: &Connection, tenant: &Name, id: &Id) -> Result<Option<Question>, Fault> {
    let mut query = Query::new("SELECT body FROM questions WHERE tenant = ?", tenant);
    query.and("id = ?", id.as_str().to_owned());
    Ok(query.rows(sql, |row| document("a question", row, 0))?.pop())
}

pub(super) fn questions(sql: &Connection, tenant: &Name, filter: &QuestionFilter) -> Result<Page<Question>, Fault> {
    let mut query = Query::new("SELECT body FROM questions WHERE tenant = ?", tenant);
    if let Some(task) = &filter.task {
        query.and("task = ?", task.as_str().to_owned());
    }
    if let Some(root) = &filter.root {
        query.and("root = ?", root.as_str().to_owned());
    }
    if let Some(to) = filter.to {
        query.and_one_of("asked_of", &[asked_of(to)]);
    }
    query.of_user(filter.user.as_ref()).family(filter.agent.as_ref());
    if filter.untold {
        query.text.push_str(" AND untold = 1");
    }
    if let Some(after) = &filter.after {
        let Some(rank) = rank(sql, "questions", tenant, after)? else { return Ok(Page { items: vec![], next: None }) };
        query.and("rank > ?", rank);
    }
    let states: Vec<_> = filter.states.iter().map(|state| state.as_str()).collect();
    let limit = bounded(filter.limit);
    query.and_one_of("state", &states).limited(" ORDER BY rank", limit + 1);
    let found = query.rows(sql, |row| document("a question", row, 0))?;
    Ok(page(found, limit, |question: &Question| question.id.clone()))
}

/// Where a page goes on: behind this one.
fn rank(sql: &Connection, table: &str, tenant: &Name, after: &Id) -> Result<Option<i64>, Fault> {
    Ok(sql
        .prepare_cached(&format!("SELECT rank FROM {table} WHERE tenant = ? AND id = ?"))?
        .query_row([tenant.as_str(), after.as_str()], |row| row.get(0))
        .optional()?)
}

/// The log that a task stands in. For one that nobody opened: that of the
/// first that was done or asked in it.
const ITS_LOG: &str = "coalesce((SELECT log FROM task_records WHERE tenant = ?1 AND id = ?2), \
                       (SELECT log FROM actions WHERE tenant = ?1 AND task = ?2 ORDER BY action LIMIT 1), \
                       (SELECT log FROM questions WHERE tenant = ?1 AND task = ?2 ORDER BY rank LIMIT 1))";

/// Events of a task, its questions and its actions. The numbers of a log rise
/// with the rows of its events, and so the page is found in the indexes alone:
/// only its own events are read.
pub(super) fn events(sql: &Connection, tenant: &Name, task: &Id, after: u64, limit: u32) -> Result<Vec<Logged>, Fault> {
    let names = [tenant.as_str(), task.as_str()];
    let log: Option<i64> = sql.prepare_cached(&format!("SELECT {ITS_LOG}"))?.query_row(names, |row| row.get(0))?;
    let Some(log) = log else { return Ok(Vec::new()) };
    let behind: i64 = sql
        .prepare_cached("SELECT event FROM events WHERE log = ? AND seq <= ? ORDER BY seq DESC LIMIT 1")?
        .query_row(params![log, int(after)], |row| row.get(0))
        .optional()?
        .unwrap_or(0);
    let mut statement = sql.prepare_cached(
        "SELECT session, events.seq, at_ms, actions.id, events.body, hash FROM \
         (SELECT event FROM task_events WHERE log = ?1 AND task = ?3 AND event > ?4 \
          UNION SELECT event FROM actions JOIN events USING (action) \
          WHERE actions.tenant = ?2 AND actions.task = ?3 AND actions.log = ?1 AND event > ?4 \
          ORDER BY event LIMIT ?5) \
         JOIN events USING (event) JOIN logs ON logs.log = events.log LEFT JOIN actions USING (action) ORDER BY event",
    )?;
    collect(&mut statement, params![log, tenant.as_str(), task.as_str(), behind, limit], |row| logged(row, tenant))
}

/// The session of a task that was opened, or in which something was said.
pub(super) fn with_texts(sql: &Connection, tenant: &Name, task: &Id) -> Result<Option<Id>, Fault> {
    let found: Option<String> = sql
        .prepare_cached(
            "SELECT session FROM logs WHERE log = coalesce((SELECT log FROM task_records WHERE tenant = ?1 AND id = ?2), \
             (SELECT log FROM texts WHERE tenant = ?1 AND task = ?2 LIMIT 1))",
        )?
        .query_row([tenant.as_str(), task.as_str()], |row| row.get(0))
        .optional()?;
    found.as_deref().map(id).transpose()
}
