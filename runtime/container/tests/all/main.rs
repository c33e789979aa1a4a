//! Containers on a real engine. Without one, each test says so and passes;
//! `cargo xtask test --provision` brings one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod changes;
mod converse;
mod ends;
mod files;
mod ground;
mod hygiene;
mod lies;
mod proxy;
mod silence;
mod stuck;
mod tar;
mod walls;
mod warm;
