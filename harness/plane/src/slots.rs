//! `limits.concurrency`: so many actions of a capability at one time, over
//! all processes that share a state folder.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use env_contracts::{CapabilityRef, Code, Problem};
use rustix::fs::{FlockOperation, Mode, OFlags};

/// Files of slots that are kept open, of all capabilities together: opening one
/// takes longer than locking it, and a process has some thousand descriptors.
const KEPT: usize = 256;

/// The slots of all capabilities, as locks on files. The kernel gives a lock
/// back when its process ends, however it ends.
///
/// Cloning shares what is kept open.
#[derive(Clone)]
pub(crate) struct Slots(Arc<Inner>);

struct Inner {
    dir: PathBuf,
    /// Files that nobody here holds the lock of, by capability and number. Others
    /// may: a file that is kept is a shorter way to its lock, and no right.
    free: Mutex<HashMap<CapabilityRef, Vec<(u32, OwnedFd)>>>,
}

/// A slot, held.
pub(crate) struct Slot {
    _held: Option<Held>,
}

struct Held {
    slots: Slots,
    capability: CapabilityRef,
    number: u32,
    /// Absent only while it is given back.
    file: Option<OwnedFd>,
}

impl Slots {
    pub(crate) fn new(run_root: &Path) -> Self {
        Self(Arc::new(Inner { dir: run_root.with_file_name("slots"), free: Mutex::default() }))
    }

    /// Takes a free slot of the capability.
    ///
    /// # Errors
    /// `busy` if all are taken, `state-unavailable` if the folder can't be
    /// used.
    pub(crate) fn enter(&self, capability: &CapabilityRef, limit: Option<u32>) -> Result<Slot, Problem> {
        let Some(limit) = limit else { return Ok(Slot { _held: None }) };
        let failed =
            |error: std::io::Error| glovebox_runtime::io_problem("cannot take a slot", Code::StateUnavailable, &error);
        let held = |number, file| {
            let capability = capability.clone();
            Slot { _held: Some(Held { slots: self.clone(), capability, number, file: Some(file) }) }
        };
        // Another contract may have had a higher limit.
        while let Some((number, file)) = self.kept(capability).filter(|(number, _)| *number < limit) {
            if lock(&file).map_err(failed)? {
                return Ok(held(number, file));
            }
        }
        for number in 0..limit {
            let file = self.open(capability, number).map_err(failed)?;
            if lock(&file).map_err(failed)? {
                return Ok(held(number, file));
            }
        }
        let message = format!("{limit} actions of `{capability}` are running, which is its `limits.concurrency`");
        Err(Problem::new(Code::Busy, message).with_help("wait until one of them ends"))
    }

    /// A file that is kept open: of the lowest number, since those hold for any
    /// limit.
    fn kept(&self, capability: &CapabilityRef) -> Option<(u32, OwnedFd)> {
        let mut free = self.free();
        let files = free.get_mut(capability)?;
        let lowest = files.iter().enumerate().min_by_key(|(_, (number, _))| *number)?.0;
        Some(files.swap_remove(lowest))
    }

    fn open(&self, capability: &CapabilityRef, number: u32) -> std::io::Result<OwnedFd> {
        let path = self.0.dir.join(format!("{capability}.{number}"));
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR) {
            Err(rustix::io::Errno::NOENT) => {
                glovebox_runtime::private_dir(&self.0.dir)?;
                Ok(rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?)
            }
            opened => Ok(opened?),
        }
    }

    fn free(&self) -> MutexGuard<'_, HashMap<CapabilityRef, Vec<(u32, OwnedFd)>>> {
        self.0.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Locks a file, unless somebody else has. One that was cleaned away meanwhile is
/// nobody's: the next who looks makes another under its name.
fn lock(file: &OwnedFd) -> std::io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(rustix::fs::fstat(file)?.st_nlink > 0),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else { return };
        // What can't be unlocked is closed, which unlocks it.
        if rustix::fs::flock(&file, FlockOperation::Unlock).is_err() {
            return;
        }
        let mut free = self.slots.free();
        if free.values().map(Vec::len).sum::<usize>() >= KEPT {
            free.clear();
        }
        free.entry(self.capability.clone()).or_default().push((self.number, file));
    }
}
