//! The action plane: which capabilities there are, what exactly a request
//! would run, and the one service that every door goes through.
//!
//! What it is: the [`Registry`], planning (pure), and the [`ActionService`]
//! that carries an action from its request to its Observation.
//!
//! What it is not: it knows no engine and no daemon, only
//! [`Backend`](glovebox_runtime::Backend)s; it knows no door; it never runs
//! anything without a permit from the authority it was given.
//!
//! ```
//! use env_contracts::canon::{Canonical, ParseLimits};
//! use glovebox_plane::arguments::Schema;
//!
//! let schema = Schema::compile(&serde_json::json!({
//!     "type": "object",
//!     "required": ["path"],
//!     "properties": { "path": { "type": "string" } },
//! })).unwrap();
//! let check = |text: &str| schema.accept(&Canonical::parse(text.as_bytes(), ParseLimits::default()).unwrap());
//! assert!(check(r#"{ "path": "README.md" }"#).is_ok());
//! assert!(check(r#"{ "path": 5 }"#).is_err());
//! ```

pub mod arguments;
pub mod machine;
pub mod planning;

mod cards;
mod collect;
mod command;
mod environments;
mod ids;
mod live;
mod observe;
mod operator;
mod registry;
mod result;
mod service;
mod slots;
mod streams;
mod watch;
mod workspace;

pub use cards::{Card, CardAnswer, CardClause, CardOffer, CardPreview};
pub use environments::{Checkpoint, Environment, EnvironmentSchema, Shared};
pub use glovebox_workspace::{Change, Was};
pub use ids::{IdSource, TimeOrderedIds};
pub use observe::Refusal;
pub use operator::{Operator, OperatorSource};
pub use planning::NATIVE;
pub use registry::{Added, Builtin, Found, Health, Listed, Listing, Registry, Tool};
pub use service::{
    ActionService, ActionView, AnswerSource, Answered, Answerers, Answering, AskLimits, Asking, Attention, BudgetView,
    ChildQuestion, Choice, DecidedProposal, EnvironmentLimits, EnvironmentState, EnvironmentView, Explained, GoalView,
    GrantView, Halted, Happened, Holders, Interrupted, Interrupting, Key, LivePolicy, MAX_ANSWER, MAX_DEPTH, MAX_ENTRY,
    MAX_GRACE, MAX_OPTION, MAX_OUTPUT_CHUNK, MAX_QUESTION, MAX_TEXT, Made, NewQuestion, NewSession, NewTask,
    OpenAction, OpenTurn, OutputChunk, OutputMoved, Parts, People, PermissionDiff, PermissionRequest, PlanProposal,
    PlanStep, PolicySource, QuestionOption, QuestionReply, QuestionText, QuestionView, Recovered, Reply,
    ResultProposal, Said, Saying, Settings, Settled, Signed, SnapshotView, Submission, Submitted, Target, TaskContext,
    TaskView, Telling, Tended, Trace, TraceNode, TurnSchema, TurnStart,
};
pub use streams::OutputStream;
pub use watch::{Unwatched, Watch};
pub use workspace::limit_workspace;

/// The JSON of our own types, for digests: field order is declaration order
/// and maps are sorted, so it is the same every time.
pub(crate) fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|error| unreachable!("our own types always serialise: {error}"))
}
