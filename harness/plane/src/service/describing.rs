//! What can be done here, as the one who asks may know it.

use env_contracts::{Contract, Principal, Problem};
use glovebox_runtime::{ContractReport, algebra};

use super::ActionService;
use crate::registry::Found;

impl ActionService {
    /// The capabilities that are disclosed to who asks and have all these words
    /// in their name, title or description; without words, all of them.
    ///
    /// # Errors
    /// As of [`crate::Registry::search`].
    pub fn search(&self, principal: &Principal, text: &str) -> Result<Vec<Found>, Problem> {
        self.parts.registry.search(text, principal, &self.parts.operator.current()?.profiles)
    }

    /// What the backends here can enforce of a contract, inside the ceiling of
    /// who asks.
    ///
    /// # Errors
    /// As of [`ContractReport::of`].
    pub fn check_contract(&self, principal: &Principal, contract: &Contract) -> Result<ContractReport, Problem> {
        let agent = principal.agent.as_ref().map(env_contracts::Name::as_str);
        let bounds =
            algebra::effective_bounds(&self.parts.operator.current()?.ceiling, principal.tenant.as_str(), agent);
        ContractReport::of(contract, &bounds, self.parts.runtime.backends())
    }
}
