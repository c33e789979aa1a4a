//! Handing over the files of a folder, a piece at a time.
//!
//! What ran may have left anything in it. Nothing is followed, nothing waited
//! for; what is no plain file of this folder alone is told and left.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use glovebox_supervisor::{Laid, Left, PIECE_MAX, Placing, Report};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use crate::wire::Wire;

/// How many entries are looked at.
const ENTRIES_MAX: usize = 100_000;
/// How deep folders are looked into: each holds a descriptor.
const DEPTH_MAX: usize = 64;
/// The longest path.
const PATH_MAX: usize = 4096;

/// A folder whose entries are gone through.
struct Level {
    dir: OwnedFd,
    path: Vec<u8>,
    names: std::vec::IntoIter<OsString>,
}

/// A folder on its way to the host.
pub(crate) struct Collecting {
    levels: Vec<Level>,
    file: Option<File>,
    entries: usize,
    /// What can't even be begun with.
    closed: bool,
    /// Only what changed after this moment, in nanoseconds since 1970.
    since: Option<i128>,
}

impl Collecting {
    /// All of a folder, or what changed in it since a moment: by the kernel's
    /// own time of a change, which nobody can set.
    pub(crate) fn new(folder: &str, since: Option<i128>) -> Self {
        let mut new = Self { levels: Vec::new(), file: None, entries: 0, closed: false, since };
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match rustix::fs::open(folder, flags, Mode::empty()) {
            Ok(dir) => new.closed = new.enter(dir, Vec::new()).is_err(),
            Err(_) => new.closed = true,
        }
        new
    }

    /// Takes the next step. `false`: that was all.
    pub(crate) fn step(&mut self, wire: &mut Wire) -> bool {
        if std::mem::take(&mut self.closed) {
            wire.say(&Report::LeftOut(Left::Unreadable, b".".to_vec()));
        }
        if let Some(file) = &mut self.file {
            let mut piece = vec![0; PIECE_MAX];
            match file.read(&mut piece) {
                Ok(0) | Err(_) => self.file = None,
                Ok(count) => wire.say(&Report::Content(&piece[..count])),
            }
            return true;
        }
        let Some(level) = self.levels.last_mut() else {
            wire.say(&Report::Collected);
            return false;
        };
        let Some(name) = level.names.next() else {
            self.levels.pop();
            return true;
        };
        let mut path = level.path.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        if let Err(left) = self.entry(&name, &path, wire) {
            wire.say(&Report::LeftOut(left, path));
            if left == Left::TooMany {
                self.levels.clear();
            }
        }
        true
    }

    fn entry(&mut self, name: &OsString, path: &[u8], wire: &mut Wire) -> Result<(), Left> {
        let Some(level) = self.levels.last() else { return Ok(()) };
        if path.len() > PATH_MAX {
            return Err(Left::TooDeep);
        }
        let stat = rustix::fs::statat(&level.dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|_| Left::Unreadable)?;
        let open = |flags| {
            let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            rustix::fs::openat(&level.dir, name, flags, Mode::empty()).map_err(|_| Left::Unreadable)
        };
        let changed = self
            .since
            .is_none_or(|since| i128::from(stat.st_ctime) * 1_000_000_000 + i128::from(stat.st_ctime_nsec) > since);
        let found = |what| Report::Found(Placing { path: path.to_vec(), mode: stat.st_mode & 0o777, what });
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile | FileType::Symlink if !changed => wire.say(&Report::Kept(path.to_vec())),
            FileType::RegularFile if stat.st_nlink > 1 => return Err(Left::HardLink),
            FileType::RegularFile => {
                let file = File::from(open(OFlags::empty())?);
                wire.say(&found(Laid::File));
                self.file = Some(file);
            }
            FileType::Directory if self.levels.len() >= DEPTH_MAX => return Err(Left::TooDeep),
            FileType::Directory => {
                let dir = open(OFlags::DIRECTORY)?;
                wire.say(&found(Laid::Folder));
                self.enter(dir, path.to_vec())?;
            }
            // What leads elsewhere is nothing to keep; a change of one is one.
            FileType::Symlink if self.since.is_some() => {
                let target = rustix::fs::readlinkat(&level.dir, name, Vec::new()).map_err(|_| Left::Unreadable)?;
                wire.say(&found(Laid::Link(target.into_bytes())));
            }
            FileType::Symlink => return Err(Left::Symlink),
            _ => return Err(Left::Special),
        }
        Ok(())
    }

    fn enter(&mut self, dir: OwnedFd, path: Vec<u8>) -> Result<(), Left> {
        let mut names = Vec::new();
        for entry in Dir::read_from(dir.as_fd()).map_err(|_| Left::Unreadable)? {
            let entry = entry.map_err(|_| Left::Unreadable)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(Left::TooMany);
            }
            names.push(OsString::from_vec(name.to_vec()));
        }
        // What is handed over must not depend on the order of a file system.
        names.sort();
        self.levels.push(Level { dir, path, names: names.into_iter() });
        Ok(())
    }
}
