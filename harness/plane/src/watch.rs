//! Watching an action from outside.

use glovebox_runtime::job::Frame;

/// Somebody who watches an action go by.
pub trait Watch: Send + Sync {
    /// It entered a phase that can take a while; a line for people.
    fn phase(&self, _line: &str) {}

    /// The guest said something. Untrusted.
    fn frame(&self, _frame: &Frame<'_>) {}
}

/// Nobody watches.
pub struct Unwatched;

impl Watch for Unwatched {}
