//! A file with a log of ten million events.

use std::path::Path;

use rusqlite::{Connection, params};

/// How many events it has.
pub(crate) const EVENTS: usize = 10_000_000;

/// Events of an action.
const OF_ACTION: usize = 7;

/// Straight into the tables, without the hashes: nobody verifies it.
pub(crate) fn fill(folder: &Path) {
    let mut sql = Connection::open(folder.join("store.db")).unwrap();
    sql.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; PRAGMA foreign_keys = OFF",
    )
    .unwrap();
    // As long as an event of the usual kind.
    let body = vec![b' '; 300];
    let document = b"{}";
    let transaction = sql.transaction().unwrap();
    {
        let prepare = |text| transaction.prepare_cached(text).unwrap();
        let mut log =
            prepare("INSERT INTO logs (log, tenant, session, seq, head) VALUES (?, 'local', ?, ?, zeroblob(32))");
        let mut action = prepare(
            "INSERT INTO actions (action, tenant, id, log, task, user, state, version, body) \
             VALUES (?, 'local', ?, ?, ?, 'ann', 'succeeded', 7, ?)",
        );
        let mut event =
            prepare("INSERT INTO events (log, seq, at_ms, action, body, hash) VALUES (?, ?, ?, ?, ?, randomblob(32))");
        let mut payload = prepare(
            "INSERT INTO payloads (action, role, sha256, bytes) VALUES (?, 'plan', randomblob(32), zeroblob(100))",
        );
        let mut claim =
            prepare("INSERT INTO claims (tenant, capability, at_ms, action) VALUES ('local', 'text.count', ?, ?)");
        for n in 0..EVENTS / OF_ACTION {
            let (row, session) = (n as u64 + 1, n as u64 / 100 + 1);
            if n.is_multiple_of(100) {
                log.execute(params![session, format!("old-{session}"), 100 * OF_ACTION as u64]).unwrap();
            }
            let id = format!("{n:012x}-7000-8000-0123456789ab");
            action.execute(params![row, id, session, format!("old-{session}"), document]).unwrap();
            for seq in 0..OF_ACTION {
                let seq = (n % 100 * OF_ACTION + seq + 1) as u64;
                event.execute(params![session, seq, n as u64, row, body]).unwrap();
            }
            for _ in 0..4 {
                payload.execute([row]).unwrap();
            }
            claim.execute(params![n as u64, row]).unwrap();
        }
    }
    transaction.commit().unwrap();
}
