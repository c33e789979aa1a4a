//! What a requester is told that there is.

use std::sync::Arc;

use env_contracts::{Principal, Problem};

use super::ActionService;
use crate::registry::Tool;

impl ActionService {
    /// What this requester may find and call, in the order of its names.
    /// Whether a call may be made is decided when it is made.
    ///
    /// # Errors
    /// `state-unavailable` if the registry can't be read.
    pub fn callable(&self, principal: &Principal) -> Result<Vec<Arc<Tool>>, Problem> {
        self.parts.registry.callable(principal, &self.parts.operator.current()?.profiles)
    }
}
