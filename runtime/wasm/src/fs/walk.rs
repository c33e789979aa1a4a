//! Paths of the guest, walked name by name.
//!
//! The kernel follows no link for us: each folder on the way is opened by its
//! single name, and a link is read and walked like the rest of the path. So
//! nothing leads out of the folder that the walk began in, and at the end it
//! is known where in the mount the guest has come to, whichever links it took.
//! What is hidden or sealed is decided by that place.

use std::borrow::Cow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use glovebox_runtime::holds_plain_files;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, openat2, readlinkat, statat};
use rustix::io::Errno;

use super::descriptor::Dir;
use super::error::FsResult;
use super::stat::Facts;
use crate::bindings::files::wasi::filesystem::types::ErrorCode;

/// Links on one path, as many as the kernel takes.
const LINKS_MAX: usize = 40;
/// Names on one path, links included. The kernel's limit on a path's length
/// allows half as many.
const NAMES_MAX: usize = 4096;

/// Where a path leads: a name in a folder. The name may not exist.
pub(super) struct Spot<'p> {
    pub(super) dir: &'p Dir,
    parent: Option<OwnedFd>,
    /// A single name, or `.` for the folder itself.
    pub(super) name: Cow<'p, str>,
    /// Where it lies in its mount. Kept only where something is hidden or sealed.
    pub(super) path: String,
    /// What lies there.
    pub(super) facts: Option<Facts>,
    /// Whether the path ended with a slash, so that only a folder will do.
    pub(super) folder: bool,
}

impl AsFd for Spot<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.parent.as_ref().map_or(self.dir.fd.as_fd(), AsFd::as_fd)
    }
}

impl<'p> Spot<'p> {
    /// Goes where `path` leads; at its end follows a link if `follow`.
    pub(super) fn find(dir: &'p Dir, path: &'p str, follow: bool) -> FsResult<Self> {
        if let Some(spot) = Self::spelled(dir, path) {
            return Ok(spot);
        }
        let mut walk = Walk::new(dir);
        walk.begin(path)?;
        let mut folder = wants_folder(path);
        while let Some(name) = walk.todo.pop() {
            if name == ".." {
                walk.up()?;
                continue;
            }
            walk.visible(&name)?;
            if !walk.todo.is_empty() || folder {
                folder |= walk.down(name)?;
                continue;
            }
            let facts = match statat(walk.fd(), &*name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Some(Facts::new(stat)),
                Err(Errno::NOENT) => None,
                Err(errno) => return Err(errno.into()),
            };
            let link = facts.is_some_and(|facts| facts.kind() == FileType::Symlink);
            if follow && link && !walk.is_sealed(&name) {
                folder |= walk.link(&name)?;
                continue;
            }
            return Ok(walk.end(name, facts, folder));
        }
        let facts = Facts::of(walk.fd())?;
        Ok(walk.end(".".into(), Some(facts), true))
    }

    /// Goes to the folder that the last name of `path` lies in. What is done
    /// to the name is done to it, not to what it may link to.
    pub(super) fn entry(dir: &'p Dir, path: &'p str) -> FsResult<Self> {
        if let Some(spot) = Self::spelled(dir, path) {
            return Ok(spot);
        }
        let trimmed = path.trim_end_matches('/');
        if trimmed.is_empty() {
            return Err(if path.is_empty() { ErrorCode::NoEntry } else { ErrorCode::NotPermitted }.into());
        }
        let (above, name) = trimmed.rsplit_once('/').unwrap_or((".", trimmed));
        if matches!(name, "." | "..") {
            return Err(ErrorCode::Invalid.into());
        }
        let mut walk = Walk::new(dir);
        walk.begin(if above.is_empty() { "/" } else { above })?;
        while let Some(name) = walk.todo.pop() {
            if name == ".." {
                walk.up()?;
            } else {
                walk.visible(&name)?;
                walk.down(name)?;
            }
        }
        walk.visible(name)?;
        let facts = match statat(walk.fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(Facts::new(stat)),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno.into()),
        };
        Ok(walk.end(name.into(), facts, trimmed.len() != path.len()))
    }

    /// The place of a sealed file that is named just as the argument names it.
    fn spelled(dir: &'p Dir, path: &str) -> Option<Self> {
        let sealed = &dir.shared.sealed;
        if sealed.is_empty() || path.starts_with('/') {
            return None;
        }
        let mut spelling = dir.path.clone();
        names(path).for_each(|name| join(&mut spelling, name));
        let place = sealed.spelled(dir.mount, &spelling)?;
        let facts = sealed.at(dir.mount, place).and_then(|content| Facts::of(content).ok());
        let folder = wants_folder(path);
        Some(Self { dir, parent: None, name: ".".into(), path: place.to_owned(), facts, folder })
    }

    /// For what can only be a file: a path with a trailing slash names none.
    pub(super) fn file_entry(dir: &'p Dir, path: &'p str) -> FsResult<Self> {
        let spot = Self::entry(dir, path)?;
        if spot.folder { Err(ErrorCode::NotDirectory.into()) } else { Ok(spot) }
    }

    /// What lies there, or that nothing does.
    pub(super) fn there(&self) -> FsResult<Facts> {
        self.facts.ok_or_else(|| ErrorCode::NoEntry.into())
    }

    /// The fixed content that the guest sees there, if its content is fixed.
    pub(super) fn sealed(&self) -> Option<&'p Arc<OwnedFd>> {
        let sealed = &self.dir.shared.sealed;
        sealed.at(self.dir.mount, &self.path).or_else(|| sealed.of(self.facts?.identity()))
    }

    /// Refuses to change what the guest sees with fixed content.
    pub(super) fn unsealed(&self) -> FsResult<()> {
        if self.sealed().is_some() { Err(ErrorCode::Access.into()) } else { Ok(()) }
    }

    /// Opens what lies there. It is no link.
    pub(super) fn open(&self, flags: OFlags, mode: Mode) -> FsResult<OwnedFd> {
        Ok(open(self, &self.name, flags, mode)?)
    }
}

