//! The plane with a backend that does what a test tells it: what is planned,
//! refused, kept and reported, without any engine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod audit;
mod between;
mod crash;
mod fake;
mod happy;
mod house;
mod interleavings;
mod keeping;
mod profiles;
mod machine;
mod people;
mod registry;
mod service;
mod steps;
