//! What a descriptor of the guest stands for.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::error::FsResult;
use super::stat::{Facts, Identity};
use super::{Mounted, Shared};
use crate::bindings::files::wasi::filesystem::types::ErrorCode;

/// An open file or folder of the guest.
#[expect(unreachable_pub, reason = "generated code exports it")]
pub enum Descriptor {
    /// A folder.
    Dir(Dir),
    /// A file.
    File(Arc<File>),
}

/// An open folder.
#[derive(Clone)]
#[expect(unreachable_pub, reason = "part of what generated code exports")]
pub struct Dir {
    pub(super) fd: Arc<OwnedFd>,
    pub(super) mount: usize,
    /// Where it lies in its mount. Kept only where something is hidden or sealed.
    pub(super) path: String,
    pub(super) shared: Arc<Shared>,
}

/// An open file.
#[expect(unreachable_pub, reason = "part of what generated code exports")]
pub struct File {
    pub(super) fd: Arc<OwnedFd>,
    pub(super) mount: usize,
    pub(super) identity: Identity,
    /// Whether its size counts against the limits.
    pub(super) counted: bool,
    pub(super) read: bool,
    pub(super) write: bool,
    /// Whether it may be changed at all, by this or another handle.
    pub(super) mutable: bool,
    pub(super) shared: Arc<Shared>,
}

impl Descriptor {
    pub(super) fn dir(&self) -> FsResult<&Dir> {
        match self {
            Self::Dir(dir) => Ok(dir),
            Self::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    pub(super) fn file(&self) -> FsResult<&Arc<File>> {
        match self {
            Self::File(file) => Ok(file),
            Self::Dir(_) => Err(ErrorCode::IsDirectory.into()),
        }
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        match self {
            Self::Dir(dir) => &dir.fd,
            Self::File(file) => &file.fd,
        }
    }
}

impl Dir {
    pub(super) fn mounted(&self) -> &Mounted {
        &self.shared.mounts[self.mount]
    }

    /// Whether it matters where in the mount something lies.
    pub(super) fn guarded(&self) -> bool {
        !self.shared.sealed.is_empty() || !self.mounted().hidden.hide.is_empty()
    }

    /// Refuses what would change a folder that may only be read.
    pub(super) fn writable(&self) -> FsResult<()> {
        if self.mounted().writable { Ok(()) } else { Err(ErrorCode::ReadOnly.into()) }
    }
}

impl File {
    pub(super) fn new(fd: OwnedFd, facts: Facts, dir: &Dir, read: bool, write: bool) -> Self {
        let identity = facts.identity();
        let counted = dir.mounted().counted;
        if counted {
            dir.shared.ledger.opened(identity);
        }
        Self {
            fd: Arc::new(fd),
            mount: dir.mount,
            identity,
            counted,
            read,
            write,
            mutable: dir.mounted().writable,
            shared: Arc::clone(&dir.shared),
        }
    }

    /// A file whose content was fixed. It can only be read.
    pub(super) fn sealed(content: &Arc<OwnedFd>, dir: &Dir) -> FsResult<Self> {
        Ok(Self {
            fd: Arc::clone(content),
            mount: dir.mount,
            identity: Facts::of(content)?.identity(),
            counted: false,
            read: true,
            write: false,
            mutable: false,
            shared: Arc::clone(&dir.shared),
        })
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.counted
            && self.shared.ledger.closed(self.identity)
            && let Ok(facts) = Facts::of(&self.fd)
            && facts.links() == 0
        {
            // It was removed while it was open: only now its space is free.
            self.shared.ledger.shrink(self.mount, facts.size());
        }
    }
}
