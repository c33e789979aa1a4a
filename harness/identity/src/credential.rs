//! One credential: who a caller is, and by what they show it.

use std::fmt;
use std::str::FromStr;

use env_contracts::{Digest, Name, Principal, Version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest name of a credential that speaks for others, in characters: it
/// is recorded with each answer, behind the name of the door.
const MAX_FRONT_END: usize = 64;

/// The version tag of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum CredentialsSchema {
    #[default]
    #[serde(rename = "glovebox/credentials/v1")]
    V1,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stored {
    pub(crate) schema: CredentialsSchema,
    #[serde(default, rename = "credential", skip_serializing_if = "Vec::is_empty")]
    pub(crate) credentials: Vec<Credential>,
}

/// Who a caller is, as stored. Nothing in it is secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// What it is called, to be listed and removed by.
    pub name: Name,
    /// What its holder may do at a door.
    pub role: Role,
    /// Whose sessions, actions and artifacts it opens.
    pub tenant: Name,
    /// Whom it speaks for.
    pub user: Name,
    /// The agent that asks on the user's behalf: with the role `agent`, and
    /// with no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
    /// The agent's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<Version>,
    /// At which stage the agent's tasks are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<Name>,
    /// Whether its holder, a front end that knows its own users, may say for
    /// which of them it answers: by token, with the role `approver` alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_behalf: bool,
    /// When it was added, in milliseconds since 1970.
    pub created_ms: u64,
    /// From when on it is worth nothing, in milliseconds since 1970. Absent:
    /// it is good until it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// What shows that a caller is this one.
    pub by: By,
}

/// What shows who a caller is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum By {
    /// A token, of which only this digest is kept.
    Token {
        /// The digest of its text.
        sha256: Digest,
    },
    /// The kernel, which says whose process is at the other end of a socket of
    /// this machine.
    Peer {
        /// The user's number.
        uid: u32,
    },
}

/// What the holder of a credential may do at a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Asks for actions, and answers nothing.
    Agent,
    /// Looks.
    Observer,
    /// Looks, and decides what is asked.
    Approver,
    /// Looks, decides, steers, and stops everything.
    Operator,
    /// Runs actions for a control plane.
    Worker,
}

/// A credential to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct New {
    /// See [`Credential::name`].
    pub name: Name,
    /// See [`Credential::role`].
    pub role: Role,
    /// See [`Credential::tenant`].
    pub tenant: Name,
    /// See [`Credential::user`].
    pub user: Name,
    /// See [`Credential::agent`].
    pub agent: Option<Name>,
    /// See [`Credential::agent_version`].
    pub agent_version: Option<Version>,
    /// See [`Credential::stage`].
    pub stage: Option<Name>,
    /// See [`Credential::on_behalf`].
    pub on_behalf: bool,
    /// See [`Credential::expires_ms`].
    pub expires_ms: Option<u64>,
}

impl New {
    pub(crate) fn shown_by(self, by: By, now_ms: u64) -> Credential {
        let Self { name, role, tenant, user, agent, agent_version, stage, on_behalf, expires_ms } = self;
        let created_ms = now_ms;
        Credential { name, role, tenant, user, agent, agent_version, stage, on_behalf, created_ms, expires_ms, by }
    }
}

impl Credential {
    /// Who its holder is to the rest of the house.
    pub fn principal(&self) -> Principal {
        Principal {
            tenant: self.tenant.clone(),
            user: self.user.clone(),
            agent: self.agent.clone(),
            agent_version: self.agent_version.clone(),
            chain: Vec::new(),
        }
    }

    /// Whether it is worth anything at this time.
    pub fn in_force(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|expires| now_ms < expires)
    }

    /// Whether it can be at all. An agent's credential always names the agent,
    /// and nobody else's does: so it is never taken for a person's.
    pub(crate) fn check(&self) -> Result<(), String> {
        let agent = self.role == Role::Agent;
        if agent != self.agent.is_some() {
            let why = if agent { "names its agent" } else { "is no agent's" };
            return Err(format!("with the role `{}` {why}", self.role));
        }
        if !agent && self.agent_version.is_some() {
            return Err("has no version without an agent".into());
        }
        if !agent && self.stage.is_some() {
            return Err("has no stage without an agent".into());
        }
        if self.on_behalf && self.role != Role::Approver {
            return Err(format!("with the role `{}` speaks for nobody else", self.role));
        }
        // What the kernel says of a caller is said of them, and of nobody else.
        if self.on_behalf && !matches!(self.by, By::Token { .. }) {
            return Err("that speaks for others is shown by a token".into());
        }
        if self.on_behalf && self.name.as_str().len() > MAX_FRONT_END {
            return Err(format!("that speaks for others has a name of at most {MAX_FRONT_END} characters"));
        }
        if !self.in_force(self.created_ms) {
            return Err("ends after it begins".into());
        }
        Ok(())
    }
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Agent, Self::Observer, Self::Approver, Self::Operator, Self::Worker];

    /// Its word in files and on command lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Observer => "observer",
            Self::Approver => "approver",
            Self::Operator => "operator",
            Self::Worker => "worker",
        }
    }

    /// Whether its holder decides what is asked: people do, and no others.
    pub fn decides(self) -> bool {
        match self {
            Self::Approver | Self::Operator => true,
            Self::Agent | Self::Observer | Self::Worker => false,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or_else(|| {
            let all = Self::ALL.map(Self::as_str).join(", ");
            format!("`{text}` is no role; there are {all}")
        })
    }
}
