//! The commands, and what can stand in their way.

use std::pin::Pin;

use env_contracts::{CapabilityName, Digest, Id, Name, Principal, Problem};
use glovebox_events::{Action, Approval, Event, Grant, Halt, LogKey, Logged, Owner, Payload, Question, Session, Task};
use tokio::sync::watch;

use crate::{
    ActionFilter, ApprovalFilter, ApprovalTally, Content, Due, EventFilter, GrantFilter, Page, QuestionFilter,
    Recorded, SessionFilter, TaskFilter, TaskSeen,
};

/// A future that can be kept in a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What happened and what it made of things: written together or not at all.
#[derive(Debug, Clone)]
pub struct Commit {
    /// In whose log.
    pub log: LogKey,
    /// What happened, in this order.
    pub events: Vec<Event>,
    /// What the events name.
    pub payloads: Vec<Payload>,
    /// What things are now.
    pub records: Vec<Record>,
    /// What must hold for any of it to be written.
    pub conditions: Vec<Condition>,
}

impl Commit {
    /// Nothing yet, for this log.
    pub fn new(log: LogKey) -> Self {
        Self { log, events: Vec::new(), payloads: Vec::new(), records: Vec::new(), conditions: Vec::new() }
    }
}

/// The new state of one thing, written over the old.
#[derive(Debug, Clone)]
pub enum Record {
    /// Of an action. It has to belong to the log of the commit.
    Action(Box<Action>),
    /// Of a session: the one whose log it is.
    Session(Box<Session>),
    /// Of a task. It has to belong to the log of the commit.
    Task(Box<Task>),
    /// Of a question. It has to belong to the log of the commit.
    Question(Box<Question>),
    /// Of a grant. It has to belong to the tenant of the log.
    Grant(Box<Grant>),
    /// Of the operator's stop; `None` lets things go on.
    Halt(Option<Halt>),
}

/// What must hold for a commit. All are looked at before anything is written.
#[derive(Debug, Clone)]
pub enum Condition {
    /// The stored version of this is exactly that.
    Version {
        /// Of what.
        of: Thing,
        /// 0: it does not exist yet.
        version: u64,
    },
    /// The task is where who acts in it believes it to be, and has something
    /// left to use. A task that nobody opened is nowhere else.
    TaskAt {
        /// Which task, of the tenant of the log.
        task: Id,
        /// The version of its goal that is worked for. `None`: that which it
        /// was opened with.
        goal: Option<u32>,
        /// The turn, which has to be open. `None`: none is meant.
        turn: Option<u64>,
        /// The newest interrupt that was known. While it is being stopped
        /// nothing begins.
        interrupt: Option<Id>,
    },
    /// The session of the log is not closed, not being stopped, and was not
    /// interrupted since. One that nobody opened is not.
    SessionGoing {
        /// The newest interrupt that was known.
        interrupt: Option<Id>,
    },
    /// No question of this topic is pending or answered at this version of
    /// the task's goal.
    TopicFree {
        /// Which task, of the tenant of the log.
        task: Id,
        /// The topic.
        topic: Name,
        /// The version of the goal.
        goal: u32,
    },
    /// The operator's stop does not stand.
    NotHalted,
    /// Nobody has used this key; the commit claims it.
    KeyFree {
        /// The digest of tenant, user, agent, capability and key.
        scope: Digest,
        /// The digest of the canonical request.
        request: Digest,
        /// For which action.
        action: Id,
    },
    /// The grant holds.
    GrantLive {
        /// Which grant.
        grant: Id,
        /// At which moment, in milliseconds since 1970.
        now_ms: u64,
    },
    /// People were asked less often than this in the session: approvals and
    /// questions.
    AsksBelow {
        /// Which session, of the tenant of the log.
        session: Id,
        /// Since when, in milliseconds since 1970.
        since_ms: u64,
        /// The first number that is too many.
        most: u32,
    },
    /// Fewer runs than this of the capability, in any version, were claimed
    /// in the tenant.
    CallsBelow {
        /// Which capability.
        capability: CapabilityName,
        /// Since when, in milliseconds since 1970.
        since_ms: u64,
        /// The first number that is too many.
        most: u32,
    },
}

/// What has a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Thing {
    /// An action.
    Action(Id),
    /// A session.
    Session(Id),
    /// A task.
    Task(Id),
    /// A question.
    Question(Id),
}

/// In which way a task is not where it was believed to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moved {
    /// It is over.
    Ended,
    /// It was interrupted meanwhile.
    Interrupted,
    /// It has another goal.
    Goal,
    /// The turn is over.
    Turn,
    /// Nothing is left of this part of its budget: the field's name.
    Budget(&'static str),
}

/// The condition that did not hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Conflict {
    /// Somebody else was faster.
    Version {
        /// With what.
        of: Thing,
        /// Its version now; 0: it does not exist.
        version: u64,
    },
    /// The task is elsewhere, or its session is.
    Task(Moved),
    /// A question of that topic is there.
    Topic {
        /// Which one.
        question: Id,
    },
    /// The operator stopped everything.
    Halted(Halt),
    /// The key was used before.
    Key {
        /// With which request.
        request: Digest,
        /// For which action.
        action: Id,
    },
    /// The grant does not exist, has ended or was taken back.
    Grant,
    /// So many approvals were opened since then.
    Asks,
    /// So many runs were claimed since then.
    Calls {
        /// Of which capability.
        capability: CapabilityName,
    },
}

/// Why a commit was not written.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreError {
    /// A condition did not hold.
    Conflict(Conflict),
    /// The store could not do it.
    Problem(Problem),
}

