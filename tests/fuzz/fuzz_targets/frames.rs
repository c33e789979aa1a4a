//! What comes back from a cell: any bytes, in any pieces. The first byte says
//! how long the pieces are.

#![no_main]

use glovebox_runtime::frames::Reader;
use glovebox_runtime::job::{Frame, FrameSink};
use libfuzzer_sys::fuzz_target;

#[derive(Default)]
struct Count(usize);

impl FrameSink for Count {
    fn frame(&mut self, frame: Frame<'_>) {
        self.0 += match frame {
            Frame::Stdout(bytes) | Frame::Stderr(bytes) => bytes.len(),
            Frame::Log { message, .. } | Frame::Progress { message, .. } => message.len(),
        };
    }
}

/// Whether the stream ended well, badly or not at all, and how much was heard.
fn read(bytes: &[u8], piece: usize) -> (Option<bool>, usize) {
    let (mut reader, mut count) = (Reader::default(), Count::default());
    for piece in bytes.chunks(piece) {
        match reader.push(piece, &mut count) {
            Ok(None) => {}
            Ok(Some(_)) => return (Some(true), count.0),
            Err(_) => return (Some(false), count.0),
        }
    }
    (None, count.0)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&piece, bytes)) = bytes.split_first() else { return };
    let (end, heard) = read(bytes, usize::from(piece).max(1));
    // Nothing is heard that was not said.
    assert!(heard <= bytes.len());
    // A bad stream is bad however it is cut.
    let whole = read(bytes, bytes.len().max(1)).0;
    assert_eq!(end == Some(false), whole == Some(false) && end != Some(true));
});
