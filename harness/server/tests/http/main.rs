//! The HTTP door over real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod actions;
mod doors;
mod house;
mod made_up;
mod mcp;
mod on_behalf;
mod restarts;
mod roles;
mod spans;
mod streams;
mod tape;
mod tasks;
mod telemetry;
mod tls;
mod webhooks;
