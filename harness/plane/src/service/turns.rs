//! Turns: the boundary between two steps of a loop.

use env_contracts::{Code, Id, Name, Principal, Problem};
use glovebox_events::{Action, ActionState, Entry, Grant, Owner, PayloadRole, StopAsked, Task, TaskEvent, Told, Turn};
use glovebox_store::{ActionFilter, Content, GrantFilter};
use schemars::JsonSchema;
use serde::Deserialize;

use super::deed::Deed;
use super::flight::Halt;
use super::halting::word;
use super::journal::Lost;
use super::starting::TurnStart;
use super::tasks::{bounded, log_of, speaker};
use super::{ActionService, looking, standing};
use crate::machine::{Change, Pending, Then, after};

/// The longest thing that a loop records at once, in bytes. What is larger is
/// an artifact.
pub const MAX_ENTRY: usize = 256 * 1024;

/// What a loop opens its next step with.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenTurn {
    /// The task.
    pub task: Id,
    /// The number of the turn that it was in; 0: it had none.
    pub expected_turn: u64,
    /// The version of the goal that it works for.
    pub goal_version: u32,
    /// A name for this very call: with it, the answer to a call whose answer
    /// was lost can be had again.
    #[serde(default)]
    pub key: Option<Name>,
}

/// What is recorded into the log of a task.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Telling {
    /// In which turn.
    #[serde(default)]
    pub turn: Option<u64>,
    /// What caused it.
    #[serde(default)]
    pub parents: Vec<Id>,
    /// What it is.
    pub what: Told,
    /// The words or the document.
    #[serde(default)]
    pub content: Option<String>,
}

impl ActionService {
    /// Begins the next step of a loop: closes the turn before, with its grants
    /// and what waits in it, and tells everything that was said meanwhile.
    ///
    /// # Errors
    /// `turn-conflict` where the task is in another turn, `goal-changed` where
    /// it has another goal, `task-closed`, `interrupted` while it is being
    /// stopped.
    pub async fn open_turn(&self, principal: &Principal, open: OpenTurn) -> Result<TurnStart, Problem> {
        let by = speaker(principal);
        let known = self.known_task(principal, &open.task)?;
        self.acts(principal, &known)?;
        // What ran in a process that is gone has an end before it is told of.
        for action in self.actions_of(&known)?.into_iter().filter(|action| action.state == ActionState::Running) {
            let alive = action.holder.as_ref().map_or(Ok(false), |holder| self.parts.holders.alive(holder))?;
            if !alive {
                Box::pin(self.lost_holder(action)).await?;
            }
        }
        let (task, start) = loop {
            let task = self.known_task(principal, &open.task)?;
            self.acts(principal, &task)?;
            standing::open(&task)?;
            self.in_open_session(&task).await?;
            if let Some(turn) = &task.turn
                && open.key.is_some()
                && turn.key == open.key
                && turn.number == open.expected_turn + 1
            {
                let start = self.start_of(&task, turn)?;
                break (task, TurnStart { repeated: true, ..start });
            }
            if let Some(turn) = &task.turn
                && open.key.is_some()
                && turn.key == open.key
            {
                let message = format!("turn {} was opened with that key, from another one", turn.number);
                return Err(Problem::new(Code::KeyConflict, message));
            }
            let last = task.turn.as_ref().map_or(0, |turn| turn.number);
            if last != open.expected_turn {
                return Err(standing::other_turn(&task, open.expected_turn));
            }
            if open.goal_version != task.goal.version {
                let message =
                    format!("task `{}` has goal {}, and not {}", task.id, task.goal.version, open.goal_version);
                return Err(Problem::new(Code::GoalChanged, message));
            }
            if task.stopping().is_some() {
                // Whoever stops it may be gone, and what ran over by now.
                if Box::pin(self.go_on_stopping(&task)).await? {
                    continue;
                }
                let message = format!("task `{}` is being stopped", task.id);
                return Err(Problem::new(Code::Interrupted, message)
                    .with_help("open the turn again once nothing runs any more"));
            }
            if let Some(before) = task.open_turn().map(|turn| turn.number) {
                // First, so that what begins in it no more is not told of, and
                // what began is.
                self.end_turn(task, before, "next").await?;
                self.void(&self.known_task(principal, &open.task)?, &by, Change::Turn, older(before)).await?;
                continue;
            }
            let mut deed = Deed::new(log_of(&task), self.now_ms().max(task.changed_ms));
            let start = self.start(&mut deed, &task, last + 1)?;
            let mut next = task;
            self.void_grants(&mut deed, &next, Some(last))?;
            let turn = Turn {
                number: last + 1,
                goal: next.goal.version,
                start: deed.json(&open.task, PayloadRole::Start, &start),
                key: open.key.clone(),
                opened_ms: deed.at_ms(),
                closed: None,
            };
            let steers = next.steers.iter().map(|steer| steer.id.clone()).collect();
            next = deed.task(Some(next), &open.task, TaskEvent::TurnOpened { turn, steers })?;
            self.tell_answers(&mut deed, &next, &start)?;
            match deed.commit(&*self.parts.store).await {
                Ok(()) => break (next, start),
                Err(Lost::Changed) => {}
                Err(lost) => return Err(self.lost(lost)),
            }
        };
        // Once more where an earlier call did not come to its end.
        self.void(&task, &by, Change::Turn, older(open.expected_turn)).await?;
        Ok(start)
    }

