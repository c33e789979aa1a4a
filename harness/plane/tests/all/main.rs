//! The plane with a backend that does what a test tells it: what is planned,
//! refused, asked, run once and kept, without any engine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod audit;
mod between;
mod budgets;
mod changed;
mod children;
mod crash;
mod decisions;
mod deeds;
mod edits;
mod environments;
mod fake;
mod following;
mod followups;
mod forged;
mod goals;
mod grants;
mod happy;
mod held;
mod house;
mod interleavings;
mod interrupting;
mod keeping;
mod keys;
mod limits;
mod loops;
mod machine;
mod machines;
mod operator;
mod overseeing;
mod pages;
mod people;
mod permission;
mod plans;
mod preview;
mod profiles;
mod questions;
mod races;
mod registry;
mod release;
mod replayed;
mod results;
mod resumption;
mod reviewers;
mod reviews;
mod saying;
mod schemas;
mod service;
mod steps;
mod stopping;
mod story;
mod turns;
mod verify;
