//! What a tool changed in a folder that was copied in, brought to the folder.
//!
//! Everything came out before anything is touched. Each change goes to what was
//! there when the folder was copied, or to nothing: what somebody else changed
//! meanwhile stays theirs, and is told.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use env_contracts::Notice;
use glovebox_runtime::Hide;
use glovebox_supervisor::{Laid, Left, Placing};
use glovebox_workspace::open_beneath;
use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

use crate::folders::{Copied, real_path};
use crate::haul::{Haul, named};
use crate::layout::{Stamp, Tree};
use crate::marks::{OURS, Scratch};

/// What came of bringing changes to a folder.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// What is to be known besides.
    pub(crate) notices: Vec<Notice>,
    /// What was not brought, because somebody else changed it or it can't be.
    pub(crate) refused: Vec<Vec<u8>>,
    /// Bytes that were written.
    pub(crate) bytes: u64,
}

/// Brings what changed to the folder that it was copied from.
///
/// # Errors
/// Where it can't be written down which files stand beside others meanwhile:
/// nothing was touched then.
pub(crate) fn apply(
    copied: &Copied,
    tree: &Tree,
    haul: &Haul,
    staged: BorrowedFd<'_>,
    scratch: &Scratch,
) -> std::io::Result<Applied> {
    // What is said to be as it was has to have been there.
    if let Some(path) = haul.kept.iter().find(|path| tree.entries.get(*path).is_none_or(|stamp| stamp.folder)) {
        let path = String::from_utf8_lossy(path).escape_debug().to_string();
        return Err(std::io::Error::other(format!("`{path}` is said to be as it was, and was not there")));
    }
    let beside = format!("{OURS}{}", uuid::Uuid::new_v4().simple());
    let root = PathBuf::from(real_path(copied.dir.as_fd())?);
    let files = haul.found.iter().filter(|(_, found)| found.what == Laid::File);
    let folders: BTreeSet<PathBuf> =
        files.map(|(path, _)| root.join(OsStr::from_bytes(path)).parent().unwrap_or(&root).join(&beside)).collect();
    scratch.beside(&folders.into_iter().collect::<Vec<_>>())?;
    let mut applied = Applied { notices: haul.notices("change-left-out"), ..Applied::default() };
    let hide = Hide::new(&copied.hide).unwrap_or_default();
    let mut target = Target { root: copied.dir.as_fd(), tree, hide, kept: copied.kept, beside, applied: &mut applied };
    // Where not all was looked at, what is missing may be there.
    let whole = !haul.left_out.iter().any(|(left, _)| matches!(left, Left::Unreadable | Left::TooDeep | Left::TooMany));
    let odd: Vec<&[u8]> = haul.left_out.iter().map(|(_, path)| &path[..]).collect();
    let there = |path: &[u8]| haul.found.contains_key(path) || haul.kept.contains(path) || odd.contains(&path);
    // What lay in a folder that is none any more makes room for what is there now.
    let replaced = |path: &[u8]| {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        ends.into_iter().any(|at| haul.found.get(&path[..at]).is_some_and(|found| found.what != Laid::Folder))
    };
    for (path, stamp) in tree.entries.iter().rev().filter(|(path, _)| whole && replaced(path)) {
        let done = target.remove(path, stamp);
        target.note(path, done);
    }
    for (path, found) in &haul.found {
        let done = match &found.what {
            Laid::Folder if tree.entries.get(path).is_some_and(|stamp| stamp.folder) => Ok(()),
            Laid::Folder => target.folder(path, found.mode),
            Laid::File => target.file(path, found, staged),
            Laid::Link(link) => target.link(path, link),
        };
        target.note(path, done);
    }
    if whole {
        // What lies in a folder comes before it.
        for (path, stamp) in tree.entries.iter().rev().filter(|(path, _)| !there(path) && !replaced(path)) {
            let done = target.remove(path, stamp);
            target.note(path, done);
        }
    }
    if !whole {
        let message = format!("not all of `{}` could be looked at: nothing was deleted there", copied.guest);
        applied.notices.push(Notice::new("change-refused", message));
        applied.refused.push(b".".to_vec());
    } else if !applied.refused.is_empty() {
        let paths: Vec<&[u8]> = applied.refused.iter().map(|path| &path[..]).collect();
        let message = format!("changes of `{}` were not brought out: {}", copied.guest, named(&paths));
        applied.notices.push(Notice::new("change-refused", message));
    }
    Ok(applied)
}

struct Target<'a> {
    root: BorrowedFd<'a>,
    tree: &'a Tree,
    hide: Hide,
    kept: bool,
    /// The name of a file until it has its own.
    beside: String,
    applied: &'a mut Applied,
}

