//! The HTTP door over real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod actions;
mod doors;
mod house;
mod mcp;
mod restarts;
mod roles;
mod streams;
