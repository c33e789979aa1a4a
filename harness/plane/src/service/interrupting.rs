//! Interrupting: that somebody wants work to stop is one fact, that it stopped
//! is another.

use std::collections::BTreeSet;
use std::time::Duration;

use env_contracts::{Id, Principal, Problem};
use glovebox_events::{
    Action, ActionState, Interrupt, PayloadRole, Reach, Session, SessionEvent, StopAsked, Task, TaskEnd, TaskEvent,
    TaskState,
};
use glovebox_store::{ActionFilter, SessionFilter, TaskFilter};
use serde::Serialize;

use super::deed::Deed;
use super::flight::Halt;
use super::halting::word;
use super::journal::Lost;
use super::tasks::{bounded, log, log_of, speaker};
use super::{ActionService, standing};

/// How long is waited, beyond the grace, for what runs to stop: a run that is
/// taken down takes some milliseconds, on a loaded host a second or two.
const SETTLE: Duration = Duration::from_secs(10);

/// The longest grace: whoever wants it to go on for longer wants no interrupt.
pub const MAX_GRACE: Duration = Duration::from_secs(3600);

/// What is to stop.
#[derive(Debug, Clone)]
pub enum Target {
    /// One action.
    Action(Id),
    /// The turn that a task is in: the loop goes on with another.
    Turn(Id),
    /// A task, which is cancelled with it.
    Task(Id),
    /// Everything in a session.
    Session(Id),
    /// Everything in a session and in those below it.
    Tree(Id),
}

/// What somebody wants to stop, and how.
#[derive(Debug, Clone)]
pub struct Interrupting {
    /// What.
    pub target: Target,
    /// How long what runs may go on to end by itself. `None`: not at all.
    pub grace: Option<Duration>,
    /// Why. The loop is told.
    pub reason: Option<String>,
}

/// What became of an interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interrupted {
    /// Its id. Absent for a single action, which says so itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    /// How far it reaches.
    pub reach: Reach,
    /// When it was received, in milliseconds since 1970: from then on nothing
    /// begins, also after a crash.
    pub received_ms: u64,
    /// When nothing ran any more. Absent: something still does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_ms: Option<u64>,
    /// The sessions that it concerns.
    pub sessions: Vec<Id>,
    /// The tasks that it concerns.
    pub tasks: Vec<Id>,
    /// What waited and was ended: its cards are gone.
    pub ended: Vec<Id>,
    /// What ran and has stopped.
    pub stopped: Vec<Id>,
    /// What still runs.
    pub running: Vec<Id>,
}

impl ActionService {
    /// Interrupts: whoever may see it may stop it. What changed something
    /// outside stays changed; whether it did is said by each action.
    ///
    /// # Errors
    /// `action-unknown`, `task-unknown`, `session-unknown`, `task-closed`,
    /// `usage` for a grace that is too long. Whatever happens after the
    /// interrupt was received, it stands.
    pub async fn interrupt(&self, principal: &Principal, asked: Interrupting) -> Result<Interrupted, Problem> {
        bounded("reason", asked.reason.as_deref())?;
        let grace = asked.grace.unwrap_or_default();
        if grace > MAX_GRACE {
            let message = format!("the grace is at most {}", env_contracts::Span(MAX_GRACE));
            return Err(Problem::new(env_contracts::Code::Usage, message));
        }
        let (reach, sessions, tasks) = match &asked.target {
            Target::Action(id) => return self.interrupt_action(principal, id, grace).await,
            Target::Turn(id) => (Reach::Turn, Vec::new(), vec![self.known_task(principal, id)?]),
            Target::Task(id) => (Reach::Task, Vec::new(), vec![self.known_task(principal, id)?]),
            Target::Session(id) => self.below(principal, id, Reach::Session).await?,
            Target::Tree(id) => self.below(principal, id, Reach::Tree).await?,
        };
        if let (Reach::Turn | Reach::Task, Some(task)) = (reach, tasks.first()) {
            standing::open(task)?;
        }
        let now = self.now_ms();
        let interrupt = Interrupt {
            id: self.parts.ids.next(self.parts.clock.now()),
            reach,
            by: speaker(principal),
            at_ms: now,
            grace_ms: now.saturating_add(u64::try_from(grace.as_millis()).unwrap_or(u64::MAX)),
            reason: None,
            stopped_ms: None,
        };
        let mut out = Interrupted {
            id: Some(interrupt.id.clone()),
            reach,
            received_ms: now,
            stopped_ms: None,
            sessions: sessions.iter().map(|session| session.id.clone()).collect(),
            tasks: tasks.iter().map(|task| task.id.clone()).collect(),
            ended: Vec::new(),
            stopped: Vec::new(),
            running: Vec::new(),
        };
        // Everything is told before anybody is waited for.
        for session in &sessions {
            self.receive_session(session, &interrupt).await?;
        }
        let mut concerned = Vec::new();
        for task in tasks {
            concerned.extend(self.receive_task(principal, task, &interrupt, asked.reason.as_deref()).await?);
        }
        let mut running = Vec::new();
        for task in &concerned {
            self.stop_actions(task, &interrupt, &mut out.ended, &mut running).await?;
        }
        for session in &sessions {
            // Actions can belong to tasks that nobody opened.
            for action in self.open_actions(&session.principal.tenant, &session.id, None)? {
                if action.stop.is_none() {
                    self.tell_to_stop(action, &interrupt, "interrupted", &mut out.ended, &mut running).await?;
                }
            }
        }
        self.wait_for(principal, &running, grace + SETTLE, &mut out).await?;
        if out.running.is_empty() {
            out.stopped_ms = Some(self.now_ms());
            for task in &concerned {
                self.settle_stop(&task.principal, &task.id).await?;
            }
            for session in &sessions {
                self.settle_session(principal, &session.id).await?;
            }
        }
        Ok(out)
    }

