//! What of a bound plan's folders a container gets, and how.
//!
//! - What a tool writes for itself (scratch, outputs, its home) is a folder in
//!   memory, with a limit that the kernel keeps.
//! - Inputs were copied when the plan was bound: that copy is shown, read-only.
//! - A folder of the user's that is only read, and of which all may be seen, is
//!   shown as it is.
//! - Any other is copied in: without what is hidden, with the sealed bytes in
//!   place of the live ones. What the tool changes of it comes out afterwards, as
//!   the difference, if the tool ended by itself.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use env_contracts::{Code, Contract, Limits, Problem, Source};
use glovebox_runtime::bind::{BoundFile, BoundMount, Files};
use rustix::fs::Mode;

use crate::layout::{self, ENTRIES_MAX};
use crate::recipe::{NOBODY, Private, Shown};

/// Where every tool may write: its home.
pub(crate) const HOME: &str = "/tmp";
/// A folder in memory grows by pages.
const PAGE: u64 = 4096;
/// Shared memory, which many programs take to be there.
const SHARED: &str = "/dev/shm";

/// A folder that is copied in.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) guest: String,
    pub(crate) dir: OwnedFd,
    pub(crate) hide: Vec<String>,
    /// Whether what changes comes out again.
    pub(crate) writable: bool,
    /// Whether it is a folder of ours that the next action finds: it comes out
    /// whatever the end was, and its links lead nobody on this host anywhere.
    pub(crate) kept: bool,
    /// Files with other bytes than they have by now.
    pub(crate) sealed: Vec<BoundFile>,
}

/// A folder or file that is shown as it lies on this host.
#[derive(Debug)]
pub(crate) struct Bare {
    pub(crate) shown: Shown,
    /// What has to be seen inside: device and inode.
    pub(crate) identity: (u64, u64),
    // Keeps it from being another by then.
    _held: OwnedFd,
}

/// All folders of a container.
#[derive(Debug)]
pub(crate) struct Folders {
    pub(crate) bare: Vec<Bare>,
    /// Whether one of those is the user's, and not a copy of ours.
    pub(crate) live: bool,
    pub(crate) copied: Vec<Copied>,
    /// Folders in memory that begin empty.
    pub(crate) private: Vec<String>,
    /// Who the tool is.
    pub(crate) user: (u32, u32),
    /// Where outputs lie in it, and where they are to be put on this host.
    pub(crate) outputs: Option<(String, OwnedFd)>,
}

impl Folders {
    /// Sorts what was bound.
    ///
    /// # Errors
    /// `backend-error`, `contract-unsatisfied` for what can't be shown.
    pub(crate) fn of(files: Files, contract: &Contract) -> Result<Self, Problem> {
        let Files { mounts, mut sealed, outputs, .. } = files;
        let place = contract.filesystem.iter().find(|mount| mount.source == Source::Outputs);
        let outputs = place.map(|mount| mount.guest.to_string()).zip(outputs);
        let mut all = Self {
            bare: Vec::new(),
            live: false,
            copied: Vec::new(),
            private: Vec::new(),
            user: (NOBODY, NOBODY),
            outputs,
        };
        let source = |guest: &str| {
            contract.filesystem.iter().find(|mount| mount.guest.as_str() == guest).map(|mount| &mount.source)
        };
        for mount in mounts {
            match source(&mount.guest) {
                Some(Source::Workspace | Source::Host(_)) => {
                    let (mine, others) = sealed.into_iter().partition(|file| file.mount == mount.guest);
                    sealed = others;
                    all.user_folder(mount, mine)?;
                }
                // An environment's: it comes with what the action before left.
                Some(Source::Scratch) if mount.kept => all.user_folder(mount, Vec::new())?,
                Some(Source::Scratch | Source::Outputs) => all.private.push(mount.guest),
                // What was given lies in one folder, whatever is asked of it.
                Some(Source::Input(_) | Source::Artifact(_)) | None => all.inputs(mount)?,
            }
        }
        all.own();
        Ok(all)
    }

    /// Those of a program that is given nothing.
    pub(crate) fn none() -> Self {
        let (bare, copied, private) = (Vec::new(), Vec::new(), Vec::new());
        let mut none = Self { bare, live: false, copied, private, user: (NOBODY, NOBODY), outputs: None };
        none.own();
        none
    }

    /// What every tool has.
    fn own(&mut self) {
        for guest in [HOME, SHARED] {
            if self.is_free(guest) {
                self.private.push(guest.to_owned());
            }
        }
    }

