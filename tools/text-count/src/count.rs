//! Counting as GNU `wc` does it in a UTF-8 locale.
//!
//! - a line is a line feed;
//! - a character is a well-formed sequence; bytes that form none are no characters;
//! - a word begins with a printable character that is no white space and ends
//!   with white space; what does not print, and what is not UTF-8, neither
//!   begins nor ends one.

use crate::printable::is_printable;

/// What was counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Line feeds.
    pub lines: u64,
    /// Words.
    pub words: u64,
    /// Bytes.
    pub bytes: u64,
    /// Well-formed characters.
    pub characters: u64,
}

/// The longest sequence that the C library decodes: it follows the original
/// definition of UTF-8, which went beyond U+10FFFF.
const LONGEST: usize = 6;

/// Counts text that comes in pieces.
#[derive(Debug, Default)]
pub struct Counter {
    counts: Counts,
    in_word: bool,
    /// The beginning of a sequence that the last piece cut.
    cut: [u8; LONGEST],
    cut_len: usize,
}

impl Counter {
    /// Takes the next piece.
    pub fn feed(&mut self, piece: &[u8]) {
        self.counts.bytes += piece.len() as u64;
        let mut rest = piece;
        // Completes what the piece before left over, byte by byte.
        while self.cut_len > 0 {
            let Some((&next, after)) = rest.split_first() else { return };
            rest = after;
            self.cut[self.cut_len] = next;
            self.cut_len += 1;
            let (buffer, len) = (self.cut, self.cut_len);
            self.cut_len = 0;
            self.take(&buffer[..len]);
        }
        self.take(rest);
    }

    /// The counts of everything. What is left over is no character.
    pub fn finish(self) -> Counts {
        self.counts
    }

    /// Counts as much as can be decoded; keeps a sequence that is cut at the end.
    fn take(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while let Some(&first) = bytes.get(at) {
            if first.is_ascii() {
                self.ascii(first);
                at += 1;
                continue;
            }
            match decode(&bytes[at..]) {
                Decoded::Character(character, len) => {
                    self.wide(character);
                    at += len;
                }
                Decoded::Invalid => at += 1,
                Decoded::Cut => {
                    self.cut_len = bytes.len() - at;
                    self.cut[..self.cut_len].copy_from_slice(&bytes[at..]);
                    return;
                }
            }
        }
    }

    #[inline]
    fn ascii(&mut self, byte: u8) {
        self.counts.characters += 1;
        match byte {
            b'!'..=b'~' => self.begin_word(),
            b'\n' => {
                self.counts.lines += 1;
                self.in_word = false;
            }
            b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c' => self.in_word = false,
            _ => {}
        }
    }

    fn wide(&mut self, character: u32) {
        self.counts.characters += 1;
        if is_space(character) {
            self.in_word = false;
        } else if !self.in_word && is_printable(character) {
            self.begin_word();
        }
    }

    #[inline]
    fn begin_word(&mut self) {
        self.counts.words += u64::from(!self.in_word);
        self.in_word = true;
    }
}

enum Decoded {
    Character(u32, usize),
    Invalid,
    Cut,
}

/// Decodes one sequence of two bytes or more.
fn decode(bytes: &[u8]) -> Decoded {
    let (len, bits) = match bytes[0] {
        byte @ 0xc2..=0xdf => (2, byte & 0x1f),
        byte @ 0xe0..=0xef => (3, byte & 0x0f),
        byte @ 0xf0..=0xf7 => (4, byte & 0x07),
        byte @ 0xf8..=0xfb => (5, byte & 0x03),
        byte @ 0xfc..=0xfd => (LONGEST, byte & 0x01),
        _ => return Decoded::Invalid,
    };
    let mut character = u32::from(bits);
    for &byte in &bytes[1..len.min(bytes.len())] {
        if byte & 0xc0 != 0x80 {
            return Decoded::Invalid;
        }
        character = character << 6 | u32::from(byte & 0x3f);
    }
    if bytes.len() < len {
        return Decoded::Cut;
    }
    // The smallest character that needs this many bytes; less is an overlong form.
    let smallest = if len == 2 { 0x80 } else { 1 << (5 * len - 4) };
    let surrogate = (0xd800..=0xdfff).contains(&character);
    if character < smallest || surrogate { Decoded::Invalid } else { Decoded::Character(character, len) }
}

/// White space above ASCII, the no-break spaces included. The line and
/// paragraph separators do not print, so that `wc` passes over them.
fn is_space(character: u32) -> bool {
    matches!(character, 0xa0 | 0x1680 | 0x2000..=0x200a | 0x202f | 0x205f | 0x2060 | 0x3000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines, words, bytes, characters.
    type Four = (u64, u64, u64, u64);

    /// Counts `text` whole, and again in pieces of every small size.
    fn count(text: &[u8]) -> Four {
        let whole = counted(text, text.len().max(1));
        for size in 1..8 {
            assert_eq!(counted(text, size), whole, "in pieces of {size}: {text:?}");
        }
        (whole.lines, whole.words, whole.bytes, whole.characters)
    }

    fn counted(text: &[u8], size: usize) -> Counts {
        let mut counter = Counter::default();
        text.chunks(size).for_each(|piece| counter.feed(piece));
        counter.finish()
    }

    #[test]
    fn counts_as_wc_does() {
        // What GNU coreutils 9.1 prints for each, in C.UTF-8.
        let table: &[(&[u8], Four)] = &[
            (b"", (0, 0, 0, 0)),
            (b"hello world\n", (1, 2, 12, 12)),
            (b"no end", (0, 2, 6, 6)),
            (b"a\0b \0 \0\n", (1, 1, 8, 8)),
            (b"\x01\x02 \x03\n", (1, 0, 5, 5)),
            (b"a\x0cb\x0bc\r\nd\te", (1, 5, 10, 10)),
            ("a\u{a0}b\u{3000}c\u{2060}d\u{200b}e".as_bytes(), (0, 4, 16, 9)),
            ("\u{ad} \u{378} \u{e000}".as_bytes(), (0, 2, 9, 5)),
            ("a\u{2028}b\u{85}c".as_bytes(), (0, 1, 8, 5)),
            (b"\xff\xfe a\xffb \x80\n", (1, 1, 9, 5)),
            (b"\xe3\x80 \xe3\x80\x80x\xc3", (0, 1, 8, 3)),
            (b"\xed\xa0\x80 \xc0\x80 \xf4\x90\x80\x80 \xfc\x84\x80\x80\x80\x80", (0, 0, 18, 5)),
        ];
        for (text, expected) in table {
            assert_eq!(count(text), *expected, "{text:?}");
        }
    }
}
