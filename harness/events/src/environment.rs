//! What happens to an environment that actions share.

use env_contracts::{CapabilityRef, Digest, Id, Name, Sharing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What can happen to an environment. Its record lies beside its folders; the log
/// of the session in which it began tells its story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EnvironmentEvent {
    /// The first action that needed it came.
    Begun {
        /// How far it is shared.
        sharing: Sharing,
        /// For which capability.
        capability: CapabilityRef,
        /// The component or the record of the image.
        artifact: Digest,
    },
    /// A snapshot was taken of its folders.
    Snapshot {
        /// The snapshot.
        snapshot: Digest,
        /// The action that it was taken before or after. Absent: somebody wanted
        /// one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<Id>,
    },
    /// Its folders are those of a snapshot again.
    Restored {
        /// The snapshot.
        snapshot: Digest,
        /// Who wanted it.
        by: Name,
        /// What was another when the snapshot was taken, and was accepted.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        accepted: Vec<String>,
    },
    /// A process that ran an action in it is gone; what the action wrote stays.
    Interrupted {
        /// The action.
        action: Id,
    },
    /// It is over, and its folders are gone. Its snapshots stay for a while.
    Ended {
        /// Why.
        why: EnvironmentOver,
        /// Who wanted it, where somebody did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Name>,
    },
}

/// Why an environment is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EnvironmentOver {
    /// No action used it for too long.
    Idle,
    /// It is too old.
    Age,
    /// The task or the session that it was for is over.
    Done,
    /// Somebody ended it.
    Asked,
}

impl EnvironmentEvent {
    /// Its name, as it is printed.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Begun { .. } => "environment-begun",
            Self::Snapshot { .. } => "environment-snapshot",
            Self::Restored { .. } => "environment-restored",
            Self::Interrupted { .. } => "environment-interrupted",
            Self::Ended { .. } => "environment-ended",
        }
    }
}
