//! The outline of a schema: its subschemas as a graph, checked once.
//!
//! Everything that walks a schema (loops, work, marks) walks this graph. It
//! knows every way by which the validator can get from one subschema to
//! another, because keywords with other ways are refused here.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::SchemaError;
use super::marks::{self, Marks};
use super::patterns::Price;
use super::sketch;
use super::words::place;

/// How long a schema may be, in bytes of canonical JSON. Manifests of real
/// tools stay below 32 KiB.
pub const MAX_SCHEMA_BYTES: usize = 256 * 1024;

/// How many subschemas a schema may have. It bounds all recursion over
/// references: no way through the schema is longer.
pub const MAX_SCHEMA_PLACES: usize = 2048;

/// How a value gets from a subschema to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Via {
    /// The same value.
    Here,
    /// Each property that no `properties` of the place names.
    OtherProperties,
    /// Each property.
    Properties,
    /// Each property, its name matched against a pattern first.
    MatchingProperties(Price),
    /// The name of each property.
    Names,
    /// The item with that index.
    Item(usize),
    /// Each item from that index on.
    ItemsFrom(usize),
}

/// An edge of the graph.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) keyword: &'static str,
    pub(super) via: Via,
    pub(super) to: usize,
}

/// A subschema.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// Where it stands: a JSON Pointer into the schema.
    pub(super) pointer: String,
    pub(super) links: Vec<Link>,
    /// What `properties` holds.
    pub(super) properties: BTreeMap<String, usize>,
    /// The work that its own keywords ask for, without patterns.
    pub(super) weight: u64,
    /// What its `pattern` costs.
    pub(super) pattern: Option<Price>,
    /// Whether it has `uniqueItems`.
    pub(super) unique: bool,
    /// Whether it has `unevaluatedProperties` or `unevaluatedItems`.
    pub(super) unevaluated: bool,
    pub(super) marks: Marks,
}

impl Place {
    /// The subschemas that judge the same value.
    fn here(&self) -> impl Iterator<Item = usize> {
        self.links.iter().filter(|link| link.via == Via::Here).map(|link| link.to)
    }
}

/// The graph; place 0 is the whole schema.
#[derive(Debug)]
pub(super) struct Outline {
    pub(super) places: Vec<Place>,
}

impl Outline {
    /// Draws the outline of a schema whose size and depth are bounded already.
    pub(super) fn of(schema: &Value) -> Result<Self, SchemaError> {
        let outline = Self { places: sketch::places_of(schema)? };
        outline.refuse_loops()?;
        marks::refuse_unreachable(&outline)?;
        Ok(outline)
    }

    /// A cycle of subschemas that judge the same value would never end.
    fn refuse_loops(&self) -> Result<(), SchemaError> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut states = vec![State::New; self.places.len()];
        for start in 0..self.places.len() {
            // Depth first without recursion: a place is left when it comes up again.
            let mut stack = vec![start];
            while let Some(&at) = stack.last() {
                if states[at] != State::New {
                    states[at] = State::Done;
                    stack.pop();
                    continue;
                }
                states[at] = State::Open;
                for to in self.places[at].here() {
                    match states[to] {
                        State::New => stack.push(to),
                        State::Open => {
                            return Err(SchemaError::Loop { at: place(&self.places[to].pointer) });
                        }
                        State::Done => {}
                    }
                }
            }
        }
        Ok(())
    }
}
