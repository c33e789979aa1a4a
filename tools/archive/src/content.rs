//! Content, within limits.

use std::io::{self, Read, Seek, SeekFrom, Take};

use flate2::Crc;
use flate2::read::DeflateDecoder;

use crate::refusal::{Reason, Refusal};
use crate::zip::Place;

/// The largest file that is extracted, in bytes.
pub const MOST_FILE: u64 = 128 << 20;

/// The most bytes of all files together: what the storage of the contract has
/// room for, and what an archive may unpack to at all where that can only be
/// found out by unpacking it.
pub const MOST_TOTAL: u64 = 192 << 20;

/// How many times its packed size something may be. Text is packed to a tenth,
/// very regular text to a hundredth; a bomb to a thousandth.
pub const MOST_RATIO: u64 = 200;

/// Up to this size, in bytes, the ratio does not matter: a small file of zeros
/// hurts nobody.
const SMALL: u64 = 1 << 20;

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// Whether so much comes out of so little that it can only be meant to.
pub(crate) fn is_bomb(size: u64, packed: u64) -> bool {
    size > SMALL && size > packed.saturating_mul(MOST_RATIO)
}

/// The content of a zip's entry, never more than the archive says.
pub(crate) fn reader<'r, R: Read + Seek>(file: &'r mut R, place: &Place) -> io::Result<Take<Unpacked<'r, R>>> {
    file.seek(SeekFrom::Start(place.start))?;
    let packed = file.take(place.packed);
    let unpacked =
        if place.deflated { Unpacked::Deflated(DeflateDecoder::new(packed)) } else { Unpacked::Stored(packed) };
    // One more, so that too much is seen.
    Ok(unpacked.take(place.size.saturating_add(1)))
}

/// A zip's entry as it is read.
pub(crate) enum Unpacked<'r, R> {
    Stored(Take<&'r mut R>),
    Deflated(DeflateDecoder<Take<&'r mut R>>),
}

impl<R: Read> Read for Unpacked<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stored(reader) => reader.read(buffer),
            Self::Deflated(reader) => reader.read(buffer),
        }
    }
}

/// Reads the content of an entry and compares it with what the archive says.
pub(crate) fn verify<R: Read + Seek>(file: &mut R, place: &Place) -> Result<(), Refusal> {
    let corrupt = |why: String| Refusal::new(Reason::Corrupt, why);
    let unreadable = |error: io::Error| corrupt(format!("its content can't be unpacked: {error}"));
    let mut content = reader(file, place).map_err(unreadable)?;
    let mut crc = Crc::new();
    let mut size = 0u64;
    let mut chunk = vec![0; CHUNK];
    loop {
        match content.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => {
                size += read as u64;
                crc.update(&chunk[..read]);
            }
            Err(error) => return Err(unreadable(error)),
        }
    }
    if size > place.size {
        return Err(Refusal::new(
            Reason::Size,
            format!("it is longer than the {} bytes that it is said to have", place.size),
        ));
    }
    if size < place.size {
        return Err(corrupt(format!("it has {size} bytes and is said to have {}", place.size)));
    }
    let used = match content.get_ref() {
        Unpacked::Stored(_) => place.packed,
        Unpacked::Deflated(inner) => inner.total_in(),
    };
    if used != place.packed {
        return Err(corrupt("there is something behind its packed content".to_owned()));
    }
    if crc.sum() != place.crc {
        return Err(corrupt("its checksum is another one".to_owned()));
    }
    Ok(())
}
