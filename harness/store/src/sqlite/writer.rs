//! One connection writes, in the hands of one thread at a time: whoever commits,
//! where nobody else does, and else a thread of its own. What waits for that one
//! while the disk syncs is written by its next transaction together.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
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
    commit: Commit,
    answer: oneshot::Sender<Answer>,
    /// Counted until it is written.
    _turn: Turn,
}

/// One of those who wait for the thread.
struct Turn(Arc<AtomicUsize>);

impl Turn {
    fn of(waiting: &Arc<AtomicUsize>) -> Self {
        waiting.fetch_add(1, Ordering::SeqCst);
        Self(waiting.clone())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The way to the connection that writes. Cloning shares it.
#[derive(Clone)]
pub(super) struct Desk {
    writer: Arc<Mutex<Writer>>,
    /// How many wait for the thread, or are being written by it.
    waiting: Arc<AtomicUsize>,
    /// Whether several waited at once when it last wrote: then they had better
    /// do so again, or each would sync for itself.
    crowded: Arc<AtomicBool>,
}

impl Desk {
    pub(super) fn new(writer: Writer) -> Self {
        Self { writer: Arc::new(Mutex::new(writer)), waiting: Arc::default(), crowded: Arc::default() }
    }

    /// A place in the queue, behind all that were taken before.
    pub(super) fn order(&self, commit: Commit) -> (Order, oneshot::Receiver<Answer>) {
        let (answer, answered) = oneshot::channel();
        (Order { commit, answer, _turn: Turn::of(&self.waiting) }, answered)
    }

    /// Writes a commit on this very thread where nobody else writes or waits,
    /// in this process or another: to hand it over and to be woken takes as long
    /// as to write it. Gives it back where it has to wait for its turn.
    pub(super) fn at_once(&self, commit: Commit) -> ControlFlow<Answer, Commit> {
        // What erases waits for readers afterwards.
        if self.crowded.load(Ordering::Relaxed) || erases(&commit) {
            return ControlFlow::Continue(commit);
        }
        let mut writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::WouldBlock) => return ControlFlow::Continue(commit),
            Err(TryLockError::Poisoned(_)) => return ControlFlow::Break(Err(gone())),
        };
        // Looked at with the connection in hand: whoever was here before us is
        // either counted or written.
        if self.waiting.load(Ordering::SeqCst) > 0 || !writer.begin_at_once() {
            return ControlFlow::Continue(commit);
        }
        let answer = writer.write(&[&commit], true).pop();
        ControlFlow::Break(answer.unwrap_or_else(|| Err(gone())))
    }

    /// The thread: until nobody can order any more.
    pub(super) fn run(self, mut orders: mpsc::Receiver<Order>) {
        let mut batch = Vec::new();
        while let Some(first) = orders.blocking_recv() {
            batch.push(first);
            // Whoever panicked with it in hand left it in the middle of something.
            let Ok(mut writer) = self.writer.lock() else { return };
            while batch.len() < MAX_BATCH
                && let Ok(order) = orders.try_recv()
            {
                batch.push(order);
            }
            self.crowded.store(batch.len() > 1, Ordering::Relaxed);
            let commits: Vec<&Commit> = batch.iter().map(|order| &order.commit).collect();
            let answers = writer.write(&commits, false);
            if commits.iter().any(|commit| erases(commit)) {
                writer.scrub();
            }
            drop(writer);
            // Nobody counts as waiting any more once the first is told: what they
            // do next they can do at once.
            let askers: Vec<_> = batch.drain(..).map(|order| order.answer).collect();
            for (asker, answer) in askers.into_iter().zip(answers) {
                // Whoever stopped waiting finds it in the log.
                let _ = asker.send(answer);
            }
        }
    }
}

/// The connection that writes.
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
    /// Begins a transaction, unless another process is in one: that can take
    /// long, and whoever runs other tasks besides must not wait for it.
    fn begin_at_once(&mut self) -> bool {
        let begun = self.sql.busy_handler(None::<fn(i32) -> bool>).is_ok() && self.step("BEGIN IMMEDIATE").is_ok();
        // Without it the next transaction would give up at once.
        let waits = open::wait_for_others(&mut self.sql).is_ok();
        if begun && !waits {
            self.roll_back();
        }
        begun && waits
    }

    /// One transaction. Nobody is answered before it is durable: even a
    /// conflict may be one with a commit of the same batch.
    fn write(&self, batch: &[&Commit], begun: bool) -> Vec<Answer> {
        match self.transaction(batch, begun) {
            Ok(answers) => answers,
            Err(fault) => {
                self.roll_back();
                let problem = fault.problem(&self.path);
                batch.iter().map(|_| Err(StoreError::Problem(problem.clone()))).collect()
            }
        }
    }

    fn roll_back(&self) {
        if !self.sql.is_autocommit() {
            // What can't be rolled back either is gone with the connection's journal.
            let _ = self.sql.execute_batch("ROLLBACK");
        }
    }

    fn transaction(&self, batch: &[&Commit], begun: bool) -> Result<Vec<Answer>, Fault> {
        if !begun {
            self.step("BEGIN IMMEDIATE")?;
        }
        let mut answers = Vec::with_capacity(batch.len());
        // Alone, a commit needs none: the whole transaction is its own.
        let among_others = batch.len() > 1;
        for commit in batch {
            if among_others {
                self.step("SAVEPOINT one")?;
            }
            let answer = match apply(&self.sql, commit) {
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
