//! Handing over the files of a folder, a piece at a time.
//!
//! What ran may have left anything in it. Nothing is followed, nothing waited
//! for; what is no plain file is told and left. Nobody else runs by then, and what
//! its owner may not read is given back to its owner: we are the same user.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use glovebox_supervisor::{ENTRIES_MAX, Laid, Left, PIECE_MAX, Placing, Report};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use sha2_11::{Digest as _, Sha256};

use crate::place::{Placer, Print, print};
use crate::wire::Wire;

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
    /// The folder, where only what changed in it is wanted.
    changes_of: Option<Vec<u8>>,
}

impl Collecting {
    /// All of a folder, or what is other in it than what was laid out.
    pub(crate) fn new(folder: &str, changes: bool) -> Self {
        let changes_of = changes.then(|| folder.as_bytes().to_vec());
        let mut new = Self { levels: Vec::new(), file: None, entries: 0, closed: false, changes_of };
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let open = || rustix::fs::open(folder, flags, Mode::empty());
        match readable(&open, || rustix::fs::chmod(folder, Mode::RWXU)) {
            Ok(dir) => new.closed = new.enter(dir, Vec::new()).is_err(),
            Err(_) => new.closed = true,
        }
        new
    }

    /// Takes the next step. `false`: that was all.
    pub(crate) fn step(&mut self, placer: &Placer, wire: &mut Wire) -> bool {
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
        if let Err(left) = self.entry(&name, &path, placer, wire) {
            wire.say(&Report::LeftOut(left, path));
            if left == Left::TooMany {
                self.levels.clear();
            }
        }
        true
    }

    fn entry(&mut self, name: &OsString, path: &[u8], placer: &Placer, wire: &mut Wire) -> Result<(), Left> {
        let Some(level) = self.levels.last() else { return Ok(()) };
        if path.len() > PATH_MAX {
            return Err(Left::TooDeep);
        }
        let stat = rustix::fs::statat(&level.dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|_| Left::Unreadable)?;
        let open = |flags, mode| {
            let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let open = || rustix::fs::openat(&level.dir, name, flags, Mode::empty());
            let chmod = || rustix::fs::chmodat(&level.dir, name, mode, AtFlags::empty());
            readable(&open, chmod).map_err(|_| Left::Unreadable)
        };
        let modified = (stat.st_mtime, u32::try_from(stat.st_mtime_nsec).unwrap_or(0));
        let found = |what| Report::Found(Placing { path: path.to_vec(), mode: stat.st_mode & 0o777, modified, what });
        // Whether it is what was laid out in its place.
        let same = |now: Print| {
            let place = self.changes_of.as_ref().map(|folder| [folder, &b"/"[..], path].concat());
            place.is_some_and(|place| placer.laid(&place) == Some(now))
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let mut file = File::from(open(OFlags::empty(), Mode::RUSR | Mode::WUSR)?);
                if self.changes_of.is_some() {
                    let content = content(&mut file).map_err(|_| Left::Unreadable)?;
                    if same(print("file", stat.st_mode, content)) {
                        wire.say(&Report::Kept(path.to_vec()));
                        return Ok(());
                    }
                }
                wire.say(&found(Laid::File));
                self.file = Some(file);
            }
            FileType::Directory if self.levels.len() >= DEPTH_MAX => return Err(Left::TooDeep),
            FileType::Directory => {
                let dir = open(OFlags::DIRECTORY, Mode::RWXU)?;
                wire.say(&found(Laid::Folder));
                self.enter(dir, path.to_vec())?;
            }
            // What leads elsewhere is nothing to keep; a change of one is one.
            FileType::Symlink if self.changes_of.is_some() => {
                let target = rustix::fs::readlinkat(&level.dir, name, Vec::new()).map_err(|_| Left::Unreadable)?;
                if same(print("link", 0, Sha256::new_with_prefix(target.as_bytes()))) {
                    wire.say(&Report::Kept(path.to_vec()));
                } else {
                    wire.say(&found(Laid::Link(target.into_bytes())));
                }
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

/// Opens something, after its permissions were mended where they forbid it.
fn readable(
    open: &dyn Fn() -> Result<OwnedFd, Errno>,
    mend: impl FnOnce() -> Result<(), Errno>,
) -> Result<OwnedFd, Errno> {
    match open() {
        Err(Errno::ACCESS) => mend().and_then(|()| open()),
        opened => opened,
    }
}

/// What is in a file, to be compared; it is read from its start again.
fn content(file: &mut File) -> std::io::Result<Sha256> {
    let (mut sha256, mut piece) = (Sha256::new(), vec![0; PIECE_MAX]);
    loop {
        match file.read(&mut piece)? {
            0 => break,
            count => sha256.update(&piece[..count]),
        }
    }
    file.rewind()?;
    Ok(sha256)
}
