//! What an interrupt does: it is written down where it counts, everything that
//! runs is told, and that nothing runs any more is written down once it is so.
//! Every step can be done again by another process.

use std::collections::BTreeSet;

use env_contracts::{Id, Name, Principal, Problem};
use glovebox_events::{
    Action, ActionState, Interrupt, PayloadRole, Reach, Session, SessionEvent, StopAsked, Task, TaskEnd, TaskEvent,
    TaskState,
};
use glovebox_store::{ActionFilter, SessionFilter, TaskFilter};

use super::ActionService;
use super::deed::Deed;
use super::flight::Halt;
use super::halting::word;
use super::journal::Lost;
use super::tasks::{log, log_of};
use crate::machine::Change;

/// What was told of an interrupt.
pub(super) struct Told {
    /// Those above before those below.
    pub(super) sessions: Vec<Session>,
    pub(super) tasks: Vec<Task>,
}

impl ActionService {
    /// The session, which is opened here where its clients have none.
    pub(super) async fn interruptible(&self, principal: &Principal, id: &Id) -> Result<Session, Problem> {
        if self.parts.store.session(&principal.tenant, id)?.is_none() {
            let filter = ActionFilter { session: Some(id.clone()), limit: 1, ..ActionFilter::default() };
            if !self.actions(principal, filter)?.items.is_empty() {
                self.task_of(principal, id).await?;
            }
        }
        self.session(principal, id)
    }

    /// Writes an interrupt down in a session, and in all below it where the
    /// tree is meant. Those above come first: nothing is opened below one that
    /// is being stopped, so that none is missed.
    pub(super) async fn receive_sessions(
        &self,
        session: Session,
        interrupt: &Interrupt,
        reason: Option<&str>,
    ) -> Result<Told, Problem> {
        let mut told = Told { sessions: Vec::new(), tasks: Vec::new() };
        let mut next = vec![session];
        let mut known = BTreeSet::new();
        while let Some(session) = next.pop() {
            if !known.insert(session.id.clone()) {
                continue;
            }
            let session = self.receive_session(session, interrupt, reason, &mut told.tasks).await?;
            if interrupt.reach == Reach::Tree {
                next.extend(self.children(&session)?);
            }
            told.sessions.push(session);
        }
        Ok(told)
    }

    /// In one session, with its tasks: both at once, so that no crash leaves
    /// one without the other.
    async fn receive_session(
        &self,
        mut session: Session,
        interrupt: &Interrupt,
        reason: Option<&str>,
        told: &mut Vec<Task>,
    ) -> Result<Session, Problem> {
        let (tenant, id) = (session.principal.tenant.clone(), session.id.clone());
        loop {
            let received = session.interrupt.as_ref().is_some_and(|known| known.id == interrupt.id);
            let mut open = self.tasks_in(&session, true)?;
            open.retain(|task| task.interrupt.as_ref().is_none_or(|known| known.id != interrupt.id));
            if received && open.is_empty() {
                break;
            }
            let mut deed = Deed::new(log(&session.principal, &id), interrupt.at_ms);
            let mut next = session.clone();
            if !received {
                let interrupt = Interrupt { reason: None, ..interrupt.clone() };
                next = deed.session(Some(session), SessionEvent::Interrupted { interrupt })?;
            }
            for task in open {
                self.receive(&mut deed, task, interrupt, reason)?;
            }
            match deed.commit(&*self.parts.store).await {
                Ok(()) => session = next,
                Err(Lost::Changed) => {
                    let now = self.parts.store.session(&tenant, &id)?;
                    session = now.ok_or_else(|| super::unknown_session(&id))?;
                }
                Err(lost) => return Err(self.lost(lost)),
            }
        }
        let mine = |task: &Task| task.interrupt.as_ref().is_some_and(|known| known.id == interrupt.id);
        told.extend(self.tasks_in(&session, false)?.into_iter().filter(mine));
        Ok(session)
    }

    /// In one task. `None`: it ended by itself meanwhile.
    pub(super) async fn receive_task(
        &self,
        mut task: Task,
        interrupt: &Interrupt,
        reason: Option<&str>,
    ) -> Result<Option<Task>, Problem> {
        let (tenant, id) = (task.principal.tenant.clone(), task.id.clone());
        while task.state == TaskState::Open {
            let mut deed = Deed::new(log_of(&task), interrupt.at_ms);
            let next = self.receive(&mut deed, task, interrupt, reason)?;
            match deed.commit(&*self.parts.store).await {
                Ok(()) => return Ok(Some(next)),
                Err(Lost::Changed) => {
                    let known = self.parts.store.task(&tenant, &id)?.record;
                    let Some(known) = known else { return Ok(None) };
                    task = known;
                }
                Err(lost) => return Err(self.lost(lost)),
            }
        }
        Ok(None)
    }

