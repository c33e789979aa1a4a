//! What a task is now, and what happens to it: its goal, its turns, what people
//! say to it.

use env_contracts::{Digest, Id, Name, Principal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Entry, Interrupt};

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// It is worked on.
    Open,
    /// Its goal was reached.
    Done,
    /// It was given up.
    Failed,
    /// Somebody did not want it any more.
    Cancelled,
}

impl TaskState {
    /// As it is stored and printed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a task is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its id.
    pub id: Id,
    /// The session, in whose log it stands.
    pub session: Id,
    /// Who opened it.
    pub principal: Principal,
    /// Where it is.
    pub state: TaskState,
    /// How many events made it what it is: what compare-and-set compares.
    pub version: u64,
    /// What is to be reached.
    pub goal: Goal,
    /// What it is for, as its opener said: a fact for policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// At which stage it is, as the loop's credential set it: a fact for
    /// policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// What holds besides the goal, in the order in which it was said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Remark>,
    /// What was said and no turn has been told yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steers: Vec<Remark>,
    /// Why the loop has to plan anew, until it opens a turn: `goal-changed`,
    /// `constrained`, `interrupted`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replan: Vec<Name>,
    /// The newest turn. Absent: the loop has opened none, or has no turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
    /// What it may use at most.
    #[serde(default, skip_serializing_if = "Budget::is_none")]
    pub budget: Budget,
    /// What models used for it, as the loop recorded.
    #[serde(default, skip_serializing_if = "Spent::is_nothing")]
    pub spent: Spent,
    /// The newest interrupt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<Interrupt>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<TaskEnd>,
    /// When it was opened, in milliseconds since 1970.
    pub opened_ms: u64,
    /// When it last changed, in milliseconds since 1970.
    pub changed_ms: u64,
}

impl Task {
    /// The turn that the loop is in.
    pub fn open_turn(&self) -> Option<&Turn> {
        self.turn.as_ref().filter(|turn| turn.closed.is_none())
    }

    /// The interrupt that was received and has not stopped everything yet.
    pub fn stopping(&self) -> Option<&Interrupt> {
        self.interrupt.as_ref().filter(|interrupt| interrupt.stopped_ms.is_none())
    }
}

/// What is to be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// Counted from 1; a changed goal is another version.
    pub version: u32,
    /// The words: a payload.
    pub text: Digest,
    /// Who said so.
    pub by: Name,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// Something that a person said to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remark {
    /// Its id.
    pub id: Id,
    /// The words: a payload.
    pub text: Digest,
    /// Who.
    pub by: Name,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// One step of the model, from the loop's point of view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// Its number: from 1, without gaps.
    pub number: u64,
    /// The version of the goal that it works for.
    pub goal: u32,
    /// What the loop was told when it opened it: a payload.
    pub start: Digest,
    /// The key with which the loop opened it: the same key again opens no
    /// second one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Name>,
    /// When, in milliseconds since 1970.
    pub opened_ms: u64,
    /// Why it is over. Absent: it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Name>,
}

/// What a task may use at most. What is absent has no bound here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Actions that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<u64>,
    /// Milliseconds that they run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_ms: Option<u64>,
    /// Bytes of standard output and error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// Bytes sent and received outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_bytes: Option<u64>,
    /// Cost of models and tools, in millionths of the operator's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
}

impl Budget {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What models used, as the loop recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Spent {
    /// Calls.
    pub calls: u64,
    /// Tokens that went in.
    pub input_tokens: u64,
    /// Tokens that came out.
    pub output_tokens: u64,
    /// What it cost, in millionths of the operator's unit.
    pub cost_micros: u64,
}

impl Spent {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskEnd {
    /// Done, failed or cancelled.
    pub state: TaskState,
    /// Who said so.
    pub by: Name,
    /// Why: a payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Digest>,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// What can happen to a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TaskEvent {
    /// Somebody opened it.
    Opened {
        /// Who.
        principal: Principal,
        /// The goal: a payload.
        goal: Digest,
        /// What it is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        purpose: Option<String>,
        /// At which stage it begins.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stage: Option<String>,
        /// What it may use at most.
        #[serde(default, skip_serializing_if = "Budget::is_none")]
        budget: Budget,
    },
    /// The loop begins a step: it was told everything that was said until now.
    TurnOpened {
        /// The turn.
        turn: Turn,
        /// The remarks that it was told.
        steers: Vec<Id>,
    },
    /// A client without turns was told everything that was said until now, with
    /// an Observation.
    Noticed {
        /// Of which action.
        action: Id,
        /// The remarks that it was told.
        steers: Vec<Id>,
    },
    /// The step is over.
    TurnClosed {
        /// Which one.
        turn: u64,
        /// Why, in a word of ours: `next`, `interrupted`, `ended`.
        why: Name,
    },
    /// A direction, for the next step.
    Steered {
        /// What was said.
        steer: Remark,
    },
    /// Something that has to hold besides the goal, from here on.
    Constrained {
        /// What was said.
        constraint: Remark,
    },
    /// Another goal.
    GoalChanged {
        /// The goal, with the next version.
        goal: Goal,
    },
    /// Another stage.
    StageSet {
        /// Which one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stage: Option<String>,
    },
    /// The loop, a verifier or a person recorded something.
    Told {
        /// What.
        entry: Entry,
    },
    /// Somebody wants its work to stop: received.
    Interrupted {
        /// Who, when, why, and how.
        interrupt: Interrupt,
    },
    /// Nothing of it runs any more.
    Stopped {
        /// Which interrupt that was.
        interrupt: Id,
    },
    /// It is over.
    Ended {
        /// How.
        end: TaskEnd,
    },
    /// Its words were erased.
    Erased {
        /// Who did it.
        by: Name,
    },
}

impl TaskEvent {
    /// Its name, as it is printed.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Opened { .. } => "task-opened",
            Self::TurnOpened { .. } => "turn-opened",
            Self::Noticed { .. } => "noticed",
            Self::TurnClosed { .. } => "turn-closed",
            Self::Steered { .. } => "steered",
            Self::Constrained { .. } => "constrained",
            Self::GoalChanged { .. } => "goal-changed",
            Self::StageSet { .. } => "stage-set",
            Self::Told { entry } => entry.what.name(),
            Self::Interrupted { .. } => "task-interrupted",
            Self::Stopped { .. } => "task-stopped",
            Self::Ended { .. } => "task-ended",
            Self::Erased { .. } => "task-erased",
        }
    }
}
