//! How a forbidden system call is told to whoever watches.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::error::{JailError, Result};

/// The first byte of the frame that reports a forbidden system call. The
/// frame is this byte, the length of the rest (4, as little-endian `u32`) and
/// the call's number (little-endian `u32`).
pub const VIOLATION: u8 = 0xEE;
/// What the process ends with after it: 128 and the signal's number, as a
/// shell would say it.
pub const VIOLATION_EXIT: i32 = 128 + libc::SIGSYS;
/// Bytes of the frame.
pub const VIOLATION_FRAME: usize = 9;

/// The signal is the kernel's word on a filtered call.
const SYS_SECCOMP: libc::c_int = 1;

static CHANNEL: AtomicI32 = AtomicI32::new(-1);

/// From here on a system call that a filter forbids is written to `channel` as
/// one frame, and ends the process with [`VIOLATION_EXIT`].
///
/// The filters keep the handler in place: after [`Filter::Cell`] and
/// [`Filter::Compile`] nobody can take it away. Blocking the signal does not
/// help either, the kernel then kills.
///
/// [`Filter::Cell`]: crate::Filter::Cell
/// [`Filter::Compile`]: crate::Filter::Compile
///
/// # Errors
/// When the handler can't be installed.
pub fn report_violations(channel: RawFd) -> Result<()> {
    CHANNEL.store(channel, Ordering::Relaxed);
    let handler: extern "C" fn(libc::c_int, *const Information, *const libc::c_void) = violated;
    // SAFETY: all bytes zero is a valid `sigaction`: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    // The stack in use may be a guest's, and full.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `action` is complete, and its handler calls only what may be
    // called in a signal handler: atomics, `write` and `exit_group`.
    let done = unsafe { libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()) };
    if done == 0 {
        return Ok(());
    }
    Err(JailError::System { what: "watch for forbidden calls", source: io::Error::last_os_error() })
}

/// The system call that `bytes` report, when they are one whole frame.
pub fn violation(bytes: &[u8]) -> Option<u32> {
    match *bytes {
        [VIOLATION, 4, 0, 0, 0, a, b, c, d] => Some(u32::from_le_bytes([a, b, c, d])),
        _ => None,
    }
}

/// The part of `siginfo_t` that the kernel fills for a filtered call.
#[repr(C)]
struct Information {
    signal: libc::c_int,
    errno: libc::c_int,
    code: libc::c_int,
    address: *const libc::c_void,
    call: libc::c_int,
    architecture: libc::c_uint,
}

extern "C" fn violated(_signal: libc::c_int, information: *const Information, _context: *const libc::c_void) {
    // SAFETY: the kernel hands a handler with `SA_SIGINFO` a filled `siginfo_t`.
    let information = unsafe { &*information };
    // Sent by a person or a program, it says nothing about calls, and is heard
    // only as an end.
    let call = if information.code == SYS_SECCOMP { information.call } else { -1 };
    let mut frame = [0; VIOLATION_FRAME];
    frame[0] = VIOLATION;
    frame[1..5].copy_from_slice(&4_u32.to_le_bytes());
    frame[5..].copy_from_slice(&call.to_le_bytes());
    // SAFETY: plain calls on a buffer that lives; the second does not return.
    unsafe {
        // What can't be written is still told by the way the process ends.
        if call >= 0 {
            libc::write(CHANNEL.load(Ordering::Relaxed), frame.as_ptr().cast(), VIOLATION_FRAME);
        }
        libc::syscall(libc::SYS_exit_group, VIOLATION_EXIT);
    }
}
