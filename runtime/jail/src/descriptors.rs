//! What a process still holds.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::error::{JailError, Result};

/// Closes every descriptor but these.
///
/// Whoever still owns one of the others holds a number that means nothing
/// from here on; so this belongs into a process that has just been made, or
/// that is about to run a stranger's code.
///
/// # Errors
/// When the kernel has no `close_range` (Linux 5.9).
pub fn keep_descriptors(keep: &[BorrowedFd<'_>]) -> Result<()> {
    let mut kept: Vec<u32> = keep.iter().filter_map(|fd| u32::try_from(fd.as_raw_fd()).ok()).collect();
    kept.sort_unstable();
    let mut first = 0;
    for fd in kept {
        if fd > first {
            close(first, fd - 1)?;
        }
        first = fd + 1;
    }
    close(first, u32::MAX)
}

fn close(first: u32, last: u32) -> Result<()> {
    // SAFETY: closing descriptors touches no memory; what it means to their
    // owners is said above.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0_u32) };
    if done == 0 {
        return Ok(());
    }
    Err(JailError::System { what: "close descriptors", source: io::Error::last_os_error() })
}
