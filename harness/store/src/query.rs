//! What can be asked, and the shape of the answers.

use std::time::Duration;

use env_contracts::{Digest, Id, Name};
use glovebox_events::{ActionState, ApprovalState, AskedOf, Budget, Logged, QuestionState, Session, Task, TaskState};

use crate::Moved;

/// How often the file is looked at for commits of other processes while
/// somebody listens. A look costs microseconds; a person or a waiting agent
/// does not notice a twentieth of a second.
pub const WATCH_EVERY: Duration = Duration::from_millis(40);

/// The most entries of a page: what one answer may cost in memory.
pub const MAX_PAGE: u32 = 1000;

/// Some entries, and where to go on.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The entries.
    pub items: Vec<T>,
    /// What to pass as `after` for the next page. Absent: this is the last.
    pub next: Option<Id>,
}

/// Which actions. Empty fields take all.
#[derive(Debug, Clone, Default)]
pub struct ActionFilter {
    /// Of this session.
    pub session: Option<Id>,
    /// Of this task.
    pub task: Option<Id>,
    /// Of this turn; only with `task`.
    pub turn: Option<u64>,
    /// In one of these states.
    pub states: Vec<ActionState>,
    /// Asked for by this user.
    pub user: Option<Name>,
    /// Asked for by this very agent. All of the user's are looked through for
    /// them.
    pub agent: Option<Name>,
    /// Those after this action.
    pub after: Option<Id>,
    /// At most so many; 0 and what is above [`MAX_PAGE`] is [`MAX_PAGE`].
    pub limit: u32,
}

/// Which approvals. Empty fields take all.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    /// In one of these states.
    pub states: Vec<ApprovalState>,
    /// Of this session.
    pub session: Option<Id>,
    /// For this intent.
    pub intent: Option<Digest>,
    /// For what was asked for by this user.
    pub user: Option<Name>,
    /// For what was asked for by this very agent.
    pub agent: Option<Name>,
    /// Those after this approval.
    pub after: Option<Id>,
    /// At most so many; 0 and what is above [`MAX_PAGE`] is [`MAX_PAGE`].
    pub limit: u32,
}

/// Which grants. Empty fields take all.
#[derive(Debug, Clone, Default)]
pub struct GrantFilter {
    /// Those that hold at this moment, in milliseconds since 1970.
    pub live_at: Option<u64>,
    /// Given to this user.
    pub user: Option<Name>,
    /// Those that hold in this session: bound to it, or to none.
    pub session: Option<Id>,
}

/// Which sessions. Empty fields take all.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// Opened by this user.
    pub user: Option<Name>,
    /// Opened by this agent, by one that it called, or by no agent.
    pub agent: Option<Name>,
    /// In the tree below this one, itself included, wherever in a tree it is.
    pub root: Option<Id>,
    /// Those after this session.
    pub after: Option<Id>,
    /// At most so many; 0 and what is above [`MAX_PAGE`] is [`MAX_PAGE`].
    pub limit: u32,
}

/// Which tasks. Empty fields take all.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// Of this session.
    pub session: Option<Id>,
    /// Opened by this user.
    pub user: Option<Name>,
    /// Opened by this agent, by one that it called, or by no agent.
    pub agent: Option<Name>,
    /// Whether only those that are not over.
    pub open: bool,
    /// Those after this task.
    pub after: Option<Id>,
    /// At most so many; 0 and what is above [`MAX_PAGE`] is [`MAX_PAGE`].
    pub limit: u32,
}

/// Which questions. Empty fields take all.
#[derive(Debug, Clone, Default)]
pub struct QuestionFilter {
    /// In one of these states.
    pub states: Vec<QuestionState>,
    /// Of this task.
    pub task: Option<Id>,
    /// Of the tree of this session.
    pub root: Option<Id>,
    /// That these have to answer.
    pub to: Option<AskedOf>,
    /// Whose end no turn was told yet.
    pub untold: bool,
    /// Asked in the name of this user.
    pub user: Option<Name>,
    /// Asked by this agent, by one that it called, or by no agent.
    pub agent: Option<Name>,
    /// Those after this question.
    pub after: Option<Id>,
    /// At most so many; 0 and what is above [`MAX_PAGE`] is [`MAX_PAGE`].
    pub limit: u32,
}

/// Whose events.
#[derive(Debug, Clone)]
pub enum EventsOf {
    /// Everything in the log of a session.
    Session(Id),
    /// What happened to one action.
    Action(Id),
    /// What happened to a task and in it, in the log of its session: its own
    /// events, those of its questions and of its actions. For a task that
    /// nobody opened, the log of the first action or question in it.
    Task(Id),
}

