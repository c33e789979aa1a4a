//! Large and little-used parts of the kernel, and the walls themselves.

use std::io;
use std::mem::MaybeUninit;

use super::{NONE, call, number, opens, reaches};

pub(super) fn io_uring() -> io::Result<()> {
    // More than `struct io_uring_params` needs; all zero is the default.
    let mut parameters = [0_u64; 32];
    opens(libc::SYS_io_uring_setup, [1, (&raw mut parameters).addr(), 0, 0, 0, 0])
}

/// With no attributes, of a command that does not exist.
pub(super) fn load_bpf() -> io::Result<()> {
    reaches(libc::SYS_bpf, [NONE, 0, 0, 0, 0, 0], &[libc::EINVAL, libc::EFAULT])
}

pub(super) fn count_events() -> io::Result<()> {
    reaches(libc::SYS_perf_event_open, [0, 0, NONE, NONE, 0, 0], &[libc::EFAULT, libc::EINVAL])
}

/// Asks for the session's keyring, if there is one.
pub(super) fn read_keys() -> io::Result<()> {
    // KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING
    reaches(libc::SYS_keyctl, [0, number(-3), 0, 0, 0, 0], &[libc::ENOKEY])
}

pub(super) fn type_into_terminal() -> io::Result<()> {
    let (letter, request) = ([0_u8], usize::try_from(libc::TIOCSTI).unwrap_or_default());
    reaches(libc::SYS_ioctl, [NONE, request, letter.as_ptr().addr(), 0, 0, 0], &[libc::EBADF])
}

/// Takes away the handler that reports what a filter forbids.
pub(super) fn replace_reporting() -> io::Result<()> {
    // The kernel's form is no larger; all zero is the default action.
    let action = MaybeUninit::<libc::sigaction>::zeroed();
    const MASK: usize = 8;
    let arguments = [number(libc::SIGSYS), action.as_ptr().addr(), 0, MASK, 0, 0];
    call(libc::SYS_rt_sigaction, arguments).map(drop)
}

/// With no program.
pub(super) fn add_filter() -> io::Result<()> {
    let operation = libc::SECCOMP_SET_MODE_FILTER as usize;
    reaches(libc::SYS_seccomp, [operation, 0, 0, 0, 0, 0], &[libc::EFAULT])
}

pub(super) fn name_process() -> io::Result<()> {
    call(libc::SYS_prctl, [number(libc::PR_SET_NAME), c"attempt".as_ptr().addr(), 0, 0, 0, 0]).map(drop)
}

/// `getpid` in the form of x86-64 with 32-bit addresses.
#[cfg(target_arch = "x86_64")]
pub(super) const X32_GETPID: libc::c_long = 0x4000_0000 | libc::SYS_getpid;

#[cfg(target_arch = "x86_64")]
pub(super) fn call_x32() -> io::Result<()> {
    call(X32_GETPID, [0; 6]).map(drop)
}

/// `getpid` as a 32-bit program calls it, which has numbers of its own.
#[cfg(target_arch = "x86_64")]
pub(super) fn call_32_bit() -> io::Result<()> {
    const GETPID: i32 = 20;
    let mut answer = GETPID;
    // SAFETY: reads no memory; the kernel keeps every register but the answer,
    // and r8 to r11.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("eax") answer,
            lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _,
        );
    }
    if answer > 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-answer)) }
}
