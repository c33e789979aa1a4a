//! Events as this door shows them: a pure function from what is recorded.

use env_contracts::{Code, Id, Observation};
use glovebox_events::{Logged, TaskEvent, Told, What};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::auth::Sight;

/// What an event is about, for whoever shows it. It is the `event` of the
/// stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Words: of a model, or that a running action writes.
    Text,
    /// How far something is. Merged: only the newest counts.
    Progress,
    /// A step on the way of an action.
    Tool,
    /// Something began, changed its state or ended.
    State,
    /// People are asked, or were.
    Approval,
    /// Something was made.
    Artifact,
    /// Something went wrong.
    Error,
    /// What something used.
    Usage,
    /// Events are not here; a snapshot of what there is now stands in for them.
    Gap,
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Progress => "progress",
            Self::Tool => "tool",
            Self::State => "state",
            Self::Approval => "approval",
            Self::Artifact => "artifact",
            Self::Error => "error",
            Self::Usage => "usage",
            Self::Gap => "gap",
        }
    }
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Wire {
    /// Its number in the log of the session: from 1, dense. Absent: it is in no
    /// log, and nothing is lost with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seq: Option<u64>,
    pub(crate) kind: Kind,
    /// What happened, in a word.
    pub(crate) name: &'static str,
    /// The session.
    pub(crate) session: Id,
    /// When, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at_ms: Option<u64>,
    /// To which action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) action: Option<Id>,
    /// To which task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<Id>,
    /// What is known of it. Absent for who sees that something happens, and not
    /// what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
}

/// The events that a recorded one is, in their order. The last one has its
/// number, so that a stream which breaks before it begins anew with the first.
///
/// `end` is what came of the action, where it ended and its Observation was
/// not erased.
pub(crate) fn project(logged: &Logged, end: Option<&Observation>, sight: Sight) -> Vec<Wire> {
    let what = &logged.event.what;
    let beside = |kind: Kind, name: &'static str, data: Value| Wire {
        seq: None,
        kind,
        name,
        session: logged.log.session.clone(),
        at_ms: Some(logged.event.at_ms),
        action: logged.event.action.clone(),
        task: task(what),
        data: match sight {
            Sight::Outlines => None,
            Sight::Objects => Some(unoffered(data)),
            Sight::All => Some(data),
        },
    };
    let mut all = Vec::new();
    if let (What::Ended { end: ended }, Some(end)) = (what, end) {
        all.extend(end.artifacts.iter().map(|artifact| beside(Kind::Artifact, "artifact", json!(artifact))));
        all.push(beside(Kind::Usage, "usage", json!({ "usage": end.usage, "times": end.times })));
        if let Some(code) = ended.code {
            all.push(beside(Kind::Error, code_name(code), json!(end.outcome)));
        }
    }
    // Of what belongs to a whole kind, the record says it all.
    let data = if let What::Ended { end } = what { json!(end) } else { json!(what) };
    all.push(Wire { seq: Some(logged.seq), ..beside(kind(what), what.name(), data) });
    all
}

/// Without what people are offered, and what they granted.
fn unoffered(mut data: Value) -> Value {
    for (of, part) in [("approval", "offers"), ("grant", "matcher")] {
        if let Some(of) = data.get_mut(of).and_then(Value::as_object_mut) {
            of.remove(part);
        }
    }
    data
}

const fn code_name(code: Code) -> &'static str {
    code.as_str()
}

/// Every event is of exactly one kind.
fn kind(what: &What) -> Kind {
    match what {
        What::Planned { .. }
        | What::Decided { .. }
        | What::Bound { .. }
        | What::Previewed { .. }
        | What::Claimed { .. }
        | What::Reaffirmed { .. } => Kind::Tool,
        What::Requested { .. }
        | What::StopAsked { .. }
        | What::HolderLost { .. }
        | What::Ended { .. }
        | What::Session { .. }
        | What::Environment { .. }
        | What::Halted { .. }
        | What::Released { .. }
        | What::PolicyLoaded { .. }
        | What::Erased { .. } => Kind::State,
        What::Reviewed { .. }
        | What::ApprovalOpened { .. }
        | What::ApprovalAnswered { .. }
        | What::ApprovalExpired { .. }
        | What::ApprovalWithdrawn { .. }
        | What::Drifted { .. }
        | What::GrantMade { .. }
        | What::GrantRevoked { .. }
        | What::Question { .. } => Kind::Approval,
        What::PolicyRefused { .. } => Kind::Error,
        What::Task { event, .. } => match event {
            TaskEvent::Told { entry } => match entry.what {
                Told::Text | Told::Plan | Told::Todo | Told::Outcome | Told::Feedback => Kind::Text,
                Told::Progress => Kind::Progress,
                Told::ModelCall { .. } => Kind::Usage,
                Told::Verified { .. } => Kind::State,
            },
            _ => Kind::State,
        },
    }
}

fn task(what: &What) -> Option<Id> {
    match what {
        What::Requested { task, .. } | What::Task { task, .. } | What::Question { task, .. } => Some(task.clone()),
        _ => None,
    }
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
