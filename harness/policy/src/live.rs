//! A policy that can be loaded again while it is in use.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use env_contracts::{Assurance, Digest, Manifest, Name, Principal, Problem};

use crate::stamp::Material;
use crate::{Decision, Explanation, Facts, Policy, PolicyError, PolicySet, Reviewer};

/// A policy that can be loaded again while it is in use.
#[derive(Debug)]
pub struct Live {
    dir: Option<PathBuf>,
    stamps: Option<PathBuf>,
    current: RwLock<Current>,
    problem: Mutex<Option<Problem>>,
}

/// The policy in force.
#[derive(Debug)]
struct Current {
    set: Arc<PolicySet>,
    /// The digest of what it was made of.
    stamp: Digest,
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
        let material = Material::read(dir.as_deref(), tools)?;
        let set = Arc::new(PolicySet::of(&material, stamps.as_deref())?);
        let current = RwLock::new(Current { set, stamp: material.stamp });
        Ok(Self { dir, stamps, current, problem: Mutex::new(None) })
    }

    /// The policy that is in force now.
    pub fn current(&self) -> Arc<PolicySet> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).set)
    }

    /// Loads again, and puts the new policy in force in one step. Where it is not
    /// valid, the old one stays, and [`Live::problem`] says so until a reload
    /// succeeds. Everything is read each time; where all of it is what the policy
    /// in force was made of, that one stays. Returns the revision in force.
    ///
    /// # Errors
    /// [`PolicyError`] with every problem of the new policy.
    pub fn reload<'a>(&self, tools: impl IntoIterator<Item = &'a Manifest>) -> Result<Digest, PolicyError> {
        let loaded = self.changed(tools);
        let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        match loaded {
            Ok(changed) => {
                *problem = None;
                if let Some(changed) = changed {
                    *self.current.write().unwrap_or_else(PoisonError::into_inner) = changed;
                }
                Ok(self.current().revision())
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

    /// Another policy than the one in force, if there is one now.
    fn changed<'a>(&self, tools: impl IntoIterator<Item = &'a Manifest>) -> Result<Option<Current>, PolicyError> {
        let material = Material::read(self.dir.as_deref(), tools)?;
        if material.stamp == self.current.read().unwrap_or_else(PoisonError::into_inner).stamp {
            return Ok(None);
        }
        let set = Arc::new(PolicySet::of(&material, self.stamps.as_deref())?);
        Ok(Some(Current { set, stamp: material.stamp }))
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
