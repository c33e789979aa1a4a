//! Files whose content was fixed when the plan was bound.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use glovebox_runtime::job::{FdIndex, Job};

use super::stat::Identity;
use super::{FilesError, Mounted};

/// The sealed files of one execution.
#[derive(Default)]
pub(super) struct Sealed {
    files: Vec<Seal>,
}

struct Seal {
    mount: usize,
    path: String,
    spelled: String,
    identity: Identity,
    content: Arc<OwnedFd>,
}

impl Sealed {
    pub(super) fn new(
        job: &Job,
        mounts: &[Mounted],
        get: impl Fn(FdIndex) -> Result<Arc<OwnedFd>, FilesError>,
    ) -> Result<Self, FilesError> {
        let mut files = Vec::with_capacity(job.sealed.len());
        for seal in &job.sealed {
            // A seal in a mount that isn't there concerns nobody.
            for (mount, _) in mounts.iter().enumerate().filter(|(_, mount)| mount.guest == seal.mount) {
                files.push(Seal {
                    mount,
                    path: seal.path.clone(),
                    spelled: seal.spelled.clone(),
                    identity: Identity(seal.identity.0, seal.identity.1),
                    content: get(seal.content)?,
                });
            }
        }
        Ok(Self { files })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The place whose content is fixed under a spelling, whatever links there
    /// are on the way by now.
    pub(super) fn spelled(&self, mount: usize, spelling: &str) -> Option<&str> {
        self.files.iter().find(|seal| seal.mount == mount && seal.spelled == spelling).map(|seal| seal.path.as_str())
    }

    /// The content for a place, whatever lies there now.
    pub(super) fn at(&self, mount: usize, path: &str) -> Option<&Arc<OwnedFd>> {
        self.files.iter().find(|seal| seal.mount == mount && seal.path == path).map(|seal| &seal.content)
    }

    /// The content for the file that was sealed, whatever it is called now.
    pub(super) fn of(&self, identity: Identity) -> Option<&Arc<OwnedFd>> {
        self.files.iter().find(|seal| seal.identity == identity).map(|seal| &seal.content)
    }
}
