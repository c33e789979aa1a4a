//! Whether the file is whole, and whether its tables agree with each other.

use std::collections::BTreeMap;
use std::path::Path;

use env_contracts::{Id, Problem};
use glovebox_events::{Action, Approval, Grant, Question, Session, Task, What};
use rusqlite::{Connection, Row};
use serde::de::DeserializeOwned;

use super::apply::int;
use super::fault::Fault;
use super::records::{asked_of, untold};
use super::{Sqlite, open};
use crate::chain::raw;

/// The most faults that are listed.
const MAX_LISTED: u32 = 100;

impl Sqlite {
    /// Reads the whole file of this store and lists what is wrong with it, in
    /// words. An empty list is good news. It changes nothing, and needs no
    /// store that can be opened.
    pub fn check(folder: &Path) -> Result<Vec<String>, Problem> {
        let path = open::file(folder);
        let check = || {
            open::look(&path)?;
            let sql = open::reader(&path)?;
            let mut faults = integrity(&sql)?;
            if faults.is_empty() {
                schema(&sql, &mut faults)?;
            }
            if faults.is_empty() {
                // On a file that is not whole, these would only find the same again.
                references(&sql, &mut faults)?;
                let version = open::version(&sql)?;
                actions(&sql, version, &mut faults)?;
                approvals(&sql, &mut faults)?;
                grants(&sql, &mut faults)?;
                logs(&sql, &mut faults)?;
                if version >= open::WITH_TASKS {
                    sessions(&sql, &mut faults)?;
                    tasks(&sql, &mut faults)?;
                    questions(&sql, &mut faults)?;
                    task_events(&sql, &mut faults)?;
                }
                faults.truncate(MAX_LISTED as usize);
            }
            Ok(faults)
        };
        check().map_err(|fault: Fault| fault.problem(&path))
    }
}

