//! Laying out the files that the host gives, before anything runs.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use glovebox_supervisor::{Laid, Placing};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::time::ClockId;

/// A file system's clock is no finer than this: what changes later than that
/// has a later time.
const TICK: Duration = Duration::from_millis(11);

/// Lays things out, and remembers what went wrong first.
#[derive(Default)]
pub(crate) struct Placer {
    file: Option<File>,
    failed: Option<i32>,
    /// Permissions that are given once all lies where it belongs.
    folders: Vec<(Vec<u8>, u32)>,
    placed: i128,
}

impl Placer {
    /// Lays one thing out.
    pub(crate) fn place(&mut self, placing: &Placing) {
        self.file = None;
        let path = Path::new(std::ffi::OsStr::from_bytes(&placing.path));
        let mode = Mode::from_raw_mode(placing.mode & 0o777);
        let made = match &placing.what {
            Laid::Folder => {
                self.folders.push((placing.path.clone(), placing.mode & 0o777));
                match rustix::fs::mkdir(path, Mode::RWXU) {
                    Err(Errno::EXIST) => Ok(()),
                    made => made,
                }
            }
            Laid::Link(target) => rustix::fs::symlink(Path::new(std::ffi::OsStr::from_bytes(target)), path),
            Laid::File => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).and_then(|fd| {
                    rustix::fs::fchmod(&fd, mode)?;
                    self.file = Some(fd.into());
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
        let Some(file) = &mut self.file else { return };
        if let Err(error) = file.write_all(bytes) {
            self.failed.get_or_insert(error.raw_os_error().unwrap_or(libc::EIO));
            self.file = None;
        }
    }

    /// All is placed: what went wrong, if anything did.
    pub(crate) fn finish(&mut self) -> Option<i32> {
        self.file = None;
        // The deepest first: who may not enter a folder reaches nothing below.
        for (path, mode) in std::mem::take(&mut self.folders).into_iter().rev() {
            let path = Path::new(std::ffi::OsStr::from_bytes(&path));
            if let Err(errno) = rustix::fs::chmod(path, Mode::from_raw_mode(mode)) {
                // The mount itself may be another's.
                if errno != Errno::PERM {
                    self.failed.get_or_insert(errno.raw_os_error());
                }
            }
        }
        let now = rustix::time::clock_gettime(ClockId::Realtime);
        self.placed = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
        std::thread::sleep(TICK);
        self.failed.take()
    }

    /// When all was placed, in nanoseconds since 1970.
    pub(crate) fn placed(&self) -> i128 {
        self.placed
    }
}
