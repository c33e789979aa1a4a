//! The clauses about identity, state and care: platform, secrets, packages,
//! persistence, isolation, data label, audit, cleanup.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HostPattern;
use crate::{Digest, Moment, Name, Span};

/// Where the action must run. Absent: anywhere.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Platform {
    /// The operating system that the tool sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<Os>,
    /// Processors of which the host must have one: `x86_64`, `aarch64`, or `wasm32`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<Vec<String>>,
    /// The image, by digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Digest>,
    /// The container runtime, such as `runc` or `runsc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Name>,
}

/// The operating system that a tool sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Os {
    /// The interfaces of WASI.
    Wasi,
    /// A Linux system.
    Linux,
}

/// A secret and the one place where it is inserted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// What the operator calls it. The value is never in a contract.
    #[serde(rename = "ref")]
    pub reference: Name,
    /// Where it is inserted.
    pub inject: Inject,
}

/// Where a secret is inserted: into one header of matching requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inject {
    /// The host.
    pub host: HostPattern,
    /// The HTTP method. Absent: any that egress allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// A prefix of the path. Absent: any that egress allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The header's name, in lower case.
    pub header: String,
    /// The header's value, with `{secret}` where the value goes.
    pub format: String,
}

/// On whose behalf outside systems are spoken to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Whose identity is passed on.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub delegation: Delegation,
    /// The audiences for which tokens may be asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audiences: Vec<String>,
}

/// Whose identity is passed on, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Delegation {
    /// Nobody's.
    #[default]
    None,
    /// The agent's own.
    Agent,
    /// The user's, through the agent.
    User,
}

/// A program or package that must be there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Whether it is a program on the path or a package of the image.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// The versions that will do, such as `>=3.11, <4`. Absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Whether a needed thing is a program or a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A program, found by a probe.
    Tool,
    /// A package, found in the image's bill of materials.
    Package,
}

/// What outlives an action.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Whether writable layers are kept between actions of one environment.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub persistence: Persistence,
    /// When a snapshot is taken.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub snapshot: Snapshot,
}

/// Whether writable layers are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Persistence {
    /// Gone after the action.
    #[default]
    None,
    /// Kept while the environment lives.
    Environment,
}

/// When a snapshot of writable layers is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Snapshot {
    /// Never.
    #[default]
    Never,
    /// Before every action.
    Before,
    /// After every action, however it ends.
    After,
}

/// Who shares an environment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Isolation {
    /// How far one environment is shared.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub sharing: Sharing,
    /// How many walls stand between the tool and the host, at least.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub walls: Walls,
}

/// A number of walls, each of which holds if the others have a hole: 1, the
/// engine or the container alone; 2, a process around it that the kernel shuts
/// in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Walls(#[schemars(range(min = 1, max = 2))] pub u8);

impl Default for Walls {
    fn default() -> Self {
        Self(1)
    }
}

/// How far one environment is shared, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// Every action has its own.
    #[default]
    Action,
    /// The actions of a task share one.
    Task,
    /// The tasks of a session share one.
    Session,
    /// The sessions of an agent share one.
    Agent,
}

/// How confidential data is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// The highest label of what the action may see; what it makes carries it.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub label: Label,
}

/// A data label, from open to secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// For everybody.
    Public,
    /// For the organisation.
    #[default]
    Internal,
    /// For those who need it.
    Confidential,
    /// For those who are named.
    Restricted,
}

/// What is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// How much of an action is recorded.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub level: AuditLevel,
    /// How long output and artifacts are kept at least. Absent: the store's
    /// own retention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retain: Option<Span>,
}

/// How much of an action is recorded, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuditLevel {
    /// What was asked and how it ended.
    #[default]
    Outcome,
    /// And all its output, as an artifact.
    Output,
}

/// What is taken away afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cleanup {
    /// Whether scratch folders are removed when the action ends.
    pub scratch: bool,
}

impl Default for Cleanup {
    fn default() -> Self {
        Self { scratch: true }
    }
}

/// What concerns WebAssembly alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wasm {
    /// What happens to imports that the contract does not grant.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub imports: Imports,
    /// The same clock and the same random numbers in every run. Absent: the
    /// real ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deterministic: Option<Deterministic>,
}

/// A clock and random numbers that are the same in every run: for replays. It
/// grants less than their absence, whatever seed and moment are chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deterministic {
    /// What all random numbers follow from.
    pub seed: u64,
    /// When it seems to begin.
    #[serde(default = "Deterministic::beginning")]
    pub time: Moment,
}

impl Deterministic {
    /// When it seems to begin if nothing else is said: the first second of
    /// 2000, which no program takes for a clock that was never set.
    pub fn beginning() -> Moment {
        Moment::Y2000
    }
}

/// What happens to imports that a contract does not grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Imports {
    /// The component is refused.
    #[default]
    Refuse,
    /// Calls are answered with access-denied.
    Stub,
}

/// Whether a clause may be dropped where it can't be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Degrade {
    /// It may, and the Observation says so.
    Allow,
}
