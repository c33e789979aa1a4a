//! Sessions and tasks: opening them, looking at them, ending them.

use env_contracts::{Code, Id, Name, Principal, Problem};
use glovebox_events::{
    ActionState, Budget, LogKey, Owner, PayloadRole, Session, SessionEvent, StopAsked, Task, TaskEnd, TaskEvent,
    TaskState,
};
use glovebox_store::{Condition, Content, GrantFilter, Page, SessionFilter, TaskFilter, Thing};
use schemars::JsonSchema;
use serde::Deserialize;

use super::deed::Deed;
use super::flight::Halt;
use super::halting::word;
use super::journal::Lost;
use super::{ActionService, Parts, standing, unknown_session, unknown_task};
use crate::machine::Change;

/// The longest goal, constraint, steer or reason, in bytes: some pages. They
/// are handed to a model.
pub const MAX_TEXT: usize = 16 * 1024;

/// The deepest tree of sessions. Agents that call agents that call agents are
/// an accident from some depth on.
pub const MAX_DEPTH: usize = 8;

/// A session that somebody opens.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// Its name. Absent: one is made.
    #[serde(default)]
    pub id: Option<Id>,
    /// The session that it is called from.
    #[serde(default)]
    pub parent: Option<Id>,
}

/// A task that somebody opens.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTask {
    /// Its name. Absent: one is made.
    #[serde(default)]
    pub id: Option<Id>,
    /// In which session. It is opened with the task where nobody did before.
    pub session: Id,
    /// What is to be reached.
    pub goal: String,
    /// What it is for: a fact for policy.
    #[serde(default)]
    pub purpose: Option<String>,
    /// At which stage it begins: a fact for policy.
    #[serde(default)]
    pub stage: Option<String>,
    /// What it may use at most.
    #[serde(default)]
    pub budget: Budget,
}

impl ActionService {
    /// Opens a session. The same again gives the same session.
    ///
    /// # Errors
    /// `session-conflict` for a name that is taken; `session-unknown` for a
    /// parent of others; `usage` for a tree that is too deep.
    pub async fn open_session(&self, principal: &Principal, new: NewSession) -> Result<Session, Problem> {
        let id = new.id.unwrap_or_else(|| self.parts.ids.next(self.parts.clock.now()));
        loop {
            if let Some(session) = self.parts.store.session(&principal.tenant, &id)? {
                let same = session.principal == *principal && session.parent == new.parent && !session.closed;
                return if same { Ok(session) } else { Err(taken(&id)) };
            }
            let mut deed = Deed::new(log(principal, &id), self.now_ms());
            let opening = self.opening(&mut deed, principal, &id, new.parent.as_ref())?;
            let session = deed.session(None, opening)?;
            match deed.commit(&*self.parts.store).await {
                Ok(()) => return Ok(session),
                Err(Lost::Changed) => {}
                Err(lost) => return Err(self.lost(lost)),
            }
        }
    }

    /// Below sessions in which something can begin, also when it is written
    /// down: an interrupt of a tree must not miss what is just being opened.
    fn opening(
        &self,
        deed: &mut Deed,
        principal: &Principal,
        id: &Id,
        parent: Option<&Id>,
    ) -> Result<SessionEvent, Problem> {
        let mut root = id.clone();
        let mut above = parent.cloned();
        let mut depth = 0;
        while let Some(next) = above {
            let session = self.parts.store.session(&principal.tenant, &next)?;
            // What is above the parent is its own affair.
            let may = |session: &Session| depth > 0 || belongs(principal, &session.principal);
            let session = session.filter(|session| session.principal.user == principal.user && may(session));
            let session = session.ok_or_else(|| unknown_session(&next))?;
            standing::can_begin(&session)?;
            let of = Thing::Session(session.id.clone());
            deed.condition(Condition::Version { of, version: session.version });
            depth += 1;
            if depth >= MAX_DEPTH || session.id == *id {
                return Err(Problem::new(Code::Usage, format!("a tree of sessions is at most {MAX_DEPTH} deep")));
            }
            (root, above) = (session.id, session.parent);
        }
        Ok(SessionEvent::Opened { principal: principal.clone(), parent: parent.cloned(), root })
    }

