//! Decisions, approvers, what rules see, and how a policy is loaded.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod approvals;
mod arguments;
mod checking;
mod commands;
mod decisions;
mod facets;
mod loading;
mod shipped;
