//! Reads the whole log, in pieces, and compares it with its hashes.

use std::collections::BTreeMap;
use std::io::Write;

use env_contracts::{Code, Digest, Id, Name, Problem};
use glovebox_events::{LogKey, Logged};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior};

use super::conditions::{digest, id};
use super::fault::Fault;
use super::{Sqlite, open, payloads, recorded};
use crate::audit::{self, Findings};
use crate::chain::{Link, raw};
use crate::{
    AuditFault, AuditReport, Checkpoint, CheckpointSchema, EventFilter, EventsOf, ExportError, ExportFilter,
    ExportFormat, Head, MAX_PAGE, Store,
};

impl Sqlite {
    /// Where every log is now.
    pub fn checkpoint(&self, at_ms: u64) -> Result<Checkpoint, Problem> {
        self.read(|sql| {
            let mut statement =
                sql.prepare("SELECT tenant, session, seq, head FROM logs WHERE seq > 0 ORDER BY tenant, session")?;
            let mut rows = statement.query([])?;
            let mut logs = Vec::new();
            while let Some(row) = rows.next()? {
                let log = log_key(row.get(0)?, row.get(1)?)?;
                let hash = digest(row.get(3)?);
                logs.push(Head { tenant: log.tenant, session: log.session, seq: row.get(2)?, hash });
            }
            Ok(Checkpoint { schema: CheckpointSchema::V1, database: open::database_id(sql)?, at_ms, logs })
        })
    }

    /// Compares everything with its hashes, and with a checkpoint where there
    /// is one. Faults are in the report; an error means that it could not be
    /// read.
    pub fn verify(&self, checkpoint: Option<&Checkpoint>) -> Result<AuditReport, Problem> {
        let mut sql = open::reader(&self.path).map_err(|fault| fault.problem(&self.path))?;
        verify(&mut sql, checkpoint).map_err(|fault| fault.problem(&self.path))
    }

    /// Writes events in the order in which they were recorded, and answers how
    /// many. Payloads are not among them: those can be erased.
    pub fn export(&self, to: &mut dyn Write, format: ExportFormat, filter: &ExportFilter) -> Result<u64, ExportError> {
        let database = self.read(open::database_id).map_err(ExportError::Problem)?;
        let mut written = 0;
        let mut put = |events: &[Logged]| {
            for logged in events.iter().filter(|logged| {
                filter.since_ms.is_none_or(|since| logged.event.at_ms >= since)
                    && filter.before_ms.is_none_or(|before| logged.event.at_ms < before)
            }) {
                audit::write(to, format, &database, logged).map_err(ExportError::Write)?;
                written += 1;
            }
            Ok(())
        };
        match &filter.session {
            Some(session) => {
                let Some(tenant) = &filter.tenant else {
                    let problem = Problem::new(Code::Usage, "a session is one of a tenant: name the tenant too");
                    return Err(ExportError::Problem(problem));
                };
                let mut next = EventFilter { of: EventsOf::Session(session.clone()), after: 0, limit: MAX_PAGE };
                loop {
                    let events = self.events(tenant, &next).map_err(ExportError::Problem)?;
                    let Some(last) = events.last() else { break };
                    next.after = last.seq;
                    put(&events)?;
                }
            }
            None => {
                let mut after = 0;
                loop {
                    let (events, last) = self
                        .read(|sql| recorded::after(sql, filter.tenant.as_ref(), after, MAX_PAGE))
                        .map_err(ExportError::Problem)?;
                    let Some(last) = last else { break };
                    after = last;
                    put(&events.into_iter().map(|event| event.logged).collect::<Vec<_>>())?;
                }
            }
        }
        Ok(written)
    }
}

/// What a checkpoint saw of each log: taken out as logs are read.
type Seen<'a> = BTreeMap<LogKey, &'a Head>;

