//! Facts as Cedar sees them: the entities of `scene.rs`, the attributes of
//! `context.rs`. `schema.rs` declares the same shapes for validation, and a test
//! holds the two together.

use std::sync::Arc;

use cedar_policy::{Context, Entities, Request};
use env_contracts::{Assurance, DerivedEffects, Span};

use crate::context::{self, Attributes, Seen};
use crate::scene::Scene;
use crate::{Facts, GivenScope, Source};

/// The group that every action is in.
pub(crate) const RUN: &str = "run";

/// From this lifetime on a secret is a long-lived one: a working day's token
/// is not, a key that somebody has to remember to change is.
pub const LONG_LIVED: Span = Span::secs(24 * 3600);

/// An approval as rules see it.
#[derive(Debug, Clone)]
pub(crate) struct Approval<'a> {
    pub(crate) assurance: Assurance,
    pub(crate) classes: Vec<&'a str>,
    pub(crate) source: Source,
    pub(crate) scope: GivenScope,
}

/// What went wrong while facts were prepared: nothing that facts of ours bring
/// about, and a denial if it happens.
pub(crate) type Fault = String;

/// Facts that are ready to be decided upon.
pub(crate) struct Prepared {
    scene: Arc<Scene>,
    seen: Seen,
}

impl Prepared {
    /// Those that rules look at, of who asks and what would run.
    pub(crate) fn new(facts: &Facts<'_>, scene: Arc<Scene>, wanted: Attributes) -> Result<Self, Fault> {
        Ok(Self { seen: context::of(facts, wanted)?, scene })
    }

    pub(crate) fn entities(&self) -> &Entities {
        &self.scene.entities
    }

    /// Arguments that are there and that rules can't see.
    pub(crate) fn unseen(&self) -> &[Vec<String>] {
        &self.seen.unseen
    }

    /// The request, as if this approval had been given.
    pub(crate) fn request(&self, approval: Option<&Approval<'_>>) -> Result<Request, Fault> {
        let mut pairs = self.seen.pairs.clone();
        if let Some(approval) = approval {
            pairs.push(("approval".into(), context::given(approval)?));
        }
        let context = Context::from_pairs(pairs).map_err(|error| error.to_string())?;
        let Scene { principal, action, resource, .. } = &*self.scene;
        Request::new(principal.clone(), action.clone(), resource.clone(), context, None)
            .map_err(|error| error.to_string())
    }
}

/// Derived effects as policies spell them.
pub(crate) const fn effects(effects: DerivedEffects) -> &'static str {
    match effects {
        DerivedEffects::None => "none",
        DerivedEffects::Workspace => "workspace",
        DerivedEffects::External => "external",
    }
}
