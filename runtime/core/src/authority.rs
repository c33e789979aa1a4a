//! Authority is a value: without a [`Permit`] for exactly this plan, nothing runs.
//!
//! A [`Permit`] can't be copied, stored or made by hand. Only the
//! [`Authority`] mints one, and there is one authority per [`Runtime`].
//! Whoever holds it decides; the binary moves it into the action service.
//!
//! A door can't make a permit:
//! ```compile_fail,E0451
//! let digest = env_contracts::Digest::of(b"a plan");
//! let permit = glovebox_runtime::Permit { plan: digest, issuer: Default::default() };
//! ```
//! nor copy one:
//! ```compile_fail,E0599
//! fn twice(permit: glovebox_runtime::Permit) -> (glovebox_runtime::Permit, glovebox_runtime::Permit) {
//!     (permit.clone(), permit)
//! }
//! ```
//! nor read one from the wire:
//! ```compile_fail,E0277
//! let permit: glovebox_runtime::Permit = serde_json::from_str("{}").unwrap();
//! ```

use std::sync::Arc;

use env_contracts::{Code, Digest, Problem};

use crate::backend::{Backend, Bound, Cleared, Ports, RunReport};

/// The right to run one plan once.
#[derive(Debug)]
pub struct Permit {
    plan: Digest,
    issuer: Arc<Issuer>,
}

/// Mints permits. There is one per [`Runtime`]; it can't be cloned.
#[derive(Debug)]
pub struct Authority {
    issuer: Arc<Issuer>,
}

/// What ties permits to their runtime: compared by address.
#[derive(Debug)]
struct Issuer {
    // Not zero-sized, so that two issuers never share an address.
    _unique: u8,
}

/// The backends of this process, behind the check for permits.
pub struct Runtime {
    backends: Vec<Arc<dyn Backend>>,
    issuer: Arc<Issuer>,
}

impl Authority {
    /// The right to run the plan with this digest, once.
    ///
    /// Whoever calls this has decided: an embedder that does so by itself
    /// says so in its own code.
    pub fn permit(&self, plan: &Digest) -> Permit {
        Permit { plan: plan.clone(), issuer: self.issuer.clone() }
    }
}

impl Runtime {
    /// A runtime with these backends, in order of preference, and the one
    /// authority over it.
    pub fn new(backends: Vec<Arc<dyn Backend>>) -> (Self, Authority) {
        let issuer = Arc::new(Issuer { _unique: 0 });
        (Self { backends, issuer: issuer.clone() }, Authority { issuer })
    }

    /// The backends, in order of preference.
    pub fn backends(&self) -> &[Arc<dyn Backend>] {
        &self.backends
    }

    /// The backend of this name.
    pub fn backend(&self, name: &str) -> Option<&Arc<dyn Backend>> {
        self.backends.iter().find(|backend| backend.name() == name)
    }

    /// Runs what was bound, if the permit is for it.
    ///
    /// # Errors
    /// `drift` if the permit is for another plan or another runtime,
    /// `backend-unavailable` if the plan's backend is not here.
    pub async fn run(&self, bound: Bound, permit: Permit, ports: Ports) -> Result<RunReport, Problem> {
        if !Arc::ptr_eq(&permit.issuer, &self.issuer) {
            return Err(Problem::new(Code::Drift, "the permit was issued for another runtime"));
        }
        if permit.plan != bound.digest {
            let message = format!("the permit is for plan {}, not for {}", permit.plan.short(), bound.digest.short());
            return Err(Problem::new(Code::Drift, message));
        }
        let backend = self.backend(&bound.plan.backend).ok_or_else(|| {
            Problem::new(Code::BackendUnavailable, format!("there is no backend `{}` here", bound.plan.backend))
        })?;
        Ok(backend.run(Cleared::new(bound), ports).await)
    }
}