    /// A session. One that nobody opened is not known.
    ///
    /// # Errors
    /// `session-unknown`, also for those of others.
    pub fn session(&self, principal: &Principal, id: &Id) -> Result<Session, Problem> {
        let session = self.parts.store.session(&principal.tenant, id)?;
        session.filter(|session| self.looks_at(principal, &session.principal)).ok_or_else(|| unknown_session(id))
    }

    /// Sessions, newest first. Pages are full, whatever is left out.
    ///
    /// # Errors
    /// Those of the store.
    pub fn sessions(&self, principal: &Principal, mut filter: SessionFilter) -> Result<Page<Session>, Problem> {
        if !self.oversees(principal) {
            filter.user = Some(principal.user.clone());
            filter.agent = principal.agent.clone();
        }
        self.parts.store.sessions(&principal.tenant, &filter)
    }

    /// Closes a session: nothing new begins in it, what waits is ended, its
    /// questions are withdrawn and its grants taken back. What runs goes on.
    ///
    /// # Errors
    /// `session-unknown`.
    pub async fn close_session(&self, principal: &Principal, id: &Id) -> Result<Session, Problem> {
        let session = loop {
            let session = self.session(principal, id)?;
            if !sees(principal, &session.principal) {
                return Err(unknown_session(id));
            }
            if session.closed {
                break session;
            }
            let mut deed = Deed::new(log(&session.principal, id), self.now_ms());
            let closed = deed.session(Some(session), SessionEvent::Closed { by: speaker(principal) })?;
            match deed.commit(&*self.parts.store).await {
                Ok(()) => break closed,
                Err(Lost::Changed) => {}
                Err(lost) => return Err(self.lost(lost)),
            }
        };
        // Once more where an earlier call did not come to its end.
        self.empty(principal, &session).await?;
        Ok(session)
    }

    /// Ends what waits in a session that was closed.
    async fn empty(&self, principal: &Principal, session: &Session) -> Result<(), Problem> {
        let tenant = &session.principal.tenant;
        let mut filter = TaskFilter { session: Some(session.id.clone()), open: true, ..TaskFilter::default() };
        loop {
            let page = self.parts.store.tasks(tenant, &filter)?;
            for task in page.items {
                let mut deed = Deed::new(log_of(&task), self.now_ms());
                self.withdraw_questions(&mut deed, &task, Change::End, "session-closed")?;
                match deed.commit(&*self.parts.store).await {
                    // An answer that came meanwhile is one.
                    Ok(()) | Err(Lost::Changed) => {}
                    Err(lost) => return Err(self.lost(lost)),
                }
            }
            match page.next {
                Some(next) => filter.after = Some(next),
                None => break,
            }
        }
        let filter = GrantFilter {
            live_at: Some(self.now_ms()),
            user: Some(session.principal.user.clone()),
            session: Some(session.id.clone()),
        };
        for grant in self.parts.store.grants(tenant, &filter)? {
            if grant.session.as_ref() == Some(&session.id) {
                self.take_back(tenant, grant, &speaker(principal)).await?;
            }
        }
        for action in self.open_actions(tenant, &session.id, None)? {
            if action.state == ActionState::Running {
                continue;
            }
            let stop =
                StopAsked { by: speaker(principal), at_ms: self.now_ms(), why: word("session-closed"), grace_ms: None };
            match self.stop_one(action, stop).await {
                // It went on by itself meanwhile, to where it finds out.
                Ok(()) | Err(Halt::Changed | Halt::Refused(_)) => {}
                Err(Halt::Failed(problem)) => return Err(problem),
            }
        }
        Ok(())
    }

