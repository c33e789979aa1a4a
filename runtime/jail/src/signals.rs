//! What a process inherits of signals.

use std::io;

use crate::error::{JailError, Result};

/// Lets all signals through, and lets the ends of children be heard: whoever
/// started this process may have blocked or ignored them, and both are
/// inherited.
///
/// # Errors
/// Those of the kernel.
pub fn hear_signals() -> Result<()> {
    // SAFETY: both calls read plain data that was initialised just before, and
    // no code of ours is installed.
    let done = unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        let ignored = libc::signal(libc::SIGCHLD, libc::SIG_DFL) == libc::SIG_ERR;
        !ignored && libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) == 0
    };
    if done { Ok(()) } else { Err(JailError::System { what: "hear signals", source: io::Error::last_os_error() }) }
}
