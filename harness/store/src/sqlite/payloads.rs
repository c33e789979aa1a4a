//! Whether what events name is there, and is what its digest says.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use env_contracts::{Digest, Id};
use glovebox_events::{LogKey, QuestionEvent, TaskEvent, What};
use rusqlite::{Connection, params};

use super::apply::parse;
use super::audit::log_key;
use super::conditions::{digest, id};
use super::fault::Fault;
use crate::audit::Findings;
use crate::chain::raw;
use crate::{AuditFault, AuditReport};

/// How many payloads are read in one transaction: a long one would keep the
/// write-ahead log from being emptied.
const PIECE: u32 = 1000;

/// Payloads that an event names and that were never there, or are gone.
pub(super) fn lost(
    sql: &Connection,
    log: &LogKey,
    action: Option<(&Id, i64)>,
    what: &What,
) -> Result<Vec<AuditFault>, Fault> {
    let mut lost = Vec::new();
    if let Some((action, row)) = action {
        let mut there = sql.prepare_cached("SELECT 1 FROM payloads WHERE action = ? AND sha256 = ?")?;
        for sha256 in of_action(what) {
            if !there.exists(params![row, raw(sha256)])? {
                lost.push(AuditFault::PayloadLost { action: action.clone(), sha256: sha256.clone() });
            }
        }
    }
    if let Some((task, texts)) = of_task(what) {
        let mut there = sql.prepare_cached("SELECT 1 FROM texts WHERE tenant = ? AND task = ? AND sha256 = ?")?;
        for sha256 in texts {
            if !there.exists(params![log.tenant.as_str(), task.as_str(), raw(sha256)])? {
                lost.push(AuditFault::TextLost { task: task.clone(), sha256: sha256.clone() });
            }
        }
    }
    Ok(lost)
}

/// The payloads of its action that an event names.
fn of_action(what: &What) -> Vec<&Digest> {
    match what {
        What::Requested { submission, .. } => vec![submission],
        What::Previewed { edit, .. } => edit.iter().collect(),
        What::Planned { plan, .. } => vec![plan],
        What::Bound { facts, .. } => vec![facts],
        What::ApprovalAnswered { answer } => answer.words.iter().chain(&answer.edit).collect(),
        What::Ended { end } => vec![&end.observation],
        _ => Vec::new(),
    }
}

/// The payloads of a task that an event of it or of its questions names.
fn of_task(what: &What) -> Option<(&Id, Vec<&Digest>)> {
    match what {
        What::Task { task, event } => {
            let texts = match event {
                TaskEvent::Opened { goal, .. } => vec![goal],
                TaskEvent::TurnOpened { turn, .. } => vec![&turn.start],
                TaskEvent::Steered { steer: said } | TaskEvent::Constrained { constraint: said } => vec![&said.text],
                TaskEvent::GoalChanged { goal } => vec![&goal.text],
                TaskEvent::Told { entry } => entry.content.iter().collect(),
                TaskEvent::Interrupted { interrupt } => interrupt.reason.iter().collect(),
                TaskEvent::Ended { end } => end.why.iter().collect(),
                TaskEvent::Noticed { .. }
                | TaskEvent::TurnClosed { .. }
                | TaskEvent::StageSet { .. }
                | TaskEvent::Stopped { .. }
                | TaskEvent::Erased { .. } => Vec::new(),
            };
            Some((task, texts))
        }
        What::Question { task, event, .. } => {
            let texts = match event {
                QuestionEvent::Opened { asked } => vec![&asked.text],
                QuestionEvent::Answered { answer } => answer.text.iter().collect(),
                _ => Vec::new(),
            };
            Some((task, texts))
        }
        _ => None,
    }
}

/// Compares all of them with their digests, in pieces.
pub(super) fn verify(sql: &Connection, report: &mut AuditReport, findings: &mut Findings) -> Result<(), Fault> {
    for piece in [some_payloads, some_texts] {
        let mut after = Some(0);
        while let Some(from) = after {
            after = piece(sql, from, report, findings)?;
        }
    }
    Ok(())
}