    /// Ends a step without another: nothing can be asked or begun in it any
    /// more.
    ///
    /// # Errors
    /// `turn-conflict` where another turn is open.
    pub async fn close_turn(&self, principal: &Principal, id: &Id, turn: u64) -> Result<Task, Problem> {
        let task = loop {
            let task = self.known_task(principal, id)?;
            self.acts(principal, &task)?;
            match &task.turn {
                Some(known) if known.number == turn && known.closed.is_some() => break task,
                Some(known) if known.number == turn => {}
                _ => return Err(standing::other_turn(&task, turn)),
            }
            self.end_turn(task, turn, "closed").await?;
        };
        self.void(&task, &speaker(principal), Change::Turn, older(turn)).await?;
        Ok(task)
    }

    /// Writes down that a turn is over, with its grants. Whoever else changed
    /// the task first, it is looked at again.
    async fn end_turn(&self, task: Task, turn: u64, why: &str) -> Result<(), Problem> {
        let id = task.id.clone();
        let mut deed = Deed::new(log_of(&task), self.now_ms().max(task.changed_ms));
        let closed = deed.task(Some(task), &id, TaskEvent::TurnClosed { turn, why: word(why) })?;
        self.void_grants(&mut deed, &closed, Some(turn))?;
        match deed.commit(&*self.parts.store).await {
            Ok(()) | Err(Lost::Changed) => Ok(()),
            Err(lost) => Err(self.lost(lost)),
        }
    }

    /// Records something into the log of a task.
    ///
    /// # Errors
    /// `task-unknown`, `turn-conflict` for a turn that there was not, `usage`
    /// for what is too long.
    pub async fn tell(&self, principal: &Principal, id: &Id, telling: Telling) -> Result<Entry, Problem> {
        if telling.content.as_ref().is_some_and(|content| content.len() > MAX_ENTRY) {
            let message = format!("an entry has at most {MAX_ENTRY} bytes; what is larger is an artifact");
            return Err(Problem::new(Code::Usage, message));
        }
        match &telling.what {
            Told::ModelCall { model, .. } => bounded("model's name", Some(model))?,
            Told::Verified { .. } => {}
            _ if telling.content.as_ref().is_none_or(|content| content.trim().is_empty()) => {
                return Err(Problem::new(Code::Usage, "there is nothing to record: it has no words"));
            }
            _ => {}
        }
        if matches!(telling.what, Told::Feedback) && principal.agent.is_some() {
            return Err(Problem::new(Code::NotEligible, "an agent gives no feedback on itself")
                .with_help("a person does: without --agent and $GLOVEBOX_AGENT"));
        }
        loop {
            let task = self.known_task(principal, id)?;
            self.acts(principal, &task)?;
            let last = task.turn.as_ref().map_or(0, |turn| turn.number);
            if let Some(turn) = telling.turn
                && !(1..=last).contains(&turn)
            {
                return Err(standing::other_turn(&task, turn));
            }
            if let Told::Verified { goal, .. } = telling.what
                && goal > task.goal.version
            {
                return Err(Problem::new(Code::GoalChanged, format!("task `{id}` has no goal {goal}")));
            }
            let after = matches!(telling.what, Told::Verified { .. } | Told::Outcome | Told::Feedback);
            if !after {
                standing::open(&task)?;
            }
            let mut deed = Deed::new(log_of(&task), self.now_ms().max(task.changed_ms));
            let content = telling.content.as_ref().map(|content| deed.text(id, PayloadRole::Entry, content));
            let entry = Entry {
                id: self.parts.ids.next(self.parts.clock.now()),
                turn: telling.turn,
                parents: telling.parents.clone(),
                by: speaker(principal),
                what: telling.what.clone(),
                content,
            };
            deed.task(Some(task), id, TaskEvent::Told { entry: entry.clone() })?;
            match deed.commit(&*self.parts.store).await {
                Ok(()) => return Ok(entry),
                Err(Lost::Changed) => {}
                Err(lost) => return Err(self.lost(lost)),
            }
        }
    }

