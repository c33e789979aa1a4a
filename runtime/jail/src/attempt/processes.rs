//! Other processes, and more of its own.

use std::io;

use super::{NONE, call, opens, parent, reaches};

/// Asks whether a signal could be sent, and sends none.
pub(super) fn signal_parent() -> io::Result<()> {
    call(libc::SYS_kill, [parent()?, 0, 0, 0, 0, 0]).map(drop)
}

pub(super) fn signal_thread_of_parent() -> io::Result<()> {
    let parent = parent()?;
    call(libc::SYS_tgkill, [parent, parent, 0, 0, 0, 0]).map(drop)
}

/// Would have the parent told of every byte that comes.
pub(super) fn signal_by_descriptor() -> io::Result<()> {
    reaches(libc::SYS_fcntl, [NONE, libc::F_SETOWN as usize, parent()?, 0, 0, 0], &[libc::EBADF])
}

/// Does not stop it, and ends with this process.
pub(super) fn trace_parent() -> io::Result<()> {
    call(libc::SYS_ptrace, [libc::PTRACE_SEIZE as usize, parent()?, 0, 0, 0, 0]).map(drop)
}

pub(super) fn read_memory_of_parent() -> io::Result<()> {
    let mut byte = [0_u8];
    let here = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // Nothing is ever mapped there.
    let there = libc::iovec { iov_base: std::ptr::without_provenance_mut(1), iov_len: 1 };
    let arguments = [parent()?, (&raw const here).addr(), 1, (&raw const there).addr(), 1, 0];
    reaches(libc::SYS_process_vm_readv, arguments, &[libc::EFAULT])
}

pub(super) fn watch_parent() -> io::Result<()> {
    opens(libc::SYS_pidfd_open, [parent()?, 0, 0, 0, 0, 0])
}

pub(super) fn take_descriptor() -> io::Result<()> {
    reaches(libc::SYS_pidfd_getfd, [NONE, 0, 0, 0, 0, 0], &[libc::EBADF])
}

/// Asks for a limit of the parent, and sets none.
pub(super) fn limit_parent() -> io::Result<()> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    let arguments = [parent()?, libc::RLIMIT_NOFILE as usize, 0, (&raw mut limit).addr(), 0, 0];
    call(libc::SYS_prlimit64, arguments).map(drop)
}

pub(super) fn execute() -> io::Result<()> {
    let arguments = [c"sh".as_ptr(), c"-c".as_ptr(), c"exit 0".as_ptr(), std::ptr::null()];
    let environment = [std::ptr::null::<libc::c_char>()];
    let all = [c"/bin/sh".as_ptr().addr(), arguments.as_ptr().addr(), environment.as_ptr().addr(), 0, 0, 0];
    call(libc::SYS_execve, all).map(drop)
}

pub(super) fn fork() -> io::Result<()> {
    let child = call(libc::SYS_clone, [libc::SIGCHLD as usize, 0, 0, 0, 0, 0])?;
    if child == 0 {
        // SAFETY: the child shares nothing, and ends without a look back.
        unsafe { libc::_exit(0) };
    }
    reaches(libc::SYS_wait4, [child, 0, 0, 0, 0, 0], &[])
}

/// With no description of the thread, which is noticed first of all.
pub(super) fn start_thread() -> io::Result<()> {
    reaches(libc::SYS_clone3, [0; 6], &[libc::EINVAL])
}

pub(super) fn new_user_namespace() -> io::Result<()> {
    call(libc::SYS_unshare, [libc::CLONE_NEWUSER as usize, 0, 0, 0, 0, 0]).map(drop)
}

pub(super) fn enter_namespace() -> io::Result<()> {
    reaches(libc::SYS_setns, [NONE, 0, 0, 0, 0, 0], &[libc::EBADF])
}

pub(super) fn become_root() -> io::Result<()> {
    call(libc::SYS_setresuid, [0; 6]).map(drop)
}
