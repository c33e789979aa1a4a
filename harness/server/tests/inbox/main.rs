//! The inbox over real sockets: what a browser sends and gets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod browser;
mod chromium;
mod decisions;
mod driver;
mod guest;
mod hostile;
mod house;
mod live;
mod login;
