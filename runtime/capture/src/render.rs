//! From bytes to something that JSON can carry.

use data_encoding::BASE64;

use crate::capture::Captured;

/// The longest tail of a character that a cut can leave: UTF-8 characters have
/// at most four bytes, so at most three of them stand behind a cut.
const LONGEST_REST: usize = 3;

/// The kept bytes of a stream in a form for people, models and JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Head and tail, joined without anything between them.
    pub body: Body,
    /// How many bytes the stream had.
    pub total: u64,
    /// How many bytes are missing at [`Rendered::cut`]. Characters that the
    /// cut broke are left out whole and counted here.
    pub omitted: u64,
    /// How many of the kept bytes stand before the omission: an offset into
    /// the text, or into the decoded base64. Without omission, their number.
    pub cut: usize,
}

/// The kept bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// They are UTF-8. Untrusted: escape it before a terminal sees it.
    Text(String),
    /// They are not; base64 as in RFC 4648 §4.
    Base64(String),
}

impl<W> Captured<W> {
    /// Renders what was kept: as text if it is valid UTF-8 but for characters
    /// broken by the omission itself, else as base64, never with replacement
    /// characters.
    pub fn render(&self) -> Rendered {
        let text = if self.omitted == 0 {
            // A character may lie across head and tail; only the joined bytes count.
            String::from_utf8(self.joined()).ok().map(|text| (text.len(), text))
        } else {
            self.text_around_cut()
        };
        let (cut, body) = match text {
            Some((cut, text)) => (cut, Body::Text(text)),
            None if self.omitted == 0 => (self.head.len() + self.tail.len(), self.base64()),
            None => (self.head.len(), self.base64()),
        };
        let shown = match &body {
            Body::Text(text) => text.len() as u64,
            Body::Base64(_) => self.total - self.omitted,
        };
        Rendered { body, total: self.total, omitted: self.total - shown, cut }
    }

    fn text_around_cut(&self) -> Option<(usize, String)> {
        let head = match str::from_utf8(&self.head) {
            Ok(head) => head,
            // No length of the error means: the bytes end within a character.
            Err(error) if error.error_len().is_none() => str::from_utf8(&self.head[..error.valid_up_to()]).ok()?,
            Err(_) => return None,
        };
        let rest = self.tail.iter().take(LONGEST_REST).take_while(|byte| is_continuation(**byte)).count();
        let tail = str::from_utf8(&self.tail[rest..]).ok()?;
        Some((head.len(), format!("{head}{tail}")))
    }

    fn joined(&self) -> Vec<u8> {
        [self.head.as_slice(), &self.tail].concat()
    }

    fn base64(&self) -> Body {
        Body::Base64(BASE64.encode(&self.joined()))
    }
}

/// Whether a byte can only stand within a UTF-8 character, never start one.
fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
