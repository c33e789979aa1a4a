//! Environments as plans and Observations name them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, Id};

/// Which environment an action finds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentIdentity {
    /// Its id.
    pub id: Id,
    /// Which of its layers: each time a snapshot is restored there is another.
    pub layer: u32,
}

/// The environment that an action shared with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedEnvironment {
    /// Its id.
    pub id: Id,
    /// The snapshot that was taken before or after the run: what it can be
    /// restored from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Digest>,
}
