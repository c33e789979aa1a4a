//! The folder of one run: private, gone when the run is.

use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use env_contracts::{Code, Problem};
use rustix::fs::{FlockOperation, Mode, OFlags};

use super::remove::remove_tree;

/// The name of the lock that says a run is alive. The kernel drops it with
/// the process, however that ends.
const LOCK: &str = "lock";

/// How many folders of one action can be there at once: those of processes
/// that died, and of others that bind it at this moment.
const MOST_NAMES: u32 = 64;

/// How long a folder may be without its lock, in seconds: longer than two calls
/// take on any host.
const JUST_MADE: i64 = 60;

/// The folder of one run. It is made when something is put into it, since most
/// runs need none. Dropping it removes it with all in it.
#[derive(Debug)]
pub struct RunDir {
    parent: PathBuf,
    action: String,
    made: OnceLock<Made>,
    making: Mutex<()>,
    keep: bool,
}

/// A folder that was made.
#[derive(Debug)]
struct Made {
    path: PathBuf,
    dir: OwnedFd,
    _lock: OwnedFd,
}

impl Made {
    /// Makes the folder for an action below `parent`, which is made too.
    fn new(parent: &Path, action: &str) -> Result<Self, Problem> {
        let mut path = parent.join(action);
        let failed = |path: &Path, error: std::io::Error| {
            crate::io_problem(&format!("cannot make `{}`", path.display()), Code::StateUnavailable, &error)
        };
        let (mut number, mut parent_made) = (1, false);
        loop {
            match rustix::fs::mkdir(&path, Mode::RWXU) {
                Ok(()) => break,
                // Once: whoever else makes it now may be faster than a look.
                Err(rustix::io::Errno::NOENT) if !parent_made => {
                    parent_made = true;
                    crate::private_dir(parent).map_err(|error| failed(parent, error))?;
                }
                Err(rustix::io::Errno::EXIST) if number < MOST_NAMES => {
                    number += 1;
                    path = parent.join(format!("{action}.{number}"));
                }
                Err(errno) => return Err(failed(&path, errno.into())),
            }
        }
        let open = || -> std::io::Result<_> {
            let dir = rustix::fs::open(&path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
            let lock = rustix::fs::openat(
                &dir,
                LOCK,
                OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC,
                Mode::RUSR | Mode::WUSR,
            )?;
            rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            Ok((dir, lock))
        };
        match open() {
            Ok((dir, lock)) => Ok(Self { path, dir, _lock: lock }),
            Err(error) => {
                // What was made just now holds nothing.
                let _ = fs_err::remove_dir_all(&path);
                Err(failed(&path, error))
            }
        }
    }
}

impl RunDir {
    /// The folder of an action below `parent`.
    pub fn new(parent: &Path, action: &str) -> Self {
        Self {
            parent: parent.to_owned(),
            action: action.to_owned(),
            made: OnceLock::new(),
            making: Mutex::new(()),
            keep: false,
        }
    }

    fn made(&self) -> Result<&Made, Problem> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let _one = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let made = Made::new(&self.parent, &self.action)?;
        Ok(self.made.get_or_init(|| made))
    }

