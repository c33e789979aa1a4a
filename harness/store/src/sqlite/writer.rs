//! The one thread that writes. Whatever waits while the disk syncs is written
//! by the next transaction together.

use std::path::PathBuf;
use std::time::Duration;

use env_contracts::{Code, Problem};
use glovebox_events::{TaskEvent, What};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};

use super::apply::{Stop, apply};
use super::fault::Fault;
use super::open;
use crate::{Commit, StoreError};

/// The most commits of one transaction: a bound on how long the others of it,
/// and other processes, wait for the last.
const MAX_BATCH: usize = 256;

/// How many commits may wait; who comes after them waits for a place.
const QUEUE: usize = 1024;

/// How long erasing waits for readers of other processes.
const SCRUB: Duration = Duration::from_secs(1);

type Answer = Result<Vec<u64>, StoreError>;

/// A commit and who waits for it.
pub(super) struct Order {
    pub(super) commit: Commit,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// The writing thread's own.
pub(super) struct Writer {
    pub(super) sql: Connection,
    pub(super) path: PathBuf,
    pub(super) changes: watch::Sender<u64>,
}

/// The way to the thread.
pub(super) fn queue() -> (mpsc::Sender<Order>, mpsc::Receiver<Order>) {
    mpsc::channel(QUEUE)
}

impl Writer {
    /// Until nobody can order any more.
    pub(super) fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        let mut batch = Vec::new();
        while let Some(first) = orders.blocking_recv() {
            batch.push(first);
            while batch.len() < MAX_BATCH
                && let Ok(order) = orders.try_recv()
            {
                batch.push(order);
            }
            let answers = self.write(&batch);
            if batch.iter().any(|order| erases(&order.commit)) {
                self.scrub();
            }
            for (order, answer) in batch.drain(..).zip(answers) {
                // Whoever stopped waiting finds it in the log.
                let _ = order.answer.send(answer);
            }
        }
    }

    /// One transaction. Nobody is answered before it is durable: even a
    /// conflict may be one with a commit of the same batch.
    fn write(&self, batch: &[Order]) -> Vec<Answer> {
        match self.transaction(batch) {
            Ok(answers) => answers,
            Err(fault) => {
                if !self.sql.is_autocommit() {
                    // What can't be rolled back either is gone with the connection's journal.
                    let _ = self.sql.execute_batch("ROLLBACK");
                }
                let problem = fault.problem(&self.path);
                batch.iter().map(|_| Err(StoreError::Problem(problem.clone()))).collect()
            }
        }
    }

    fn transaction(&self, batch: &[Order]) -> Result<Vec<Answer>, Fault> {
        self.step("BEGIN IMMEDIATE")?;
        let mut answers = Vec::with_capacity(batch.len());
        // Alone, a commit needs none: the whole transaction is its own.
        let among_others = batch.len() > 1;
        for order in batch {
            if among_others {
                self.step("SAVEPOINT one")?;
            }
            let answer = match apply(&self.sql, &order.commit) {
                Ok(seqs) => Ok(seqs),
                Err(Stop::Conflict(conflict)) => Err(StoreError::Conflict(conflict)),
                Err(Stop::Fault(fault)) if self.only_its_own(&fault) => Err(fault.problem(&self.path).into()),
                Err(Stop::Fault(fault)) => return Err(fault),
            };
            if among_others {
                if answer.is_err() {
                    self.step("ROLLBACK TO one")?;
                }
                self.step("RELEASE one")?;
            }
            answers.push(answer);
        }
        if answers.iter().all(Result::is_err) {
            self.step("ROLLBACK")?;
        } else {
            self.step("COMMIT")?;
            self.changes.send_modify(|count| *count = count.wrapping_add(1));
        }
        Ok(answers)
    }

    /// Whether the others of the batch can go on without this commit.
    fn only_its_own(&self, fault: &Fault) -> bool {
        let constraint =
            |error: &rusqlite::Error| error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation);
        match fault {
            Fault::Sql(error) => constraint(error) && !self.sql.is_autocommit(),
            Fault::Damaged(_) | Fault::Misuse(_) | Fault::Problem(_) => true,
        }
    }

    /// What was erased is overwritten in the file; here it goes from the
    /// write-ahead log too. A reader of another process can keep it there until
    /// the log is next emptied.
    fn scrub(&mut self) {
        let emptied = self
            .sql
            .busy_timeout(SCRUB)
            .and_then(|()| self.sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        // The commit is durable either way, and the next one empties the log.
        let _ = emptied.and_then(|()| open::wait_for_others(&mut self.sql));
    }

    fn step(&self, statement: &'static str) -> Result<(), Fault> {
        self.sql.prepare_cached(statement)?.execute([])?;
        Ok(())
    }
}

fn erases(commit: &Commit) -> bool {
    let erased = |what: &What| matches!(what, What::Erased { .. } | What::Task { event: TaskEvent::Erased { .. }, .. });
    commit.events.iter().any(|event| erased(&event.what))
}

/// The thread is gone.
pub(super) fn gone() -> StoreError {
    StoreError::Problem(
        Problem::new(Code::BackendError, "the thread that writes the store has ended")
            .with_help("start Glovebox again"),
    )
}
