//! Budgets shared by all processes that use one folder.
//!
//! Every action has a file there, locked as long as its process lives, and
//! named so that the folder alone tells who runs, with how much memory, and
//! who waits since when. A file that nobody locks belongs to a process that is
//! gone. Looking and changing happen under one short lock, the gate.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use env_contracts::{Code, Problem};
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, openat, renameat, unlinkat};

use super::Budgets;
use crate::{Clock as _, SystemClock, io_problem};

/// How often whoever waits looks again. Processes have no other way to tell
/// each other that does not need one of them to be in charge.
const LOOK: Duration = Duration::from_millis(10);

const GATE: &str = "gate";
const WAITS: char = 'w';
const RUNS: char = 'r';

/// A folder of claims.
#[derive(Debug)]
pub(super) struct Shared {
    path: PathBuf,
}

/// Room that other processes see. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct Claim {
    dir: OwnedFd,
    name: String,
    _lock: OwnedFd,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // If it can't be removed, its free lock says the same.
        let _ = unlinkat(&self.dir, &self.name, AtFlags::empty());
    }
}

/// Who is there.
#[derive(Default)]
struct Count {
    memory: u64,
    running: u64,
    waiting: u64,
    /// The name of whoever has waited longest.
    first: Option<String>,
}

impl Shared {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Waits for its turn and for room. Blocks.
    ///
    /// # Errors
    /// `busy`, and `state-unavailable` if the folder can't be used.
    pub(super) fn enter(&self, budgets: &Budgets, memory: u64, wanted: &AtomicBool) -> Result<Claim, Problem> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let failed = |error: std::io::Error| {
            io_problem(&format!("cannot share budgets in `{}`", self.path.display()), Code::StateUnavailable, &error)
        };
        let io = |errno: rustix::io::Errno| failed(errno.into());
        let dir = open(&self.path).map_err(failed)?;
        let gate_flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
        let gate = openat(&dir, GATE, gate_flags, Mode::RUSR | Mode::WUSR).map_err(io)?;

        flock(&gate, FlockOperation::LockExclusive).map_err(io)?;
        let since = SystemClock.now().unix_millis;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{WAITS}-{since:016}-{:010}-{number:010}-{memory}", std::process::id());
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        let lock = openat(&dir, &name, flags, Mode::RUSR | Mode::WUSR).map_err(io)?;
        let mut claim = Claim { dir, name, _lock: lock };
        flock(&claim._lock, FlockOperation::NonBlockingLockExclusive).map_err(io)?;

        let start = Instant::now();
        let mut first_look = true;
        loop {
            let there = count(&claim.dir).map_err(failed)?;
            let fits = there.memory + memory <= budgets.memory.0 && there.running < u64::from(budgets.actions);
            if fits && there.first.as_deref() == Some(claim.name.as_str()) {
                let running = claim.name.replacen(WAITS, &RUNS.to_string(), 1);
                renameat(&claim.dir, &claim.name, &claim.dir, &running).map_err(io)?;
                claim.name = running;
                return Ok(claim);
            }
            // Itself included; those who came later don't push it out.
            if first_look && there.waiting > u64::from(budgets.queue) {
                return Err(Problem::new(Code::Busy, format!("{} actions are waiting already", budgets.queue)));
            }
            first_look = false;
            // Whoever gave up must not stand in the others' way.
            if start.elapsed() >= budgets.wait || !wanted.load(Ordering::Relaxed) {
                return Err(Problem::new(Code::Busy, format!("no room within {:?}", budgets.wait)));
            }
            flock(&gate, FlockOperation::Unlock).map_err(io)?;
            std::thread::sleep(LOOK);
            flock(&gate, FlockOperation::LockExclusive).map_err(io)?;
        }
    }
}

fn open(path: &Path) -> std::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => {
            crate::private_dir(path)?;
            Ok(rustix::fs::open(path, flags, Mode::empty())?)
        }
        opened => Ok(opened?),
    }
}

/// Counts who is there, and removes the claims of processes that are gone.
/// The caller holds the gate.
fn count(dir: &OwnedFd) -> std::io::Result<Count> {
    let mut there = Count::default();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let Some((kind, memory)) = parse(name) else { continue };
        if gone(dir, name) {
            let _ = unlinkat(dir, name, AtFlags::empty());
        } else if kind == RUNS {
            there.memory += memory;
            there.running += 1;
        } else {
            there.waiting += 1;
            if there.first.as_deref().is_none_or(|first| name < first) {
                there.first = Some(name.to_owned());
            }
        }
    }
    Ok(there)
}

fn parse(name: &str) -> Option<(char, u64)> {
    let kind = name.chars().next().filter(|kind| matches!(*kind, WAITS | RUNS))?;
    Some((kind, name.rsplit('-').next()?.parse().ok()?))
}

/// Whether nobody holds the lock of a claim.
fn gone(dir: &OwnedFd, name: &str) -> bool {
    match openat(dir.as_fd(), name, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok(),
        // It went while we looked. Any other error says nothing about it.
        Err(errno) => errno == rustix::io::Errno::NOENT,
    }
}
