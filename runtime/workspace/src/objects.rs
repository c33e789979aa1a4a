//! Contents of files, each under its sha256.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use env_contracts::Digest;
use fs_err as fs;
use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// How much is read at once.
const PIECE: usize = 256 << 10;

/// A folder of contents.
#[derive(Debug)]
pub(crate) struct Objects {
    folder: PathBuf,
}

impl Objects {
    pub(crate) fn open(folder: PathBuf) -> Result<Self, Error> {
        fs::create_dir_all(&folder).map_err(Error::io("make a folder"))?;
        Ok(Self { folder })
    }

    /// Where a content lies: not too many in one folder.
    pub(crate) fn path(&self, sha256: &Digest) -> PathBuf {
        let name = sha256.as_str();
        self.folder.join(&name[..2]).join(name)
    }

    /// Keeps the content of a file: its length and digest. `path` is how errors
    /// call it.
    pub(crate) fn keep(&self, file: &mut File, path: &str) -> Result<(u64, Digest), Error> {
        let reading = || format!("read `{path}`");
        let (size, sha256) = hash(file, |_| Ok(())).map_err(Error::io(reading()))?;
        let place = self.path(&sha256);
        if place.exists() {
            return Ok((size, sha256));
        }
        std::io::Seek::rewind(file).map_err(Error::io(reading()))?;
        let keeping = || format!("keep `{path}`");
        let above = place.parent().unwrap_or(&self.folder);
        fs::create_dir_all(above).map_err(Error::io(keeping()))?;
        let mut new = tempfile::NamedTempFile::new_in(above).map_err(Error::io(keeping()))?;
        let copied = hash(file, |piece| new.write_all(piece)).map_err(Error::io(keeping()))?;
        if copied != (size, sha256.clone()) {
            return Err(Error::Changed { path: path.to_owned() });
        }
        new.persist(&place).map_err(|error| Error::io(keeping())(error.error))?;
        Ok((size, sha256))
    }

    /// Writes a content into a file, and compares it on the way.
    pub(crate) fn copy(&self, sha256: &Digest, size: u64, into: &mut File) -> Result<(), Error> {
        let mut kept = match fs::File::open(self.path(sha256)) {
            Ok(kept) => kept.into_file(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::Damaged(format!("the content {} is missing", sha256.short())));
            }
            Err(error) => return Err(Error::io("read what is kept")(error)),
        };
        let copied = hash(&mut kept, |piece| into.write_all(piece)).map_err(Error::io("restore a file"))?;
        if copied != (size, sha256.clone()) {
            return Err(Error::Damaged(format!("the content {} is another", sha256.short())));
        }
        Ok(())
    }

    /// Every content that is kept: its path, and its digest if its name is one.
    pub(crate) fn all(&self) -> Result<Vec<(PathBuf, Option<Digest>)>, Error> {
        let mut all = Vec::new();
        for folder in entries(&self.folder)? {
            for path in entries(&folder)? {
                let name = path.file_name().and_then(|name| name.to_str());
                let digest = name.and_then(|name| name.parse().ok());
                all.push((path, digest));
            }
        }
        Ok(all)
    }
}

/// What lies in a folder; nothing where it is none.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    use std::io::ErrorKind;
    match fs::read_dir(folder) {
        Ok(entries) => {
            let paths = entries.map(|entry| entry.map(|entry| entry.path()));
            paths.collect::<Result<_, _>>().map_err(Error::io("look at what is kept"))
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(Error::io("look at what is kept")(error)),
    }
}

/// Length and digest of what is left to read, each piece of which is handed on.
fn hash(file: &mut File, mut each: impl FnMut(&[u8]) -> std::io::Result<()>) -> std::io::Result<(u64, Digest)> {
    let (mut hasher, mut size, mut piece) = (Sha256::new(), 0, vec![0; PIECE]);
    loop {
        let count = match file.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&piece[..count]);
        each(&piece[..count])?;
        size += count as u64;
    }
    Ok((size, Digest::from_bytes(hasher.finalize().into())))
}
