//! Which processes are alive: each that holds work has a file of its own,
//! locked as long as it lives. The kernel gives the lock back however it ends.

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use env_contracts::{Code, Id, Problem};
use fs_err::File;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::random;

/// The folder of the files.
const FOLDER: &str = "holders";

/// This process, as others know it.
pub(crate) struct Holder {
    id: Id,
    folder: PathBuf,
    /// Locked until it is closed.
    _file: File,
}

impl Holder {
    /// Shows in this store's folder that the process lives, and removes the
    /// files of those that don't.
    pub(crate) fn new(store: &Path) -> Result<Self, Problem> {
        let folder = store.join(FOLDER);
        // This user's alone, whatever the umask is.
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| unavailable(&error))?;
        let holder = loop {
            let id = random::id()?;
            let file = fs_err::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(folder.join(id.as_str()))
                .map_err(|error| unavailable(&error))?;
            flock(&file, FlockOperation::LockExclusive).map_err(|errno| unavailable(&errno.into()))?;
            // Somebody may have found it before it was locked, and removed it.
            if file.metadata().map_err(|error| unavailable(&error))?.nlink() > 0 {
                break Self { id, folder, _file: file };
            }
        };
        for entry in fs_err::read_dir(&holder.folder).map_err(|error| unavailable(&error))? {
            let entry = entry.map_err(|error| unavailable(&error))?;
            if let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
                holder.alive(&id)?;
            }
        }
        Ok(holder)
    }

    pub(crate) fn id(&self) -> &Id {
        &self.id
    }

    /// Whether that process still lives. The file of one that does not is
    /// removed.
    pub(crate) fn alive(&self, id: &Id) -> Result<bool, Problem> {
        if *id == self.id {
            return Ok(true);
        }
        let path = self.folder.join(id.as_str());
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(unavailable(&error)),
        };
        // Shared, so that two who look at once don't take each other for it.
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(errno) => Err(unavailable(&errno.into())),
            Ok(()) => {
                // Ids are never used again, so nobody else's file has this name;
                // and it may be gone already.
                let _ = fs_err::remove_file(&path);
                Ok(false)
            }
        }
    }
}

/// The process that is this holder, as this host numbers it, where the kernel
/// says so.
pub fn process_of(store: &Path, holder: &Id) -> Option<u32> {
    let inode = fs_err::metadata(store.join(FOLDER).join(holder.as_str())).ok()?.ino();
    only_owner(&fs_err::read_to_string("/proc/locks").ok()?, inode)
}

/// Who has this file locked, where it is one. A line of the kernel's list:
/// `1: FLOCK  ADVISORY  WRITE 4711 fd:00:131 0 EOF`; waiting ones have `->`.
fn only_owner(locks: &str, inode: u64) -> Option<u32> {
    let mut owners = locks.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", process, file, ..] = words[..] else { return None };
        let (_, number) = file.rsplit_once(':')?;
        (number.parse() == Ok(inode)).then_some(process)
    });
    let owner = owners.next()?;
    // Files of different disks can have one number. Processes of other
    // namespaces have none here.
    owner.parse().ok().filter(|owner| *owner > 0 && owners.next().is_none())
}

impl Drop for Holder {
    fn drop(&mut self) {
        // Whoever looks for it finds it dead either way.
        let _ = fs_err::remove_file(self.folder.join(self.id.as_str()));
    }
}

fn unavailable(error: &std::io::Error) -> Problem {
    Problem::new(Code::StateUnavailable, format!("can't show that this process is alive: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_the_process_that_has_its_file_locked() {
        let store = tempfile::tempdir().unwrap();
        let holder = Holder::new(store.path()).unwrap();
        assert_eq!(process_of(store.path(), holder.id()), Some(std::process::id()));
        let id = holder.id().clone();
        drop(holder);
        assert_eq!(process_of(store.path(), &id), None);
    }

    #[test]
    fn locks_that_are_not_clear_name_nobody() {
        let line = |rest: &str| format!("1: POSIX  ADVISORY  WRITE 5 00:1f:7 0 EOF\n{rest}\n");
        for (locks, owner) in [
            ("2: FLOCK  ADVISORY  WRITE 4711 fd:00:7 0 EOF", Some(4711)),
            ("2: FLOCK  ADVISORY  READ  4711 fd:00:7 0 EOF", None),
            ("2: FLOCK  ADVISORY  WRITE 4711 fd:00:77 0 EOF", None),
            ("2: -> FLOCK  ADVISORY  WRITE 4711 fd:00:7 0 EOF", None),
            ("2: FLOCK  ADVISORY  WRITE 1 fd:00:7 0 EOF\n3: FLOCK  ADVISORY  WRITE 2 fd:01:7 0 EOF", None),
            ("2: FLOCK  ADVISORY  WRITE 0 fd:00:7 0 EOF", None),
            ("2: FLOCK  ADVISORY  WRITE -1 fd:00:7 0 EOF", None),
            ("2: FLOCK", None),
        ] {
            assert_eq!(only_owner(&line(locks), 7), owner, "{locks}");
        }
    }
}