/// Which events.
#[derive(Debug, Clone)]
pub struct EventFilter {
    /// Whose.
    pub of: EventsOf,
    /// Those with a higher number in their log.
    pub after: u64,
    /// At most so many; 0 and what is above [`MAX_PAGE`] is [`MAX_PAGE`].
    pub limit: u32,
}

/// An event, and when it was recorded beside those of all other logs.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its place in the order in which events were recorded. It rises from
    /// event to event: whoever saw one has seen all that will ever be below it.
    pub rank: u64,
    /// The event in its log.
    pub logged: Logged,
}

/// What a task is now, and what it has used so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskSeen {
    /// What it is. `None`: nobody opened one of this name; actions can belong
    /// to it all the same.
    pub record: Option<Task>,
    /// What it has used.
    pub used: TaskUse,
}

impl TaskSeen {
    /// In which way the task is not where somebody believes it to be who works
    /// for this version of its goal (`None`: the first), in this turn (`None`:
    /// whichever) and knows of this interrupt. While it is being stopped
    /// nothing begins in it.
    pub fn moved(&self, goal: Option<u32>, turn: Option<u64>, interrupt: Option<&Id>) -> Option<Moved> {
        let record = self.record.as_ref();
        let known = record.and_then(|task| task.interrupt.as_ref()).map(|interrupt| &interrupt.id);
        let open = record.and_then(|task| task.open_turn()).map(|turn| turn.number);
        if record.is_some_and(|task| task.state != TaskState::Open) {
            Some(Moved::Ended)
        } else if interrupt != known || record.is_some_and(|task| task.stopping().is_some()) {
            Some(Moved::Interrupted)
        } else if goal.unwrap_or(1) != record.map_or(1, |task| task.goal.version) {
            Some(Moved::Goal)
        } else if turn.is_some() && turn != open {
            Some(Moved::Turn)
        } else {
            record.and_then(|task| self.used.up(task)).map(Moved::Budget)
        }
    }
}

/// In which way a session is not where somebody believes it to be who knows of
/// this interrupt. `None` for the session: nobody opened it.
pub fn session_moved(session: Option<&Session>, interrupt: Option<&Id>) -> Option<Moved> {
    let newest = session.and_then(|session| session.interrupt.as_ref()).map(|interrupt| &interrupt.id);
    if session.is_some_and(|session| session.closed) {
        Some(Moved::Ended)
    } else if newest != interrupt || session.is_some_and(|session| session.stopping().is_some()) {
        Some(Moved::Interrupted)
    } else {
        None
    }
}

/// What a task has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskUse {
    /// Actions that began to run.
    pub actions: u64,
    /// How long they ran, in microseconds.
    pub run_us: u64,
    /// Bytes of artifacts that they made.
    pub artifact_bytes: u64,
    /// Bytes that they wrote to standard output and error.
    pub output_bytes: u64,
    /// Bytes that they sent and received outside.
    pub egress_bytes: u64,
    /// What they cost, in millionths of the operator's unit.
    pub cost_micros: u64,
    /// How long they waited for people, in microseconds.
    pub waiting_us: u64,
    /// Approvals and questions that people were asked.
    pub asks: u64,
}

impl TaskUse {
    /// The first part of a task's budget of which nothing is left.
    fn up(&self, task: &Task) -> Option<&'static str> {
        let Budget { actions, run_ms, output_bytes, egress_bytes, cost_micros } = task.budget;
        [
            ("actions", self.actions, actions),
            ("run_ms", self.run_us / 1000, run_ms),
            ("output_bytes", self.output_bytes, output_bytes),
            ("egress_bytes", self.egress_bytes, egress_bytes),
            ("cost_micros", self.cost_micros.saturating_add(task.spent.cost_micros), cost_micros),
        ]
        .into_iter()
        .find_map(|(part, used, most)| most.is_some_and(|most| used >= most).then_some(part))
    }
}

/// How often an intent was approved and declined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ApprovalTally {
    /// Yes, whether it was used or not.
    pub approved: u64,
    /// No.
    pub declined: u64,
}

/// Something whose time is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Whose.
    pub tenant: Name,
    /// What.
    pub what: DueOf,
}

/// What it is whose time is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DueOf {
    /// An approval.
    Approval {
        /// Of which action.
        action: Id,
        /// Which one.
        approval: Id,
    },
    /// A question.
    Question(Id),
}

/// What became of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Here it is.
    Bytes(Vec<u8>),
    /// It was erased; the digest is all that is left.
    Erased,
}