/// Compares the payloads of actions after this one, and says where it stopped.
fn some_payloads(
    sql: &Connection,
    after: i64,
    report: &mut AuditReport,
    findings: &mut Findings,
) -> Result<Option<i64>, Fault> {
    let mut statement = sql.prepare_cached(
        "SELECT payload, action, sha256, bytes, tenant, session, id FROM payloads JOIN actions USING (action) \
         JOIN logs USING (log, tenant) WHERE payload > ? ORDER BY payload LIMIT ?",
    )?;
    let mut rows = statement.query(params![after, PIECE])?;
    let mut last = None;
    while let Some(row) = rows.next()? {
        last = Some(row.get(0)?);
        let sha256 = digest(row.get(2)?);
        let bytes = row.get_ref(3)?.as_bytes_or_null().unwrap_or_default();
        let (log, action) = (log_key(row.get(4)?, row.get(5)?)?, id(&row.get::<_, String>(6)?)?);
        match bytes {
            Some(bytes) if Digest::of(bytes) == sha256 => report.payloads += 1,
            Some(_) => findings.push(Some(&log), None, AuditFault::PayloadChanged { action, sha256 }),
            None if action_erased(sql, row.get(1)?)? => report.erased += 1,
            None => findings.push(Some(&log), None, AuditFault::PayloadLost { action, sha256 }),
        }
    }
    Ok(last)
}

/// The same for those of tasks.
fn some_texts(
    sql: &Connection,
    after: i64,
    report: &mut AuditReport,
    findings: &mut Findings,
) -> Result<Option<i64>, Fault> {
    let mut statement = sql.prepare_cached(
        "SELECT text, log, sha256, bytes, tenant, session, task FROM texts JOIN logs USING (log, tenant) \
         WHERE text > ? ORDER BY text LIMIT ?",
    )?;
    let mut rows = statement.query(params![after, PIECE])?;
    let mut last = None;
    // A task has many of them, and its log is read for the first.
    let mut erased = BTreeMap::new();
    while let Some(row) = rows.next()? {
        last = Some(row.get(0)?);
        let sha256 = digest(row.get(2)?);
        let bytes = row.get_ref(3)?.as_bytes_or_null().unwrap_or_default();
        let (log, task) = (log_key(row.get(4)?, row.get(5)?)?, id(&row.get::<_, String>(6)?)?);
        match bytes {
            Some(bytes) if Digest::of(bytes) == sha256 => report.payloads += 1,
            Some(_) => findings.push(Some(&log), None, AuditFault::TextChanged { task, sha256 }),
            None => {
                let told = match erased.entry((row.get::<_, i64>(1)?, task.clone())) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(unknown) => *unknown.insert(task_erased(sql, row.get(1)?, &task)?),
                };
                if told {
                    report.erased += 1;
                } else {
                    findings.push(Some(&log), None, AuditFault::TextLost { task, sha256 });
                }
            }
        }
    }
    Ok(last)
}

/// Whether the log says that an action's contents were erased.
fn action_erased(sql: &Connection, action: i64) -> Result<bool, Fault> {
    let mut statement = sql.prepare_cached("SELECT body FROM events WHERE action = ?")?;
    let mut rows = statement.query([action])?;
    while let Some(row) = rows.next()? {
        if let What::Erased { .. } = parse("an event", row.get_ref(0)?.as_bytes().map_err(rusqlite::Error::from)?)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the log says that a task's were.
fn task_erased(sql: &Connection, log: i64, task: &Id) -> Result<bool, Fault> {
    let mut statement = sql.prepare_cached(
        "SELECT body FROM task_events JOIN events USING (event) WHERE task_events.log = ? AND task = ?",
    )?;
    let mut rows = statement.query(params![log, task.as_str()])?;
    while let Some(row) = rows.next()? {
        let what = parse("an event", row.get_ref(0)?.as_bytes().map_err(rusqlite::Error::from)?)?;
        if let What::Task { event: TaskEvent::Erased { .. }, .. } = what {
            return Ok(true);
        }
    }
    Ok(false)
}
