//! Interrupting: that somebody wants work to stop is one fact, that it stopped
//! is another.

use std::time::Duration;

use env_contracts::{Id, Principal, Problem};
use glovebox_events::{Action, ActionState, Interrupt, Reach};
use schemars::JsonSchema;
use serde::Serialize;

use super::receiving::Told;
use super::tasks::{bounded, speaker};
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
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
        let reach = match &asked.target {
            Target::Action(id) => return self.interrupt_action(principal, id, grace).await,
            Target::Turn(_) => Reach::Turn,
            Target::Task(_) => Reach::Task,
            Target::Session(_) => Reach::Session,
            Target::Tree(_) => Reach::Tree,
        };
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
        // Everything is told before anybody is waited for.
        let told = match &asked.target {
            Target::Action(id) | Target::Turn(id) | Target::Task(id) => {
                let task = self.known_task(principal, id)?;
                standing::open(&task)?;
                let tasks = self.receive_task(task, &interrupt, asked.reason.as_deref()).await?;
                Told { sessions: Vec::new(), tasks: tasks.into_iter().collect() }
            }
            Target::Session(id) | Target::Tree(id) => {
                let session = self.interruptible(principal, id).await?;
                self.receive_sessions(session, &interrupt, asked.reason.as_deref()).await?
            }
        };
        let mut out = Interrupted {
            id: Some(interrupt.id.clone()),
            reach,
            received_ms: now,
            stopped_ms: None,
            sessions: told.sessions.iter().map(|session| session.id.clone()).collect(),
            tasks: told.tasks.iter().map(|task| task.id.clone()).collect(),
            ended: Vec::new(),
            stopped: Vec::new(),
            running: Vec::new(),
        };
        let mut running = Vec::new();
        self.tell_all(&told, &interrupt, &mut out.ended, &mut running).await?;
        self.wait_for(principal, &running, grace + SETTLE, &mut out).await?;
        if out.running.is_empty() {
            out.stopped_ms = Some(self.now_ms());
            self.settle_told(&told).await?;
        }
        Ok(out)
    }

    async fn interrupt_action(&self, principal: &Principal, id: &Id, grace: Duration) -> Result<Interrupted, Problem> {
        let action = self.visible(principal, id)?;
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
}
