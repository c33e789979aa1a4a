//! A range of bytes.

use std::io::{self, Read, Seek, SeekFrom};

use glovebox_guest::{Json, json};

use crate::base64;

/// The most bytes that one call returns: six times as much, which escaping in
/// JSON can make of it, still fits into the contract's output limit.
pub const MOST_BYTES: u64 = 128 << 10;

/// How many bytes a call returns that does not say.
pub const DEFAULT_BYTES: u64 = 16 << 10;

/// Adds `count` bytes from `offset` on to `result`: as text where they are
/// text, as base64 otherwise.
pub fn read(
    file: &mut (impl Read + Seek),
    size: u64,
    offset: u64,
    count: u64,
    binary: bool,
    result: &mut Json,
) -> io::Result<()> {
    // Seeking beyond the end is no error anywhere, but offsets are signed there.
    let start = offset.min(size);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(count).read_to_end(&mut bytes)?;
    if !binary {
        bytes.truncate(whole_characters(&bytes));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) if !binary => result["text"] = text.into(),
        _ => result["base64"] = base64::encode(&bytes).into(),
    }
    let end = start + bytes.len() as u64;
    result["byte_offset"] = start.into();
    result["byte_count"] = bytes.len().into();
    if end < size && !bytes.is_empty() {
        result["next"] = json!({ "byte_offset": end });
    }
    Ok(())
}

/// How much of `bytes` to return, so that a character which only the end of
/// the range cuts comes whole with the next range.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn ranges() {
        let table = [
            (
                "plain".as_bytes(),
                1,
                3,
                false,
                json!({ "text": "lai", "byte_offset": 1, "byte_count": 3, "next": { "byte_offset": 4 } }),
            ),
            // The end of the range cuts a character.
            (
                "aé".as_bytes(),
                0,
                2,
                false,
                json!({ "text": "a", "byte_offset": 0, "byte_count": 1, "next": { "byte_offset": 1 } }),
            ),
            // Its start does: no text, but nothing is lost.
            ("é".as_bytes(), 1, 9, false, json!({ "base64": "qQ==", "byte_offset": 1, "byte_count": 1 })),
            // The range is shorter than the character: it still goes on.
            (
                "é".as_bytes(),
                0,
                1,
                false,
                json!({ "base64": "ww==", "byte_offset": 0, "byte_count": 1, "next": { "byte_offset": 1 } }),
            ),
            (b"\xff\xfe", 0, 9, false, json!({ "base64": "//4=", "byte_offset": 0, "byte_count": 2 })),
            (b"text", 0, 9, true, json!({ "base64": "dGV4dA==", "byte_offset": 0, "byte_count": 4 })),
            (b"text", u64::MAX, 9, false, json!({ "text": "", "byte_offset": 4, "byte_count": 0 })),
        ];
        for (bytes, offset, count, binary, expected) in table {
            let mut result = json!({});
            read(&mut Cursor::new(bytes), bytes.len() as u64, offset, count, binary, &mut result).unwrap();
            assert_eq!(result, expected, "{bytes:?} from {offset}");
        }
    }
}
