//! Artifacts: bytes that are referred to, never inlined when large.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, Label};

/// A reference to bytes that an action made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// What it is asked for by: `artifact/ACTION/N`.
    pub uri: String,
    /// The sha256 of its bytes: an attribute, not a key to ask by.
    pub sha256: Digest,
    /// Its length in bytes.
    pub size: u64,
    /// Its media type, guessed from name and content; untrusted.
    pub media_type: String,
    /// The name its maker gave it; untrusted, never used as a path.
    pub name: String,
    /// What its maker says it is; untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How confidential it is: the highest label of what its maker could see.
    pub label: Label,
}