fn verify(sql: &mut Connection, checkpoint: Option<&Checkpoint>) -> Result<AuditReport, Fault> {
    let mut findings = Findings::default();
    let mut report = AuditReport {
        database: open::database_id(sql)?,
        logs: 0,
        events: 0,
        payloads: 0,
        erased: 0,
        faults: 0,
        findings: Vec::new(),
    };
    if checkpoint.is_some_and(|checkpoint| checkpoint.database != report.database) {
        findings.push(None, None, AuditFault::OtherDatabase);
    }
    let mut seen: Seen<'_> =
        checkpoint.iter().flat_map(|checkpoint| &checkpoint.logs).map(|head| (head.log(), head)).collect();
    let mut log = Some(0);
    while let Some(after) = log {
        log = one_log(sql, after, &mut seen, &mut report, &mut findings)?;
    }
    // Whatever the checkpoint saw and nobody read is gone.
    for (log, head) in seen {
        findings.push(Some(&log), None, AuditFault::Truncated { checkpoint: head.seq });
    }
    let lost: u64 =
        sql.query_row("SELECT count(*) FROM events WHERE log NOT IN (SELECT log FROM logs)", [], |row| row.get(0))?;
    if lost > 0 {
        findings.push(None, None, AuditFault::LogLost { events: lost });
    }
    payloads::verify(sql, &mut report, &mut findings)?;
    (report.faults, report.findings) = (findings.faults, findings.listed);
    Ok(report)
}

/// Verifies the first log after this one, and says which it was. Each log is
/// read in a transaction of its own.
fn one_log(
    sql: &mut Connection,
    after: i64,
    seen: &mut Seen<'_>,
    report: &mut AuditReport,
    findings: &mut Findings,
) -> Result<Option<i64>, Fault> {
    let sql = sql.transaction_with_behavior(TransactionBehavior::Deferred)?;
    let found: Option<(i64, String, String, u64, [u8; 32])> = sql
        .prepare_cached("SELECT log, tenant, session, seq, head FROM logs WHERE log > ? ORDER BY log LIMIT 1")?
        .query_row([after], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
        .optional()?;
    let Some((row, tenant, session, end, head)) = found else { return Ok(None) };
    let log = log_key(tenant, session)?;
    let seen = seen.remove(&log);
    let (mut last, mut previous) = (0, None);
    let mut statement = sql.prepare_cached(
        "SELECT seq, at_ms, id, action, events.body, hash FROM events LEFT JOIN actions USING (action) \
         WHERE events.log = ? ORDER BY seq",
    )?;
    let mut rows = statement.query([row])?;
    while let Some(row) = rows.next()? {
        let seq = row.get(0)?;
        if seq != last + 1 {
            findings.push(Some(&log), Some(seq), AuditFault::Gap { expected: last + 1 });
        }
        report.events += 1;
        let Ok(event) = Sealed::read(row) else {
            // Not even of a kind that we write.
            findings.push(Some(&log), Some(seq), AuditFault::Edited);
            (last, previous) = (seq, None);
            continue;
        };
        let Sealed { at_ms, action, body, hash: stored } = event;
        let link = Link { log: &log, seq, at_ms, action: action.as_ref(), body: &body };
        // After a gap nothing is known of the event before: the gap is the fault.
        if seq == last + 1 && link.hash(previous.as_ref()) != stored {
            findings.push(Some(&log), Some(seq), AuditFault::Edited);
        }
        if seen.is_some_and(|head| head.seq == seq && head.hash != stored) {
            findings.push(Some(&log), Some(seq), AuditFault::Rewritten);
        }
        if let Ok(what) = serde_json::from_slice(&body) {
            let action = action.as_ref().zip(row.get(3)?);
            for fault in payloads::lost(&sql, &log, action, &what)? {
                findings.push(Some(&log), Some(seq), fault);
            }
        }
        (last, previous) = (seq, Some(stored));
    }
    if end != last || previous.as_ref().is_some_and(|hash| raw(hash) != head) {
        findings.push(Some(&log), None, AuditFault::HeadMismatch);
    }
    if let Some(head) = seen.filter(|head| head.seq > last) {
        findings.push(Some(&log), None, AuditFault::Truncated { checkpoint: head.seq });
    }
    report.logs += 1;
    Ok(Some(row))
}

/// What is sealed of an event besides its number.
struct Sealed {
    at_ms: u64,
    action: Option<Id>,
    body: Vec<u8>,
    hash: Digest,
}

impl Sealed {
    /// From the columns seq, at_ms, action's id, action, body, hash.
    fn read(row: &Row<'_>) -> Result<Self, Fault> {
        let action: Option<String> = row.get(2)?;
        Ok(Self {
            at_ms: row.get(1)?,
            action: action.as_deref().map(id).transpose()?,
            body: row.get_ref(4)?.as_bytes().map_err(rusqlite::Error::from)?.to_vec(),
            hash: digest(row.get(5)?),
        })
    }
}

pub(super) fn log_key(tenant: String, session: String) -> Result<LogKey, Fault> {
    let tenant: Name = tenant.parse().map_err(Fault::Damaged)?;
    let session: Id = session.parse().map_err(Fault::Damaged)?;
    Ok(LogKey { tenant, session })
}
