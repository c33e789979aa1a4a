//! The policy where there is none: nothing is allowed, and nobody may answer.

use std::sync::Arc;

use env_contracts::{Assurance, Digest, Name, Principal, Problem, Verdict};
use glovebox_plane::PolicySource;
use glovebox_policy::{Decision, Facts, Policy, Reason};

/// Allows nothing.
pub(crate) struct Nobody;

impl Policy for Nobody {
    fn decide(&self, _: &Facts<'_>) -> Decision {
        Decision {
            verdict: Verdict::Deny,
            reason: Reason::NoRule,
            rules: Vec::new(),
            for_people: Vec::new(),
            for_model: Vec::new(),
            classes: Vec::new(),
            delta: Vec::new(),
            errors: Vec::new(),
            revision: self.revision(),
            preview: false,
            diff: false,
        }
    }

    fn classes_of(&self, _: &str, _: Assurance, _: &Principal) -> Vec<Name> {
        Vec::new()
    }

    fn revision(&self) -> Digest {
        Digest::of(b"no policy")
    }
}

impl PolicySource for Nobody {
    fn current(&self) -> Arc<dyn Policy> {
        Arc::new(Self)
    }

    fn refresh(&self) -> Option<Problem> {
        None
    }
}
