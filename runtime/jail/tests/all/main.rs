//! Each wall, shown to hold by what it stops.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attempts;
mod files;
mod inmate;
mod process;
