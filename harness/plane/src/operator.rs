//! What the operator set, as it is now.

use std::sync::Arc;

use env_contracts::{Ceiling, Problem, Profiles};

/// What the operator set for all who ask.
#[derive(Debug, Clone)]
pub struct Operator {
    /// What is allowed at most.
    pub ceiling: Ceiling,
    /// Which capabilities an agent may see and run.
    pub profiles: Profiles,
}

/// Where that comes from. It is asked at every step that it decides: what an
/// operator takes away is gone for whatever was not claimed by then, also in a
/// process that lives long.
pub trait OperatorSource: Send + Sync {
    /// What is in force.
    ///
    /// # Errors
    /// `ceiling-invalid`, `profiles-invalid`: what it came to can't be read, and
    /// nothing older stands in for it.
    fn current(&self) -> Result<Arc<Operator>, Problem>;
}

impl Operator {
    /// A source of this, which never changes.
    pub fn fixed(self) -> Arc<dyn OperatorSource> {
        Arc::new(Fixed(Arc::new(self)))
    }
}

struct Fixed(Arc<Operator>);

impl OperatorSource for Fixed {
    fn current(&self) -> Result<Arc<Operator>, Problem> {
        Ok(Arc::clone(&self.0))
    }
}
