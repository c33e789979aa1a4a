//! Why a text is not acceptable as arguments, and where.

use std::borrow::Cow;

use super::Pointer;
use crate::error::{Code, Diagnose};

/// A text or value that can't be made canonical.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanonError {
    /// What is wrong.
    pub kind: CanonErrorKind,
    /// The place in the text, where there is one: a text that is too long, or
    /// a value made by a program, has none.
    pub position: Option<Position>,
    /// The place in the value, where it is known and not the root.
    pub pointer: Pointer,
}

/// A place in the received text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Counted in bytes, from 0.
    pub offset: usize,
    /// Counted from 1.
    pub line: usize,
    /// Counted in characters, from 1.
    pub column: usize,
}

/// What is wrong with it. Pieces of the input in here are excerpts: escaped,
/// quoted and cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanonErrorKind {
    /// More bytes than the limit, as received or in canonical form.
    #[error("the JSON text is longer than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// Arrays and objects nest deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    #[error("arrays and objects nest more than {limit} deep")]
    TooDeep {
        /// The limit in levels.
        limit: usize,
    },
    /// More values than the limit.
    #[error("there are more than {limit} values")]
    TooManyValues {
        /// The limit in values.
        limit: usize,
    },
    /// Bytes that are not UTF-8.
    #[error("the bytes are not UTF-8")]
    NotUtf8,
    /// The text starts with a byte order mark.
    #[error("expected a value, got a byte order mark")]
    ByteOrderMark,
    /// Something that JSON does not allow there.
    #[error("expected {expected}, got {got}")]
    Syntax {
        /// What would have been right.
        expected: &'static str,
        /// What stands there.
        got: String,
    },
    /// More text after the value.
    #[error("expected nothing after the value, got {got}")]
    Trailing {
        /// What stands there.
        got: String,
    },
    /// A key stands twice in one object, however it is spelled.
    #[error("the key {key} is repeated")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// An escape names one half of a surrogate pair.
    #[error("the escape {escape} is half of a surrogate pair")]
    LoneSurrogate {
        /// The escape as written.
        escape: String,
    },
    /// A control character stands in a string without an escape.
    #[error("expected control characters in strings to be escaped, got {got}")]
    RawControl {
        /// The character.
        got: String,
    },
    /// An integer that is neither an i64 nor a u64.
    #[error("the integer {literal} does not fit 64 bits")]
    IntegerRange {
        /// The number as written.
        literal: String,
    },
    /// A number that no finite double is near.
    #[error("the number {literal} is too large for a double")]
    NotFinite {
        /// The number as written.
        literal: String,
    },
}

impl CanonErrorKind {
    /// A short stable name, as the golden vectors use it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too-large",
            Self::TooDeep { .. } => "too-deep",
            Self::TooManyValues { .. } => "too-many-values",
            Self::NotUtf8 => "not-utf8",
            Self::ByteOrderMark => "byte-order-mark",
            Self::Syntax { .. } => "syntax",
            Self::Trailing { .. } => "trailing",
            Self::DuplicateKey { .. } => "duplicate-key",
            Self::LoneSurrogate { .. } => "lone-surrogate",
            Self::RawControl { .. } => "raw-control",
            Self::IntegerRange { .. } => "integer-range",
            Self::NotFinite { .. } => "not-finite",
        }
    }
}

impl CanonError {
    /// An error without a place.
    pub(super) fn placeless(kind: CanonErrorKind) -> Self {
        Self { kind, position: None, pointer: Pointer::default() }
    }

    /// An error at a byte of the text.
    pub(super) fn at(kind: CanonErrorKind, text: &[u8], offset: usize) -> Self {
        Self { position: Some(Position::of(text, offset)), ..Self::placeless(kind) }
    }

    /// The same error, seen from one level further out.
    pub(super) fn below(mut self, segment: &dyn std::fmt::Display) -> Self {
        self.pointer.prepend(segment);
        self
    }
}

impl Position {
    fn of(text: &[u8], offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        // Characters, not bytes: every byte but UTF-8's continuation bytes.
        let column = before.iter().skip(line_start).filter(|byte| **byte & 0xC0 != 0x80).count();
        let line = before.iter().filter(|byte| **byte == b'\n').count();
        Self { offset, line: line + 1, column: column + 1 }
    }
}

impl std::fmt::Display for CanonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(Position { offset, line, column }) = self.position {
            write!(f, " at line {line}, column {column} (byte {offset})")?;
        }
        if !self.pointer.is_root() {
            write!(f, ", in `{}`", self.pointer)?;
        }
        Ok(())
    }
}

impl std::error::Error for CanonError {}

impl Diagnose for CanonError {
    fn code(&self) -> Code {
        Code::ArgumentsInvalid
    }

    fn help(&self) -> Cow<'static, str> {
        use CanonErrorKind as Kind;
        Cow::Borrowed(match self.kind {
            Kind::TooLarge { .. } | Kind::TooManyValues { .. } => "pass bulk data as a file with --input NAME=FILE",
            Kind::TooDeep { .. } => "flatten the arguments, or pass them as a file with --input NAME=FILE",
            Kind::NotUtf8 => "send UTF-8; pass binary data as a file with --input NAME=FILE",
            Kind::ByteOrderMark => "send the text without the byte order mark",
            Kind::Syntax { .. } | Kind::Trailing { .. } => "send one JSON object, and nothing after it",
            Kind::DuplicateKey { .. } => "send each key once",
            Kind::LoneSurrogate { .. } => "send both halves of the pair, or the character itself",
            Kind::RawControl { .. } => "write it as an escape, for example `\\n` or `\\u0000`",
            Kind::IntegerRange { .. } => "send it as a string; if rounding is fine, write it as a double, with a `.0`",
            Kind::NotFinite { .. } => "send it as a string",
        })
    }
}
