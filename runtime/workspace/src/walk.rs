//! Going through a folder. Nothing is followed, no other file system is entered,
//! and one folder is open at a time, however many there are.

use std::ffi::{CStr, OsStr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::error::Error;
use crate::names;

/// How deep folders may lie in each other: deeper trees have paths that no
/// program can name at once.
pub(crate) const DEPTH_MAX: u64 = 256;

/// How much a folder may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Files, folders and links.
    pub entries: u64,
    /// Bytes of files, as their lengths say.
    pub bytes: u64,
}

/// How much a folder holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// Files, folders and links.
    pub entries: u64,
    /// Bytes of files, as their lengths say.
    pub bytes: u64,
}

/// Counts what lies in a folder, whatever it is.
///
/// # Errors
/// [`Error::TooMuch`] from the first entry above the bounds on, [`Error::Io`].
pub fn measure(root: BorrowedFd<'_>, bounds: Bounds) -> Result<Measured, Error> {
    let mut measured = Measured::default();
    walk(root, |entry| measured.count(&entry.stat, bounds))?;
    Ok(measured)
}

impl Measured {
    /// Adds one entry.
    pub(crate) fn count(&mut self, stat: &Stat, bounds: Bounds) -> Result<(), Error> {
        self.entries += 1;
        if FileType::from_raw_mode(stat.st_mode).is_file() {
            self.bytes = self.bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
        }
        for (what, has, most) in [("entries", self.entries, bounds.entries), ("bytes", self.bytes, bounds.bytes)] {
            if has > most {
                return Err(Error::TooMuch { what, most });
            }
        }
        Ok(())
    }
}

/// Something that lies in a folder.
pub(crate) struct Found<'a> {
    /// Its path below the folder that is gone through.
    pub(crate) path: &'a [u8],
    /// The folder it lies in.
    pub(crate) dir: &'a OwnedFd,
    /// Its name there.
    pub(crate) name: &'a CStr,
    /// What it is.
    pub(crate) stat: Stat,
}

/// Goes through a folder; a folder comes before what lies in it.
pub(crate) fn walk(root: BorrowedFd<'_>, mut each: impl FnMut(&Found<'_>) -> Result<(), Error>) -> Result<(), Error> {
    let mut left: Vec<Vec<u8>> = vec![Vec::new()];
    while let Some(above) = left.pop() {
        let reading = || format!("read `{}`", names::text(&above));
        let dir = match open_beneath(root, &above, OFlags::DIRECTORY | OFlags::RDONLY) {
            Ok(dir) => dir,
            // It was there a moment ago.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                return Err(Error::Changed { path: names::text(&above) });
            }
            Err(errno) => return Err(Error::os(reading())(errno)),
        };
        for entry in Dir::read_from(&dir).map_err(Error::os(reading()))? {
            let entry = entry.map_err(Error::os(reading()))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let path = joined(&above, name.to_bytes());
            let stat = match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => return Err(Error::Changed { path: names::text(&path) }),
                Err(errno) => return Err(Error::os(reading())(errno)),
            };
            each(&Found { path: &path, dir: &dir, name, stat })?;
            if FileType::from_raw_mode(stat.st_mode).is_dir() {
                let depth = path.iter().filter(|byte| **byte == b'/').count() as u64 + 1;
                if depth > DEPTH_MAX {
                    return Err(Error::TooMuch { what: "levels", most: DEPTH_MAX });
                }
                left.push(path);
            }
        }
    }
    Ok(())
}

/// Opens what lies beneath a folder, through no link and in no other file
/// system. An empty path is the folder itself.
///
/// # Errors
/// The kernel's: `ELOOP` for a link on the way, `EXDEV` for what leads out.
pub fn open_beneath(dir: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve =
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    let path = if path.is_empty() { b"." } else { path };
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat2(dir, OsStr::from_bytes(path), flags, Mode::empty(), resolve)
}

/// A path below another.
pub fn joined(above: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(above.len() + 1 + name.len());
    path.extend_from_slice(above);
    if !above.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}
