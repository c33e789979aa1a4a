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

impl Drop for Holder {
    fn drop(&mut self) {
        // Whoever looks for it finds it dead either way.
        let _ = fs_err::remove_file(self.folder.join(self.id.as_str()));
    }
}

fn unavailable(error: &std::io::Error) -> Problem {
    Problem::new(Code::StateUnavailable, format!("can't show that this process is alive: {error}"))
}
