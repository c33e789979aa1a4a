//! A cell's side of its channel: frames out, one claim in.

use std::io::{self, IoSlice, Write};
use std::os::fd::{BorrowedFd, OwnedFd};

use glovebox_runtime::frames::{self, Marks};
use glovebox_runtime::job::{End, Frame, FrameSink, JobReport, Limit};

use super::inside;
use super::wire::{self, Claim};

/// The bytes before a claim: its length and the number of its descriptors.
pub(super) const CLAIM_HEADER: usize = 8;
/// The longest claim: arguments have at most some MiB, and are escaped in it.
pub(super) const CLAIM_MAX: usize = 64 << 20;

/// The stream to the host.
#[derive(Clone, Copy)]
pub(super) struct Channel(pub(super) BorrowedFd<'static>);

impl Write for Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(self.0, bytes)?)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::writev(self.0, parts)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FrameSink for Channel {
    fn frame(&mut self, frame: Frame<'_>) {
        // Nobody listens any more: there is nothing left to work for.
        if frames::encode(self, &frame).is_err() {
            inside::end(inside::UNHEARD);
        }
    }
}

impl Channel {
    /// Waits for the claim. `None`: the host does not want this cell.
    pub(super) fn claim(self, fds: &mut Vec<OwnedFd>) -> io::Result<Option<Claim>> {
        let mut bytes = vec![0; 64 << 10];
        let mut have = 0;
        let mut wanted = CLAIM_HEADER;
        let mut count = 0;
        while have < wanted || fds.len() < count {
            let received = wire::receive_part(self.0, &mut bytes[have..], fds)?;
            if received == 0 {
                return if have == 0 { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
            have += received;
            if wanted == CLAIM_HEADER && have >= CLAIM_HEADER {
                let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
                let length = usize::try_from(number(0)).unwrap_or(usize::MAX);
                count = usize::try_from(number(4)).unwrap_or(usize::MAX);
                if length > CLAIM_MAX {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                wanted += length;
                // One more than is wanted, so that a read never has no room.
                bytes.resize(bytes.len().max(wanted + 1), 0);
            }
        }
        Ok(Some(serde_json::from_slice(&bytes[CLAIM_HEADER..wanted])?))
    }

    /// The last thing that is said.
    pub(super) fn report(mut self, report: &JobReport, marks: Marks) -> io::Result<()> {
        match frames::encode_report(&mut self, report, marks) {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let report = JobReport { end: End::LimitHit(Limit::HostCall), usage: report.usage };
                frames::encode_report(&mut self, &report, marks)
            }
            sent => sent,
        }
    }
}
