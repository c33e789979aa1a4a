//! Notices commits of other processes, while somebody listens.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::watch;

use super::fault::Fault;
use super::open;
use crate::WATCH_EVERY;

/// Who listens, and whether a thread looks.
pub(super) struct Watcher {
    changes: watch::Sender<u64>,
    looking: Arc<Mutex<bool>>,
}

impl Watcher {
    pub(super) fn new() -> Self {
        Self { changes: watch::Sender::new(0), looking: Arc::default() }
    }

    /// What ticks.
    pub(super) fn changes(&self) -> watch::Sender<u64> {
        self.changes.clone()
    }

    /// Listens from now on: a commit after this call is noticed.
    pub(super) fn listen(&self, path: &Path) -> Result<watch::Receiver<u64>, Fault> {
        let receiver = self.changes.subscribe();
        let mut looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        if !*looking {
            let sql = open::reader(path)?;
            let version = data_version(&sql)?;
            let (changes, state) = (self.changes.clone(), Arc::clone(&self.looking));
            std::thread::Builder::new()
                .name("store-watch".into())
                .spawn(move || look(&sql, version, &changes, &state))
                .map_err(|error| open::unavailable(path, &format!("no thread to watch it: {error}")))?;
            *looking = true;
        }
        Ok(receiver)
    }
}

/// Until nobody listens.
fn look(sql: &Connection, mut version: i64, changes: &watch::Sender<u64>, looking: &Mutex<bool>) {
    loop {
        std::thread::sleep(WATCH_EVERY);
        {
            // Under the lock: who listens from now on starts another thread.
            let mut looking = looking.lock().unwrap_or_else(PoisonError::into_inner);
            if changes.receiver_count() == 0 {
                *looking = false;
                return;
            }
        }
        // A failed look may have missed something: tick, and whoever listens
        // finds the failure when it reads.
        let now = data_version(sql).ok();
        if now != Some(version) {
            version = now.unwrap_or(version);
            changes.send_modify(|count| *count = count.wrapping_add(1));
        }
    }
}

/// A number that changes with each commit of another connection.
fn data_version(sql: &Connection) -> Result<i64, Fault> {
    Ok(sql.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
}