    /// Opens a task, and its session where nobody did before. The same again
    /// gives the same task.
    ///
    /// # Errors
    /// `task-conflict` for a name that is taken, `session-unknown` for a
    /// session of others, `session-conflict` for one that was closed, `usage`
    /// for texts that are too long.
    pub async fn open_task(&self, principal: &Principal, new: NewTask) -> Result<Task, Problem> {
        for (what, text) in
            [("goal", Some(&new.goal)), ("purpose", new.purpose.as_ref()), ("stage", new.stage.as_ref())]
        {
            bounded(what, text.map(String::as_str))?;
        }
        let id = new.id.clone().unwrap_or_else(|| self.parts.ids.next(self.parts.clock.now()));
        loop {
            let known = self.parts.store.task(&principal.tenant, &id)?.record;
            if let Some(task) = known {
                let same = task.principal == *principal
                    && task.session == new.session
                    && task.goal.text == env_contracts::Digest::of(new.goal.as_bytes());
                return if same { Ok(task) } else { Err(conflict(&id)) };
            }
            let mut deed = Deed::new(log(principal, &new.session), self.now_ms());
            match self.parts.store.session(&principal.tenant, &new.session)? {
                Some(session) if belongs(principal, &session.principal) => {
                    standing::can_begin(&session)?;
                    let of = Thing::Session(session.id);
                    deed.condition(Condition::Version { of, version: session.version });
                }
                Some(_) => return Err(unknown_session(&new.session)),
                None => {
                    let opening = self.opening(&mut deed, principal, &new.session, None)?;
                    deed.session(None, opening)?;
                }
            }
            let goal = deed.text(&id, PayloadRole::Goal, &new.goal);
            let opened = TaskEvent::Opened {
                principal: principal.clone(),
                goal,
                purpose: new.purpose.clone(),
                stage: new.stage.clone(),
                budget: new.budget,
            };
            let task = deed.task(None, &id, opened)?;
            match deed.commit(&*self.parts.store).await {
                Ok(()) => return Ok(task),
                Err(Lost::Changed) => {}
                Err(lost) => return Err(self.lost(lost)),
            }
        }
    }

    /// A task as it is now. One that nobody opened is not known.
    ///
    /// # Errors
    /// `task-unknown`, also for those of others.
    pub(super) fn known_task(&self, principal: &Principal, id: &Id) -> Result<Task, Problem> {
        let task = self.parts.store.task(&principal.tenant, id)?.record;
        task.filter(|task| self.looks_at(principal, &task.principal)).ok_or_else(|| unknown_task(id))
    }

    /// Tasks, newest first. Pages are full, whatever is left out.
    ///
    /// # Errors
    /// Those of the store.
    pub fn tasks(&self, principal: &Principal, filter: &TaskFilter) -> Result<Page<Task>, Problem> {
        let mut filter = filter.clone();
        if !self.oversees(principal) {
            filter.user = Some(principal.user.clone());
            filter.agent = principal.agent.clone();
        }
        self.parts.store.tasks(&principal.tenant, &filter)
    }

    /// Ends a task, by its loop: its turn is closed, what waits in it is
    /// ended, and nothing new begins.
    ///
    /// # Errors
    /// `task-unknown`; `task-closed` where it ended otherwise before.
    pub async fn end_task(
        &self,
        principal: &Principal,
        id: &Id,
        state: TaskState,
        why: Option<&str>,
    ) -> Result<Task, Problem> {
        bounded("reason", why)?;
        if state == TaskState::Open {
            return Err(Problem::new(Code::Usage, "a task ends done, failed or cancelled"));
        }
        let task = loop {
            let task = self.known_task(principal, id)?;
            self.acts(principal, &task)?;
            if task.state == state {
                break task;
            }
            standing::open(&task)?;
            let mut deed = Deed::new(log_of(&task), self.now_ms().max(task.changed_ms));
            let turn = task.open_turn().map(|turn| turn.number);
            let mut ended = task;
            if let Some(turn) = turn {
                ended = deed.task(Some(ended), id, TaskEvent::TurnClosed { turn, why: word("ended") })?;
            }
            let why = why.map(|why| deed.text(id, PayloadRole::Remark, why));
            let end = TaskEnd { state, by: speaker(principal), why, at_ms: deed.at_ms() };
            ended = deed.task(Some(ended), id, TaskEvent::Ended { end })?;
            self.void_grants(&mut deed, &ended, None)?;
            self.withdraw_questions(&mut deed, &ended, Change::End, "task-ended")?;
            match deed.commit(&*self.parts.store).await {
                Ok(()) => break ended,
                Err(Lost::Changed) => {}
                Err(lost) => return Err(self.lost(lost)),
            }
        };
        self.void(&task, &speaker(principal), Change::End, |_| true).await?;
        Ok(task)
    }

