//! The spill: the whole stream, written elsewhere once it no longer fits.

use std::io::{self, ErrorKind, Write};

/// Opens the place a stream is spilled to. It is called at most once, and only
/// when the stream outgrows what is kept in memory: until then nothing touches
/// a disk.
pub type OpenSpill<W> = Box<dyn FnOnce() -> io::Result<W> + Send>;

/// What reached the spill.
#[derive(Debug)]
pub struct Spilled<W> {
    /// The writer, flushed; `None` if it could not be opened.
    pub writer: Option<W>,
    /// How many bytes it took: always the first so many of the stream.
    pub bytes: u64,
    /// Whether that is the whole stream. If not, either the cap was reached or
    /// [`Spilled::error`] says what went wrong.
    pub complete: bool,
    /// The first error that the writer gave; nothing was written after it.
    pub error: Option<io::Error>,
}

/// A spill that is not opened yet, being written, or has failed.
pub(crate) enum Spill<W> {
    /// The caller wants none.
    Absent,
    /// Nothing needed it so far.
    Closed(OpenSpill<W>),
    /// It was needed.
    Open(Sink<W>),
}

/// The writing side of an opened spill.
pub(crate) struct Sink<W> {
    writer: Option<W>,
    bytes: u64,
    cap: u64,
    error: Option<io::Error>,
}

impl<W: Write> Spill<W> {
    /// Opens the spill if it is closed; true if that happened now, so that the
    /// caller hands over what it held until now.
    pub(crate) fn open(&mut self, cap: u64) -> bool {
        match std::mem::replace(self, Spill::Absent) {
            Spill::Closed(open) => {
                let (writer, error) = match open() {
                    Ok(writer) => (Some(writer), None),
                    Err(error) => (None, Some(error)),
                };
                *self = Spill::Open(Sink { writer, bytes: 0, cap, error });
                true
            }
            other => {
                *self = other;
                false
            }
        }
    }

    /// Appends the next bytes of the stream, up to the cap.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        if let Spill::Open(sink) = self {
            sink.append(bytes);
        }
    }

    /// The writer, and how many bytes it took, where there is one.
    pub(crate) fn written(&mut self) -> Option<(&mut W, u64)> {
        match self {
            Spill::Open(Sink { writer: Some(writer), bytes, .. }) => Some((writer, *bytes)),
            _ => None,
        }
    }

    /// Ends the spill of a stream of `total` bytes.
    pub(crate) fn finish(self, total: u64) -> Option<Spilled<W>> {
        let Spill::Open(mut sink) = self else {
            return None;
        };
        if sink.error.is_none() {
            sink.error = sink.writer.as_mut().and_then(|writer| writer.flush().err());
        }
        let complete = sink.error.is_none() && sink.bytes == total;
        Some(Spilled { writer: sink.writer, bytes: sink.bytes, complete, error: sink.error })
    }
}

impl<W: Write> Sink<W> {
    fn append(&mut self, bytes: &[u8]) {
        let room = usize::try_from(self.cap - self.bytes).unwrap_or(usize::MAX);
        let mut rest = &bytes[..bytes.len().min(room)];
        // Not `write_all`: on an error we want to know how much it took.
        while let (Some(writer), None, false) = (&mut self.writer, &self.error, rest.is_empty()) {
            match writer.write(rest) {
                Ok(0) => self.error = Some(ErrorKind::WriteZero.into()),
                Ok(taken) => {
                    rest = &rest[taken..];
                    self.bytes += taken as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => self.error = Some(error),
            }
        }
    }
}
