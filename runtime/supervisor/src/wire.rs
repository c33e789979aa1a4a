//! Standard input and output, where the host is.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use glovebox_supervisor::{Decoder, Key, Report, Sealer};

/// How much is read at once.
const READ: usize = 64 << 10;

/// The stream to the host.
pub(crate) struct Wire {
    input: std::fs::File,
    output: std::fs::File,
    pub(crate) decoder: Decoder,
    sealer: Option<Sealer>,
    queue: VecDeque<u8>,
}

impl Wire {
    pub(crate) fn new() -> io::Result<Self> {
        let own = |fd: BorrowedFd<'_>| -> io::Result<std::fs::File> {
            // Not inherited by what is started.
            let own: OwnedFd = rustix::io::fcntl_dupfd_cloexec(fd, 3)?;
            let flags = rustix::fs::fcntl_getfl(&own)?;
            rustix::fs::fcntl_setfl(&own, flags | rustix::fs::OFlags::NONBLOCK)?;
            Ok(own.into())
        };
        let (input, output) = (own(io::stdin().as_fd())?, own(io::stdout().as_fd())?);
        Ok(Self { input, output, decoder: Decoder::open(), sealer: None, queue: VecDeque::new() })
    }

    pub(crate) fn input(&self) -> &std::fs::File {
        &self.input
    }

    pub(crate) fn output(&self) -> &std::fs::File {
        &self.output
    }

    /// From now on what is said is sealed with this key.
    pub(crate) fn seal(&mut self, key: &Key) {
        // A second key would start the count anew.
        if self.sealer.is_none() {
            self.sealer = Some(Sealer::new(key));
        }
    }

    /// Puts a report behind those that wait. Before there is a key, nothing is
    /// said.
    pub(crate) fn say(&mut self, report: &Report<'_>) {
        if let Some(sealer) = &mut self.sealer {
            let mut bytes = Vec::new();
            report.write(sealer, &mut bytes);
            self.queue.extend(bytes);
        }
    }

    /// Bytes that wait.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Sends as much as the host takes now.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while !self.queue.is_empty() {
            match self.output.write(self.queue.as_slices().0) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => drop(self.queue.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What the host says. `None`: nothing more.
    pub(crate) fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; READ];
        let count = self.input.read(&mut bytes)?;
        bytes.truncate(count);
        Ok((count > 0).then_some(bytes))
    }
}