    /// What a loop was told when it opened this turn.
    fn start_of(&self, task: &Task, turn: &Turn) -> Result<TurnStart, Problem> {
        let of = Owner::Task(task.id.clone());
        match self.parts.store.payload(&task.principal.tenant, &of, &turn.start)? {
            Some(Content::Bytes(bytes)) => looking::decode(&bytes),
            Some(Content::Erased) | None => {
                let message = format!("what turn {} of task `{}` was told was erased", turn.number, task.id);
                Err(Problem::new(Code::Expired, message).with_help("open the next turn"))
            }
        }
    }

    /// Takes back the grants that hold in one turn of a task, or in any of
    /// them.
    pub(super) fn void_grants(&self, deed: &mut Deed, task: &Task, turn: Option<u64>) -> Result<(), Problem> {
        let filter = GrantFilter {
            live_at: Some(deed.at_ms()),
            user: Some(task.principal.user.clone()),
            session: Some(task.session.clone()),
        };
        let ends = |grant: &Grant| {
            grant.task.as_ref() == Some(&task.id)
                && match turn {
                    Some(turn) => grant.turn.is_some_and(|of| of <= turn),
                    None => true,
                }
        };
        if turn.is_some() && after(Pending::TurnGrant, Change::Turn) != Then::Cancel {
            return Ok(());
        }
        for grant in self.parts.store.grants(&task.principal.tenant, &filter)?.into_iter().filter(ends) {
            deed.revoke(grant, &task.principal.user);
        }
        Ok(())
    }

    /// Ends what this change leaves nothing of, and takes its cards away. What
    /// runs goes on.
    pub(super) async fn void(
        &self,
        task: &Task,
        by: &Name,
        change: Change,
        which: impl Fn(&Action) -> bool,
    ) -> Result<(), Problem> {
        let why = standing::why(change);
        for action in self.actions_of(task)? {
            let over = standing::pending(&action).is_some_and(|pending| after(pending, change) == Then::Cancel);
            if !over || !which(&action) {
                continue;
            }
            let stop = StopAsked { by: by.clone(), at_ms: self.now_ms(), why: word(why), grace_ms: None };
            match self.stop_one(action, stop).await {
                // It went on by itself meanwhile, to where it finds out.
                Ok(()) | Err(Halt::Changed | Halt::Refused(_)) => {}
                Err(Halt::Failed(problem)) => return Err(problem),
            }
        }
        Ok(())
    }

    /// What has not ended in a task.
    pub(super) fn actions_of(&self, task: &Task) -> Result<Vec<Action>, Problem> {
        self.open_actions(&task.principal.tenant, &task.session, Some(&task.id))
    }

    /// What has not ended in a session, or in a task of it.
    pub(super) fn open_actions(&self, tenant: &Name, session: &Id, task: Option<&Id>) -> Result<Vec<Action>, Problem> {
        let mut filter = ActionFilter {
            session: Some(session.clone()),
            task: task.cloned(),
            states: looking::open_states(),
            ..ActionFilter::default()
        };
        let mut out = Vec::new();
        loop {
            let page = self.parts.store.actions(tenant, &filter)?;
            out.extend(page.items);
            match page.next {
                Some(next) => filter.after = Some(next),
                None => return Ok(out),
            }
        }
    }
}

/// What was asked for in this turn or before.
fn older(turn: u64) -> impl Fn(&Action) -> bool {
    move |action| action.turn.is_some_and(|of| of <= turn)
}
