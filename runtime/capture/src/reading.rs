//! Reading a stream while it is captured.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt as _;

use crate::capture::Capture;

/// A spill that can be read while it is written.
pub trait ReadAt {
    /// Reads into `bytes` what stands at `offset`, and says how much that is.
    ///
    /// # Errors
    /// Those of where it lies.
    fn read_at(&mut self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&mut self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        (*self).read_at(bytes, offset)
    }
}

impl<W: Write + ReadAt> ReadAt for BufWriter<W> {
    /// What waits to be written is written first.
    fn read_at(&mut self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.flush()?;
        self.get_mut().read_at(bytes, offset)
    }
}

/// Some bytes of a stream that stand together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where in the stream they begin. Higher than what was asked for where the
    /// bytes between are nowhere.
    pub offset: u64,
    /// The bytes. None: there are none behind the offset yet.
    pub bytes: Vec<u8>,
}

impl<W: Write + ReadAt> Capture<W> {
    /// At most `max` bytes of the stream from `offset` on. Bytes that are
    /// neither kept nor in the spill are left out at the beginning of a piece,
    /// never within it. Behind the end of the stream there is nothing yet.
    pub fn read_at(&mut self, offset: u64, max: usize) -> Piece {
        let mut piece = Piece { offset, bytes: Vec::new() };
        while piece.bytes.len() < max {
            let at = piece.offset + piece.bytes.len() as u64;
            if at >= self.total() {
                break;
            }
            let most = max - piece.bytes.len();
            if self.copy(at, most, &mut piece.bytes) {
                continue;
            }
            if !piece.bytes.is_empty() {
                break;
            }
            // Whatever is missing lies before the last bytes, which are kept.
            piece.offset = self.tail_at();
        }
        piece
    }

    /// Adds what stands at this place; false where it is nowhere.
    fn copy(&mut self, at: u64, most: usize, to: &mut Vec<u8>) -> bool {
        let from = usize::try_from(at).unwrap_or(usize::MAX);
        let before = to.len();
        if from < self.head.len() {
            to.extend(self.head[from..].iter().take(most));
        } else if at >= self.tail_at() {
            let from = usize::try_from(at - self.tail_at()).unwrap_or(usize::MAX);
            to.extend(self.tail.range(from..).take(most));
        } else if let Some((writer, bytes)) = self.spill.written().filter(|(_, bytes)| at < *bytes) {
            let most = most.min(usize::try_from(bytes - at).unwrap_or(usize::MAX));
            to.resize(before + most, 0);
            let read = writer.read_at(&mut to[before..], at).unwrap_or(0);
            to.truncate(before + read);
        }
        to.len() > before
    }

    /// Where in the stream the last bytes begin.
    fn tail_at(&self) -> u64 {
        self.total() - self.tail.len() as u64
    }
}
