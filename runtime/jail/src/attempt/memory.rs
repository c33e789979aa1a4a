//! Memory that could be executed or shared.

use std::io;

use super::{call, number, opens};

const PAGE: usize = 4096;

fn map(protection: libc::c_int) -> io::Result<usize> {
    map_as(protection, libc::MAP_PRIVATE)
}

fn map_as(protection: libc::c_int, kind: libc::c_int) -> io::Result<usize> {
    let flags = number(kind | libc::MAP_ANONYMOUS);
    call(libc::SYS_mmap, [0, PAGE, number(protection), flags, super::NONE, 0])
}

fn unmap(address: usize) -> io::Result<()> {
    call(libc::SYS_munmap, [address, PAGE, 0, 0, 0, 0]).map(drop)
}

pub(super) fn map_executable() -> io::Result<()> {
    unmap(map(libc::PROT_READ | libc::PROT_EXEC)?)
}

/// Shared memory counts against no limit of a process.
pub(super) fn share() -> io::Result<()> {
    unmap(map_as(libc::PROT_READ, libc::MAP_SHARED)?)
}

/// Nor does memory that grows downwards when it is touched.
pub(super) fn grow_by_itself() -> io::Result<()> {
    unmap(map_as(libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_GROWSDOWN)?)
}

pub(super) fn make_executable() -> io::Result<()> {
    let page = map(libc::PROT_READ)?;
    let answer = call(libc::SYS_mprotect, [page, PAGE, number(libc::PROT_READ | libc::PROT_EXEC), 0, 0, 0]);
    unmap(page)?;
    answer.map(drop)
}

/// With the key that means none.
pub(super) fn make_executable_by_key() -> io::Result<()> {
    let page = map(libc::PROT_READ)?;
    let protection = number(libc::PROT_READ | libc::PROT_EXEC);
    let answer = call(libc::SYS_pkey_mprotect, [page, PAGE, protection, super::NONE, 0, 0]);
    unmap(page)?;
    answer.map(drop)
}

pub(super) fn reading_means_executing() -> io::Result<()> {
    call(libc::SYS_personality, [number(libc::READ_IMPLIES_EXEC), 0, 0, 0, 0, 0]).map(drop)
}

pub(super) fn memory_file() -> io::Result<()> {
    opens(libc::SYS_memfd_create, [c"attempt".as_ptr().addr(), libc::MFD_CLOEXEC as usize, 0, 0, 0, 0])
}

pub(super) fn secret_memory() -> io::Result<()> {
    opens(libc::SYS_memfd_secret, [0; 6])
}

pub(super) fn user_page_faults() -> io::Result<()> {
    opens(libc::SYS_userfaultfd, [number(libc::O_CLOEXEC), 0, 0, 0, 0, 0])
}