    /// The session, those below it where the tree is meant, and their tasks.
    async fn below(
        &self,
        principal: &Principal,
        id: &Id,
        reach: Reach,
    ) -> Result<(Reach, Vec<Session>, Vec<Task>), Problem> {
        if self.parts.store.session(&principal.tenant, id)?.is_none() {
            // Clients without sessions work in one that nobody opened.
            let filter = ActionFilter { session: Some(id.clone()), limit: 1, ..ActionFilter::default() };
            if !self.actions(principal, filter)?.items.is_empty() {
                self.task_of(principal, id).await?;
            }
        }
        let mut sessions = vec![self.session(principal, id)?];
        if reach == Reach::Tree {
            let mut filter = SessionFilter { root: Some(sessions[0].root.clone()), ..SessionFilter::default() };
            let mut rest = Vec::new();
            loop {
                let page = self.parts.store.sessions(&principal.tenant, &filter)?;
                rest.extend(page.items.into_iter().filter(|session| session.principal.user == principal.user));
                match page.next {
                    Some(next) => filter.after = Some(next),
                    None => break,
                }
            }
            let mut known = BTreeSet::from([id.clone()]);
            // A child can come before its parent in the list: until none joins.
            while let Some(at) =
                rest.iter().position(|session| session.parent.as_ref().is_some_and(|parent| known.contains(parent)))
            {
                let child = rest.swap_remove(at);
                known.insert(child.id.clone());
                sessions.push(child);
            }
        }
        let mut tasks = Vec::new();
        for session in &sessions {
            let mut filter =
                TaskFilter { session: Some(session.id.clone()), open: true, ..TaskFilter::default() };
            loop {
                let page = self.parts.store.tasks(&principal.tenant, &filter)?;
                tasks.extend(page.items);
                match page.next {
                    Some(next) => filter.after = Some(next),
                    None => break,
                }
            }
        }
        Ok((reach, sessions, tasks))
    }

    async fn receive_session(&self, session: &Session, interrupt: &Interrupt) -> Result<(), Problem> {
        let mut now = Some(session.clone());
        while let Some(session) = now {
            let of = session.principal.clone();
            let mut deed = Deed::new(log(&of, &session.id), interrupt.at_ms);
            let id = session.id.clone();
            deed.session(Some(session), SessionEvent::Interrupted { interrupt: interrupt.clone() })?;
            match deed.commit(&*self.parts.store).await {
                Ok(()) => return Ok(()),
                Err(Lost::Changed) => now = self.parts.store.session(&of.tenant, &id)?,
                Err(lost) => return Err(self.lost(lost)),
            }
        }
        Ok(())
    }

