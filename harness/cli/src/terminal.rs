//! Text of strangers on a terminal.

pub(crate) use env_contracts::text::{escaped, escaped_line};
