//! The skeleton of this crate.
