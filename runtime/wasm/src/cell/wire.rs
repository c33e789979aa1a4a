//! What the processes of the second wall say to each other.
//!
//! Control messages are small JSON documents on sockets that keep message
//! boundaries; descriptors travel beside them. A claim is the one message that
//! a cell ever gets. What comes back from a cell are
//! [frames](glovebox_runtime::frames), read with no trust at all.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use env_contracts::Problem;
use glovebox_runtime::job::{Job, JobLimits, UngrantedImports};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Descriptors that go with one message; the kernel takes 253.
pub(super) const FDS_PER_MESSAGE: usize = 250;
/// The longest control message: a problem with its list of imports.
const CONTROL_MAX: usize = 64 << 10;
/// The longest text of a problem, however much of it has to be escaped.
pub(super) const MESSAGE_MAX: usize = 8 << 10;

/// From the host to the zygote.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToZygote {
    /// The first message: the component that idle cells warm up with. Brings
    /// its artefact.
    Warm {
        /// Its digest.
        component: String,
    },
    /// Make a template of this component. Brings the artefact and the
    /// template's end of a control socket.
    Template { component: String, imports: UngrantedImports },
}

/// From the zygote to the host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromZygote {
    /// It works.
    Ready,
    /// It can't be used here.
    Failed(Problem),
}

/// From the host to a template.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToTemplate {
    /// Make a cell. Brings the cell's end of its channel.
    Cell {
        /// Whether it should get ready for its claim for longer than it takes
        /// to be there.
        warm: bool,
    },
    /// Make no more, and end when the last one has ended.
    Retire,
}

/// From a template to the host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromTemplate {
    /// The component is loaded.
    Ready,
    /// It can't be loaded, or the kernel refuses to shut the process in.
    Failed(Problem),
    /// The cell that was asked for first is there. Brings a handle of its process.
    Born { pid: i32 },
    /// The kernel gave no process.
    Stillborn(String),
    /// A cell is gone.
    Died { pid: i32, how: Death },
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Death {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// What a cell is for. It does one of these, once.
#[derive(Debug, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "there is one of it in a process")]
pub(super) enum Claim {
    /// Execute a job, whose descriptors come along.
    Job(Job),
    /// Ask the tool for its manifest, in an empty sandbox.
    Describe(JobLimits),
    /// Try to break out, in the way with this name.
    Attempt(String),
}

/// Sends one message with its descriptors.
///
/// # Errors
/// Those of the socket; `WouldBlock` where it does not wait.
pub(super) fn send(socket: impl AsFd, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    // A message goes whole or not at all: the socket keeps boundaries.
    send_part(socket, &[IoSlice::new(&bytes)], fds).map(drop)
}

/// The next message; `None` when the other side is gone.
///
/// # Errors
/// Those of the socket; `InvalidData` for what is no such message.
pub(super) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; CONTROL_MAX];
    let mut fds = Vec::new();
    let count = receive_part(socket, &mut bytes, &mut fds)?;
    if count == 0 {
        return Ok(None);
    }
    Ok(Some((serde_json::from_slice(&bytes[..count])?, fds)))
}

/// Sends bytes and descriptors; answers how many bytes went.
pub(super) fn send_part(socket: impl AsFd, bytes: &[IoSlice<'_>], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_PER_MESSAGE))];
    loop {
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::other("too many descriptors for one message"));
        }
        match sendmsg(socket.as_fd(), bytes, &mut control, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            sent => return Ok(sent?),
        }
    }
}

/// Receives bytes and descriptors; 0 bytes mean that the other side is gone.
pub(super) fn receive_part(socket: impl AsFd, bytes: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_PER_MESSAGE))];
    loop {
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let into = &mut [IoSliceMut::new(bytes)];
        match recvmsg(socket.as_fd(), into, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(message) => {
                for part in control.drain() {
                    if let RecvAncillaryMessage::ScmRights(received) = part {
                        fds.extend(received);
                    }
                }
                return Ok(message.bytes);
            }
        }
    }
}