    /// Writes down that a task was interrupted: its turn is closed, its
    /// questions are withdrawn, its turn's grants are void. `None`: it ended
    /// by itself meanwhile.
    async fn receive_task(
        &self,
        principal: &Principal,
        mut task: Task,
        interrupt: &Interrupt,
        reason: Option<&str>,
    ) -> Result<Option<Task>, Problem> {
        loop {
            if task.state != TaskState::Open {
                return Ok(None);
            }
            let id = task.id.clone();
            let tenant = task.principal.tenant.clone();
            let mut deed = Deed::new(log_of(&task), interrupt.at_ms);
            let reason = reason.map(|reason| deed.text(&id, PayloadRole::Remark, reason));
            let turn = task.open_turn().map(|turn| turn.number);
            let interrupt = Interrupt { reason: reason.clone(), ..interrupt.clone() };
            let cancelled = interrupt.reach == Reach::Task;
            let mut next = deed.task(Some(task), &id, TaskEvent::Interrupted { interrupt })?;
            if let Some(turn) = turn {
                next = deed.task(Some(next), &id, TaskEvent::TurnClosed { turn, why: word("interrupted") })?;
            }
            if cancelled {
                let end =
                    TaskEnd { state: TaskState::Cancelled, by: speaker(principal), why: reason, at_ms: deed.at_ms() };
                next = deed.task(Some(next), &id, TaskEvent::Ended { end })?;
            }
            let grants = if cancelled { None } else { Some(turn.unwrap_or_default()) };
            self.void_grants(&mut deed, &next, grants)?;
            self.withdraw_questions(&mut deed, &next, if cancelled { "task-cancelled" } else { "interrupted" })?;
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
    }

    /// Ends what waits in an interrupted task, and tells what runs.
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

    async fn tell_to_stop(
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

    async fn interrupt_action(&self, principal: &Principal, id: &Id, grace: Duration) -> Result<Interrupted, Problem> {
        let action = self.same_user(principal, id)?;
        let now = self.now_ms();
        let interrupt = Interrupt {
            id: action.id.clone(),
            reach: Reach::Action,
            by: speaker(principal),
            at_ms: now,
            grace_ms: now.saturating_add(u64::try_from(grace.as_millis()).unwrap_or(u64::MAX)),
            reason: None,
            stopped_ms: None,
        };
        let mut out = Interrupted {
            id: None,
            reach: Reach::Action,
            received_ms: now,
            stopped_ms: None,
            sessions: Vec::new(),
            tasks: Vec::new(),
            ended: Vec::new(),
            stopped: Vec::new(),
            running: Vec::new(),
        };
        let mut running = Vec::new();
        self.tell_to_stop(action, &interrupt, "cancelled", &mut out.ended, &mut running).await?;
        self.wait_for(principal, &running, grace + SETTLE, &mut out).await?;
        out.stopped_ms = out.running.is_empty().then(|| self.now_ms());
        Ok(out)
    }

    /// Waits until what was told to stop has stopped, or this long.
    async fn wait_for(
        &self,
        principal: &Principal,
        running: &[Action],
        at_most: Duration,
        out: &mut Interrupted,
    ) -> Result<(), Problem> {
        let mut changes = self.parts.store.changes()?;
        let deadline = tokio::time::sleep(at_most);
        tokio::pin!(deadline);
        let mut left: Vec<&Action> = running.iter().collect();
        loop {
            let mut still = Vec::new();
            for action in left {
                let known = self.parts.store.action(&principal.tenant, &action.id)?;
                let runs = known.filter(|known| known.state == ActionState::Running);
                match runs {
                    None => out.stopped.push(action.id.clone()),
                    Some(known) => {
                        let alive = known.holder.as_ref().map_or(Ok(false), |id| self.parts.holders.alive(id))?;
                        if alive || !self.lost_holder(known).await? {
                            still.push(action);
                        } else {
                            out.stopped.push(action.id.clone());
                        }
                    }
                }
            }
            left = still;
            if left.is_empty() {
                return Ok(());
            }
            tokio::select! {
                biased;
                () = &mut deadline => {
                    out.running = left.into_iter().map(|action| action.id.clone()).collect();
                    return Ok(());
                }
                changed = changes.changed() => {
                    if changed.is_err() {
                        changes = self.parts.store.changes()?;
                    }
                }
            }
        }
    }

    /// Writes down that nothing of an interrupted task runs any more, if that
    /// is so.
    pub(super) async fn settle_stop(&self, principal: &Principal, id: &Id) -> Result<bool, Problem> {
        loop {
            let Some(task) = self.parts.store.task(&principal.tenant, id)?.record else { return Ok(false) };
            let Some(interrupt) = task.stopping().cloned() else { return Ok(false) };
            let runs = |action: &Action| {
                action.state == ActionState::Running
                    && action.stop.is_some()
                    && action.requested_ms <= interrupt.at_ms
            };
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

    /// The same for a session: nothing in its tasks is being stopped any more.
    async fn settle_session(&self, principal: &Principal, id: &Id) -> Result<(), Problem> {
        loop {
            let Some(session) = self.parts.store.session(&principal.tenant, id)? else { return Ok(()) };
            let Some(interrupt) = session.stopping().map(|interrupt| interrupt.id.clone()) else { return Ok(()) };
            let filter = TaskFilter { session: Some(id.clone()), ..TaskFilter::default() };
            let tasks = self.parts.store.tasks(&principal.tenant, &filter)?;
            if tasks.items.iter().any(|task| task.stopping().is_some()) {
                return Ok(());
            }
            let mut deed = Deed::new(log(&session.principal, id), self.now_ms());
            deed.session(Some(session), SessionEvent::Stopped { interrupt })?;
            match deed.commit(&*self.parts.store).await {
                Ok(()) => return Ok(()),
                Err(Lost::Changed) => {}
                Err(lost) => return Err(self.lost(lost)),
            }
        }
    }

    /// Goes on with an interrupt whose process is gone: what was not told yet
    /// is told, and that it stopped is written down once it did.
    pub(super) async fn go_on_stopping(&self, task: &Task) -> Result<(), Problem> {
        let Some(interrupt) = task.stopping().cloned() else { return Ok(()) };
        let (mut ended, mut running) = (Vec::new(), Vec::new());
        self.stop_actions(task, &interrupt, &mut ended, &mut running).await?;
        if self.settle_stop(&task.principal, &task.id).await? && matches!(interrupt.reach, Reach::Session | Reach::Tree)
        {
            self.settle_session(&task.principal, &task.session).await?;
        }
        Ok(())
    }
}
