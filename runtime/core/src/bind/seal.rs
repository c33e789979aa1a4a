//! Sealing: a file is copied while it is hashed, and the copy can't change.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;

use env_contracts::{ByteSize, Code, Digest, Problem};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use sha2::Digest as _;

use super::RunDir;

/// The most bytes of inputs and path arguments that one action may seal
/// unless the operator says otherwise: they are copied, so this is disk that
/// a request can take for as long as it runs.
pub const MAX_SEALED: ByteSize = ByteSize::gib(1);

/// Up to this size the copy lives in memory, where it is quick and truly
/// immutable; above it on disk, under no name.
const IN_MEMORY: u64 = 4 << 20;

/// A file whose content is fixed.
pub struct Sealed {
    /// The content, at its start, for reading only.
    pub content: OwnedFd,
    /// Its sha256.
    pub sha256: Digest,
    /// Its length.
    pub size: u64,
}

/// Seals files up to a budget.
pub(super) struct Sealer<'a> {
    run_dir: &'a RunDir,
    max: u64,
    left: u64,
}

impl<'a> Sealer<'a> {
    pub(super) fn new(run_dir: &'a RunDir, max: u64) -> Self {
        Self { run_dir, max, left: max }
    }

    /// Copies and hashes; `what` names the file in errors.
    pub(super) fn seal(&mut self, what: &str, file: OwnedFd) -> Result<Sealed, Problem> {
        let mut file = File::from(file);
        let size = file.metadata().map_or(0, |meta| meta.len());
        let sealed = if size <= IN_MEMORY.min(self.left) {
            let mut copy = File::from(memory_file().map_err(|error| failed(what, &error))?);
            let copied = copy_hashed(&mut file, &mut copy, IN_MEMORY.min(self.left));
            // A file that grew past what memory takes goes to disk after all.
            match copied.map_err(|error| failed(what, &error))? {
                Some((sha256, size)) => {
                    Some(Sealed { content: immutable(copy).map_err(|error| failed(what, &error))?, sha256, size })
                }
                None => None,
            }
        } else {
            None
        };
        let sealed = match sealed {
            Some(sealed) => sealed,
            None => self.on_disk(what, &mut file)?,
        };
        self.left -= sealed.size;
        Ok(sealed)
    }

    fn on_disk(&self, what: &str, file: &mut File) -> Result<Sealed, Problem> {
        let mut copy = File::from(self.run_dir.unnamed_file()?);
        file.seek(SeekFrom::Start(0)).map_err(|error| failed(what, &error))?;
        let copied = copy_hashed(file, &mut copy, self.left).map_err(|error| failed(what, &error))?;
        let (sha256, size) = copied.ok_or_else(|| {
            let message = format!("`{what}`: inputs and path arguments together have more than {}", ByteSize(self.max));
            Problem::new(Code::LimitHit, message)
                .with_help("raise `limits.sealed` in the configuration, or give the tool less")
        })?;
        Ok(Sealed { content: read_only(&copy).map_err(|error| failed(what, &error))?, sha256, size })
    }
}

/// Copies a file's bytes into a fresh sealed file; for content of our own
/// that is not subject to a request's budget.
///
/// # Errors
/// The host's, with codes for a full disk and an unusable state folder.
pub fn sealed_copy(run_dir: &RunDir, what: &str, file: OwnedFd) -> Result<Sealed, Problem> {
    Sealer::new(run_dir, u64::MAX >> 1).seal(what, file)
}

/// Copies up to `most` bytes; `None` if there are more.
fn copy_hashed(from: &mut File, to: &mut File, most: u64) -> io::Result<Option<(Digest, u64)>> {
    let mut hasher = sha2::Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut size = 0;
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        size += read as u64;
        if size > most {
            return Ok(None);
        }
        hasher.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
    }
    to.seek(SeekFrom::Start(0))?;
    Ok(Some((Digest::from_bytes(hasher.finalize().into()), size)))
}

fn memory_file() -> io::Result<OwnedFd> {
    Ok(rustix::fs::memfd_create("sealed", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?)
}

/// Makes a memory file immutable for everybody, ourselves included.
fn immutable(file: File) -> io::Result<OwnedFd> {
    rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    read_only(&file)
}

/// A second descriptor of the same file that can't write.
fn read_only(file: &File) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd as _;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

fn failed(what: &str, error: &io::Error) -> Problem {
    crate::io_problem(&format!("cannot seal `{what}`"), Code::FileUnreadable, error)
}
