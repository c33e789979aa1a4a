//! The backend of what an agent does with tools of its own. It runs nothing:
//! that it was reached is the word that the agent may go ahead.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use env_contracts::{Clause, Code, Contract, Id, ManifestEntry, Notice, Problem};
use glovebox_plane::NATIVE;
use glovebox_runtime::job::{End, JobUsage};
use glovebox_runtime::{Backend, BoxFuture, Cleared, Enforcement, Ports, Prepared, Registered, RunReport};

/// What an Observation says of it, beside its enforcement report.
const UNCONTAINED: &str = "it was let go ahead, and nothing contains it: the agent's own process carries it out, and what \
                           came of it is not known here";

/// The actions that were let go ahead in this process, each with a permit of its
/// own.
#[derive(Debug, Clone, Default)]
pub(crate) struct LetGo(Arc<Mutex<BTreeSet<Id>>>);

impl LetGo {
    /// Whether it was this action that was let go here.
    pub(crate) fn has(&self, action: &Id) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(action)
    }
}

/// Lets agents go ahead.
pub(crate) struct Native(pub(crate) LetGo);

impl Native {
    /// What is not an agent's own is nothing for it, whatever it is.
    fn refused(entry: &ManifestEntry) -> Option<Problem> {
        (*entry != ManifestEntry::Native)
            .then(|| Problem::new(Code::BackendUnavailable, "only what agents do by themselves is let go here"))
    }
}

impl Backend for Native {
    fn name(&self) -> &'static str {
        NATIVE
    }

    fn takes(&self, entry: &ManifestEntry, _contract: &Contract) -> bool {
        *entry == ManifestEntry::Native
    }

    /// It enforces nothing, and so no contract is planned onto it.
    fn enforce(&self, _: &Clause<'_>) -> Enforcement {
        Enforcement::refused("nothing runs here that could be held to it", "another backend")
    }

    fn prepare<'a>(
        &'a self,
        registered: &'a Registered,
        _: &'a Contract,
        _: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Result<Prepared, Problem>> {
        Box::pin(async move {
            match Self::refused(&registered.entry) {
                Some(problem) => Err(problem),
                None => Ok(Box::new(()) as Prepared),
            }
        })
    }

    fn run(&self, cleared: Cleared, _: Ports) -> BoxFuture<'_, RunReport> {
        let end = match Self::refused(&cleared.registered.entry) {
            Some(problem) => End::Refused(problem),
            None => {
                self.0.0.lock().unwrap_or_else(PoisonError::into_inner).insert(cleared.plan.action_id.clone());
                End::Returned { content: "{\"let_go\":true}".to_owned(), artifacts: Vec::new() }
            }
        };
        let notices = vec![Notice::new("uncontained", UNCONTAINED)];
        Box::pin(async move { RunReport { end, usage: JobUsage::default(), notices } })
    }

    fn never_blocks(&self) -> bool {
        true
    }
}
