//! The store in a temporary SQLite file: what every store promises, and what
//! this one does when its file, its disk or its neighbours fail it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../suite/mod.rs"]
mod suite;

mod audit;
mod backup;
mod child;
mod crash;
mod derived;
mod disk;
mod file;
mod migration;
mod processes;
mod property;
mod sqlite;
