//! What an audit found.

use std::fmt;

use env_contracts::{Digest, Id};
use glovebox_events::LogKey;
use serde::Serialize;

/// The most findings that a report lists. Who has so many needs a backup, not
/// a longer list.
const MAX_FINDINGS: usize = 100;

/// What an audit looked at and what it found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// The database.
    pub database: Id,
    /// How many logs were read.
    pub logs: u64,
    /// How many events.
    pub events: u64,
    /// How many payloads were compared with their digests.
    pub payloads: u64,
    /// How many were erased, which the log says.
    pub erased: u64,
    /// How many faults there are.
    pub faults: u64,
    /// The first of them.
    pub findings: Vec<AuditFinding>,
}

impl AuditReport {
    /// Whether everything is as it was recorded.
    pub fn sound(&self) -> bool {
        self.faults == 0
    }
}

/// A fault and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditFinding {
    /// In whose log. Absent: it is not known any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogKey>,
    /// At which event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// What.
    #[serde(flatten)]
    pub fault: AuditFault,
}

/// What can be wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "fault", rename_all = "kebab-case")]
pub enum AuditFault {
    /// The event or its place is not what was sealed.
    Edited,
    /// Events are missing before this one.
    Gap {
        /// The number that was expected.
        expected: u64,
    },
    /// The log ends elsewhere than it says.
    HeadMismatch,
    /// Events of a log that is not there any more.
    LogLost {
        /// How many.
        events: u64,
    },
    /// The log ends before the checkpoint.
    Truncated {
        /// Where the checkpoint saw it.
        checkpoint: u64,
    },
    /// The event that the checkpoint saw was another one.
    Rewritten,
    /// The checkpoint is of another database.
    OtherDatabase,
    /// A payload is not what its digest says.
    PayloadChanged {
        /// Of which action.
        action: Id,
        /// The digest.
        sha256: Digest,
    },
    /// A payload that an event names is missing, or empty although the log
    /// does not say that it was erased.
    PayloadLost {
        /// Of which action.
        action: Id,
        /// The digest.
        sha256: Digest,
    },
    /// A payload of a task is not what its digest says.
    TextChanged {
        /// Of which task.
        task: Id,
        /// The digest.
        sha256: Digest,
    },
    /// A payload of a task that an event names is missing, or empty although
    /// the log does not say that it was erased.
    TextLost {
        /// Of which task.
        task: Id,
        /// The digest.
        sha256: Digest,
    },
}

impl fmt::Display for AuditFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(log) = &self.log {
            write!(f, "session `{}` of tenant `{}`", log.session, log.tenant)?;
            if let Some(seq) = self.seq {
                write!(f, ", event {seq}")?;
            }
            f.write_str(": ")?;
        }
        match &self.fault {
            AuditFault::Edited => f.write_str("not what was recorded"),
            AuditFault::Gap { expected } => write!(f, "events from {expected} up to it are missing"),
            AuditFault::HeadMismatch => f.write_str("the log does not end where it says"),
            AuditFault::LogLost { events } => write!(f, "{events} events belong to a log that is missing"),
            AuditFault::Truncated { checkpoint } => write!(f, "cut off: the checkpoint saw event {checkpoint}"),
            AuditFault::Rewritten => f.write_str("written anew: the checkpoint saw another event here"),
            AuditFault::OtherDatabase => f.write_str("the checkpoint was made of another database"),
            AuditFault::PayloadChanged { action, sha256 } => {
                write!(f, "content {} of action `{action}` was changed", sha256.short())
            }
            AuditFault::PayloadLost { action, sha256 } => {
                write!(f, "content {} of action `{action}` is missing, and was not erased", sha256.short())
            }
            AuditFault::TextChanged { task, sha256 } => {
                write!(f, "text {} of task `{task}` was changed", sha256.short())
            }
            AuditFault::TextLost { task, sha256 } => {
                write!(f, "text {} of task `{task}` is missing, and was not erased", sha256.short())
            }
        }
    }
}

/// Findings as they come.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) faults: u64,
    pub(crate) listed: Vec<AuditFinding>,
}

impl Findings {
    pub(crate) fn push(&mut self, log: Option<&LogKey>, seq: Option<u64>, fault: AuditFault) {
        self.faults += 1;
        if self.listed.len() < MAX_FINDINGS {
            self.listed.push(AuditFinding { log: log.cloned(), seq, fault });
        }
    }
}