    /// Whether nothing of ours lies at a place.
    pub(crate) fn is_free(&self, guest: &str) -> bool {
        !self.covers(guest) && !self.private.iter().any(|own| own == guest)
    }

    fn covers(&self, guest: &str) -> bool {
        self.copied.iter().any(|copied| copied.guest == guest) || self.bare.iter().any(|bare| bare.shown.guest == guest)
    }

    /// Our own copy of what was given, for everybody's eyes in the container.
    fn inputs(&mut self, mount: BoundMount) -> Result<(), Problem> {
        let mut empty = true;
        let mut readable = || -> std::io::Result<()> {
            // Its folder is ours alone: nobody else on this host gets there.
            rustix::fs::fchmod(&mount.dir, Mode::from_raw_mode(0o755))?;
            for entry in rustix::fs::Dir::read_from(&mount.dir)? {
                let entry = entry?;
                if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                    empty = false;
                    rustix::fs::chmodat(
                        &mount.dir,
                        entry.file_name(),
                        Mode::from_raw_mode(0o444),
                        rustix::fs::AtFlags::empty(),
                    )?;
                }
            }
            Ok(())
        };
        readable().map_err(|error| failed(&mount.guest, &error))?;
        if empty {
            // Nothing of this host needs to be shown: so the container can be one
            // that stands already.
            self.private.push(mount.guest);
            return Ok(());
        }
        self.bare(mount.guest, mount.dir)
    }

    fn user_folder(&mut self, mount: BoundMount, sealed: Vec<BoundFile>) -> Result<(), Problem> {
        // A read-only folder keeps nobody from opening what is no file: at the other
        // end is a process of this host.
        let plain = || layout::is_plain(mount.dir.as_fd()).map_err(|error| failed(&mount.guest, &error));
        if mount.writable || !mount.hide.is_empty() || !sealed.is_empty() || !plain()? {
            let BoundMount { guest, dir, writable, kept, hide } = mount;
            self.copied.push(Copied { guest, dir, hide, writable, kept, sealed });
            return Ok(());
        }
        let stat = rustix::fs::fstat(&mount.dir).map_err(|errno| failed(&mount.guest, &errno.into()))?;
        if stat.st_uid != 0 {
            // What the user may read, and nobody else.
            self.user = (stat.st_uid, if stat.st_gid == 0 { NOBODY } else { stat.st_gid });
        }
        self.live = true;
        self.bare(mount.guest, mount.dir)
    }

    fn bare(&mut self, guest: String, dir: OwnedFd) -> Result<(), Problem> {
        let stat = rustix::fs::fstat(&dir).map_err(|errno| failed(&guest, &errno.into()))?;
        let host = real_path(dir.as_fd()).map_err(|error| failed(&guest, &error))?;
        let identity = (stat.st_dev, stat.st_ino);
        self.bare.push(Bare { shown: Shown { host, guest }, identity, _held: dir });
        Ok(())
    }

    /// Every folder in memory with what it may hold: an equal limit each, and
    /// the sum of what is written is watched from inside. What is copied in has
    /// room besides: all the memory there is, since it has to fit there.
    pub(crate) fn memory(&self, limits: &Limits, copied: &[Copied]) -> Vec<Private> {
        let storage = limits.storage.unwrap_or_default().0;
        let inodes = limits.inodes.unwrap_or_default();
        let memory = limits.memory.unwrap_or_default().0;
        let empty = self.private.iter().map(|guest| (guest, storage, inodes));
        let filled = copied.iter().map(|copied| (&copied.guest, memory, inodes.saturating_add(ENTRIES_MAX)));
        let folder = |(guest, bytes, inodes): (&String, u64, u64)| Private {
            guest: guest.clone(),
            bytes: bytes.max(1).next_multiple_of(PAGE),
            inodes,
        };
        empty.chain(filled).map(folder).collect()
    }
}

/// Where an open folder lies, as the kernel knows it.
pub(crate) fn real_path(fd: BorrowedFd<'_>) -> std::io::Result<String> {
    let link = rustix::fs::readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new())?;
    link.into_string().map_err(|_| std::io::Error::other("its path is not UTF-8"))
}

fn failed(guest: &str, error: &std::io::Error) -> Problem {
    Problem::new(Code::BackendError, format!("`{guest}` can't be shown to a container: {error}"))
}
