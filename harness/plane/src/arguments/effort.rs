//! How much work a schema asks for on given arguments, counted before it is
//! done.
//!
//! Recursive schemas can make a validator take exponential time on small
//! arguments, and a validator can't be stopped. The count takes the same ways
//! through schema and arguments as the validator, does nothing on them, and
//! ends at the limit. Where it can't know whether a keyword applies, it takes it
//! that it does.

use serde_json::Value;

use super::outline::{Outline, Place, Via};

/// How many steps a check may take: one step is what a simple keyword costs,
/// some 50 ns, so this is about a second. Real tools take below 10 000.
pub(super) const MAX_STEPS: u64 = 20_000_000;

/// How deep a check may recurse, in subschemas. The validator was measured to
/// pass 2000 within a thread's default stack of 2 MiB.
const MAX_RECURSION: usize = 1024;

/// How many bytes the explanations of failed branches may hold: every error in
/// a branch of `anyOf` or `oneOf` owns a copy of the value it is about.
const MAX_COPIED: u64 = 32 * 1024 * 1024;

/// How many subschemas may be tried before only the first violation is looked
/// for: all of them could fail, and each failure takes some hundred bytes.
const MAX_LISTED: u64 = 10_000;

/// How often the validator comes back to the neighbours of `unevaluated…`
/// keywords, at worst. It does so at each level of nesting.
const UNEVALUATED_FACTOR: u64 = 3;

/// How many comparisons `uniqueItems` makes for a value, at most (fewer than
/// 16 items are compared in pairs, more are hashed).
const UNIQUE_FACTOR: u64 = 16;

/// The check would take more than the limits; in plain words, how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMuch(pub(super) &'static str);

/// How far a failed check can be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Explain {
    /// Every violation can be listed.
    All,
    /// Only the first violation.
    First,
    /// Not even that: its copies would take too much memory.
    Nothing,
}

/// Counts the work of a check.
pub(super) fn measure(outline: &Outline, value: &Value) -> Result<Explain, TooMuch> {
    let mut meter = Meter { outline, steps: 0, visits: 0, copied: 0 };
    meter.visit(0, value, Frame { depth: 0, factor: 1, branch: false })?;
    Ok(if meter.copied > MAX_COPIED {
        Explain::Nothing
    } else if meter.visits > MAX_LISTED {
        Explain::First
    } else {
        Explain::All
    })
}

#[derive(Clone, Copy)]
struct Frame {
    depth: usize,
    /// How often this is done.
    factor: u64,
    /// Whether this is inside a branch of `anyOf` or `oneOf`.
    branch: bool,
}

struct Meter<'a> {
    outline: &'a Outline,
    steps: u64,
    visits: u64,
    copied: u64,
}

impl Meter<'_> {
    fn visit(&mut self, at: usize, value: &Value, frame: Frame) -> Result<(), TooMuch> {
        if frame.depth > MAX_RECURSION {
            return Err(TooMuch("the schema nests too deep on them"));
        }
        let place = &self.outline.places[at];
        self.visits += 1;
        self.spend(place.weight.saturating_mul(frame.factor))?;
        if let (Some(price), Value::String(text)) = (place.pattern, value) {
            self.spend(price.of(text).saturating_mul(frame.factor))?;
        }
        if let (true, Value::Array(_)) = (place.unique, value) {
            let most = MAX_STEPS / UNIQUE_FACTOR;
            self.spend(size(value, most).saturating_mul(UNIQUE_FACTOR * frame.factor))?;
        }
        if frame.branch && self.copied <= MAX_COPIED {
            let left = (MAX_COPIED - self.copied) / place.weight + 1;
            self.copied += size(value, left).saturating_mul(place.weight);
        }
        let inner = Frame { depth: frame.depth + 1, ..frame };
        for (name, value) in value.as_object().into_iter().flatten() {
            if let Some(to) = place.properties.get(name) {
                self.visit(*to, value, inner)?;
            }
        }
        self.links(place, value, inner)
    }

    fn links(&mut self, place: &Place, value: &Value, inner: Frame) -> Result<(), TooMuch> {
        let again = if place.unevaluated { UNEVALUATED_FACTOR } else { 1 };
        let here = inner.factor.saturating_mul(again);
        for link in &place.links {
            match (&link.via, value) {
                (Via::Here, _) => {
                    let branch = inner.branch || matches!(link.keyword, "anyOf" | "oneOf");
                    self.visit(link.to, value, Frame { factor: here, branch, ..inner })?;
                }
                (Via::OtherProperties, Value::Object(map)) => {
                    for (name, value) in map {
                        if !place.properties.contains_key(name) {
                            self.visit(link.to, value, inner)?;
                        }
                    }
                }
                (Via::Properties, Value::Object(map)) => {
                    for value in map.values() {
                        self.visit(link.to, value, inner)?;
                    }
                }
                (Via::MatchingProperties(price), Value::Object(map)) => {
                    for (name, value) in map {
                        // Twice: `additionalProperties` matches again.
                        self.spend(price.of(name).saturating_mul(2 * inner.factor))?;
                        self.visit(link.to, value, inner)?;
                    }
                }
                (Via::Names, Value::Object(map)) => {
                    for name in map.keys() {
                        self.visit(link.to, &Value::String(name.clone()), inner)?;
                    }
                }
                (Via::Item(index), Value::Array(items)) => {
                    if let Some(value) = items.get(*index) {
                        self.visit(link.to, value, inner)?;
                    }
                }
                (Via::ItemsFrom(index), Value::Array(items)) => {
                    for value in items.iter().skip(*index) {
                        self.visit(link.to, value, inner)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn spend(&mut self, steps: u64) -> Result<(), TooMuch> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS {
            return Err(TooMuch("the schema would take too long on them"));
        }
        Ok(())
    }
}

/// Roughly how many bytes a value holds, or a little more than `most`.
fn size(value: &Value, most: u64) -> u64 {
    // What a value takes without its content.
    const VALUE: u64 = 32;
    let mut total = VALUE;
    match value {
        Value::String(text) => total += text.len() as u64,
        Value::Array(items) => {
            for item in items {
                if total > most {
                    break;
                }
                total += size(item, most - total);
            }
        }
        Value::Object(map) => {
            for (name, item) in map {
                if total > most {
                    break;
                }
                total += name.len() as u64 + size(item, most - total);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    total
}