    /// What an interrupt does to a task: its turn is closed, its questions are
    /// withdrawn, its turn's grants are void. One of the task cancels it.
    fn receive(
        &self,
        deed: &mut Deed,
        task: Task,
        interrupt: &Interrupt,
        reason: Option<&str>,
    ) -> Result<Task, Problem> {
        let id = task.id.clone();
        let reason = reason.map(|reason| deed.text(&id, PayloadRole::Remark, reason));
        let turn = task.open_turn().map(|turn| turn.number);
        let interrupt = Interrupt { reason: reason.clone().or(interrupt.reason.clone()), ..interrupt.clone() };
        let (cancelled, by) = (interrupt.reach == Reach::Task, interrupt.by.clone());
        let mut next = deed.task(Some(task), &id, TaskEvent::Interrupted { interrupt })?;
        if let Some(turn) = turn {
            next = deed.task(Some(next), &id, TaskEvent::TurnClosed { turn, why: word("interrupted") })?;
        }
        if cancelled {
            let end = TaskEnd { state: TaskState::Cancelled, by, why: reason, at_ms: deed.at_ms() };
            next = deed.task(Some(next), &id, TaskEvent::Ended { end })?;
        }
        let grants = if cancelled { None } else { Some(turn.unwrap_or_default()) };
        self.void_grants(deed, &next, grants)?;
        let why = if cancelled { "task-cancelled" } else { "interrupted" };
        self.withdraw_questions(deed, &next, Change::Interrupt, why)?;
        Ok(next)
    }

    /// Ends what waits, and tells what runs.
    pub(super) async fn tell_all(
        &self,
        told: &Told,
        interrupt: &Interrupt,
        ended: &mut Vec<Id>,
        running: &mut Vec<Action>,
    ) -> Result<(), Problem> {
        for task in &told.tasks {
            self.stop_actions(task, interrupt, ended, running).await?;
        }
        for session in &told.sessions {
            // Actions can belong to tasks that nobody opened.
            for action in self.open_actions(&session.principal.tenant, &session.id, None)? {
                if action.stop.is_none() {
                    self.tell_to_stop(action, interrupt, "interrupted", ended, running).await?;
                }
            }
        }
        Ok(())
    }

    async fn stop_actions(
        &self,
        task: &Task,
        interrupt: &Interrupt,
        ended: &mut Vec<Id>,
        running: &mut Vec<Action>,
    ) -> Result<(), Problem> {
        let why = if interrupt.reach == Reach::Task { "task-cancelled" } else { "interrupted" };
        for action in self.actions_of(task)? {
            // The turn is all that is meant: what was asked in others goes on.
            let turn = task.turn.as_ref().map(|turn| turn.number);
            if interrupt.reach == Reach::Turn && action.turn.is_some() && action.turn != turn {
                continue;
            }
            self.tell_to_stop(action, interrupt, why, ended, running).await?;
        }
        Ok(())
    }

    pub(super) async fn tell_to_stop(
        &self,
        mut action: Action,
        interrupt: &Interrupt,
        why: &str,
        ended: &mut Vec<Id>,
        running: &mut Vec<Action>,
    ) -> Result<(), Problem> {
        while !action.state.ended() {
            let runs = action.state == ActionState::Running;
            let stop = StopAsked {
                by: interrupt.by.clone(),
                at_ms: self.now_ms(),
                why: word(why),
                grace_ms: Some(interrupt.grace_ms).filter(|grace| *grace > interrupt.at_ms),
            };
            match self.stop_one(action.clone(), stop).await {
                Ok(()) if runs => {
                    running.push(action);
                    return Ok(());
                }
                Ok(()) => {
                    ended.push(action.id);
                    return Ok(());
                }
                // It went on by itself: look again.
                Err(Halt::Changed | Halt::Refused(_)) => {
                    let known = self.parts.store.action(&action.principal.tenant, &action.id)?;
                    let Some(known) = known else { return Ok(()) };
                    action = known;
                }
                Err(Halt::Failed(problem)) => return Err(problem),
            }
        }
        Ok(())
    }

    /// Writes down what has stopped: those below before those above, whose
    /// interrupt stands until all have.
    pub(super) async fn settle_told(&self, told: &Told) -> Result<(), Problem> {
        for task in &told.tasks {
            self.settle_task(&task.principal.tenant, &task.id).await?;
        }
        for session in told.sessions.iter().rev() {
            self.settle_session(session).await?;
        }
        Ok(())
    }

