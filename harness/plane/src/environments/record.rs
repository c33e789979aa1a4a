//! What an environment is now, as it lies beside its folders.

use env_contracts::digest::Hasher;
use env_contracts::{CapabilityRef, Digest, EnvironmentIdentity, Id, Principal, Sharing};
use glovebox_events::EnvironmentOver;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the record, the only one there is so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum EnvironmentSchema {
    /// The first.
    #[default]
    #[serde(rename = "glovebox/environment/v1")]
    V1,
}

/// Who shares an environment, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shared {
    /// In whose name, and by which agent. Nobody else's actions come in.
    pub owner: Principal,
    /// How far it is shared.
    pub sharing: Sharing,
    /// The task, session or agent that shares it.
    pub by: String,
    /// The session in whose log its story is told: that in which it began.
    pub session: Id,
    /// The capability: no other's actions come in.
    pub capability: CapabilityRef,
}

impl Shared {
    /// What tells one environment from another: equal for the actions that share
    /// one. A new version of a capability finds what the one before left, and
    /// that is drift.
    pub(super) fn key(&self) -> Digest {
        let mut hasher = Hasher::new("glovebox/environment/v1");
        hasher.part("user", self.owner.user.as_str().as_bytes());
        hasher.part("agent", self.owner.agent.as_ref().map_or("", |agent| agent.as_str()).as_bytes());
        let sharing: &[u8] = match self.sharing {
            Sharing::Action => b"action",
            Sharing::Task => b"task",
            Sharing::Session => b"session",
            Sharing::Agent => b"agent",
        };
        hasher.part("sharing", sharing);
        hasher.part("by", self.by.as_bytes());
        hasher.part("capability", self.capability.name.as_str().as_bytes());
        hasher.finish()
    }
}

/// An environment: what actions that share one find of each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// The version of this format.
    pub schema: EnvironmentSchema,
    /// Its id.
    pub id: Id,
    /// Who shares it.
    #[serde(flatten)]
    pub shared: Shared,
    /// The component or image record that ran in it last.
    pub artifact: Digest,
    /// Which layer of folders holds: restoring a snapshot makes another.
    pub layer: u32,
    /// The snapshot that the layer began with. Absent: it began empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Digest>,
    /// The action that is in it, or was when its process died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Id>,
    /// How many actions ran in it.
    pub actions: u64,
    /// Files, folders and links in its folders, after the last action.
    pub entries: u64,
    /// Bytes of files in its folders, after the last action.
    pub bytes: u64,
    /// When it began, in milliseconds since 1970.
    pub begun_ms: u64,
    /// When an action last began or ended in it, in milliseconds since 1970.
    /// Looking at it is no use of it.
    pub used_ms: u64,
    /// It is over, and about to be gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<EnvironmentOver>,
}

impl Environment {
    /// What a plan is bound to.
    pub fn identity(&self) -> EnvironmentIdentity {
        EnvironmentIdentity { id: self.id.clone(), layer: self.layer }
    }
}

/// A snapshot with what it was taken of: what has to be so again for restoring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// The version of this format.
    pub schema: EnvironmentSchema,
    /// The environment.
    pub environment: Id,
    /// Who shared it.
    #[serde(flatten)]
    pub shared: Shared,
    /// The component or image record of its last action.
    pub artifact: Digest,
    /// The policy in force.
    pub policy: Digest,
    /// What lay in its folders: the sha256 of the tree.
    pub tree: Digest,
    /// Files, folders and links.
    pub entries: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// The action that it was taken before or after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Id>,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}
