//! All that an agent may call.

use std::sync::Arc;

use env_contracts::{Principal, Problem, Profiles, Wanted};

use super::{Health, Registry, Tool};

impl Registry {
    /// Every capability that somebody may call by its name alone, as
    /// [`Registry::callable_by`] has it, and whose component is there; in the
    /// order of their names. What can't be read is left out: whoever
    /// lists what is registered is told of it.
    ///
    /// # Errors
    /// `state-unavailable` if the folder can't be read.
    pub fn callable(&self, principal: &Principal, profiles: &Profiles) -> Result<Vec<Arc<Tool>>, Problem> {
        let allowed = profiles.of(principal);
        let names = self.all_names()?.into_iter().filter(|name| allowed.executes(name));
        let callable = |name| self.callable_by(&Wanted { name, version: None }, principal, profiles).ok();
        Ok(names.filter_map(callable).filter(|tool| self.health(tool) == Health::Ok).collect())
    }
}