/// Opens a single name, which is no link.
///
/// Where another file system is mounted there, it must be one of plain files:
/// a workspace may hold a disk, but not a door to the kernel.
pub(super) fn open(dir: impl AsFd, name: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let open = |flags, resolve| rustix::io::retry_on_intr(|| openat2(dir.as_fd(), name, flags, mode, resolve));
    match open(flags, within | ResolveFlags::NO_XDEV) {
        Err(Errno::XDEV) => {
            // Looked at first: in such a file system even opening can do something.
            let place = open(OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW, within)?;
            if holds_plain_files(&place)? { open(flags, within) } else { Err(Errno::ACCESS) }
        }
        opened => opened,
    }
}

struct Walk<'p> {
    dir: &'p Dir,
    /// Names still to go, the next one last.
    todo: Vec<Cow<'p, str>>,
    /// The folders below the start, each with the length of the path before it.
    below: Vec<(OwnedFd, usize)>,
    path: String,
    guarded: bool,
    links: usize,
    names: usize,
}

impl<'p> Walk<'p> {
    fn new(dir: &'p Dir) -> Self {
        let guarded = dir.guarded();
        let path = if guarded { dir.path.clone() } else { String::new() };
        Self { dir, todo: Vec::new(), below: Vec::new(), path, guarded, links: 0, names: 0 }
    }

    fn begin(&mut self, path: &'p str) -> FsResult<()> {
        if path.is_empty() {
            return Err(ErrorCode::NoEntry.into());
        }
        if path.starts_with('/') {
            return Err(ErrorCode::NotPermitted.into());
        }
        self.todo.extend(names(path).rev().map(Cow::Borrowed));
        self.longer(self.todo.len())
    }

    fn longer(&mut self, names: usize) -> FsResult<()> {
        self.names += names;
        if self.names > NAMES_MAX { Err(ErrorCode::NameTooLong.into()) } else { Ok(()) }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.below.last().map_or(self.dir.fd.as_fd(), |(fd, _)| fd.as_fd())
    }

    fn up(&mut self) -> FsResult<()> {
        let (_, length) = self.below.pop().ok_or(ErrorCode::NotPermitted)?;
        self.path.truncate(length);
        Ok(())
    }

    /// Enters a folder, or goes on along a link. Answers whether what comes
    /// last must be a folder because that link says so.
    fn down(&mut self, name: Cow<'p, str>) -> FsResult<bool> {
        match open(self.fd(), &name, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()) {
            Ok(fd) => {
                let before = self.path.len();
                self.push(&name);
                self.below.push((fd, before));
                Ok(false)
            }
            Err(Errno::NOTDIR | Errno::LOOP) => self.link(&name),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Replaces a link by what it says.
    fn link(&mut self, name: &str) -> FsResult<bool> {
        let target = match readlinkat(self.fd(), name, Vec::new()) {
            Ok(target) => target.into_string().map_err(|_| ErrorCode::IllegalByteSequence)?,
            Err(Errno::INVAL) => return Err(ErrorCode::NotDirectory.into()),
            Err(errno) => return Err(errno.into()),
        };
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(ErrorCode::Loop.into());
        }
        if target.starts_with('/') {
            return Err(ErrorCode::NotPermitted.into());
        }
        let before = self.todo.len();
        self.todo.extend(names(&target).rev().map(|name| Cow::Owned(name.to_owned())));
        self.longer(self.todo.len() - before)?;
        Ok(before == 0 && wants_folder(&target))
    }

    /// What is hidden does not exist.
    fn visible(&self, name: &str) -> FsResult<()> {
        let hide = &self.dir.mounted().hidden.hide;
        if hide.is_empty() {
            return Ok(());
        }
        let mut path = self.path.clone();
        join(&mut path, name);
        if hide.hides(&path) { Err(ErrorCode::NoEntry.into()) } else { Ok(()) }
    }

    /// A place with fixed content is one, even if a link lies there by now.
    fn is_sealed(&self, name: &str) -> bool {
        let sealed = &self.dir.shared.sealed;
        if sealed.is_empty() {
            return false;
        }
        let mut path = self.path.clone();
        join(&mut path, name);
        sealed.at(self.dir.mount, &path).is_some()
    }

    fn push(&mut self, name: &str) {
        if self.guarded {
            join(&mut self.path, name);
        }
    }

    fn end(mut self, name: Cow<'p, str>, facts: Option<Facts>, folder: bool) -> Spot<'p> {
        if name != "." {
            self.push(&name);
        }
        let parent = self.below.pop().map(|(fd, _)| fd);
        Spot { dir: self.dir, parent, name, path: self.path, facts, folder }
    }
}

fn names(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|name| !matches!(*name, "" | "."))
}

/// Whether a path can only lead to a folder.
fn wants_folder(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("" | "." | ".."))
}

pub(super) fn join(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(name);
}
