//! The door, with a client at its other end: what it lists, calls, asks and
//! answers, in both eras of the protocol. Behind it stand the real service,
//! store and policy, and a backend that does what a test tells it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod asking;
mod client;
mod listing;
mod pipes;
mod projections;
mod resources;
mod rounds;
mod tasks;

// The house of the plane's own tests.
#[path = "../../../plane/tests/all/fake.rs"]
mod fake;
#[expect(dead_code, reason = "the tests of the plane use the rest")]
#[path = "../../../plane/tests/all/house.rs"]
mod house;
#[expect(dead_code, reason = "the tests of the plane use the rest")]
#[path = "../../../plane/tests/all/people.rs"]
mod people;
