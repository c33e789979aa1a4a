//! The floor: the same rows, written with nothing around them.

use std::cell::Cell;

use glovebox_events::{Action, What};
use glovebox_store::{Commit, Options, Record, Sqlite};
use rusqlite::{CachedStatement, Connection, Params, params};

/// A file with the tables of a store, and one connection.
pub(crate) struct Bare {
    sql: Connection,
    /// The last action and the last log.
    rows: Cell<(i64, i64)>,
    session: Cell<usize>,
    _folder: tempfile::TempDir,
}

/// What one transaction writes, ready to be bound.
pub(crate) struct Rows {
    action: Action,
    body: Vec<u8>,
    events: Vec<(u64, Vec<u8>, [u8; 32])>,
    payloads: Vec<([u8; 32], Vec<u8>)>,
}

impl Bare {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        drop(Sqlite::open(folder.path(), &Options::default()).unwrap());
        let sql = Connection::open(folder.path().join("store.db")).unwrap();
        sql.execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4096; PRAGMA cache_size = -16384; \
             PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF",
        )
        .unwrap();
        sql.set_prepared_statement_cache_capacity(64);
        Self { sql, rows: Cell::default(), session: Cell::default(), _folder: folder }
    }

    pub(crate) fn rows(&self, commits: Vec<Commit>) -> Rows {
        let mut rows = None;
        let (mut events, mut payloads) = (Vec::new(), Vec::new());
        for commit in commits {
            for event in &commit.events {
                let body = serde_json::to_vec::<What>(&event.what).unwrap();
                events.push((event.at_ms, body, [7; 32]));
            }
            payloads.extend(commit.payloads.into_iter().map(|payload| {
                let mut digest = [0; 32];
                digest.copy_from_slice(&payload.sha256.as_str().as_bytes()[..32]);
                (digest, payload.bytes)
            }));
            for record in commit.records {
                if let Record::Action(action) = record {
                    rows = Some(*action);
                }
            }
        }
        let action = rows.unwrap();
        let body = serde_json::to_vec(&action).unwrap();
        Rows { action, body, events, payloads }
    }

    fn statement(&self, text: &str) -> CachedStatement<'_> {
        self.sql.prepare_cached(text).unwrap()
    }

    fn run(&self, text: &str, params: impl Params) {
        self.statement(text).execute(params).unwrap();
    }

    pub(crate) fn write(&self, rows: &Rows) {
        let action = &rows.action;
        let (mut number, mut log) = self.rows.get();
        let session = self.session.get();
        number += 1;
        self.run("BEGIN IMMEDIATE", []);
        if session.is_multiple_of(100) {
            self.run(
                "INSERT INTO logs (tenant, session, seq, head) VALUES ('local', ?, 0, zeroblob(32))",
                [format!("session-{session}")],
            );
            log = self.sql.last_insert_rowid();
        }
        let mut seq = (session % 100) * rows.events.len();
        self.run(
            "INSERT INTO actions (tenant, id, log, task, user, state, version, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                "local",
                action.id.as_str(),
                log,
                action.task.as_str(),
                "ann",
                action.state.as_str(),
                action.version,
                rows.body
            ],
        );
        for (at_ms, body, hash) in &rows.events {
            seq += 1;
            self.run(
                "INSERT INTO events (log, seq, at_ms, action, body, hash) VALUES (?, ?, ?, ?, ?, ?)",
                params![log, seq as u64, at_ms, number, body, hash],
            );
        }
        self.run("UPDATE logs SET seq = ?, head = ? WHERE log = ?", params![seq as u64, [7u8; 32], log]);
        for (sha256, bytes) in &rows.payloads {
            self.run(
                "INSERT INTO payloads (action, role, sha256, bytes) VALUES (?, 'observation', ?, ?)",
                params![number, sha256, bytes],
            );
        }
        self.run(
            "INSERT INTO claims (tenant, capability, at_ms, action) VALUES ('local', 'text.count', ?, ?)",
            params![rows.events[0].0, number],
        );
        self.run(
            "INSERT INTO tasks (tenant, task, actions, run_us, artifact_bytes) VALUES ('local', ?, 1, 300, 0) \
             ON CONFLICT DO UPDATE SET actions = actions + 1, run_us = run_us + 300",
            [action.task.as_str()],
        );
        self.run("COMMIT", []);
        self.rows.set((number, log));
        self.session.set(session + 1);
    }
}
