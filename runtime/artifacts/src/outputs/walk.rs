//! Finding out what is in an output folder.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{AtFlags, Dir, FileType, statat};

use super::notice::{NoticeKind, Notices};
use super::{CollectLimits, open};

/// How many entries are looked at in all. Names of this many fit in some
/// 30 MiB, and looking at them takes a fraction of a second.
const MAX_ENTRIES: usize = 100_000;

/// The paths of the files to collect, relative to `root` and in byte order of
/// their components, and notices about everything else.
///
/// # Errors
/// Where the root can't be read, or the system can't open safely.
pub(super) fn walk(root: &OwnedFd, limits: CollectLimits) -> io::Result<(Vec<OsString>, Notices)> {
    let mut walk =
        Walk { root: root.as_fd(), limits, found: Vec::new(), bytes: 0, looked_at: 0, notices: Notices::default() };
    match open::folder(root, OsStr::new("."))? {
        Ok(top) => walk.folder(&top, OsStr::new(""), 0)?,
        Err(kind) => return Err(io::Error::other(kind.as_str())),
    }
    Ok((walk.found, walk.notices))
}

struct Walk<'a> {
    root: BorrowedFd<'a>,
    limits: CollectLimits,
    found: Vec<OsString>,
    bytes: u64,
    looked_at: usize,
    notices: Notices,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &OwnedFd, path: &OsStr, depth: usize) -> io::Result<()> {
        for name in self.names(folder, path) {
            let path =
                if path.is_empty() { name.clone() } else { [path, OsStr::new("/"), &name].into_iter().collect() };
            self.entry(folder, &name, path, depth)?;
        }
        Ok(())
    }

    /// The names in a folder, sorted: what is collected must not depend on the
    /// order that a file system happens to give.
    fn names(&mut self, folder: &OwnedFd, path: &OsStr) -> Vec<OsString> {
        let mut names = Vec::new();
        let entries = match Dir::read_from(folder) {
            Ok(entries) => entries,
            Err(_) => {
                self.notices.add(NoticeKind::Unreadable, path);
                return names;
            }
        };
        for entry in entries {
            let Ok(entry) = entry else {
                self.notices.add(NoticeKind::Unreadable, path);
                break;
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if self.looked_at == MAX_ENTRIES {
                self.notices.add(NoticeKind::TooManyEntries, path);
                break;
            }
            self.looked_at += 1;
            names.push(OsString::from_vec(name.to_vec()));
        }
        names.sort();
        names
    }

    fn entry(&mut self, folder: &OwnedFd, name: &OsStr, path: OsString, depth: usize) -> io::Result<()> {
        if path.as_bytes().len() > self.limits.max_path_len {
            self.notices.add(NoticeKind::PathTooLong, &path);
            return Ok(());
        }
        let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            self.notices.add(NoticeKind::Changed, &path);
            return Ok(());
        };
        let left_out = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if depth == self.limits.max_depth => NoticeKind::TooDeep,
            FileType::Directory => match open::folder(self.root, &path)? {
                Ok(deeper) => return self.folder(&deeper, &path, depth + 1),
                Err(kind) => kind,
            },
            FileType::RegularFile => match self.why_not(stat.st_nlink, u64::try_from(stat.st_size).unwrap_or(0)) {
                None => {
                    self.found.push(path);
                    return Ok(());
                }
                Some(kind) => kind,
            },
            FileType::Symlink => NoticeKind::Symlink,
            _ => NoticeKind::Special,
        };
        self.notices.add(left_out, &path);
        Ok(())
    }

    /// Why a regular file is left out, if it is. Opening it decides once more.
    fn why_not(&mut self, links: u64, size: u64) -> Option<NoticeKind> {
        if links > 1 {
            Some(NoticeKind::HardLink)
        } else if size > self.limits.max_file_bytes {
            Some(NoticeKind::FileTooLarge)
        } else if self.found.len() == self.limits.max_files {
            Some(NoticeKind::TooManyFiles)
        } else if size > self.limits.max_total_bytes - self.bytes {
            Some(NoticeKind::TotalTooLarge)
        } else {
            self.bytes += size;
            None
        }
    }
}
