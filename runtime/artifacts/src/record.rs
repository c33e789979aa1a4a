//! What the index knows of an artifact, and its stored form.

use env_contracts::{Artifact, Digest, Label};
use serde::{Deserialize, Serialize};

use crate::uri::ArtifactUri;

/// What the maker of an artifact says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactMeta {
    /// The name its maker gave it. Untrusted: it is kept and shown (escaped),
    /// but never used as a path here.
    pub name: String,
    /// What made it: a capability as `name@version`, or a part of Glovebox.
    pub producer: String,
    /// Its media type, if the maker said so; else it is guessed.
    pub media_type: Option<String>,
    /// How confidential it is.
    pub label: Label,
    /// When it was made, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// Until when retention must not drop it, in milliseconds since the Unix
    /// epoch: a contract can demand that output is kept.
    pub keep_until_ms: Option<u64>,
}

impl ArtifactMeta {
    /// A description with the default label, a guessed media type and no
    /// demand on retention.
    pub fn new(name: impl Into<String>, producer: impl Into<String>, created_ms: u64) -> Self {
        Self {
            name: name.into(),
            producer: producer.into(),
            media_type: None,
            label: Label::default(),
            created_ms,
            keep_until_ms: None,
        }
    }
}

/// An artifact as the index holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactRecord {
    /// What it is asked for by.
    pub uri: ArtifactUri,
    /// The sha256 of what is stored.
    pub sha256: Digest,
    /// The length of what is stored, in bytes.
    pub size: u64,
    /// Its media type. Untrusted: nothing may be rendered because of it.
    pub media_type: String,
    /// The name its maker gave it. Untrusted.
    pub name: String,
    /// How confidential it is.
    pub label: Label,
    /// What made it.
    pub producer: String,
    /// When it was made, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// Until when retention must not drop it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_until_ms: Option<u64>,
}

impl ArtifactRecord {
    /// The reference that goes over the wire.
    pub fn reference(&self) -> Artifact {
        Artifact {
            uri: self.uri.to_string(),
            sha256: self.sha256.clone(),
            size: self.size,
            media_type: self.media_type.clone(),
            name: self.name.clone(),
            description: None,
            label: self.label,
        }
    }

    /// The bytes of its index entry.
    pub(crate) fn to_entry(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&Entry { schema: Schema::V1, artifact: self.clone() })
    }

    /// Reads an index entry; `None` if it is not one of ours, or not this
    /// one's. A later version may add fields: they are ignored.
    pub(crate) fn from_entry(uri: &ArtifactUri, bytes: &[u8]) -> Option<Self> {
        let entry: Entry = serde_json::from_slice(bytes).ok()?;
        (entry.artifact.uri == *uri).then_some(entry.artifact)
    }
}

/// The stored form.
#[derive(Serialize, Deserialize)]
struct Entry {
    schema: Schema,
    artifact: ArtifactRecord,
}

#[derive(Serialize, Deserialize)]
enum Schema {
    #[serde(rename = "glovebox/artifact/v1")]
    V1,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every form ever stored is still read.
    #[test]
    fn stored_forms() {
        let v1 = include_bytes!("../golden/entry.v1.json");
        let uri: ArtifactUri = "artifact/action-1/2".parse().unwrap();
        let record = ArtifactRecord::from_entry(&uri, v1).unwrap();
        assert_eq!(
            (record.name.as_str(), record.size, record.keep_until_ms),
            ("a \"b\"\n.csv", 12, Some(1_800_000_000_000))
        );
        assert_eq!(record.to_entry().unwrap(), v1.trim_ascii_end());

        assert!(
            ArtifactRecord::from_entry(&ArtifactUri::new("action-2", 2), v1).is_none(),
            "an entry at another place"
        );
        let newer = String::from_utf8_lossy(v1).replace("artifact/v1", "artifact/v2");
        assert!(ArtifactRecord::from_entry(&uri, newer.as_bytes()).is_none(), "an unknown schema");
        assert!(ArtifactRecord::from_entry(&uri, &v1[..v1.len() / 2]).is_none(), "half an entry");
    }
}
