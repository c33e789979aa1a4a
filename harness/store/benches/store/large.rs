//! A log of ten million events against an empty one.

use rusqlite::{Connection, params};

use super::actions::in_one;
use super::{Ours, TURNS, percentile};

/// How many events the large one has.
const EVENTS: usize = 10_000_000;

/// Events of an action.
const OF_ACTION: usize = 7;

pub(crate) fn compare() {
    let (empty, full) = (Ours::new(), Ours::new());
    fill(&full);
    let mut times = [Vec::new(), Vec::new()];
    let mut n = 0;
    for _ in 0..2 * TURNS {
        empty.measure(in_one, &mut n, &mut times[0]);
        // Behind what is there.
        let mut beyond = n + EVENTS;
        full.measure(in_one, &mut beyond, &mut times[1]);
        n = beyond - EVENTS;
    }
    let [mut empty, mut full] = times;
    println!("\n{:<36} {:>12} {:>12} {:>7}", "all in one commit, one caller", "empty", "10 M events", "ratio");
    for place in [50, 99] {
        let (empty, full) = (percentile(&mut empty, place), percentile(&mut full, place));
        println!("{:<36} {empty:>9.0} us {full:>9.0} us {:>7.2}", format!("p{place}"), full / empty);
    }
}

/// Straight into the tables, without the hashes: nobody verifies it.
fn fill(ours: &Ours) {
    let mut sql = Connection::open(ours.folder.path().join("store.db")).unwrap();
    sql.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; PRAGMA foreign_keys = OFF").unwrap();
    let commit = in_one(0).remove(0);
    let body = serde_json::to_vec(&commit.events[0].what).unwrap();
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
            "INSERT INTO payloads (action, role, sha256, bytes) VALUES (?, 'plan', randomblob(32), zeroblob(300))",
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
    sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}
