//! What a session is now, and what happens to it.

use env_contracts::{Digest, Id, Name, Principal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a session is now. Sessions form trees: a child belongs to an agent that
/// another agent called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Its id.
    pub id: Id,
    /// Who opened it, with the chain of those that handed the work down.
    pub principal: Principal,
    /// The session that it was called from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Id>,
    /// The topmost session of its tree; its own id where it has no parent.
    pub root: Id,
    /// Whether nothing new can begin in it.
    pub closed: bool,
    /// How many events made it what it is: what compare-and-set compares.
    pub version: u64,
    /// The newest interrupt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<Interrupt>,
    /// When it was opened, in milliseconds since 1970.
    pub opened_ms: u64,
    /// When it last changed, in milliseconds since 1970.
    pub changed_ms: u64,
}

impl Session {
    /// The interrupt that was received and has not stopped everything yet.
    pub fn stopping(&self) -> Option<&Interrupt> {
        self.interrupt.as_ref().filter(|interrupt| interrupt.stopped_ms.is_none())
    }
}

/// Somebody wants work to stop. That this was received and that everything has
/// stopped are two facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interrupt {
    /// Its id.
    pub id: Id,
    /// How far it reaches.
    pub reach: Reach,
    /// Who.
    pub by: Name,
    /// When it was received, in milliseconds since 1970.
    pub at_ms: u64,
    /// Until when what runs may end by itself, in milliseconds since 1970. The
    /// moment of the interrupt where it is a hard one.
    pub grace_ms: u64,
    /// The reason: a payload of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Digest>,
    /// When nothing ran any more, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ms: Option<u64>,
}

/// How far an interrupt reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// One action.
    Action,
    /// The turn that a task is in.
    Turn,
    /// A task, which is over with it.
    Task,
    /// Everything in a session.
    Session,
    /// Everything in a session and in those below it.
    Tree,
}

/// What can happen to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SessionEvent {
    /// Somebody opened it.
    Opened {
        /// Who.
        principal: Principal,
        /// The session that it was called from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<Id>,
        /// The topmost session of its tree.
        root: Id,
    },
    /// Somebody wants everything in it to stop: received.
    Interrupted {
        /// Who, when, why, and how.
        interrupt: Interrupt,
    },
    /// Nothing in it runs any more.
    Stopped {
        /// Which interrupt that was.
        interrupt: Id,
    },
    /// Nothing new can begin in it.
    Closed {
        /// Who closed it.
        by: Name,
    },
}

impl SessionEvent {
    /// Its name, as it is printed.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Opened { .. } => "session-opened",
            Self::Interrupted { .. } => "session-interrupted",
            Self::Stopped { .. } => "session-stopped",
            Self::Closed { .. } => "session-closed",
        }
    }
}