    /// Writes down that nothing of an interrupted task runs any more, if that
    /// is so, and says whether it is.
    async fn settle_task(&self, tenant: &Name, id: &Id) -> Result<bool, Problem> {
        loop {
            let Some(task) = self.parts.store.task(tenant, id)?.record else { return Ok(true) };
            let Some(interrupt) = task.stopping().cloned() else { return Ok(true) };
            let runs = |action: &Action| action.state == ActionState::Running && action.stop.is_some();
            if self.actions_of(&task)?.iter().any(runs) {
                return Ok(false);
            }
            let mut deed = Deed::new(log_of(&task), self.now_ms());
            deed.task(Some(task), id, TaskEvent::Stopped { interrupt: interrupt.id })?;
            match deed.commit(&*self.parts.store).await {
                Ok(()) => return Ok(true),
                Err(Lost::Changed) => {}
                Err(lost) => return Err(self.lost(lost)),
            }
        }
    }

    /// The same for a session, with its tasks and what is below it.
    async fn settle_session(&self, session: &Session) -> Result<(), Problem> {
        let tenant = &session.principal.tenant;
        loop {
            let Some(session) = self.parts.store.session(tenant, &session.id)? else { return Ok(()) };
            let Some(interrupt) = session.stopping().cloned() else { return Ok(()) };
            let runs = |action: &Action| action.state == ActionState::Running && action.stop.is_some();
            let open = |child: &Session| {
                child.stopping().is_some() || child.interrupt.as_ref().is_none_or(|known| known.id != interrupt.id)
            };
            if self.tasks_in(&session, false)?.iter().any(|task| task.stopping().is_some())
                || self.open_actions(tenant, &session.id, None)?.iter().any(runs)
                || (interrupt.reach == Reach::Tree && self.children(&session)?.iter().any(open))
            {
                return Ok(());
            }
            let id = session.id.clone();
            let mut deed = Deed::new(log(&session.principal, &id), self.now_ms());
            deed.session(Some(session), SessionEvent::Stopped { interrupt: interrupt.id })?;
            match deed.commit(&*self.parts.store).await {
                Ok(()) => return Ok(()),
                Err(Lost::Changed) => {}
                Err(lost) => return Err(self.lost(lost)),
            }
        }
    }

    /// Goes on with an interrupt of a task whose process is gone: what was not
    /// told yet is told. Returns whether nothing runs any more.
    pub(super) async fn go_on_stopping(&self, task: &Task) -> Result<bool, Problem> {
        let Some(interrupt) = task.stopping().cloned() else { return Ok(true) };
        let (mut ended, mut running) = (Vec::new(), Vec::new());
        self.stop_actions(task, &interrupt, &mut ended, &mut running).await?;
        self.settle_task(&task.principal.tenant, &task.id).await
    }

    /// The same for one of a session or a tree: also what it did not reach.
    pub(super) async fn go_on_stopping_session(&self, session: &Session) -> Result<(), Problem> {
        let Some(interrupt) = session.stopping().cloned() else { return Ok(()) };
        let told = self.receive_sessions(session.clone(), &interrupt, None).await?;
        let (mut ended, mut running) = (Vec::new(), Vec::new());
        self.tell_all(&told, &interrupt, &mut ended, &mut running).await?;
        self.settle_told(&told).await
    }

    /// The sessions that were called from this one.
    fn children(&self, session: &Session) -> Result<Vec<Session>, Problem> {
        let mut filter = SessionFilter { root: Some(session.id.clone()), ..SessionFilter::default() };
        let mut out = Vec::new();
        loop {
            let page = self.parts.store.sessions(&session.principal.tenant, &filter)?;
            out.extend(page.items.into_iter().filter(|child| child.parent.as_ref() == Some(&session.id)));
            match page.next {
                Some(next) => filter.after = Some(next),
                None => return Ok(out),
            }
        }
    }

    /// The tasks of a session, or those that are not over.
    fn tasks_in(&self, session: &Session, open: bool) -> Result<Vec<Task>, Problem> {
        let mut filter = TaskFilter { session: Some(session.id.clone()), open, ..TaskFilter::default() };
        let mut out = Vec::new();
        loop {
            let page = self.parts.store.tasks(&session.principal.tenant, &filter)?;
            out.extend(page.items);
            match page.next {
                Some(next) => filter.after = Some(next),
                None => return Ok(out),
            }
        }
    }
}