impl Target<'_> {
    fn note(&mut self, path: &[u8], done: Result<(), Errno>) {
        if done.is_err() {
            self.applied.refused.push(path.to_vec());
        }
    }

    /// The folder that something lies in, and its name there, if what is there
    /// now is what was there: or nothing, if nothing was.
    fn place<'p>(&self, path: &'p [u8]) -> Result<(OwnedFd, &'p OsStr), Errno> {
        // What does not exist for the tool can't be made by it either.
        if self.hide.hides(OsStr::from_bytes(path)) {
            return Err(Errno::ACCESS);
        }
        let (above, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&b""[..], path),
        };
        let above = open_beneath(self.root, above, OFlags::DIRECTORY | OFlags::RDONLY)?;
        let name = OsStr::from_bytes(name);
        let now = match rustix::fs::statat(&above, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(Stamp::of(&stat)),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno),
        };
        let same = match (&now, self.tree.entries.get(path)) {
            (Some(now), Some(then)) => then.is(now),
            (None, None) => true,
            _ => false,
        };
        if same { Ok((above, name)) } else { Err(Errno::STALE) }
    }

    fn folder(&mut self, path: &[u8], mode: u32) -> Result<(), Errno> {
        let (above, name) = self.place(path)?;
        if self.tree.entries.contains_key(path) {
            rustix::fs::unlinkat(&above, name, AtFlags::empty())?;
        }
        // Its owner has to get in, to put there what is in it.
        rustix::fs::mkdirat(&above, name, Mode::from_raw_mode(mode & 0o777 | 0o700))?;
        give(&above, name, self.owner(path, &above)?)
    }

    /// Whose something is to be: whose it was, or else its folder's.
    fn owner(&self, path: &[u8], above: &OwnedFd) -> Result<(u32, u32), Errno> {
        match self.tree.entries.get(path) {
            Some(stamp) => Ok(stamp.owner),
            None => rustix::fs::fstat(above).map(|stat| (stat.st_uid, stat.st_gid)),
        }
    }

    /// A file's new content, beside it first: nobody ever finds half of it.
    fn file(&mut self, path: &[u8], found: &Placing, staged: BorrowedFd<'_>) -> Result<(), Errno> {
        let (above, name) = self.place(path)?;
        let from = open_beneath(staged, path, OFlags::RDONLY)?;
        let own = self.tree.entries.get(path).filter(|stamp| !stamp.folder).map(|stamp| stamp.mode & 0o777);
        // What the tool did not change stays: its owner could always write there.
        let mode = match own {
            Some(own) if own | 0o600 == found.mode & 0o777 => own,
            _ => found.mode & 0o777,
        };
        let (seconds, nanos) = found.modified;
        let modified = Timespec { tv_sec: seconds, tv_nsec: nanos.into() };
        let times = Timestamps { last_access: modified, last_modification: modified };
        let beside = self.beside.clone();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let to = rustix::fs::openat(&above, &*beside, flags, Mode::RUSR | Mode::WUSR)?;
        let copied = std::io::copy(&mut File::from(from), &mut File::from(to.try_clone().map_err(|_| Errno::IO)?));
        let finish = || -> Result<u64, Errno> {
            let bytes = copied.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            give(&above, OsStr::new(&beside), self.owner(path, &above)?)?;
            // As it is said, whatever the umask of this process.
            rustix::fs::fchmod(&to, Mode::from_raw_mode(mode))?;
            rustix::fs::futimens(&to, &times)?;
            if self.tree.entries.get(path).is_some_and(|stamp| stamp.folder) {
                rustix::fs::unlinkat(&above, name, AtFlags::REMOVEDIR)?;
            }
            rustix::fs::renameat(&above, &*beside, &above, name)?;
            Ok(bytes)
        };
        match finish() {
            Ok(bytes) => {
                self.applied.bytes += bytes;
                Ok(())
            }
            Err(errno) => {
                let _ = rustix::fs::unlinkat(&above, &*beside, AtFlags::empty());
                Err(errno)
            }
        }
    }

    /// A link that stays in the folder; one that leads out of it could lead
    /// whoever follows it on this host, where anybody but us looks at it.
    fn link(&mut self, path: &[u8], link: &[u8]) -> Result<(), Errno> {
        let depth = path.iter().filter(|byte| **byte == b'/').count();
        // Up first, and never up again: what lies on the way may be a link, from
        // which up is somewhere else.
        let up = link.split(|byte| *byte == b'/').take_while(|part| *part == b"..").count();
        let inside = !link.is_empty()
            && link[0] != b'/'
            && !link.contains(&0)
            && up <= depth
            && link.split(|byte| *byte == b'/').skip(up).all(|part| part != b"..");
        if !inside && !self.kept {
            return Err(Errno::ACCESS);
        }
        let (folder, name) = self.place(path)?;
        if let Some(stamp) = self.tree.entries.get(path) {
            let flags = if stamp.folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            rustix::fs::unlinkat(&folder, name, flags)?;
        }
        rustix::fs::symlinkat(OsStr::from_bytes(link), &folder, name)?;
        give(&folder, name, self.owner(path, &folder)?)
    }

    fn remove(&mut self, path: &[u8], stamp: &Stamp) -> Result<(), Errno> {
        let (above, name) = self.place(path)?;
        let flags = if stamp.folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        rustix::fs::unlinkat(&above, name, flags)
    }
}

/// Gives something to whose it is to be, where it is not yet. Whoever may not
/// give things away has only their own.
fn give(above: &OwnedFd, name: &OsStr, owner: (u32, u32)) -> Result<(), Errno> {
    let stat = rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if (stat.st_uid, stat.st_gid) == owner {
        return Ok(());
    }
    let (user, group) = (rustix::process::Uid::from_raw(owner.0), rustix::process::Gid::from_raw(owner.1));
    match rustix::fs::chownat(above, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::PERM) if !rustix::process::geteuid().is_root() => Ok(()),
        given => given,
    }
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
