//! A policy that can be loaded again while it is in use.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use env_contracts::{Assurance, Digest, Manifest, Name, Principal, Problem};

use crate::{Decision, Explanation, Facts, Policy, PolicyError, PolicySet, Reviewer};

/// A policy that can be loaded again while it is in use.
#[derive(Debug)]
pub struct Live {
    dir: Option<PathBuf>,
    stamps: Option<PathBuf>,
    current: RwLock<Arc<PolicySet>>,
    problem: Mutex<Option<Problem>>,
}

impl Live {
    /// Loads the policy of a folder, or the shipped one: see [`PolicySet::load`].
    ///
    /// # Errors
    /// [`PolicyError`] with every problem: without a policy nothing starts.
    pub fn load<'a>(
        dir: Option<PathBuf>,
        tools: impl IntoIterator<Item = &'a Manifest>,
        stamps: Option<PathBuf>,
    ) -> Result<Self, PolicyError> {
        let set = PolicySet::load(dir.as_deref(), tools, stamps.as_deref())?;
        Ok(Self { dir, stamps, current: RwLock::new(Arc::new(set)), problem: Mutex::new(None) })
    }

    /// The policy that is in force now.
    pub fn current(&self) -> Arc<PolicySet> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Loads again, and puts the new policy in force in one step. Where it is not
    /// valid, the old one stays, and [`Live::problem`] says so until a reload
    /// succeeds. Returns the revision that is in force.
    ///
    /// # Errors
    /// [`PolicyError`] with every problem of the new policy.
    pub fn reload<'a>(&self, tools: impl IntoIterator<Item = &'a Manifest>) -> Result<Digest, PolicyError> {
        let loaded = PolicySet::load(self.dir.as_deref(), tools, self.stamps.as_deref());
        let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        match loaded {
            Ok(set) => {
                *problem = None;
                let revision = set.revision();
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
                Ok(revision)
            }
            Err(error) => {
                let kept = self.current().revision();
                *problem = Some(Problem::of(&error).with_help(format!(
                    "revision {} stays in force until this is corrected; `glovebox policy check` lists every problem",
                    kept.short()
                )));
                Err(error)
            }
        }
    }

    /// Why the last reload did not succeed. `None` if it did.
    pub fn problem(&self) -> Option<Problem> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Policy for Live {
    fn decide(&self, facts: &Facts<'_>) -> Decision {
        self.current().decide(facts)
    }

    fn explain(&self, facts: &Facts<'_>) -> Explanation {
        self.current().explain(facts)
    }

    fn classes_of(&self, approver: &str, assurance: Assurance, requester: &Principal) -> Vec<Name> {
        self.current().classes_of(approver, assurance, requester)
    }

    fn reviewers(&self) -> Vec<Reviewer> {
        self.current().reviewers()
    }

    fn revision(&self) -> Digest {
        self.current().revision()
    }
}
