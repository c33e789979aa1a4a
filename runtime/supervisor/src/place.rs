//! Laying out the files that the host gives, before anything runs.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use glovebox_supervisor::{Laid, Placing};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use sha2_11::{Digest as _, Sha256};

/// Half a sha256: nobody finds a second content for one, and a tree of many files
/// takes little memory, which is the tool's.
pub(crate) type Print = [u8; 16];

/// Lays things out, and remembers what went wrong first.
#[derive(Default)]
pub(crate) struct Placer {
    file: Option<Filling>,
    failed: Option<i32>,
    /// Permissions and times that are given once all lies where it belongs.
    folders: Vec<(Vec<u8>, u32, (i64, u32))>,
    /// What was laid out: by path, what it is.
    laid: HashMap<Print, Print>,
}

/// A file whose content is on its way.
struct Filling {
    file: File,
    path: Print,
    content: Sha256,
    modified: (i64, u32),
}

/// What tells one file, or link, from another that lies in its place: what is in
/// it, and its permissions. Times tell less: a change through memory has none.
pub(crate) fn print(kind: &str, mode: u32, content: Sha256) -> Print {
    let mut all = Sha256::new();
    all.update(kind);
    all.update((mode & 0o777).to_le_bytes());
    all.update(content.finalize());
    half(all)
}

/// A time of change, and the same of access: nobody's.
fn times((seconds, nanos): (i64, u32)) -> Timestamps {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanos.into() };
    Timestamps { last_access: time, last_modification: time }
}

fn half(sha256: Sha256) -> Print {
    let mut print = Print::default();
    print.copy_from_slice(&sha256.finalize()[..16]);
    print
}

fn of(path: &[u8]) -> Print {
    half(Sha256::new_with_prefix(path))
}

impl Placer {
    /// Lays one thing out.
    pub(crate) fn place(&mut self, placing: &Placing) {
        self.filled();
        let at = of(&placing.path);
        let path = Path::new(std::ffi::OsStr::from_bytes(&placing.path));
        let mode = Mode::from_raw_mode(placing.mode & 0o777);
        let made = match &placing.what {
            Laid::Folder => {
                self.folders.push((placing.path.clone(), placing.mode & 0o777, placing.modified));
                match rustix::fs::mkdir(path, Mode::RWXU) {
                    Err(Errno::EXIST) => Ok(()),
                    made => made,
                }
            }
            Laid::Link(target) => {
                self.laid.insert(at, print("link", 0, Sha256::new_with_prefix(target)));
                rustix::fs::symlink(Path::new(std::ffi::OsStr::from_bytes(target)), path).and_then(|()| {
                    rustix::fs::utimensat(CWD, path, &times(placing.modified), AtFlags::SYMLINK_NOFOLLOW)
                })
            }
            Laid::File => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).and_then(|fd| {
                    rustix::fs::fchmod(&fd, mode)?;
                    self.file =
                        Some(Filling { file: fd.into(), path: at, content: Sha256::new(), modified: placing.modified });
                    Ok(())
                })
            }
        };
        if let Err(errno) = made {
            self.failed.get_or_insert(errno.raw_os_error());
        }
    }

    /// Content of the file that was placed last.
    pub(crate) fn content(&mut self, bytes: &[u8]) {
        let Some(filling) = &mut self.file else { return };
        filling.content.update(bytes);
        if let Err(error) = filling.file.write_all(bytes) {
            self.failed.get_or_insert(error.raw_os_error().unwrap_or(libc::EIO));
            self.file = None;
        }
    }

    /// The file that was placed last has all its content.
    fn filled(&mut self) {
        let Some(Filling { file, path, content, modified }) = self.file.take() else { return };
        if let Err(errno) = rustix::fs::futimens(&file, &times(modified)) {
            self.failed.get_or_insert(errno.raw_os_error());
        }
        let mode = rustix::fs::fstat(&file).map_or(0, |stat| stat.st_mode);
        self.laid.insert(path, print("file", mode, content));
    }

    /// All is placed: what went wrong, if anything did.
    pub(crate) fn finish(&mut self) -> Option<i32> {
        self.filled();
        // The deepest first: who may not enter a folder reaches nothing below.
        for (path, mode, modified) in std::mem::take(&mut self.folders).into_iter().rev() {
            let path = Path::new(std::ffi::OsStr::from_bytes(&path));
            let times = times(modified);
            let timed = rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
            if let Err(errno) = timed.and_then(|()| rustix::fs::chmod(path, Mode::from_raw_mode(mode))) {
                // The mount itself may be another's.
                if errno != Errno::PERM {
                    self.failed.get_or_insert(errno.raw_os_error());
                }
            }
        }
        self.failed.take()
    }

    /// What was laid out at a path, if anything was.
    pub(crate) fn laid(&self, path: &[u8]) -> Option<Print> {
        self.laid.get(&of(path)).copied()
    }
}
