//! Pieces of untrusted input, made safe to repeat in a message.

use std::collections::VecDeque;
use std::fmt;

/// How many characters of the input a message repeats at most: enough to
/// recognise it, too few to carry a text of its own.
pub const EXCERPT_CHARS: usize = 40;

/// How many characters of a pointer a message shows at most. More than of other
/// input, because a pointer that is cut can't be followed.
pub const POINTER_CHARS: usize = 120;

/// The start of a text in double quotes, with what is not printable escaped
/// (control, bidirectional and invisible characters among it) and `…` where
/// it was cut.
///
/// ```
/// use env_contracts::canon::excerpt;
/// assert_eq!(excerpt("a\u{202e}b\n"), r#""a\u{202e}b\n""#);
/// assert_eq!(excerpt(&"x".repeat(50)), format!("\"{}…\"", "x".repeat(40)));
/// ```
pub fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => {
            let mut quoted = format!("{:?}", text.split_at(end).0);
            quoted.insert(quoted.len() - 1, '…');
            quoted
        }
        None => format!("{text:?}"),
    }
}

/// A JSON Pointer made for messages: built from the inside outwards, escaped,
/// and cut at its outer end when it gets long.
///
/// An empty one means the root, or that the place is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pointer {
    segments: VecDeque<String>,
    chars: usize,
    cut: bool,
}

impl Pointer {
    /// Whether it names the root.
    pub fn is_root(&self) -> bool {
        self.segments.is_empty()
    }

    /// Adds an outer segment: a key or an index.
    pub fn prepend(&mut self, segment: &dyn fmt::Display) {
        if self.cut {
            return;
        }
        let shown = shown_segment(&segment.to_string());
        self.chars += 1 + shown.chars().count();
        if self.chars > POINTER_CHARS && !self.segments.is_empty() {
            self.cut = true;
        } else {
            self.segments.push_front(shown);
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cut {
            f.write_str("…")?;
        }
        self.segments.iter().try_for_each(|segment| write!(f, "/{segment}"))
    }
}

/// One segment: escaped as RFC 6901 asks, then for display, then cut.
fn shown_segment(segment: &str) -> String {
    let pointer: String = segment.chars().take(EXCERPT_CHARS + 1).collect();
    let pointer = pointer.replace('~', "~0").replace('/', "~1");
    let quoted = excerpt(&pointer);
    // The backquotes around a pointer must stay its only ones.
    quoted[1..quoted.len() - 1].replace('`', "\\u{60}")
}
