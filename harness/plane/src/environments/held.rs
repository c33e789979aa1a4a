//! An environment that one process has to itself.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use env_contracts::{Contract, Limits, Problem};
use glovebox_runtime::bind::remove_tree;
use glovebox_runtime::private_dir;
use glovebox_workspace::{Bounds, Measured, Snapshots, Taken, measure};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::record::{Checkpoint, Environment};
use super::{RECORD, failed, problem, read, write};

const LOCK: &str = "lock";
const LAYERS: &str = "layers";

/// The folder of an environment, locked. Dropping it lets others in.
#[derive(Debug)]
pub(crate) struct Held {
    folder: PathBuf,
    _lock: OwnedFd,
}

impl Held {
    /// Takes the lock of a folder. `None`: somebody has it, or it is not there.
    pub(super) fn take(folder: &Path) -> Result<Option<Self>, Problem> {
        let lock = lock(folder, FlockOperation::NonBlockingLockExclusive)?;
        Ok(lock.map(|lock| Self { folder: folder.to_owned(), _lock: lock }))
    }

    /// Whether somebody has it, without keeping anybody who looks too from seeing
    /// the same.
    pub(super) fn is_taken(folder: &Path) -> Result<bool, Problem> {
        Ok(folder.join(RECORD).exists() && lock(folder, FlockOperation::NonBlockingLockShared)?.is_none())
    }

    /// Its record. `None`: it has not begun.
    pub(crate) fn known(&self) -> Result<Option<Environment>, Problem> {
        read(&self.folder.join(RECORD))
    }

    /// Writes its record.
    pub(crate) fn write(&self, record: &Environment) -> Result<(), Problem> {
        write(&self.folder.join(RECORD), &crate::json(record))
    }

    /// Begins with nothing in it.
    pub(super) fn start(&self, record: &Environment) -> Result<(), Problem> {
        let layer = self.layer(record);
        private_dir(&layer).map_err(|error| failed("make an environment", &error))?;
        self.write(record)
    }

    fn layer(&self, record: &Environment) -> PathBuf {
        self.folder.join(LAYERS).join(record.layer.to_string())
    }

    /// Its folders that a contract keeps, opened, by where the guest sees them.
    pub(crate) fn folders(
        &self,
        record: &Environment,
        contract: &Contract,
    ) -> Result<BTreeMap<String, OwnedFd>, Problem> {
        let layer = self.layer(record);
        let mut folders = BTreeMap::new();
        for mount in contract.kept() {
            let guest = mount.guest.as_str();
            let path = layer.join(name(guest));
            let opened = private_dir(&path).and_then(|()| open(&path));
            folders.insert(guest.to_owned(), opened.map_err(|error| failed("open an environment", &error))?);
        }
        Ok(folders)
    }

    /// What is in its folders.
    pub(crate) fn measured(&self, record: &Environment) -> Result<Measured, Problem> {
        let layer = open(&self.layer(record)).map_err(|error| failed("open an environment", &error))?;
        let no_bounds = Bounds { entries: u64::MAX, bytes: u64::MAX };
        measure(layer.as_fd(), no_bounds).map_err(|error| problem(&error))
    }

    /// Takes a snapshot of its folders: at most what a run may leave there, twice,
    /// since a run may begin with as much as it may write.
    pub(crate) fn take_snapshot(
        &self,
        record: &Environment,
        limits: &Limits,
        snapshots: &Snapshots,
    ) -> Result<Taken, Problem> {
        let layer = open(&self.layer(record)).map_err(|error| failed("open an environment", &error))?;
        let twice = |limit: u64| limit.saturating_mul(2);
        // The folders themselves are entries too.
        let entries = twice(limits.inodes.unwrap_or(u64::MAX)).saturating_add(u64::from(u8::MAX));
        let bytes = twice(limits.storage.map_or(u64::MAX, |size| size.0));
        snapshots.take(layer.as_fd(), Bounds { entries, bytes }).map_err(|error| problem(&error))
    }

    /// Puts what a snapshot holds in the place of its folders. The new ones hold
    /// from the moment on at which the record names them: whoever is killed
    /// before leaves the old ones.
    pub(crate) fn restore(
        &self,
        record: &Environment,
        checkpoint: &Checkpoint,
        snapshots: &Snapshots,
        change: impl FnOnce(&mut Environment),
    ) -> Result<Environment, Problem> {
        let mut next = Environment { layer: record.layer.saturating_add(1), ..record.clone() };
        let path = self.layer(&next);
        self.sweep(record)?;
        private_dir(&path).map_err(|error| failed("restore an environment", &error))?;
        let folder = open(&path).map_err(|error| failed("restore an environment", &error))?;
        snapshots.restore(&checkpoint.tree, folder.as_fd()).map_err(|error| problem(&error))?;
        change(&mut next);
        (next.entries, next.bytes) = (checkpoint.entries, checkpoint.bytes);
        self.write(&next)?;
        self.sweep(&next)?;
        Ok(next)
    }

    /// Takes away layers that don't hold: what was being restored when a process
    /// died, or was there before.
    pub(crate) fn sweep(&self, record: &Environment) -> Result<(), Problem> {
        let holds = self.layer(record);
        for path in super::entries(&self.folder.join(LAYERS))? {
            if path != holds {
                remove(&path).map_err(|error| failed("remove a layer", &error))?;
            }
        }
        Ok(())
    }

    /// Takes it away with all that is in it.
    pub(crate) fn remove(self) -> Result<(), Problem> {
        let folder = open(&self.folder).map_err(|error| failed("end an environment", &error))?;
        // The record is read by whoever looks: it goes first. The lock last.
        let gone = match fs_err::remove_file(self.folder.join(RECORD)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => remove_tree(folder.as_fd(), LOCK).and_then(|()| match fs_err::remove_dir(&self.folder) {
                // Somebody looks at the lock at this moment; who begins here next
                // finds nothing of it.
                Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => Ok(()),
                gone => gone,
            }),
        };
        gone.map_err(|error| failed("end an environment", &error))
    }
}

/// Locks a folder, unless somebody else did.
fn lock(folder: &Path, how: FlockOperation) -> Result<Option<OwnedFd>, Problem> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
    let lock = match rustix::fs::open(folder.join(LOCK), flags, Mode::RUSR | Mode::WUSR) {
        Ok(lock) => lock,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(failed("lock an environment", &errno.into())),
    };
    match rustix::fs::flock(&lock, how) {
        // One that was taken away meanwhile is nobody's.
        Ok(()) => Ok(rustix::fs::fstat(&lock).is_ok_and(|stat| stat.st_nlink > 0).then_some(lock)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(failed("lock an environment", &errno.into())),
    }
}

/// How a folder of the guest is called in a layer: no two have the same name.
fn name(guest: &str) -> String {
    guest.trim_start_matches('/').replace('%', "%25").replace('/', "%2F")
}

fn open(path: &Path) -> std::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

fn remove(path: &Path) -> std::io::Result<()> {
    let folder = open(path)?;
    remove_tree(folder.as_fd(), "")?;
    fs_err::remove_dir(path)
}