fn integrity(sql: &Connection) -> Result<Vec<String>, Fault> {
    let mut statement = sql.prepare(&format!("PRAGMA integrity_check({MAX_LISTED})"))?;
    let lines = statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// Whether there is what this version makes, and nothing else: a trigger or a
/// view could make other answers of the same rows.
fn schema(sql: &Connection, faults: &mut Vec<String>) -> Result<(), Fault> {
    let listed = |sql: &Connection| -> Result<BTreeMap<(String, String), Option<String>>, Fault> {
        let mut statement = sql.prepare("SELECT type, name, sql FROM sqlite_schema")?;
        let rows = statement.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    };
    let (there, mut wanted) = (listed(sql)?, listed(&open::expected(sql)?)?);
    for ((kind, name), text) in there {
        match wanted.remove(&(kind.clone(), name.clone())) {
            Some(own) if own == text => {}
            Some(_) => push(faults, || format!("{kind} `{name}` is not what this version makes")),
            None => push(faults, || format!("{kind} `{name}` is none that this version makes")),
        }
    }
    for (kind, name) in wanted.into_keys() {
        push(faults, || format!("{kind} `{name}` is missing"));
    }
    let mut statement = sql.prepare("SELECT name FROM facts WHERE name NOT IN ('id', 'halt')")?;
    for name in statement.query_map([], |row| row.get::<_, String>(0))? {
        let name = name?;
        push(faults, || format!("fact `{name}` is none that this version knows"));
    }
    Ok(())
}

fn references(sql: &Connection, faults: &mut Vec<String>) -> Result<(), Fault> {
    let mut statement = sql.prepare("PRAGMA foreign_key_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (table, line, parent): (String, Option<i64>, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let line = line.map_or_else(String::new, |line| format!(" {line}"));
        push(faults, || format!("row{line} of {table} names something that is not in {parent}"));
    }
    Ok(())
}

/// What a document says, and what the columns beside it say.
fn documents<T: DeserializeOwned>(
    sql: &Connection,
    query: &str,
    faults: &mut Vec<String>,
    agrees: impl Fn(&T, &Row<'_>) -> rusqlite::Result<bool>,
) -> Result<(), Fault> {
    let mut statement = sql.prepare(query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        match serde_json::from_slice(row.get_ref(1)?.as_bytes().unwrap_or_default()) {
            Err(error) => push(faults, || format!("{name} can't be read: {error}")),
            Ok(document) => {
                // A column of another type does not agree either.
                if !agrees(&document, row).unwrap_or(false) {
                    push(faults, || format!("{name} is filed as something else than it is"));
                }
            }
        }
    }
    Ok(())
}

fn push(faults: &mut Vec<String>, fault: impl FnOnce() -> String) {
    if faults.len() < MAX_LISTED as usize {
        faults.push(fault());
    }
}

fn actions(sql: &Connection, version: i32, faults: &mut Vec<String>) -> Result<(), Fault> {
    let turn = if version >= open::WITH_TASKS { "turn" } else { "NULL" };
    let query = format!(
        "SELECT 'action ' || id, body, id, actions.tenant, session, task, user, state, version, {turn} \
         FROM actions JOIN logs USING (log)"
    );
    documents(sql, &query, faults, |action: &Action, row| {
        Ok(texts(row, 2)?
            == [
                action.id.as_str(),
                action.principal.tenant.as_str(),
                action.session.as_str(),
                action.task.as_str(),
                action.principal.user.as_str(),
                action.state.as_str(),
            ]
            && row.get::<_, i64>(8)? == int(action.version)
            && row.get::<_, Option<i64>>(9)? == action.turn.map(int))
    })
}

fn approvals(sql: &Connection, faults: &mut Vec<String>) -> Result<(), Fault> {
    let query = "SELECT 'approval ' || id, body, id, state, intent, opened_ms, expires_ms FROM approvals";
    documents(sql, query, faults, |approval: &Approval, row| {
        Ok(texts(row, 2)? == [approval.id.as_str(), approval.state.as_str()]
            && row.get::<_, [u8; 32]>(4)? == raw(&approval.intent)
            && row.get::<_, i64>(5)? == int(approval.opened_ms)
            && row.get::<_, Option<i64>>(6)? == approval.expires_ms.map(int))
    })
}

fn grants(sql: &Connection, faults: &mut Vec<String>) -> Result<(), Fault> {
    let query = "SELECT 'grant ' || id, body, id, tenant, user, session, expires_ms, revoked FROM grants";
    documents(sql, query, faults, |grant: &Grant, row| {
        let principal = &grant.principal;
        Ok(texts(row, 2)? == [grant.id.as_str(), principal.tenant.as_str(), principal.user.as_str()]
            && row.get::<_, Option<String>>(5)?.as_deref() == grant.session.as_ref().map(Id::as_str)
            && row.get::<_, i64>(6)? == int(grant.expires_ms)
            && row.get::<_, bool>(7)? == grant.revoked.is_some())
    })
}

fn sessions(sql: &Connection, faults: &mut Vec<String>) -> Result<(), Fault> {
    let query = "SELECT 'session ' || id, body, id, session, sessions.tenant, logs.tenant, user, parent, version, \
                 stopping FROM sessions JOIN logs USING (log)";
    documents(sql, query, faults, |session: &Session, row| {
        let (id, tenant) = (session.id.as_str(), session.principal.tenant.as_str());
        Ok(texts(row, 2)? == [id, id, tenant, tenant, session.principal.user.as_str()]
            && row.get::<_, Option<String>>(7)?.as_deref() == session.parent.as_ref().map(Id::as_str)
            && row.get::<_, i64>(8)? == int(session.version)
            && row.get::<_, bool>(9)? == session.stopping().is_some())
    })
}

fn tasks(sql: &Connection, faults: &mut Vec<String>) -> Result<(), Fault> {
    let query = "SELECT 'task ' || id, body, id, session, task_records.tenant, logs.tenant, state, stopping, version \
                 FROM task_records JOIN logs USING (log)";
    documents(sql, query, faults, |task: &Task, row| {
        let tenant = task.principal.tenant.as_str();
        Ok(texts(row, 2)? == [task.id.as_str(), task.session.as_str(), tenant, tenant, task.state.as_str()]
            && row.get::<_, bool>(7)? == task.stopping().is_some()
            && row.get::<_, i64>(8)? == int(task.version))
    })
}

fn questions(sql: &Connection, faults: &mut Vec<String>) -> Result<(), Fault> {
    let query = "SELECT 'question ' || id, body, id, session, questions.tenant, logs.tenant, root, task, topic, \
                 asked_of, state, goal, untold, expires_ms, version, opened_ms FROM questions JOIN logs USING (log)";
    documents(sql, query, faults, |question: &Question, row| {
        let tenant = question.principal.tenant.as_str();
        Ok(texts(row, 2)?
            == [
                question.id.as_str(),
                question.session.as_str(),
                tenant,
                tenant,
                question.root.as_str(),
                question.task.as_str(),
                question.topic.as_str(),
                asked_of(question.to),
                question.state.as_str(),
            ]
            && row.get::<_, u32>(11)? == question.goal
            && row.get::<_, bool>(12)? == untold(question)
            && row.get::<_, Option<i64>>(13)? == question.expires_ms.map(int)
            && row.get::<_, i64>(14)? == int(question.version)
            && row.get::<_, i64>(15)? == int(question.opened_ms))
    })
}

/// Events of tasks and of questions are found under their task, and no others.
fn task_events(sql: &Connection, faults: &mut Vec<String>) -> Result<(), Fault> {
    let query = "SELECT 'event ' || events.seq || ' of session ' || session || ' of tenant ' || tenant, body, task, \
                 task_events.log = events.log FROM task_events JOIN events USING (event) \
                 JOIN logs ON logs.log = events.log";
    documents(sql, query, faults, |what: &What, row| {
        let (What::Task { task, .. } | What::Question { task, .. }) = what else { return Ok(false) };
        Ok(texts(row, 2)? == [task.as_str()] && row.get(3)?)
    })?;
    let mut statement = sql.prepare(
        "SELECT 'event ' || events.seq || ' of session ' || session || ' of tenant ' || tenant \
         FROM events JOIN logs USING (log) WHERE action IS NULL AND json_valid(CAST(body AS TEXT)) \
         AND CAST(body AS TEXT) ->> 'kind' IN ('task', 'question') AND event NOT IN (SELECT event FROM task_events)",
    )?;
    for event in statement.query_map([], |row| row.get::<_, String>(0))? {
        let event = event?;
        push(faults, || format!("{event} is not found under its task"));
    }
    Ok(())
}

fn logs(sql: &Connection, faults: &mut Vec<String>) -> Result<(), Fault> {
    let mut statement = sql.prepare(
        "SELECT 'session ' || session || ' of tenant ' || tenant FROM logs \
         WHERE seq <> (SELECT count(*) FROM events WHERE events.log = logs.log)",
    )?;
    for log in statement.query_map([], |row| row.get::<_, String>(0))? {
        let log = log?;
        push(faults, || format!("the log of {log} does not have as many events as it says"));
    }
    Ok(())
}

/// So many texts, from this column on.
fn texts<const N: usize>(row: &Row<'_>, from: usize) -> rusqlite::Result<[String; N]> {
    let mut texts = std::array::from_fn(|_| String::new());
    for (place, text) in texts.iter_mut().enumerate() {
        *text = row.get(from + place)?;
    }
    Ok(texts)
}
