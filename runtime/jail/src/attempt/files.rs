//! Files that are none of its business.

use std::ffi::{CStr, CString};
use std::io;

use super::{HERE, call, opens, reaches};

const READ: i32 = libc::O_RDONLY | libc::O_CLOEXEC;
/// Made and removed again.
const OUTSIDE: &CStr = c"/tmp/glovebox-attempt";
/// A path that leads nowhere: whoever says so looked.
const NOWHERE: &CStr = c"/glovebox-attempt/nowhere";

fn open(path: &CStr, flags: i32) -> io::Result<()> {
    opens(libc::SYS_openat, [HERE, path.as_ptr().addr(), super::number(flags), 0o600, 0, 0])
}

pub(super) fn read_passwd() -> io::Result<()> {
    open(c"/etc/passwd", READ)
}

pub(super) fn read_environment_of_init() -> io::Result<()> {
    open(c"/proc/1/environ", READ)
}

pub(super) fn read_environment_of_parent() -> io::Result<()> {
    let path = CString::new(format!("/proc/{}/environ", super::parent()?))?;
    open(&path, READ)
}

pub(super) fn read_own_memory_map() -> io::Result<()> {
    open(c"/proc/self/maps", READ)
}

pub(super) fn write_own_memory_file() -> io::Result<()> {
    open(c"/proc/self/mem", libc::O_RDWR | libc::O_CLOEXEC)
}

pub(super) fn list_root() -> io::Result<()> {
    open(c"/", READ | libc::O_DIRECTORY)
}

pub(super) fn write_outside() -> io::Result<()> {
    open(OUTSIDE, libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC)?;
    call(libc::SYS_unlinkat, [HERE, OUTSIDE.as_ptr().addr(), 0, 0, 0, 0]).map(drop)
}

pub(super) fn change_mode() -> io::Result<()> {
    reaches(libc::SYS_fchmodat, [HERE, NOWHERE.as_ptr().addr(), 0o777, 0, 0, 0], &[libc::ENOENT])
}

pub(super) fn change_owner() -> io::Result<()> {
    reaches(libc::SYS_fchownat, [HERE, NOWHERE.as_ptr().addr(), 0, 0, 0, 0], &[libc::ENOENT])
}

pub(super) fn make_device() -> io::Result<()> {
    let mode = libc::S_IFCHR as usize | 0o600;
    reaches(libc::SYS_mknodat, [HERE, NOWHERE.as_ptr().addr(), mode, 0, 0, 0], &[libc::ENOENT])
}

pub(super) fn open_by_handle() -> io::Result<()> {
    let errnos = [libc::EFAULT, libc::EBADF, libc::EINVAL];
    reaches(libc::SYS_open_by_handle_at, [HERE, 0, 0, 0, 0, 0], &errnos)
}

pub(super) fn watch() -> io::Result<()> {
    opens(libc::SYS_inotify_init1, [libc::IN_CLOEXEC as usize, 0, 0, 0, 0, 0])
}

pub(super) fn change_root() -> io::Result<()> {
    call(libc::SYS_chroot, [c"/".as_ptr().addr(), 0, 0, 0, 0, 0]).map(drop)
}

/// Wants the root to be shared and private, which is judged before anything
/// is done.
pub(super) fn mount() -> io::Result<()> {
    let contradiction = usize::try_from(libc::MS_PRIVATE | libc::MS_SHARED).unwrap_or_default();
    let (nothing, root) = (c"none".as_ptr().addr(), c"/".as_ptr().addr());
    reaches(libc::SYS_mount, [nothing, root, 0, contradiction, 0, 0], &[libc::EINVAL])
}
