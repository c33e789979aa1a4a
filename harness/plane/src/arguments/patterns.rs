//! Patterns: linear time only, and priced by what they cost.

use std::collections::HashMap;

use env_contracts::canon::excerpt;
use jsonschema::{Draft, PatternOptions, Regex, ValidationOptions};
use serde_json::{Value, json};

use super::error::SchemaError;

/// How much memory a compiled pattern may take, in bytes. `[^/]{1,255}` twice
/// over takes 600 KiB, since any character is meant; few real ones take more
/// than 8 KiB.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;

/// How much memory all patterns of a schema may take, in bytes: a registry
/// holds many schemas.
const MAX_PATTERNS_BYTES: usize = 4 * 1024 * 1024;

/// The cache of a pattern while it matches, in bytes. Patterns that need more
/// are matched without, which the prices allow for.
const PATTERN_CACHE_BYTES: usize = 256 * 1024;

/// What a byte of text costs at worst when matched against a pattern of at most
/// that compiled size, in the steps of [`super::effort`]. Measured on random
/// text with the largest of `(a[ab]{N}|b[ab]{N})[c-z]`, `(a|b)*((a)|(b)){N}[c-z]`
/// and the like that fit: 0.04, 2.7, 9, 60 and 280 microseconds for a byte.
const PRICES: [(usize, Price); 5] = [
    (1024, Price(1)),
    (8 * 1024, Price(50)),
    (64 * 1024, Price(180)),
    (256 * 1024, Price(1200)),
    (MAX_PATTERN_BYTES, Price(5600)),
];

/// Steps for each byte of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Price(u64);

impl Price {
    /// The steps for a text.
    pub(super) fn of(self, text: &str) -> u64 {
        (text.len() as u64 + 1).saturating_mul(self.0)
    }
}

/// The patterns of one schema so far.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    known: HashMap<String, Price>,
    bytes: usize,
}

impl Patterns {
    /// What a pattern costs, or why it can't be used.
    pub(super) fn price(&mut self, at: &str, pattern: &str) -> Result<Price, SchemaError> {
        if let Some(price) = self.known.get(pattern) {
            return Ok(*price);
        }
        let schema = json!({ "pattern": pattern });
        let fits = |bytes: usize| options(bytes).build(&schema).is_ok();
        let Some((bytes, price)) = PRICES.into_iter().find(|(bytes, _)| fits(*bytes)) else {
            return Err(SchemaError::Pattern { at: at.to_owned(), pattern: excerpt(pattern) });
        };
        self.bytes += bytes;
        if self.bytes > MAX_PATTERNS_BYTES {
            return Err(SchemaError::PatternsTooLarge { limit: MAX_PATTERNS_BYTES });
        }
        self.known.insert(pattern.to_owned(), price);
        Ok(price)
    }
}

/// Compiles a schema that was found acceptable, by the same rules.
pub(super) fn build(schema: &Value) -> Result<jsonschema::Validator, jsonschema::ValidationError<'static>> {
    options(MAX_PATTERN_BYTES).build(schema)
}

fn options<'i>(pattern_bytes: usize) -> ValidationOptions<'i> {
    // This engine knows no look-around and no back-references, and never
    // backtracks.
    let patterns: PatternOptions<Regex> = PatternOptions::regex();
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .offline()
        .should_validate_formats(false)
        .with_pattern_options(patterns.size_limit(pattern_bytes).dfa_size_limit(PATTERN_CACHE_BYTES))
}
