//! Canonical arguments: one text for one meaning.
//!
//! [`Canonical`] is a JSON value together with its canonical text. The text is
//! what is validated, hashed, shown, seen by policy and handed to the guest;
//! nothing downstream reads the bytes that were received. So two requests with
//! the same digest reach the guest as the same bytes, and the other way round.
//!
//! The canonical text: object keys sorted by their UTF-8 bytes, no whitespace,
//! integers as they were sent, doubles in their shortest form that reads back
//! to the same double and never looks like an integer (`1.0`, `1e16`, `-0.0`),
//! strings with the fewest escapes JSON allows. `1` and `1.0` are two values:
//! many guests tell them apart.
//!
//! What can't be kept exactly is refused, never repaired: repeated keys, lone
//! surrogates, integers beyond 64 bits, numbers too large for a double.
//!
//! ```
//! use env_contracts::canon::{Canonical, ParseLimits};
//!
//! let a = Canonical::parse(br#"{"n": 5, "a": 1.50}"#, ParseLimits::default())?;
//! let b = Canonical::parse(br#"{"\u0061":1.5,"n":5}"#, ParseLimits::default())?;
//! assert_eq!(a.as_str(), r#"{"a":1.5,"n":5}"#);
//! assert_eq!(a.digest(), b.digest());
//!
//! let error = Canonical::parse(br#"{"a":1,"\u0061":2}"#, ParseLimits::default()).unwrap_err();
//! assert_eq!(error.to_string(), "the key \"a\" is repeated at line 1, column 8 (byte 7)");
//! # Ok::<(), env_contracts::canon::CanonError>(())
//! ```

mod error;
mod excerpt;
mod parser;
mod writer;

pub use error::{CanonError, CanonErrorKind, Position};
pub use excerpt::{EXCERPT_CHARS, POINTER_CHARS, Pointer, excerpt};

use serde_json::Value;
use sha2::{Digest, Sha256};

/// How deep arrays and objects may nest. Hand-written arguments rarely reach
/// 10; everything that walks a value recursively relies on this bound.
pub const MAX_DEPTH: usize = 64;

/// How long the text may be, in bytes, as received and in canonical form.
/// Arguments travel through events, cards and policy; bulk data goes through
/// files.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// How many values (scalars, arrays and objects together) there may be. A
/// value takes up to fifty times the memory of its text, so 4 MiB of `0,`
/// would become some 100 MiB.
pub const MAX_VALUES: usize = 256 * 1024;

/// What the digest is over, before the bytes: no other digest of Glovebox can
/// be mistaken for one of arguments.
const DOMAIN: &[u8] = b"glovebox/arguments/v1\0";

/// What [`Canonical::parse`] accepts at most. Nesting is not among it: it is
/// bounded by [`MAX_DEPTH`] always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseLimits {
    /// Length of the text in bytes, as received and in canonical form.
    pub max_bytes: usize,
    /// Number of values, nested ones included.
    pub max_values: usize,
}

impl Default for ParseLimits {
    fn default() -> Self {
        Self { max_bytes: MAX_BYTES, max_values: MAX_VALUES }
    }
}

/// A JSON value and its canonical text. Equal when the texts are equal.
#[derive(Debug, Clone)]
pub struct Canonical {
    text: String,
    value: Value,
}

impl Canonical {
    /// Parses received bytes strictly.
    ///
    /// # Errors
    /// [`CanonError`] says what is not acceptable and where.
    pub fn parse(bytes: &[u8], limits: ParseLimits) -> Result<Self, CanonError> {
        let value = parser::parse(bytes, limits)?;
        let text = writer::write(&value, limits)?;
        Ok(Self { text, value })
    }

    /// The canonical form of a value that was made by a program, within the
    /// default limits.
    ///
    /// # Errors
    /// [`CanonError`] if it is deeper, larger or has more values than
    /// [`Canonical::parse`] would accept.
    pub fn from_value(value: &Value) -> Result<Self, CanonError> {
        // Written before cloned: cloning a value of unknown depth recurses.
        let text = writer::write(value, ParseLimits::default())?;
        Ok(Self { text, value: value.clone() })
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The value that the text spells. Do not serialise it again where bytes
    /// matter: the order of keys is the map's, not the canonical one.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The canonical text, without a copy.
    pub fn into_string(self) -> String {
        self.text
    }

    /// The sha256 of the canonical text, domain-separated.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::new().chain_update(DOMAIN).chain_update(&self.text).finalize().into()
    }

    /// The digest in lower-case hex.
    pub fn digest_hex(&self) -> String {
        use std::fmt::Write as _;
        self.digest().iter().fold(String::with_capacity(64), |mut hex, byte| {
            // Writing to a String can't fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

impl PartialEq for Canonical {
    // Not by value: serde_json holds 0.0 and -0.0 for equal.
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Canonical {}

impl std::hash::Hash for Canonical {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl std::fmt::Display for Canonical {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}
