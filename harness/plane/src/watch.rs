//! Watching an action from outside.

use glovebox_runtime::job::Frame;

use crate::cards::Card;

/// Somebody who watches an action go by.
pub trait Watch: Send + Sync {
    /// It entered a phase that can take a while; a line for people.
    fn phase(&self, _line: &str) {}

    /// The guest said something. Untrusted.
    fn frame(&self, _frame: &Frame<'_>) {}

    /// A person has to decide, and the request waits for it. Returns at once.
    fn asked(&self, _card: &Card) {}
}

/// Nobody watches.
pub struct Unwatched;

impl Watch for Unwatched {}
