//! Watching an action from outside.

use env_contracts::Id;
use glovebox_runtime::job::Frame;

use crate::cards::Card;

/// Somebody who watches an action go by.
pub trait Watch: Send + Sync {
    /// It has this id. It is written down later: what can change nothing, with
    /// its end or once it takes a while.
    fn begun(&self, _action: &Id) {}

    /// It entered a phase that can take a while; a line for people.
    fn phase(&self, _line: &str) {}

    /// The guest said something. Untrusted. Returns at once: whoever waits for
    /// the run may be the one who tells it.
    fn frame(&self, _frame: &Frame<'_>) {}

    /// A person has to decide, and the request waits for it. Returns at once.
    fn asked(&self, _card: &Card) {}

    /// What was asked was answered, wherever, or is needed no more.
    fn retired(&self, _approval: &Id) {}
}

/// Nobody watches.
pub struct Unwatched;

impl Watch for Unwatched {}
