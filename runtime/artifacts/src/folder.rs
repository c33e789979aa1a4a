//! What a store in a local folder needs beyond the object store: a lock
//! between collection and publication, durable removal, and the sweeping of
//! what killed processes left.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use crate::error::{Error, Source};

/// How often a lock that others hold is tried. They hold it for milliseconds.
const LOCK_POLL: Duration = Duration::from_millis(2);

/// How long a lock is waited for. Publishing and each round of collection hold
/// it for milliseconds; half a minute means that something is stuck.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

/// The folder of one tenant in a local store.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: Arc<Path>,
}

/// A held lock; dropping it unlocks, and so does the end of the process.
pub(crate) struct Lock {
    _file: File,
}

/// Files that a killed process left behind.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl Folder {
    /// Makes the folder, for its owner alone, and makes it last.
    pub(crate) fn create(root: &Path, tenant: &str) -> Result<Self, Error> {
        let path = root.join(tenant);
        let make = || {
            let present = path.ancestors().find(|folder| folder.is_dir());
            DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
            // Each folder that is new is an entry in the one above it.
            let made = path.ancestors().take_while(|folder| Some(*folder) != present);
            made.filter_map(Path::parent).filter(|above| !above.as_os_str().is_empty()).try_for_each(sync_dir)
        };
        make().map_err(|source: io::Error| Error::of_store(root, source))?;
        Ok(Self { path: path.into() })
    }

    /// An error of the store in this folder.
    pub(crate) fn error(&self, source: impl Into<Source>) -> Error {
        Error::of_store(&self.path, source)
    }

    /// Locks publication and collection against each other: those who publish
    /// share the lock, who collects has it alone. It is asked for again and
    /// again instead of waited for, so that waiting takes up no thread that
    /// the holder needs.
    pub(crate) async fn lock(&self, shared: bool) -> Result<Lock, Error> {
        let operation =
            if shared { FlockOperation::NonBlockingLockShared } else { FlockOperation::NonBlockingLockExclusive };
        let path = self.path.join("lock");
        let file =
            fs_err::OpenOptions::new().create(true).append(true).open(path).map_err(|source| self.error(source))?;
        let mut waited = Duration::ZERO;
        loop {
            match flock(file.file(), operation) {
                Ok(()) => {
                    return Ok(Lock { _file: file.into_parts().0 });
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::WOULDBLOCK) if waited < LOCK_PATIENCE => {
                    tokio::time::sleep(LOCK_POLL).await;
                    waited += LOCK_POLL;
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(Error::Busy(self.path.to_path_buf()));
                }
                Err(errno) => return Err(self.error(io::Error::from(errno))),
            }
        }
    }

    /// Makes the removal of index entries last before any blob of theirs goes,
    /// and removes the folders that they leave empty. The caller holds the
    /// lock alone, so that nobody is just filling one of them.
    pub(crate) fn settle_index(&self, actions: &BTreeSet<String>) -> Result<(), Error> {
        let index = self.path.join("index");
        let settle = || {
            for action in actions {
                match fs_err::remove_dir(index.join(action)) {
                    Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                        sync_dir(&index.join(action))?;
                    }
                    other => drop(tolerate_missing(other)?),
                }
            }
            tolerate_missing(sync_dir(&index)).map(drop)
        };
        settle().map_err(|source| self.error(source))
    }

    /// Removes what a failed upload to `object` left.
    pub(crate) fn remove_staged(&self, object: &object_store::path::Path) {
        // Uploads have names of their own, so that theirs is the first and only one.
        if let Some(name) = object.filename() {
            let _ = fs_err::remove_file(self.path.join("incoming").join(format!("{name}#1")));
        }
    }

    /// Finds, and unless `dry_run` removes, files that no put finished and
    /// nobody wrote to since `before_ms`.
    pub(crate) fn sweep(&self, before_ms: u64, dry_run: bool) -> Result<Leftovers, Error> {
        let mut found = Leftovers::default();
        let mut folders = vec![self.path.to_path_buf()];
        while let Some(folder) = folders.pop() {
            self.sweep_folder(&folder, before_ms, dry_run, &mut folders, &mut found)
                .map_err(|source| self.error(source))?;
        }
        Ok(found)
    }

    fn sweep_folder(
        &self,
        folder: &Path,
        before_ms: u64,
        dry_run: bool,
        deeper: &mut Vec<PathBuf>,
        found: &mut Leftovers,
    ) -> io::Result<()> {
        let incoming = folder == self.path.join("incoming");
        for entry in tolerate_missing(fs_err::read_dir(folder))?.into_iter().flatten() {
            let entry = entry?;
            // Not followed if it is a link. Files come and go while we look.
            let Some(metadata) = tolerate_missing(entry.metadata())? else {
                continue;
            };
            if metadata.is_dir() {
                deeper.push(entry.path());
            } else if (incoming || is_staged(&entry.file_name().to_string_lossy()))
                && modified_ms(&metadata)? < before_ms
            {
                found.files += 1;
                found.bytes += metadata.len();
                if !dry_run {
                    tolerate_missing(fs_err::remove_file(entry.path()))?;
                }
            }
        }
        Ok(())
    }
}

/// The object store writes to `NAME#NUMBER` before it renames, and never lists
/// such files.
fn is_staged(name: &str) -> bool {
    name.rsplit_once('#')
        .is_some_and(|(_, digits)| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn modified_ms(metadata: &std::fs::Metadata) -> io::Result<u64> {
    let since = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn tolerate_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn sync_dir(path: &Path) -> io::Result<()> {
    fs_err::File::open(path)?.sync_all()
}
