//! What becomes of a thing that is pending when something changes, a restart
//! above all. One table, which the service asks wherever it decides that.
//!
//! Nobody who waited is woken by it: a waiter in memory is gone with its
//! process, and whoever asked comes back by the id.

/// What is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pending {
    /// An action that nobody has decided on yet.
    Proposal,
    /// An action for which a person is asked.
    Approval,
    /// An action that a person approved, and that has not run.
    Approved,
    /// A question that nobody answered.
    Question,
    /// A run that can have changed nothing outside.
    Run,
    /// A run that can change something outside.
    ExternalRun,
    /// A grant for one turn.
    TurnGrant,
    /// An interrupt that was received, and has not stopped everything.
    Interrupt,
}

/// What changed meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// The process that carried it is gone, and nothing else.
    Restart,
    /// Its time is over.
    Time,
    /// The turn that it belongs to is over.
    Turn,
    /// Its task has another goal.
    Goal,
    /// Its task is over.
    End,
    /// It was interrupted.
    Interrupt,
    /// What would run is not what was decided on.
    Subject,
    /// Policy wants somebody else to decide.
    Policy,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Then {
    /// It goes on, for whoever comes back for it.
    Continue,
    /// Whoever asked has to want it still; then it goes on.
    AskRequester,
    /// It is another plan, which a person is asked about anew.
    AskPerson,
    /// It ends, and says why.
    Cancel,
    /// Whether it took effect is not known until somebody looks.
    Unknown,
}

impl Pending {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::Proposal,
        Self::Approval,
        Self::Approved,
        Self::Question,
        Self::Run,
        Self::ExternalRun,
        Self::TurnGrant,
        Self::Interrupt,
    ];

    /// As it is printed.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Proposal => "an action that is not decided yet",
            Self::Approval => "an action that waits for a person",
            Self::Approved => "an action that was approved and has not run",
            Self::Question => "a question",
            Self::Run => "a run that can't have changed anything outside",
            Self::ExternalRun => "a run that can change something outside",
            Self::TurnGrant => "a grant for the turn",
            Self::Interrupt => "an interrupt that has not stopped everything",
        }
    }
}

impl Change {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 8] =
        [Self::Restart, Self::Time, Self::Turn, Self::Goal, Self::End, Self::Interrupt, Self::Subject, Self::Policy];

    /// As it is printed.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Restart => "its process is gone",
            Self::Time => "its time is over",
            Self::Turn => "its turn is over",
            Self::Goal => "another goal",
            Self::End => "its task is over",
            Self::Interrupt => "it was interrupted",
            Self::Subject => "what would run changed",
            Self::Policy => "policy wants another approver",
        }
    }
}

impl Then {
    /// As it is printed.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Continue => "goes on",
            Self::AskRequester => "ask again: whoever wanted it",
            Self::AskPerson => "ask again: a person",
            Self::Cancel => "cancelled",
            Self::Unknown => "unknown until verified",
        }
    }
}

/// The table.
pub const fn after(pending: Pending, change: Change) -> Then {
    match (pending, change) {
        (Pending::Proposal | Pending::Approval, Change::Turn | Change::Goal | Change::End | Change::Interrupt)
        | (Pending::Approval, Change::Time) => Then::Cancel,
        // Nothing was decided on: what is there now is what is decided.
        (Pending::Proposal, Change::Restart | Change::Time | Change::Subject | Change::Policy) => Then::Continue,
        (Pending::Approval, Change::Restart) => Then::Continue,
        // What a person approved outlives its turn, and nothing else that
        // makes it something else.
        (Pending::Approved, Change::Restart | Change::Turn) => Then::Continue,
        (Pending::Approved, Change::Goal) => Then::AskRequester,
        (Pending::Approved, Change::Time | Change::End | Change::Interrupt) => Then::Cancel,
        (Pending::Approval | Pending::Approved, Change::Subject | Change::Policy) => Then::AskPerson,
        // A person answers when they come to it: in a later turn, too.
        (Pending::Question, Change::Restart | Change::Turn | Change::Subject | Change::Policy) => Then::Continue,
        (Pending::Question, Change::Time | Change::Goal | Change::End | Change::Interrupt) => Then::Cancel,
        // What runs was decided on, and only who carries it or stops it
        // changes anything about that.
        (Pending::Run, Change::Restart | Change::Time | Change::Interrupt) => Then::Cancel,
        (Pending::ExternalRun, Change::Restart | Change::Interrupt) => Then::Unknown,
        (Pending::ExternalRun, Change::Time) => Then::Cancel,
        (Pending::Run | Pending::ExternalRun, Change::Turn | Change::Goal | Change::End) => Then::Continue,
        // It runs from sealed bytes.
        (Pending::Run | Pending::ExternalRun, Change::Subject | Change::Policy) => Then::Continue,
        (Pending::TurnGrant, Change::Time | Change::Turn | Change::End | Change::Interrupt) => Then::Cancel,
        // It holds in the turn, and every use is decided on anew.
        (Pending::TurnGrant, Change::Restart | Change::Goal | Change::Subject | Change::Policy) => Then::Continue,
        // It stands, whatever happens.
        (Pending::Interrupt, _) => Then::Continue,
    }
}

/// The table as `docs/resume.md` prints it.
pub fn table() -> String {
    let mut out = String::from("| pending |");
    for change in Change::ALL {
        out.push_str(&format!(" {} |", change.words()));
    }
    out.push_str("\n|---|");
    out.push_str(&"---|".repeat(Change::ALL.len()));
    out.push('\n');
    for pending in Pending::ALL {
        out.push_str(&format!("| {} |", pending.words()));
        for change in Change::ALL {
            out.push_str(&format!(" {} |", after(pending, change).words()));
        }
        out.push('\n');
    }
    out
}