    /// Whether somebody acts in a task as its loop: the agent that it is, or
    /// the user; never who looks over the tenant.
    pub(super) fn acts(&self, principal: &Principal, task: &Task) -> Result<(), Problem> {
        let opened_by = &task.principal;
        let own = principal.agent.is_none()
            || opened_by.agent.is_none()
            || (principal.agent == opened_by.agent && principal.chain == opened_by.chain);
        if own && sees(principal, opened_by) { Ok(()) } else { Err(unknown_task(&task.id)) }
    }
}

/// Whether somebody sees what another opened: a person all that is done in
/// their name; an agent its own, what those do that it called, and what its
/// user opened for it.
pub(super) fn sees(principal: &Principal, of: &Principal) -> bool {
    let mine = |agent| of.agent.is_none() || of.agent.as_ref() == Some(agent) || of.chain.contains(agent);
    principal.user == of.user && principal.agent.as_ref().is_none_or(mine)
}

/// Whether somebody may work in a session that another opened: who sees it, and
/// whoever was called from there.
pub(super) fn belongs(principal: &Principal, of: &Principal) -> bool {
    sees(principal, of)
        || (principal.user == of.user && of.agent.as_ref().is_some_and(|agent| principal.chain.contains(agent)))
}

/// Who speaks, by name: the agent where there is one.
pub(super) fn speaker(principal: &Principal) -> Name {
    principal.agent.clone().unwrap_or_else(|| principal.user.clone())
}

pub(super) fn log(principal: &Principal, session: &Id) -> LogKey {
    LogKey { tenant: principal.tenant.clone(), session: session.clone() }
}

pub(super) fn log_of(task: &Task) -> LogKey {
    log(&task.principal, &task.session)
}

/// Refuses texts that are too long to be handed to a model.
pub(super) fn bounded(what: &str, text: Option<&str>) -> Result<(), Problem> {
    match text {
        Some(text) if text.len() > MAX_TEXT => {
            Err(Problem::new(Code::Usage, format!("the {what} has more than {MAX_TEXT} bytes")))
        }
        Some(text) if text.trim().is_empty() => Err(Problem::new(Code::Usage, format!("the {what} is empty"))),
        _ => Ok(()),
    }
}

/// The words of a task. Absent: they were erased.
pub(super) fn words(parts: &Parts, task: &Task, sha256: &env_contracts::Digest) -> Result<Option<String>, Problem> {
    match parts.store.payload(&task.principal.tenant, &Owner::Task(task.id.clone()), sha256)? {
        Some(Content::Bytes(bytes)) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Some(Content::Erased) => Ok(None),
        None => {
            let message = format!("the words of task `{}` are not there", task.id);
            Err(Problem::new(Code::StoreCorrupt, message))
        }
    }
}

fn taken(id: &Id) -> Problem {
    Problem::new(Code::SessionConflict, format!("session `{id}` is there already, opened otherwise, or closed"))
}

fn conflict(id: &Id) -> Problem {
    Problem::new(Code::TaskConflict, format!("task `{id}` is there already, opened otherwise"))
}
