//! The Environment Contract: what the surroundings of an action must be.
//!
//! TOML for people, JSON on the wire. `example.toml` shows every clause.
//! A section that is absent asks for nothing: no folders, no network, no
//! secrets; limits that are absent are the ceiling's.

mod clause;
mod filesystem;
mod limits;
mod network;
mod parse;
mod posture;
mod scope;

pub use clause::{Clause, ClausePath};
pub use filesystem::{Access, DEFAULT_HIDE, Mount, Source};
pub use limits::{Cpus, Limits, Needs};
pub use network::{Egress, HostPattern, Ingress, Network, Protocol, Tls};
pub(crate) use parse::from_toml as contract_from_toml;
pub use parse::{ContractError, Position};
pub use posture::{
    Audit, AuditLevel, Cleanup, Data, Degrade, Delegation, Deterministic, Identity, Imports, Inject, Isolation, Kind,
    Label, Os, Package, Persistence, Platform, Secret, Sharing, Snapshot, State, Walls, Wasm,
};
pub use scope::{Bounds, Ceiling, MountBound, Scope};

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version tag of a contract, the only one there is so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ContractSchema {
    /// The first.
    #[default]
    #[serde(rename = "glovebox/contract/v1")]
    V1,
}

/// What the surroundings of an action must be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// The version of this format.
    pub schema: ContractSchema,
    /// Operating system, processor, image and container runtime.
    #[serde(default, skip_serializing_if = "is_default")]
    pub platform: Platform,
    /// The folders that exist; there are no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filesystem: Vec<Mount>,
    /// What may be reached, and what may reach in.
    #[serde(default, skip_serializing_if = "is_default")]
    pub network: Network,
    /// Secrets by reference, and where they are inserted. The tool never holds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
    /// On whose behalf outside systems are spoken to.
    #[serde(default, skip_serializing_if = "is_default")]
    pub identity: Identity,
    /// Programs and packages that must be there, with versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<Package>,
    /// What must be available at least.
    #[serde(default, skip_serializing_if = "is_default")]
    pub needs: Needs,
    /// What may be used at most.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: Limits,
    /// What outlives an action.
    #[serde(default, skip_serializing_if = "is_default")]
    pub state: State,
    /// Who shares an environment.
    #[serde(default, skip_serializing_if = "is_default")]
    pub isolation: Isolation,
    /// How confidential the data is that this may see.
    #[serde(default, skip_serializing_if = "is_default")]
    pub data: Data,
    /// What is recorded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub audit: Audit,
    /// What is taken away afterwards.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cleanup: Cleanup,
    /// What concerns WebAssembly alone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wasm: Wasm,
    /// Clauses that may be dropped where they can't be met. Only clauses that
    /// grant something can be: dropping one leaves the action with less.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub degrade: BTreeMap<ClausePath, Degrade>,
}

impl Contract {
    /// The folders that an environment keeps, where several actions share one:
    /// what was empty and is the tool's to write.
    pub fn kept(&self) -> impl Iterator<Item = &Mount> {
        let keeps = self.state.persistence == Persistence::Environment && self.isolation.sharing != Sharing::Action;
        let kept = move |mount: &&Mount| keeps && mount.source == Source::Scratch && mount.access == Access::Write;
        self.filesystem.iter().filter(kept)
    }

    /// Whether an action leaves anything that another finds.
    pub fn keeps(&self) -> bool {
        self.kept().next().is_some()
    }
}

/// For `skip_serializing_if`: what says nothing is not written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
