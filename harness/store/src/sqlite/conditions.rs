//! What must hold before anything of a commit is written.

use env_contracts::{Digest, Id};
use rusqlite::{Connection, OptionalExtension, params};

use super::apply::{Stop, int};
use super::fault::Fault;
use super::{read, tasks};
use crate::chain::raw;
use crate::{Commit, Condition, Conflict, Thing, session_moved};

/// All of them, in their order.
pub(super) fn check(sql: &Connection, commit: &Commit) -> Result<(), Stop> {
    for condition in &commit.conditions {
        if let Some(conflict) = conflict(sql, commit, condition)? {
            return Err(Stop::Conflict(conflict));
        }
    }
    Ok(())
}

/// Claims the keys that were free.
pub(super) fn claim_keys(sql: &Connection, commit: &Commit) -> Result<(), Fault> {
    for condition in &commit.conditions {
        if let Condition::KeyFree { scope, request, action } = condition {
            sql.prepare_cached("INSERT INTO keys (scope, request, action) VALUES (?, ?, ?)")?.execute(params![
                raw(scope),
                raw(request),
                action.as_str()
            ])?;
        }
    }
    Ok(())
}

fn conflict(sql: &Connection, commit: &Commit, condition: &Condition) -> Result<Option<Conflict>, Fault> {
    let tenant = commit.log.tenant.as_str();
    match condition {
        Condition::Version { of, version } => {
            let (statement, id) = match of {
                Thing::Action(id) => ("SELECT version FROM actions WHERE tenant = ? AND id = ?", id),
                Thing::Session(id) => ("SELECT version FROM sessions WHERE tenant = ? AND id = ?", id),
                Thing::Task(id) => ("SELECT version FROM task_records WHERE tenant = ? AND id = ?", id),
                Thing::Question(id) => ("SELECT version FROM questions WHERE tenant = ? AND id = ?", id),
            };
            let stored: Option<u64> =
                sql.prepare_cached(statement)?.query_row(params![tenant, id.as_str()], |row| row.get(0)).optional()?;
            let stored = stored.unwrap_or(0);
            Ok((stored != *version).then(|| Conflict::Version { of: of.clone(), version: stored }))
        }
        Condition::TaskAt { task, goal, turn, interrupt } => {
            let seen = tasks::task(sql, &commit.log.tenant, task)?;
            Ok(seen.moved(*goal, *turn, interrupt.as_ref()).map(Conflict::Task))
        }
        Condition::SessionGoing { interrupt } => {
            let session = tasks::session(sql, &commit.log.tenant, &commit.log.session)?;
            Ok(session_moved(session.as_ref(), interrupt.as_ref()).map(Conflict::Task))
        }
        Condition::TopicFree { task, topic, goal } => {
            let taken: Option<String> = sql
                .prepare_cached(
                    "SELECT id FROM questions WHERE tenant = ? AND task = ? AND topic = ? AND goal = ? \
                     AND state IN ('pending', 'answered') LIMIT 1",
                )?
                .query_row(params![tenant, task.as_str(), topic.as_str(), goal], |row| row.get(0))
                .optional()?;
            taken.map(|question| Ok(Conflict::Topic { question: id(&question)? })).transpose()
        }
        Condition::NotHalted => Ok(read::halted(sql)?.map(Conflict::Halted)),
        Condition::KeyFree { scope, .. } => {
            Ok(read::key(sql, scope)?.map(|(request, action)| Conflict::Key { request, action }))
        }
        Condition::GrantLive { grant, now_ms } => {
            let live = sql
                .prepare_cached("SELECT 1 FROM grants WHERE tenant = ? AND id = ? AND revoked = 0 AND expires_ms > ?")?
                .exists(params![tenant, grant.as_str(), int(*now_ms)])?;
            Ok((!live).then_some(Conflict::Grant))
        }
        Condition::AsksBelow { session, since_ms, most } => {
            // Counting stops at the first that is too many.
            let asks: u32 = sql
                .prepare_cached(
                    "WITH own AS (SELECT log FROM logs WHERE tenant = ?1 AND session = ?2) SELECT count(*) FROM \
                     (SELECT 1 FROM approvals WHERE log = (SELECT log FROM own) AND opened_ms >= ?3 UNION ALL \
                     SELECT 1 FROM questions WHERE log = (SELECT log FROM own) AND opened_ms >= ?3 LIMIT ?4)",
                )?
                .query_row(params![tenant, session.as_str(), int(*since_ms), most], |row| row.get(0))?;
            Ok((asks >= *most).then_some(Conflict::Asks))
        }
        Condition::CallsBelow { capability, since_ms, most } => {
            let calls: u32 = sql
                .prepare_cached(
                    "SELECT count(*) FROM (SELECT 1 FROM claims \
                     WHERE tenant = ? AND capability = ? AND at_ms >= ? LIMIT ?)",
                )?
                .query_row(params![tenant, capability.as_str(), int(*since_ms), most], |row| row.get(0))?;
            Ok((calls >= *most).then(|| Conflict::Calls { capability: capability.clone() }))
        }
    }
}

/// A stored identifier; what is none was not written by us.
pub(super) fn id(text: &str) -> Result<Id, Fault> {
    text.parse().map_err(Fault::Damaged)
}

/// A stored digest.
pub(super) fn digest(bytes: [u8; 32]) -> Digest {
    Digest::from_bytes(bytes)
}
