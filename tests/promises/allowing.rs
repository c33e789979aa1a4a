//! Who decides in the promise table: everything is allowed, so that what is
//! tried is always the backend.

use std::sync::Arc;

use env_contracts::{Assurance, Digest, Name, Principal, Problem, Verdict};
use glovebox_identity::{Signature, Statement};
use glovebox_plane::{People, PolicySource};
use glovebox_policy::{Decision, Facts, Policy, Reason};

/// Allows everything, and knows nobody.
pub(crate) struct Allowing;

impl Policy for Allowing {
    fn decide(&self, _: &Facts<'_>) -> Decision {
        Decision {
            verdict: Verdict::Allow,
            reason: Reason::Permitted,
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
        Digest::of(b"everything")
    }
}

impl PolicySource for Allowing {
    fn current(&self) -> Arc<dyn Policy> {
        Arc::new(Self)
    }

    fn refresh(&self) -> Option<Problem> {
        None
    }
}

impl People for Allowing {
    fn known(&self) -> Result<Vec<(Name, Assurance)>, Problem> {
        Ok(Vec::new())
    }

    fn verify(&self, _: &Name, _: Assurance, _: &Statement, _: &Signature) -> Result<(), Problem> {
        unreachable!("nobody answers here")
    }
}