impl From<Problem> for StoreError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// What the harness remembers. Whatever belongs to another tenant is answered
/// like what does not exist.
pub trait Store: Send + Sync {
    /// Writes all of it durably, or nothing. The answer is the number of each
    /// event in its log.
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Vec<u64>, StoreError>>;

    /// What an action is now.
    fn action(&self, tenant: &Name, id: &Id) -> Result<Option<Action>, Problem>;

    /// The action that an approval belongs to, even when it is no longer the
    /// action's newest.
    fn by_approval(&self, tenant: &Name, approval: &Id) -> Result<Option<Action>, Problem>;

    /// What a key was claimed for: the request and the action.
    fn key(&self, scope: &Digest) -> Result<Option<(Digest, Id)>, Problem>;

    /// Actions, newest first.
    fn actions(&self, tenant: &Name, filter: &ActionFilter) -> Result<Page<Action>, Problem>;

    /// Approvals with their actions, oldest first.
    fn approvals(&self, tenant: &Name, filter: &ApprovalFilter) -> Result<Page<(Action, Approval)>, Problem>;

    /// A grant.
    fn grant(&self, tenant: &Name, id: &Id) -> Result<Option<Grant>, Problem>;

    /// Grants, oldest first.
    fn grants(&self, tenant: &Name, filter: &GrantFilter) -> Result<Vec<Grant>, Problem>;

    /// The last action of the task for whose approval this intent was declined.
    fn declined(&self, tenant: &Name, task: &Id, intent: &Digest) -> Result<Option<Action>, Problem>;

    /// How often this intent was approved and declined in the task.
    fn tally(&self, tenant: &Name, task: &Id, intent: &Digest) -> Result<ApprovalTally, Problem>;

    /// What a session is now. `None`: nobody opened one of this name.
    fn session(&self, tenant: &Name, id: &Id) -> Result<Option<Session>, Problem>;

    /// Sessions that were opened, newest first.
    fn sessions(&self, tenant: &Name, filter: &SessionFilter) -> Result<Page<Session>, Problem>;

    /// What a task is now and what it has used so far.
    fn task(&self, tenant: &Name, task: &Id) -> Result<TaskSeen, Problem>;

    /// Tasks that were opened, newest first.
    fn tasks(&self, tenant: &Name, filter: &TaskFilter) -> Result<Page<Task>, Problem>;

    /// Tasks of all tenants that were interrupted and where something may
    /// still run.
    fn stopping(&self, limit: u32) -> Result<Vec<Task>, Problem>;

    /// The same of sessions.
    fn stopping_sessions(&self, limit: u32) -> Result<Vec<Session>, Problem>;

    /// A question.
    fn question(&self, tenant: &Name, id: &Id) -> Result<Option<Question>, Problem>;

    /// Questions, oldest first.
    fn questions(&self, tenant: &Name, filter: &QuestionFilter) -> Result<Page<Question>, Problem>;

    /// What has to end now, the first to expire first: approvals that are
    /// pending, or approved and not used, and pending questions.
    fn expiring(&self, now_ms: u64, limit: u32) -> Result<Vec<Due>, Problem>;

    /// Actions of all tenants that are running, oldest first: some of them
    /// perhaps in processes that are gone.
    fn running(&self, limit: u32) -> Result<Vec<Action>, Problem>;

    /// Actions of all tenants that were asked for, or edited, and that nobody
    /// has gone on with, oldest first.
    fn requested(&self, limit: u32) -> Result<Vec<Action>, Problem>;

    /// Actions of all tenants that are held by their door and that neither run
    /// nor have ended, oldest first, with who asked: at most so many.
    fn held(&self, limit: u32) -> Result<Vec<(Principal, Id)>, Problem>;

    /// The content of a payload. `None`: there never was one.
    fn payload(&self, tenant: &Name, of: &Owner, sha256: &Digest) -> Result<Option<Content>, Problem>;

    /// Events of a session, of an action or of a task, in the order of the log.
    fn events(&self, tenant: &Name, filter: &EventFilter) -> Result<Vec<Logged>, Problem>;

    /// Events of all tenants in the order in which they were recorded, those
    /// after this rank. At most so many; 0 and what is above
    /// [`crate::MAX_PAGE`] is [`crate::MAX_PAGE`].
    ///
    /// Nothing that is recorded later has a rank below one that was read, by
    /// whichever process it is written.
    fn recorded(&self, after: u64, limit: u32) -> Result<Vec<Recorded>, Problem>;

    /// The rank of the newest event; 0: there is none.
    fn last_recorded(&self) -> Result<u64, Problem>;

    /// The id that the database got when it was made. Copies have the same.
    fn database(&self) -> Result<Id, Problem>;

    /// The number of the newest event in the log of a session; 0: there is none.
    fn head(&self, tenant: &Name, session: &Id) -> Result<u64, Problem>;

    /// The operator's stop, where it stands. Asked before every run.
    fn halted(&self) -> Result<Option<Halt>, Problem>;

    /// Ticks after a commit by any process: at once for those of this store,
    /// else within [`crate::WATCH_EVERY`]. It may tick without a change.
    fn changes(&self) -> Result<watch::Receiver<u64>, Problem>;

    /// Erases the contents of the payloads of an action or a task and records
    /// who did it. `None`: there is none.
    fn erase(&self, tenant: &Name, of: &Owner, by: &Name, at_ms: u64)
    -> BoxFuture<'_, Result<Option<u64>, StoreError>>;
}
