//! What a process needs that serves doors: everything that happens, and what it
//! has to go on with. It is of all tenants, and never for callers.

use env_contracts::{Id, Principal, Problem};
use glovebox_store::Recorded;

use super::ActionService;

impl ActionService {
    /// Events of all tenants in the order in which they were recorded, after
    /// this rank: for the process that hands them on, which asks
    /// [`ActionService::may_see`] for each reader. Never for callers.
    ///
    /// # Errors
    /// Those of the store.
    pub fn recorded(&self, after: u64, limit: u32) -> Result<Vec<Recorded>, Problem> {
        self.parts.store.recorded(after, limit)
    }

    /// What doors hold for clients that may be gone, of all tenants, oldest
    /// first: actions that neither run nor have ended, at most so many. A door
    /// that starts goes on with each, as whoever asked:
    /// [`ActionService::resume`]. Two doors may do so at once; the right is used
    /// once.
    ///
    /// # Errors
    /// Those of the store.
    pub fn held(&self, limit: u32) -> Result<Vec<(Principal, Id)>, Problem> {
        self.parts.store.held(limit)
    }

    /// The rank of the newest event of all; 0: there is none.
    ///
    /// # Errors
    /// Those of the store.
    pub fn last_recorded(&self) -> Result<u64, Problem> {
        self.parts.store.last_recorded()
    }

    /// The id of the database: with it, what is told outside is told apart from
    /// what others tell.
    ///
    /// # Errors
    /// Those of the store.
    pub fn database(&self) -> Result<Id, Problem> {
        self.parts.store.database()
    }

    /// Ticks after something was recorded, by whichever process. It may tick
    /// without a change.
    ///
    /// # Errors
    /// Those of the store.
    pub fn changes(&self) -> Result<tokio::sync::watch::Receiver<u64>, Problem> {
        self.parts.store.changes()
    }
}
