//! The Plan: what exactly would run, and its two digests.
//!
//! The *intent digest* says "the same thing again"; the *plan digest* says
//! "this one, once". Both are domain-separated. Policy is in neither, because
//! it is evaluated again when the plan is claimed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Hasher;
use crate::{
    Access, CapabilityRef, Contract, Delegation, Digest, EnvironmentIdentity, GuestPath, Id, Name, Source, Version,
};

/// Who asks, as the channel knows it: never from the request's body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Principal {
    /// The tenant.
    pub tenant: Name,
    /// The user or service.
    pub user: Name,
    /// The agent, where one asks on the user's behalf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
    /// The agent's version, where the channel knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<Version>,
    /// The agents that handed the work down, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<Name>,
}

/// What exactly would run. Made without looking at any file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The action.
    pub action_id: Id,
    /// Which plan of the action this is, counted from 1: edited arguments
    /// are a new one.
    pub revision: u32,
    /// The capability.
    pub capability: CapabilityRef,
    /// The sha256 of the component or image as it was registered.
    pub artifact: Digest,
    /// The canonical arguments, the very bytes that the guest gets.
    pub arguments: String,
    /// The effective contract: the tool's, narrowed by the request, inside
    /// the ceiling, every limit filled in.
    pub contract: Contract,
    /// What the contract lets it do to the world, derived.
    pub effects: DerivedEffects,
    /// Who asks.
    pub principal: Principal,
    /// The backend that would run it.
    pub backend: String,
}

/// What a contract lets an action do to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DerivedEffects {
    /// Nothing: no writable folders but its own, no network, no secrets.
    None,
    /// A private layer over a workspace; somebody applies it or not.
    Workspace,
    /// Anything else.
    External,
}

impl DerivedEffects {
    /// What a contract lets an action do: *none* only without writable folders
    /// but its own, network, secrets and delegated identity; *workspace* with
    /// overlays, and with folders that other actions find again; else
    /// *external*.
    pub fn of(contract: &Contract) -> Self {
        let outside = !contract.network.egress.is_empty()
            || !contract.network.ingress.is_empty()
            || !contract.secrets.is_empty()
            || contract.identity.delegation != Delegation::None;
        let own = |source: &Source| matches!(source, Source::Scratch | Source::Outputs);
        let changes =
            |access| contract.filesystem.iter().any(move |mount| mount.access == access && !own(&mount.source));
        if outside || changes(Access::Write) {
            Self::External
        } else if changes(Access::Overlay) || contract.keeps() {
            Self::Workspace
        } else {
            Self::None
        }
    }
}

/// What binding found: the facts that a plan alone does not know.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoundFacts {
    /// The digests of the inputs, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<Name, Digest>,
    /// The digests of path arguments that name regular files, by guest path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<String, Digest>,
    /// The workspace, by identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceIdentity>,
    /// Host folders, by guest path: device and inode.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<GuestPath, (u64, u64)>,
    /// The environment whose folders it finds, where it keeps any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentIdentity>,
    /// What a server that has the tool says of it now, where that is not what
    /// was registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drifted: Option<Drifted>,
}

/// A tool that is not what was registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drifted {
    /// The sha256 of what it is now: the component, or all that its server says
    /// of it.
    pub sha256: Digest,
    /// What differs, for people. The server's words are escaped, and cut only
    /// where it is said.
    pub changed: Vec<String>,
}

/// Which folder a workspace is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceIdentity {
    /// Its path on the host when it was opened.
    pub path: String,
    /// Its device.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// When it was made, in nanoseconds since 1970, where the file system
    /// says: inodes are given again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub born_ns: Option<u64>,
    /// What the guest may do with it.
    pub access: Access,
}

impl Plan {
    /// The digest of "the same thing again".
    pub fn intent(&self, facts: &BoundFacts) -> Digest {
        let mut hasher = Hasher::new("glovebox/intent/v1");
        hasher
            .part("capability", self.capability.to_string().as_bytes())
            .part("artifact", self.artifact.as_str().as_bytes())
            .part("arguments", self.arguments.as_bytes())
            .part("contract", &json(&self.contract))
            .part("facts", &json(facts))
            .part("principal", &json(&self.principal));
        hasher.finish()
    }

    /// The digest of "this one, once".
    pub fn digest(&self, intent: &Digest) -> Digest {
        let mut hasher = Hasher::new("glovebox/plan/v1");
        hasher
            .part("intent", intent.as_str().as_bytes())
            .part("action", self.action_id.as_str().as_bytes())
            .part("revision", &self.revision.to_be_bytes());
        hasher.finish()
    }
}

/// The JSON of our own types: field order is declaration order and maps are
/// sorted, so it is the same every time.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|error| unreachable!("contract types always serialise: {error}"))
}
