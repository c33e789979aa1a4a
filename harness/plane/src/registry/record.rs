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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every form ever stored is still read, and written as it was.
    #[test]
    fn stored_forms() {
        let v1 = include_str!("../../golden/registration.v1.json");
        let record: Record = serde_json::from_str(v1).unwrap();
        assert_eq!(
            (record.capability.to_string().as_str(), record.registered_ms),
            ("my.tool@1.2.0-rc.1", 1_800_000_000_000)
        );
        assert_eq!(serde_json::to_string_pretty(&record).unwrap(), v1.trim_end());
        assert!(serde_json::from_str::<Record>(&v1.replace("registration/v1", "registration/v2")).is_err());
    }
}
