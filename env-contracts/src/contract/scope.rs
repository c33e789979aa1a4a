//! What narrows a contract: the scope of a request, and the operator's ceiling.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Access, Audit, Cleanup, ContractSchema, Data, Delegation, Identity, Isolation, Limits, Mount, Network, Secret,
    Source, State, Wasm,
};
use crate::GuestPath;

/// What a request wants of the tool's contract: a contract of which only the
/// sections that are present count. A section that is absent stays as the
/// tool's; one that is present narrows it. What it has beyond the tool's
/// contract is a delta, which is never granted silently.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// The version of this format.
    #[serde(default)]
    pub schema: ContractSchema,
    /// The folders that are wanted, of those that the tool has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<Vec<Mount>>,
    /// The network that is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The secrets that are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Vec<Secret>>,
    /// The identity that is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Lower limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The persistence that is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// The sharing that is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The data label that is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    /// More audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// More cleanup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<Cleanup>,
    /// Stricter imports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wasm: Option<Wasm>,
}

/// What the operator allows at most: per install, per tenant, per agent.
/// The more specific only narrows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// The version of this format.
    pub schema: CeilingSchema,
    /// For everybody.
    pub install: Bounds,
    /// For the named tenants.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tenant: BTreeMap<String, Bounds>,
    /// For the named agents.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agent: BTreeMap<String, Bounds>,
}

/// The version tag of a ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum CeilingSchema {
    /// The first.
    #[default]
    #[serde(rename = "glovebox/ceiling/v1")]
    V1,
}

/// One ceiling, in the shape of a contract. A section that is absent allows
/// nothing of what it grants; limits must all be there in `install`, and an
/// absent limit of a tenant or agent is the install's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The kinds of folders, and what may be done with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filesystem: Vec<MountBound>,
    /// The network that may be asked for.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub network: Network,
    /// The secrets that may be asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
    /// The delegation that may be asked for.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub delegation: Delegation,
    /// The highest limits.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub limits: Limits,
    /// The widest persistence.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub state: State,
    /// The widest sharing.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub isolation: Isolation,
    /// The highest data label.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub data: Data,
    /// The least audit.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub audit: Audit,
    /// The least cleanup.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub cleanup: Cleanup,
    /// The laxest treatment of imports.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub wasm: Wasm,
}

/// A kind of folder that may be mounted. Inputs, artifacts, scratch and
/// outputs need no permission: they hold what the request itself brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MountBound {
    /// `workspace`, or `host:PATH` for that folder and those below it.
    pub source: Source,
    /// The most that may be done with it.
    pub access: Access,
    /// Where the guest may see it. Absent: anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestPath>,
}
