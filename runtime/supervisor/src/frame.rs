//! Frames as bytes.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2_11::Sha256;

/// The bytes before each payload: length and kind.
const HEADER: usize = 5;
/// The bytes of a MAC: half of the hash, which nobody guesses.
pub const MAC: usize = 16;
/// The longest payload: a piece of output, or a list of folders.
const PAYLOAD_MAX: usize = 256 << 10;

/// The key of one container's frames.
pub type Key = [u8; 32];

/// Why bytes are no frames. The text is ours, not the sender's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FrameError(pub &'static str);

/// Numbers and seals the frames of one direction.
pub struct Sealer {
    mac: Option<Hmac<Sha256>>,
    next: u64,
}

impl Sealer {
    /// For frames that leave the container.
    pub fn new(key: &Key) -> Self {
        let mac = Hmac::new_from_slice(key).unwrap_or_else(|_| unreachable!("any length will do"));
        Self { mac: Some(mac), next: 0 }
    }

    /// For frames that go into it: nobody in there can write them.
    pub fn open() -> Self {
        Self { mac: None, next: 0 }
    }

    /// Appends a frame to `out`.
    pub(crate) fn frame(&mut self, out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let start = out.len();
        out.extend_from_slice(&length.to_le_bytes());
        out.push(kind);
        out.extend_from_slice(payload);
        if let Some(seal) = self.seal(&out[start..]) {
            out.extend_from_slice(&seal);
        }
        self.next += 1;
    }

    fn seal(&self, frame: &[u8]) -> Option<[u8; MAC]> {
        let mut mac = self.mac.clone()?;
        mac.update(&self.next.to_le_bytes());
        mac.update(frame);
        let mut seal = [0; MAC];
        seal.copy_from_slice(&mac.finalize().into_bytes()[..MAC]);
        Some(seal)
    }
}

/// Takes a stream of frames apart, in whatever pieces it comes. It trusts
/// nothing: lengths are bounded, and what is not sealed as it should be ends the
/// stream.
pub struct Decoder {
    sealer: Sealer,
    bytes: Vec<u8>,
    broken: bool,
}

impl Decoder {
    /// For frames that leave the container.
    pub fn new(key: &Key) -> Self {
        Self { sealer: Sealer::new(key), bytes: Vec::new(), broken: false }
    }

    /// For frames that go into it.
    pub fn open() -> Self {
        Self { sealer: Sealer::open(), bytes: Vec::new(), broken: false }
    }

    /// Takes the next bytes of the stream and hands on every whole frame.
    ///
    /// # Errors
    /// [`FrameError`], and whatever `each` says. Nothing that comes after an
    /// error can be used.
    pub fn push(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(u8, &[u8]) -> Result<(), FrameError>,
    ) -> Result<(), FrameError> {
        if self.broken {
            return Err(FrameError("bytes after an error"));
        }
        self.bytes.extend_from_slice(bytes);
        let mut at = 0;
        let result = loop {
            match self.whole(at) {
                Ok(None) => break Ok(()),
                Ok(Some(end)) => {
                    let payload_end = end - self.seal_length();
                    if let Err(error) = each(self.bytes[at + 4], &self.bytes[at + HEADER..payload_end]) {
                        break Err(error);
                    }
                    self.sealer.next += 1;
                    at = end;
                }
                Err(error) => break Err(error),
            }
        };
        self.bytes.drain(..at);
        self.broken = result.is_err();
        result
    }

    fn seal_length(&self) -> usize {
        if self.sealer.mac.is_some() { MAC } else { 0 }
    }

    /// Where the frame that begins at `at` ends, if all of it is here.
    fn whole(&self, at: usize) -> Result<Option<usize>, FrameError> {
        let rest = &self.bytes[at..];
        let Some(length) = rest.first_chunk::<4>() else { return Ok(None) };
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > PAYLOAD_MAX {
            return Err(FrameError("a frame of impossible length"));
        }
        let body = HEADER + length;
        let Some(frame) = rest.get(..body + self.seal_length()) else { return Ok(None) };
        let (frame, seal) = frame.split_at(body);
        if self.sealer.seal(frame).is_some_and(|own| !same(&own, seal)) {
            return Err(FrameError("a frame under another key"));
        }
        Ok(Some(at + body + self.seal_length()))
    }
}

/// Whether two seals are the same, in a time that does not tell where they
/// differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: Key = [7; 32];

    fn sealed(frames: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let (mut sealer, mut out) = (Sealer::new(&KEY), Vec::new());
        for (kind, payload) in frames {
            sealer.frame(&mut out, *kind, payload);
        }
        out
    }

    type Frames = Vec<(u8, Vec<u8>)>;

    fn opened(bytes: &[u8], step: usize) -> (Frames, Result<(), FrameError>) {
        let (mut decoder, mut seen) = (Decoder::new(&KEY), Vec::new());
        for piece in bytes.chunks(step.max(1)) {
            let pushed = decoder.push(piece, |kind, payload| {
                seen.push((kind, payload.to_vec()));
                Ok(())
            });
            if pushed.is_err() {
                return (seen, pushed);
            }
        }
        (seen, Ok(()))
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in_whatever_the_pieces(
            frames in proptest::collection::vec((any::<u8>(), proptest::collection::vec(any::<u8>(), 0..200)), 0..20),
            step in 1_usize..300,
        ) {
            prop_assert_eq!(opened(&sealed(&frames), step), (frames, Ok(())));
        }

        /// A changed, lost, doubled or moved byte never passes for a frame.
        #[test]
        fn what_was_touched_is_not_taken(at in 0_usize..1000, flip in 1_u8..=255) {
            let frames = vec![(1, b"one".to_vec()), (2, b"two".to_vec()), (3, Vec::new())];
            let mut bytes = sealed(&frames);
            let at = at % bytes.len();
            bytes[at] ^= flip;
            let (seen, _) = opened(&bytes, 7);
            prop_assert!(seen.len() < frames.len() && frames.starts_with(&seen));
        }

        #[test]
        fn any_bytes_are_refused_or_waited_for(bytes in proptest::collection::vec(any::<u8>(), 0..2000), step in 1_usize..64) {
            prop_assert!(opened(&bytes, step).0.is_empty());
        }
    }

    #[test]
    fn a_frame_counts_once_and_in_its_place() {
        let first = sealed(&[(1, b"x".to_vec())]);
        let (seen, result) = opened(&[first.clone(), first].concat(), 64);
        assert_eq!((seen.len(), result), (1, Err(FrameError("a frame under another key"))));
    }
}
