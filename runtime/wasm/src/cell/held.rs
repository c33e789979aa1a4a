//! What the host holds of each template and each cell.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use glovebox_runtime::job::UngrantedImports;
use rustix::process::{Signal, pidfd_send_signal};
use tokio::sync::Notify;

use super::wire::Death;
use crate::component::Artefact;

/// How long after a cell's end the kernel's word on it may take to arrive.
const FATE_MAX: Duration = Duration::from_secs(1);
/// Cells kept ready for a component that is used again and again: as many as
/// start on a few processors before the next one is made.
const IDLE: usize = 4;
/// Uses of a component from which on cells are kept ready for the next.
const HOT: u64 = 2;

/// A process that makes cells of one component.
pub(super) struct Template {
    pub(super) artefact: Arc<Artefact>,
    pub(super) imports: UngrantedImports,
    idle: Mutex<VecDeque<Cell>>,
    pub(super) arrived: Notify,
    pub(super) waiting: AtomicUsize,
    pub(super) uses: AtomicU64,
    /// It makes no more cells.
    over: AtomicBool,
    /// Why the last cell could not be made.
    pub(super) failure: Mutex<Option<String>>,
}

/// A cell, and the only way to it.
pub(super) struct Cell {
    pub(super) channel: UnixStream,
    pub(super) process: Process,
}

/// A process that waits for its claim, or serves it. Dropping it ends it.
pub(super) struct Process {
    pub(super) handle: OwnedFd,
    pub(super) pid: i32,
    pub(super) fate: Arc<Fate>,
}

/// How a cell ended, once it has.
#[derive(Default)]
pub(super) struct Fate {
    death: OnceLock<Death>,
    known: Notify,
}

impl Template {
    pub(super) fn new(artefact: Arc<Artefact>, imports: UngrantedImports) -> Self {
        Self {
            artefact,
            imports,
            idle: Mutex::default(),
            arrived: Notify::new(),
            waiting: AtomicUsize::new(0),
            uses: AtomicU64::new(0),
            over: AtomicBool::new(false),
            failure: Mutex::default(),
        }
    }

    /// Whether it makes no more cells.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// How many wait for a cell.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// How many cells should be idle or on their way. The first is made before
    /// it is wanted; more only for what is used again.
    pub(super) fn wanted(&self) -> usize {
        let ready = match self.uses.load(Ordering::Relaxed) {
            0 => 1,
            uses if uses < HOT => 0,
            _ => IDLE,
        };
        ready.max(self.waiting())
    }

    pub(super) fn idle(&self) -> MutexGuard<'_, VecDeque<Cell>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A cell is there.
    pub(super) fn arrived(&self, cell: Cell) {
        self.idle().push_back(cell);
        self.arrived.notify_one();
    }

    /// No cell could be made. One of those who wait is told.
    pub(super) fn failed(&self, why: String) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            self.arrived.notify_one();
        }
    }

    /// No more cells come; those that are idle go.
    pub(super) fn close(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.idle().clear();
        self.arrived.notify_waiters();
    }
}

/// Counts those who wait for a cell, also if they stop waiting.
pub(super) struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    pub(super) fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Process {
    /// Ends it, whatever it does.
    pub(super) fn kill(&self) {
        // One that is gone already needs no ending.
        let _ = pidfd_send_signal(self.handle.as_fd(), Signal::KILL);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Fate {
    pub(super) fn seal(&self, death: Death) {
        let _ = self.death.set(death);
        self.known.notify_waiters();
    }

    /// How it ended; waits a moment for the kernel's word.
    pub(super) async fn death(&self) -> Option<Death> {
        let known = self.known.notified();
        tokio::pin!(known);
        known.as_mut().enable();
        if self.death.get().is_none() {
            let _ = tokio::time::timeout(FATE_MAX, known).await;
        }
        self.death.get().copied()
    }
}
