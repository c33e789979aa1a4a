//! What is written down when a tool is registered.

use env_contracts::{CapabilityRef, Digest};
use serde::{Deserialize, Serialize};

/// What was registered under a name and version. It stays when the tool is
/// removed, so that the name never comes to mean other bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub(super) schema: RecordSchema,
    pub(super) capability: CapabilityRef,
    /// The sha256 of the component.
    pub(super) artifact: Digest,
    /// The sha256 of the manifest's text.
    pub(super) manifest: Digest,
    /// When it was registered, in milliseconds since 1970.
    pub(super) registered_ms: u64,
}

/// The version tag of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RecordSchema {
    #[serde(rename = "glovebox/registration/v1")]
    V1,
}
