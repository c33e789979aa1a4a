//! Folders of the guest: our own implementation of `wasi:filesystem`.
//!
//! Everything goes through descriptors that the job brought; no path of the
//! host is ever used. Paths of the guest are walked name by name (see `walk`),
//! and whatever is done in the end is done to a single name in an open folder.
//!
//! All calls are synchronous: on local disks a hop to another thread costs
//! more than the call. Files that could block (FIFOs, devices, sockets) are
//! never opened. A system call that hangs, on a dead network mount for
//! example, is beyond what this process can interrupt; the caller's own wall
//! around the execution ends that.

mod descriptor;
mod directory;
mod entries;
mod error;
mod file;
mod hidden;
mod host;
mod ledger;
mod sealed;
mod stat;
mod stream;
mod walk;

#[expect(unreachable_pub, reason = "generated code exports them")]
pub use self::{descriptor::Descriptor, entries::Entries};
pub(crate) use error::FsError;
pub(crate) use hidden::HiddenLists;
pub(crate) use ledger::Totals;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use glovebox_runtime::job::{FdIndex, Job};

use descriptor::Dir;
use hidden::Hidden;
use ledger::Ledger;
use sealed::Sealed;

/// The folders of one execution. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Files {
    shared: Arc<Shared>,
}

/// What all descriptors of an execution have in common.
struct Shared {
    mounts: Vec<Mounted>,
    sealed: Sealed,
    ledger: Ledger,
}

/// One folder.
struct Mounted {
    guest: String,
    dir: Arc<OwnedFd>,
    writable: bool,
    counted: bool,
    hidden: Arc<Hidden>,
}

/// Why a job's folders can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FilesError {
    /// A descriptor that the job names is missing.
    #[error("the job names descriptor {}, but brings {count}", .index.0)]
    Missing { index: FdIndex, count: usize },
    /// A hide glob is none.
    #[error("{0}")]
    Hide(String),
}

impl Files {
    /// Takes the folders and the sealed files of a job over.
    pub(crate) fn new(job: &Job, fds: Vec<OwnedFd>, lists: &HiddenLists) -> Result<Self, FilesError> {
        let ledger = Ledger::new(job.mounts.len(), job.limits.storage, job.limits.inodes);
        let fds: Vec<Arc<OwnedFd>> =
            if job.mounts.is_empty() { Vec::new() } else { fds.into_iter().map(Arc::new).collect() };
        let get =
            |index: FdIndex| fds.get(index.0 as usize).cloned().ok_or(FilesError::Missing { index, count: fds.len() });
        let mut mounts = Vec::with_capacity(job.mounts.len());
        for mount in &job.mounts {
            mounts.push(Mounted {
                guest: mount.guest.clone(),
                dir: get(mount.dir)?,
                writable: mount.writable,
                counted: mount.writable && mount.counted,
                hidden: lists.get(&mount.hide).map_err(FilesError::Hide)?,
            });
        }
        let sealed = Sealed::new(job, &mounts, get)?;
        Ok(Self { shared: Arc::new(Shared { mounts, sealed, ledger }) })
    }

    /// No folders at all.
    pub(crate) fn none() -> Self {
        let sealed = Sealed::default();
        Self { shared: Arc::new(Shared { mounts: Vec::new(), sealed, ledger: Ledger::new(0, 0, 0) }) }
    }

    /// What was read, written and refused.
    pub(crate) fn totals(&self) -> Totals {
        self.shared.ledger.totals()
    }

    /// The folders as the guest gets them, with the paths it knows them by.
    fn preopens(&self) -> impl Iterator<Item = (Descriptor, String)> {
        self.shared.mounts.iter().enumerate().map(|(mount, mounted)| {
            let dir =
                Dir { fd: Arc::clone(&mounted.dir), mount, path: String::new(), shared: Arc::clone(&self.shared) };
            (Descriptor::Dir(dir), mounted.guest.clone())
        })
    }
}
