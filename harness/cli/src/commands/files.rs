//! Files that a person named.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use env_contracts::{Code, Problem};

/// The longest manifest or contract that is read; the formats take less.
const MAX_TEXT: u64 = 1 << 20;

/// Reads a text that a person named: a plain file of bounded length.
///
/// # Errors
/// `file-unreadable`.
pub(super) fn read_text(path: &Path) -> Result<String, Problem> {
    let mut text = String::new();
    let file = File::from(open(path)?);
    let read = file.take(MAX_TEXT + 1).read_to_string(&mut text);
    read.map_err(|error| Problem::new(Code::FileUnreadable, format!("`{}`: {error}", path.display())))?;
    if text.len() as u64 > MAX_TEXT {
        let message = format!("`{}` has more than {MAX_TEXT} bytes", path.display());
        return Err(Problem::new(Code::FileUnreadable, message));
    }
    Ok(text)
}

/// Opens a plain file for reading; what could block or do something is refused.
///
/// # Errors
/// `file-unreadable`.
pub(super) fn open(path: &Path) -> Result<OwnedFd, Problem> {
    use rustix::fs::{FileType, Mode, OFlags, fstat};
    let failed = |why: String| Problem::new(Code::FileUnreadable, format!("`{}`: {why}", path.display()));
    // Not blocking: opening a FIFO would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = rustix::fs::open(path, flags, Mode::empty())
        .map_err(|errno| failed(std::io::Error::from(errno).to_string()))?;
    let stat = fstat(&fd).map_err(|errno| failed(std::io::Error::from(errno).to_string()))?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
        Ok(fd)
    } else {
        Err(failed("not a regular file".into()))
    }
}