    /// A private folder in it, made if it is not there.
    ///
    /// # Errors
    /// `state-unavailable`, `disk-full`.
    pub fn folder(&self, name: &str) -> Result<OwnedFd, Problem> {
        let made = self.made()?;
        let failed = |errno: rustix::io::Errno| {
            crate::io_problem(
                &format!("cannot make `{}`", made.path.join(name).display()),
                Code::StateUnavailable,
                &errno.into(),
            )
        };
        match rustix::fs::mkdirat(&made.dir, name, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno)),
        }
        rustix::fs::openat(
            &made.dir,
            name,
            OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
        )
        .map_err(failed)
    }

    /// A file in it under no name: gone with its last descriptor.
    ///
    /// # Errors
    /// `state-unavailable`, `disk-full`.
    pub fn unnamed_file(&self) -> Result<OwnedFd, Problem> {
        let made = self.made()?;
        let failed = |error: std::io::Error| {
            crate::io_problem(&format!("cannot write in `{}`", made.path.display()), Code::StateUnavailable, &error)
        };
        match rustix::fs::openat(&made.dir, ".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR) {
            Ok(fd) => Ok(fd),
            // Some network file systems can't; a name that is taken away at
            // once comes close.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::NOENT) => {
                let name = "unnamed";
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
                let fd = rustix::fs::openat(&made.dir, name, flags, Mode::RUSR | Mode::WUSR)
                    .map_err(|errno| failed(errno.into()))?;
                rustix::fs::unlinkat(&made.dir, name, rustix::fs::AtFlags::empty())
                    .map_err(|errno| failed(errno.into()))?;
                Ok(fd)
            }
            Err(errno) => Err(failed(errno.into())),
        }
    }

    /// Moves the folder to a place where it stays: the contract says that
    /// scratch is kept. [`expire`] takes it away when it is old.
    ///
    /// # Errors
    /// `state-unavailable`, `disk-full`; the folder is gone then.
    pub fn keep(mut self, place: &Path) -> Result<PathBuf, Problem> {
        let path = self.made()?.path.clone();
        let kept = place.join(path.file_name().unwrap_or_default());
        let failed = |error: std::io::Error| {
            crate::io_problem(&format!("cannot keep `{}`", kept.display()), Code::StateUnavailable, &error)
        };
        crate::private_dir(place).map_err(failed)?;
        fs_err::rename(&path, &kept).map_err(failed)?;
        self.keep = true;
        Ok(kept)
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if let Some(made) = self.made.get().filter(|_| !self.keep) {
            // What can't be removed now is swept later: its lock is free.
            let _ = remove_tree(made.dir.as_fd(), LOCK).and_then(|()| fs_err::remove_dir(&made.path));
        }
    }
}

/// Removes the folders of runs whose process is gone. Returns what was, or in
/// a dry run would be, removed.
///
/// # Errors
/// `state-unavailable` if the parent can't be read; a missing one is empty.
pub fn sweep(parent: &Path, dry_run: bool) -> Result<Vec<PathBuf>, Problem> {
    let failed = |error: std::io::Error| {
        crate::io_problem(&format!("cannot sweep `{}`", parent.display()), Code::StateUnavailable, &error)
    };
    let entries = match fs_err::read_dir(parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut gone = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let Ok(dir) = rustix::fs::open(
            &path,
            OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
        ) else {
            continue;
        };
        let lock =
            match rustix::fs::openat(&dir, LOCK, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(lock) => lock,
                // Its owner is just about to make the lock, or died before it did.
                Err(rustix::io::Errno::NOENT) if is_new(&dir) => continue,
                Err(rustix::io::Errno::NOENT) => {
                    if !dry_run && fs_err::remove_dir(&path).is_ok() {
                        gone.push(path);
                    }
                    continue;
                }
                Err(_) => continue,
            };
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        if !dry_run {
            remove_tree(dir.as_fd(), LOCK).and_then(|()| fs_err::remove_dir(&path)).map_err(failed)?;
        }
        gone.push(path);
    }
    Ok(gone)
}

/// Whether a folder was changed so lately that its owner may be about to lock it.
fn is_new(dir: &OwnedFd) -> bool {
    let changed = rustix::fs::fstat(dir).map_or(0, |stat| stat.st_ctime);
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
    now.saturating_sub(changed) < JUST_MADE
}

/// Removes kept folders that were last changed longer than `age` ago. Returns
/// what was, or in a dry run would be, removed.
///
/// # Errors
/// `state-unavailable` if the place can't be read; a missing one is empty.
pub fn expire(
    place: &Path,
    age: std::time::Duration,
    now: crate::Instant,
    dry_run: bool,
) -> Result<Vec<PathBuf>, Problem> {
    let failed = |error: std::io::Error| {
        crate::io_problem(&format!("cannot clean `{}`", place.display()), Code::StateUnavailable, &error)
    };
    let entries = match fs_err::read_dir(place) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut gone = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let changed = entry.metadata().and_then(|meta| meta.modified()).map_err(failed)?;
        let changed = changed.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let changed = crate::Instant { unix_millis: u64::try_from(changed.as_millis()).unwrap_or(0) };
        if changed.age(now) < age {
            continue;
        }
        let path = entry.path();
        if !dry_run {
            let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let dir = rustix::fs::open(&path, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
            remove_tree(dir.as_fd(), LOCK).and_then(|()| fs_err::remove_dir(&path)).map_err(failed)?;
        }
        gone.push(path);
    }
    Ok(gone)
}
