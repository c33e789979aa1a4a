//! What an action looks like from the protocol: pure functions from the state
//! of an action to what a client is told, without tasks and with them.

use env_contracts::{Code, OutcomeKind};
use glovebox_events::{Action, ActionState};

/// The two images of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct McpState {
    /// For a client whose request waits for the result.
    pub plain: Plain,
    /// For a client that comes back for a task.
    pub task: TaskImage,
}

/// What becomes of the request of a client without tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plain {
    /// It stays open.
    Open,
    /// A person has to decide, and the client is told where.
    Asked,
    /// It gets a result.
    Answered {
        /// Whether the result says `isError`.
        error: bool,
    },
    /// It gets a JSON-RPC error: nothing that a model does helps.
    Broke,
}

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskImage {
    /// `working`.
    Working,
    /// `input_required`.
    Asked,
    /// `completed`, with a result.
    Completed {
        /// Whether the result says `isError`.
        error: bool,
    },
    /// `failed`, with a JSON-RPC error.
    Failed,
    /// `cancelled`.
    Cancelled,
}

/// What a client is told of an action.
pub fn project(action: &Action) -> McpState {
    match (action.state, &action.end) {
        (ActionState::Requested | ActionState::Validated | ActionState::Authorized | ActionState::Running, _) => {
            McpState { plain: Plain::Open, task: TaskImage::Working }
        }
        (ActionState::WaitingApproval, _) => McpState { plain: Plain::Asked, task: TaskImage::Asked },
        (ActionState::Succeeded | ActionState::Failed | ActionState::Cancelled, Some(end)) => ended(end.kind, end.code),
        // An end without one is nothing that a model could act on.
        (ActionState::Succeeded | ActionState::Failed | ActionState::Cancelled, None) => BROKE,
    }
}

const BROKE: McpState = McpState { plain: Plain::Broke, task: TaskImage::Failed };

/// What a client is told of an end.
///
/// Whoever withdrew the request itself is told nothing, which is the
/// transport's to see to; whom somebody else stopped gets an answer.
pub fn ended(kind: OutcomeKind, code: Option<Code>) -> McpState {
    let (plain, task) = match (kind, code) {
        (_, None) => (Plain::Answered { error: false }, TaskImage::Completed { error: false }),
        (OutcomeKind::BackendError | OutcomeKind::BackendUnavailable, Some(code)) if is_ours(code) => return BROKE,
        (OutcomeKind::Interrupted, Some(_)) => (Plain::Answered { error: true }, TaskImage::Cancelled),
        (
            OutcomeKind::Completed
            | OutcomeKind::Partial
            | OutcomeKind::Unknown
            | OutcomeKind::SchemaRejected
            | OutcomeKind::ContractUnsatisfied
            | OutcomeKind::PolicyDenied
            | OutcomeKind::Declined
            | OutcomeKind::Expired
            | OutcomeKind::Unattended
            | OutcomeKind::Unsupported
            | OutcomeKind::AskLimited
            | OutcomeKind::TimedOut
            | OutcomeKind::LimitHit
            | OutcomeKind::Drift
            | OutcomeKind::SandboxViolation
            | OutcomeKind::Busy
            | OutcomeKind::WorkerLost
            | OutcomeKind::BackendError
            | OutcomeKind::BackendUnavailable,
            Some(_),
        ) => (Plain::Answered { error: true }, TaskImage::Completed { error: true }),
    };
    McpState { plain, task }
}

/// Whether a failure is the server's own, whoever asked for what.
pub(crate) fn is_ours(code: Code) -> bool {
    code.http_status() >= 500
}
