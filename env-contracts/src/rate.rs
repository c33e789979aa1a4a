//! How often something may be done.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Span;

/// How often a capability may be called: so many calls in any stretch of time
/// of this length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// How many calls.
    pub calls: u32,
    /// In how long.
    pub per: Span,
}

impl Rate {
    /// The most calls: when each of them was is kept, and read at every call.
    pub const MOST_CALLS: u32 = 1000;

    /// The shortest and the longest stretch. Less than a second is a question
    /// of room (`limits.concurrency`), more than a month of a budget.
    pub const SHORTEST: Duration = Duration::from_secs(1);
    /// See [`Rate::SHORTEST`].
    pub const LONGEST: Duration = Duration::from_secs(31 * 24 * 60 * 60);

    /// Whether it is one that can be kept.
    ///
    /// # Errors
    /// What it should be.
    pub fn check(self) -> Result<(), String> {
        if !(1..=Self::MOST_CALLS).contains(&self.calls) {
            return Err(format!("`calls` is a number from 1 to {}", Self::MOST_CALLS));
        }
        if !(Self::SHORTEST..=Self::LONGEST).contains(&self.per.0) {
            return Err(format!("`per` lies between {} and {}", Span(Self::SHORTEST), Span(Self::LONGEST)));
        }
        Ok(())
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let calls = if self.calls == 1 { "call" } else { "calls" };
        write!(f, "{} {calls} in {}", self.calls, self.per)
    }
}
