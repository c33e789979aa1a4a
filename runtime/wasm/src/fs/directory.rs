//! What is done by name inside a folder.

use std::sync::Arc;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Timestamps, ftruncate, linkat, mkdirat, readlinkat, renameat, symlinkat, unlinkat,
    utimensat,
};

use super::descriptor::{Descriptor, Dir, File};
use super::error::FsResult;
use super::stat::Facts;
use super::walk::Spot;
use crate::bindings::files::wasi::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags};

/// What new files may be: the process's umask takes away from it.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
/// The same for folders.
const DIR_MODE: Mode = Mode::from_raw_mode(0o777);

impl Dir {
    pub(super) fn open_at(
        &self,
        follow: bool,
        path: &str,
        how: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Descriptor> {
        let (create, exclusive) = (how.contains(OpenFlags::CREATE), how.contains(OpenFlags::EXCLUSIVE));
        let (truncate, directory) = (how.contains(OpenFlags::TRUNCATE), how.contains(OpenFlags::DIRECTORY));
        let write = flags.contains(DescriptorFlags::WRITE) || truncate;
        let read = flags.contains(DescriptorFlags::READ) || !write;
        let synced = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if flags.intersects(synced) {
            return Err(ErrorCode::Unsupported.into());
        }
        if directory && (create || exclusive || truncate) {
            return Err(ErrorCode::Invalid.into());
        }
        if write || create {
            self.writable()?;
        }
        let spot = Spot::find(self, path, follow && !exclusive)?;
        if (spot.facts.is_some() || spot.sealed().is_some()) && create && exclusive {
            return Err(ErrorCode::Exist.into());
        }
        if let Some(content) = spot.sealed() {
            return match (directory, write) {
                (true, _) => Err(ErrorCode::NotDirectory.into()),
                (_, true) => Err(ErrorCode::Access.into()),
                _ => Ok(Descriptor::File(Arc::new(File::sealed(content, self)?))),
            };
        }
        // Looked at before it is opened: opening a device or a FIFO can block
        // or do something.
        match spot.facts {
            Some(facts) => openable(facts, directory)?,
            None if !create => return Err(ErrorCode::NoEntry.into()),
            None => {}
        }

        let mut oflags = match (read, write) {
            (_, false) => OFlags::RDONLY,
            (false, true) => OFlags::WRONLY,
            (true, true) => OFlags::RDWR,
        };
        // Not to block even if something else lies there by now.
        oflags |= OFlags::NONBLOCK | OFlags::NOCTTY;
        oflags.set(OFlags::DIRECTORY, directory);
        let fd = match spot.facts {
            Some(_) => spot.open(oflags, Mode::empty())?,
            None => {
                oflags |= OFlags::CREATE;
                oflags.set(OFlags::EXCL, exclusive);
                self.entering(|| spot.open(oflags, FILE_MODE))?
            }
        };
        let facts = Facts::of(&fd)?;
        openable(facts, directory)?;
        if let Some(content) = self.shared.sealed.of(facts.identity()) {
            // It came here after we looked.
            return if write {
                Err(ErrorCode::Access.into())
            } else {
                Ok(Descriptor::File(Arc::new(File::sealed(content, self)?)))
            };
        }
        if facts.kind() == FileType::Directory {
            let shared = Arc::clone(&self.shared);
            return Ok(Descriptor::Dir(Self { fd: Arc::new(fd), mount: self.mount, path: spot.path, shared }));
        }
        if truncate {
            ftruncate(&fd, 0)?;
            if self.mounted().counted {
                self.shared.ledger.shrink(self.mount, facts.size());
            }
        }
        Ok(Descriptor::File(Arc::new(File::new(fd, facts, self, read, write))))
    }

    pub(super) fn stat_at(&self, follow: bool, path: &str) -> FsResult<Facts> {
        let spot = Spot::find(self, path, follow)?;
        match spot.sealed() {
            Some(content) => Facts::of(content),
            None => spot.there(),
        }
    }

    pub(super) fn set_times_at(&self, follow: bool, path: &str, times: &Timestamps) -> FsResult<()> {
        self.writable()?;
        let spot = Spot::find(self, path, follow)?;
        spot.unsealed()?;
        Ok(utimensat(&spot, &*spot.name, times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    pub(super) fn create_directory_at(&self, path: &str) -> FsResult<()> {
        self.writable()?;
        let spot = Spot::entry(self, path)?;
        free(&spot)?;
        self.entering(|| Ok(mkdirat(&spot, &*spot.name, DIR_MODE)?))
    }

    pub(super) fn symlink_at(&self, target: &str, path: &str) -> FsResult<()> {
        self.writable()?;
        if target.starts_with('/') {
            return Err(ErrorCode::NotPermitted.into());
        }
        let spot = Spot::file_entry(self, path)?;
        free(&spot)?;
        self.unanchored(&spot)?;
        self.entering(|| Ok(symlinkat(target, &spot, &*spot.name)?))
    }

    pub(super) fn readlink_at(&self, path: &str) -> FsResult<String> {
        let spot = Spot::file_entry(self, path)?;
        let target = readlinkat(&spot, &*spot.name, Vec::new())?;
        let target = target.into_string().map_err(|_| ErrorCode::IllegalByteSequence)?;
        if target.starts_with('/') { Err(ErrorCode::NotPermitted.into()) } else { Ok(target) }
    }

    pub(super) fn link_at(&self, path: &str, to: &Self, new_path: &str) -> FsResult<()> {
        self.same_mount(to)?;
        let old = Spot::file_entry(self, path)?;
        let new = Spot::file_entry(to, new_path)?;
        old.there()?;
        old.unsealed()?;
        free(&new)?;
        to.entering(|| Ok(linkat(&old, &*old.name, &new, &*new.name, AtFlags::empty())?))
    }

    pub(super) fn rename_at(&self, path: &str, to: &Self, new_path: &str) -> FsResult<()> {
        self.same_mount(to)?;
        let old = Spot::entry(self, path)?;
        let new = Spot::entry(to, new_path)?;
        let moved = old.there()?;
        old.unsealed()?;
        new.unsealed()?;
        let folder = moved.kind() == FileType::Directory;
        if (old.folder || new.folder) && !folder {
            return Err(ErrorCode::NotDirectory.into());
        }
        self.unanchored(&old)?;
        self.unanchored(&new)?;
        renameat(&old, &*old.name, &new, &*new.name)?;
        if let Some(facts) = new.facts
            && facts.identity() != moved.identity()
        {
            self.removed(facts);
        }
        Ok(())
    }

    pub(super) fn unlink_file_at(&self, path: &str) -> FsResult<()> {
        self.writable()?;
        let spot = Spot::file_entry(self, path)?;
        let facts = spot.there()?;
        spot.unsealed()?;
        self.unanchored(&spot)?;
        unlinkat(&spot, &*spot.name, AtFlags::empty())?;
        self.removed(facts);
        Ok(())
    }

    pub(super) fn remove_directory_at(&self, path: &str) -> FsResult<()> {
        self.writable()?;
        let spot = Spot::entry(self, path)?;
        unlinkat(&spot, &*spot.name, AtFlags::REMOVEDIR)?;
        if self.mounted().counted {
            self.shared.ledger.remove_entry(self.mount);
        }
        Ok(())
    }

    /// Refuses to move, replace or link a name on the way to something hidden:
    /// it would come to light, or something else would lie in its place.
    /// Folders of that name may be made, and removed when they are empty.
    fn unanchored(&self, spot: &Spot<'_>) -> FsResult<()> {
        if self.mounted().hidden.anchors.hides(&spot.path) { Err(ErrorCode::Access.into()) } else { Ok(()) }
    }

    /// Two folders of one mount, which may be changed. What lies in different
    /// mounts has different rights: nothing moves between them.
    fn same_mount(&self, other: &Self) -> FsResult<()> {
        self.writable()?;
        other.writable()?;
        if self.mount == other.mount { Ok(()) } else { Err(ErrorCode::CrossDevice.into()) }
    }

    /// Makes an entry if there may be another one.
    fn entering<T>(&self, make: impl FnOnce() -> FsResult<T>) -> FsResult<T> {
        if !self.mounted().counted {
            return make();
        }
        self.shared.ledger.add_entry(self.mount)?;
        let made = make();
        if made.is_err() {
            self.shared.ledger.remove_entry(self.mount);
        }
        made
    }

    /// An entry is gone; with its last name and handle a file's space is too.
    fn removed(&self, facts: Facts) {
        if !self.mounted().counted {
            return;
        }
        self.shared.ledger.remove_entry(self.mount);
        let last = facts.kind() == FileType::RegularFile && facts.links() == 1;
        if last && !self.shared.ledger.is_open(facts.identity()) {
            self.shared.ledger.shrink(self.mount, facts.size());
        }
    }
}

/// Refuses to put something new where something is, or is seen.
fn free(spot: &Spot<'_>) -> FsResult<()> {
    if spot.facts.is_some() || spot.sealed().is_some() { Err(ErrorCode::Exist.into()) } else { Ok(()) }
}

/// Only files and folders are opened.
fn openable(facts: Facts, directory: bool) -> FsResult<()> {
    match facts.kind() {
        FileType::Directory => Ok(()),
        FileType::RegularFile if directory => Err(ErrorCode::NotDirectory.into()),
        FileType::RegularFile => Ok(()),
        FileType::Symlink => Err(ErrorCode::Loop.into()),
        _ => Err(ErrorCode::Access.into()),
    }
}
