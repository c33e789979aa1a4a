//! The plane with a backend that does what a test tells it: what is planned,
//! refused, asked, run once and kept, without any engine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod audit;
mod between;
mod changed;
mod crash;
mod decisions;
mod edits;
mod fake;
mod followups;
mod forged;
mod grants;
mod happy;
mod house;
mod interleavings;
mod keeping;
mod keys;
mod limits;
mod loops;
mod machine;
mod people;
mod permission;
mod preview;
mod profiles;
mod registry;
mod service;
mod steps;
mod stopping;
mod verify;
