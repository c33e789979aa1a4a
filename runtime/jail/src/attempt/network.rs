//! Anybody else to talk to.

use std::io;
use std::mem::size_of;

use super::{NONE, call, reaches};

/// Where nobody listens: discard.
const PORT: u16 = 9;

fn socket(family: libc::c_int, kind: libc::c_int) -> io::Result<usize> {
    call(libc::SYS_socket, [super::number(family), super::number(kind | libc::SOCK_CLOEXEC), 0, 0, 0, 0])
}

fn close(fd: usize) {
    // Nothing depends on it.
    let _ = call(libc::SYS_close, [fd, 0, 0, 0, 0, 0]);
}

fn family(family: libc::c_int) -> libc::sa_family_t {
    libc::sa_family_t::try_from(family).unwrap_or_default()
}

fn local(port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: family(libc::AF_INET),
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    }
}

pub(super) fn connect_tcp() -> io::Result<()> {
    let fd = socket(libc::AF_INET, libc::SOCK_STREAM)?;
    let address = local(PORT);
    let arguments = [fd, (&raw const address).addr(), size_of::<libc::sockaddr_in>(), 0, 0, 0];
    let answer = reaches(libc::SYS_connect, arguments, &[libc::ECONNREFUSED]);
    close(fd);
    answer
}

pub(super) fn listen_tcp() -> io::Result<()> {
    let fd = socket(libc::AF_INET, libc::SOCK_STREAM)?;
    let address = local(0);
    let arguments = [fd, (&raw const address).addr(), size_of::<libc::sockaddr_in>(), 0, 0, 0];
    let answer = reaches(libc::SYS_bind, arguments, &[]);
    close(fd);
    answer
}

pub(super) fn send_udp() -> io::Result<()> {
    let fd = socket(libc::AF_INET, libc::SOCK_DGRAM)?;
    let (address, byte) = (local(PORT), [0_u8]);
    let arguments = [fd, byte.as_ptr().addr(), 1, 0, (&raw const address).addr(), size_of::<libc::sockaddr_in>()];
    let answer = reaches(libc::SYS_sendto, arguments, &[]);
    close(fd);
    answer
}

/// As one would talk to a container engine.
pub(super) fn connect_unix() -> io::Result<()> {
    let fd = socket(libc::AF_UNIX, libc::SOCK_STREAM)?;
    let mut address = libc::sockaddr_un { sun_family: family(libc::AF_UNIX), sun_path: [0; 108] };
    for (to, from) in address.sun_path.iter_mut().zip(b"/var/run/docker.sock") {
        *to = from.cast_signed() as libc::c_char;
    }
    let arguments = [fd, (&raw const address).addr(), size_of::<libc::sockaddr_un>(), 0, 0, 0];
    let answer = reaches(libc::SYS_connect, arguments, &[libc::ENOENT, libc::ECONNREFUSED]);
    close(fd);
    answer
}

pub(super) fn netlink() -> io::Result<()> {
    socket(libc::AF_NETLINK, libc::SOCK_RAW).map(close)
}

pub(super) fn socketpair() -> io::Result<()> {
    let mut pair = [0_i32; 2];
    let kind = super::number(libc::SOCK_STREAM | libc::SOCK_CLOEXEC);
    call(libc::SYS_socketpair, [libc::AF_UNIX as usize, kind, 0, (&raw mut pair).addr(), 0, 0])?;
    pair.into_iter().for_each(|fd| close(super::number(fd)));
    Ok(())
}

pub(super) fn send_descriptor() -> io::Result<()> {
    reaches(libc::SYS_sendmsg, [NONE, 0, 0, 0, 0, 0], &[libc::EBADF])
}

pub(super) fn receive_descriptor() -> io::Result<()> {
    reaches(libc::SYS_recvmsg, [NONE, 0, 0, 0, 0, 0], &[libc::EBADF])
}
