//! Opening what an enemy named, without going where it leads.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

use super::notice::NoticeKind;

/// Every step of a path stays beneath the folder, on its file system, and goes
/// through no link, whoever swaps what meanwhile.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// The last step neither follows a link, nor waits for the other end of a
/// FIFO, nor makes a terminal ours.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens a regular file with no other link, or says why it is none.
///
/// # Errors
/// Only where the system can't do this at all: then nothing must be collected.
pub(super) fn regular(root: impl AsFd, path: &OsStr) -> io::Result<Result<File, NoticeKind>> {
    let fd = match open(root, path, READ)? {
        Ok(fd) => fd,
        Err(kind) => return Ok(Err(kind)),
    };
    // What the walk saw may have been swapped: only what is open now counts.
    let stat = fstat(&fd)?;
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink == 1 => Ok(File::from(fd)),
        FileType::RegularFile if stat.st_nlink == 0 => Err(NoticeKind::Changed),
        FileType::RegularFile => Err(NoticeKind::HardLink),
        FileType::Directory => Err(NoticeKind::Changed),
        _ => Err(NoticeKind::Special),
    })
}

/// Opens a folder for listing; the root itself is `.`.
pub(super) fn folder(root: impl AsFd, path: &OsStr) -> io::Result<Result<OwnedFd, NoticeKind>> {
    open(root, path, READ.union(OFlags::DIRECTORY))
}

fn open(root: impl AsFd, path: &OsStr, flags: OFlags) -> io::Result<Result<OwnedFd, NoticeKind>> {
    match openat2(root, path, flags, Mode::empty(), BENEATH) {
        Ok(fd) => Ok(Ok(fd)),
        Err(Errno::LOOP) => Ok(Err(NoticeKind::Symlink)),
        Err(Errno::XDEV) => Ok(Err(NoticeKind::OtherFilesystem)),
        Err(Errno::NXIO) => Ok(Err(NoticeKind::Special)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(Err(NoticeKind::Changed)),
        // Without this call there is no safe way, and no other is tried.
        Err(errno @ (Errno::NOSYS | Errno::PERM)) => Err(errno.into()),
        Err(_) => Ok(Err(NoticeKind::Unreadable)),
    }
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
