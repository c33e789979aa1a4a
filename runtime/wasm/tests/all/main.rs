//! What this crate promises, met by guests that try to break it.

#![expect(clippy::unwrap_used, reason = "a test ends with a panic when something is wrong")]

mod cells;
mod commands;
mod compiling;
mod deterministic;
mod files;
mod harness;
mod hidden;
mod imports;
mod input;
mod limits;
mod sealed;
mod storage;
mod time;
mod tools;
mod typed;
mod typed_property;
