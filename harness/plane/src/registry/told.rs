//! All that an agent may call.

use std::sync::Arc;

use env_contracts::{Principal, Problem, Profiles, Wanted};

use super::{Health, Registry, Tool};

impl Registry {
    /// Every capability that is disclosed to somebody, that their profile lets
    /// them call and that is whole, in the version that its name alone means;
    /// in the order of their names. What can't be read is left out: whoever
    /// lists what is registered is told of it.
    ///
    /// # Errors
    /// `state-unavailable` if the folder can't be read.
    pub fn callable(&self, principal: &Principal, profiles: &Profiles) -> Result<Vec<Arc<Tool>>, Problem> {
        let allowed = profiles.of(principal);
        let names = self.all_names()?.into_iter().filter(|name| allowed.executes(name));
        let tools = names.filter_map(|name| self.get(&Wanted { name, version: None }).ok());
        Ok(tools.filter(|tool| self.health(tool) == Health::Ok).collect())
    }
}
