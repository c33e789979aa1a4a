//! Containers that stand and wait for their tool.
//!
//! Making one takes a quarter of a second and more; telling one that stands to
//! start a tool takes a millisecond. So a process that goes on keeps some, of the
//! shapes that were needed last. Each serves one action and is gone: nothing that
//! a tool touched is ever given to another. What differs from action to action
//! comes over the conversation; what can't (folders of this host that are shown)
//! is part of the shape, and such shapes are not kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use env_contracts::Problem;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::containers::Containers;
use crate::drive::{Sandbox, taken_down};
use crate::prepare::{Member, answers, stand_up};
use crate::recipe::Shape;
use crate::session::Session;

/// How many of one shape wait: one is taken while the next is made.
const EACH: usize = 2;
/// How long a shape is kept that nobody needs.
const IDLE: Duration = Duration::from_secs(300);
/// How often those that wait are asked for a sign of life: a supervisor that
/// hears nothing ends.
const ROUND: Duration = Duration::from_secs(10);
/// How long none is made after one could not be: an engine in trouble is left
/// alone.
const HOLD: Duration = Duration::from_secs(30);
/// What the names of those that wait begin with, where others have an action.
const NOBODY_YET: &str = "warm";

/// Containers that wait.
pub(crate) struct Pool {
    most: usize,
    state: Mutex<State>,
    /// What is being made or taken down.
    tasks: TaskTracker,
}

#[derive(Default)]
struct State {
    shelves: HashMap<Shape, Shelf>,
    closed: bool,
    hold: Option<Instant>,
    /// Why none waits any more.
    distrusted: Option<String>,
    /// Whether somebody goes round.
    tended: bool,
}

/// What becomes of one that was made, or looked at.
enum Made {
    Waits,
    /// Nobody needs one of its shape any more.
    Unwanted(Box<Member>),
    Failed,
}

struct Shelf {
    waiting: Vec<Member>,
    making: usize,
    needed: Instant,
}

impl State {
    fn count(&self) -> usize {
        self.shelves.values().map(|shelf| shelf.waiting.len() + shelf.making).sum()
    }
}

impl Pool {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, state: Mutex::default(), tasks: TaskTracker::new() }
    }

    /// Whether containers wait here at all. Where one ended otherwise than it
    /// reported none does any more: each action then has a container of its own,
    /// whose end is compared before anybody hears of the result.
    pub(crate) fn is_open(&self) -> bool {
        let state = self.lock();
        self.most > 0 && !state.closed && state.distrusted.is_none()
    }

    /// Why no container waits any more, to be known by whoever looks.
    pub(crate) fn distrusted(&self) -> Option<String> {
        self.lock().distrusted.clone()
    }

    fn distrust(&self, why: String) {
        let shelves = {
            let mut state = self.lock();
            state.distrusted.get_or_insert(why);
            std::mem::take(&mut state.shelves)
        };
        self.clear(shelves.into_values());
    }

    /// Does something that ends in a container's being gone: it is waited for.
    pub(crate) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.tasks.spawn(work)
    }

    /// One of this shape that waits and answers.
    pub(crate) async fn take(&self, shape: &Shape) -> Option<Member> {
        loop {
            let mut member = self.lock().shelves.get_mut(shape)?.waiting.pop()?;
            if answers(&mut member).await {
                return Some(member);
            }
        }
    }

    /// An action is over: its container is taken down, and one of its shape is
    /// made for the next.
    pub(crate) fn finish(
        &self,
        containers: &Arc<Containers>,
        shape: Shape,
        sandbox: Sandbox,
        session: Session,
        reported: Option<i32>,
    ) {
        let keeper = containers.clone();
        self.tasks.spawn(async move {
            // What is still there after this is swept.
            if let (Some(other), _) = taken_down(sandbox, session, reported).await {
                keeper.pool().distrust(other);
            }
        });
        if shape.shown.is_empty() {
            self.want(&shape);
            self.refill(containers);
            self.tend(containers);
        }
    }

    /// Remembers that a shape is needed. Where there is no room for it, the one
    /// goes that was not needed for longest.
    fn want(&self, shape: &Shape) {
        let mut gone = Vec::new();
        let mut state = self.lock();
        if state.distrusted.is_some() {
            return;
        }
        let now = Instant::now();
        let new = || Shelf { waiting: Vec::new(), making: 0, needed: now };
        state.shelves.entry(shape.clone()).or_insert_with(new).needed = now;
        while state.count() >= self.most && state.shelves.len() > 1 {
            let oldest =
                state.shelves.iter().filter(|(other, _)| *other != shape).min_by_key(|(_, shelf)| shelf.needed);
            let Some(oldest) = oldest.map(|(shape, _)| shape.clone()) else { break };
            gone.extend(state.shelves.remove(&oldest));
        }
        drop(state);
        self.clear(gone);
    }

    /// Makes what is missing, at most one of a shape at a time.
    fn refill(&self, containers: &Arc<Containers>) {
        let mut state = self.lock();
        if state.closed || state.distrusted.is_some() || state.hold.is_some_and(|until| Instant::now() < until) {
            return;
        }
        let mut room = self.most.saturating_sub(state.count());
        let mut missing = Vec::new();
        for (shape, shelf) in &mut state.shelves {
            if room > 0 && shelf.making == 0 && shelf.waiting.len() < EACH {
                shelf.making += 1;
                room -= 1;
                missing.push(shape.clone());
            }
        }
        drop(state);
        for shape in missing {
            let containers = containers.clone();
            self.tasks.spawn(async move {
                let name = format!("{NOBODY_YET}-{}", uuid::Uuid::new_v4().simple());
                let pool = containers.pool();
                let made = Box::pin(stand_up(&containers, &name, &shape, &pool.tasks)).await;
                match pool.made(&shape, made) {
                    Made::Waits => pool.refill(&containers),
                    Made::Unwanted(member) => drop(taken_down(member.sandbox, member.session, None).await),
                    Made::Failed => {}
                }
            });
        }
    }

    /// What came of making one.
    fn made(&self, shape: &Shape, made: Result<Member, Problem>) -> Made {
        let mut state = self.lock();
        if made.is_err() {
            state.hold = Some(Instant::now() + HOLD);
        }
        // Without its shelf, nobody needs it any more. A shelf may be a new one,
        // which knows nothing of what was begun for the one before.
        let shelf = state.shelves.get_mut(shape);
        match (made, shelf) {
            (Ok(member), Some(shelf)) => {
                shelf.making = shelf.making.saturating_sub(1);
                shelf.waiting.push(member);
                Made::Waits
            }
            (Ok(member), None) => Made::Unwanted(Box::new(member)),
            (Err(_), Some(shelf)) => {
                shelf.making = shelf.making.saturating_sub(1);
                Made::Failed
            }
            (Err(_), None) => Made::Failed,
        }
    }

    /// Takes down what waits on shelves that are needed no more.
    fn clear(&self, shelves: impl IntoIterator<Item = Shelf>) {
        for Member { sandbox, session } in shelves.into_iter().flat_map(|shelf| shelf.waiting) {
            self.tasks.spawn(taken_down(sandbox, session, None));
        }
    }

    /// Goes round while there is something to look after.
    fn tend(&self, containers: &Arc<Containers>) {
        if std::mem::replace(&mut self.lock().tended, true) {
            return;
        }
        let weak = Arc::downgrade(containers);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(ROUND).await;
                let Some(containers) = weak.upgrade() else { return };
                let pool = containers.pool();
                if pool.lock().closed {
                    return;
                }
                pool.round().await;
                pool.refill(&containers);
            }
        });
    }

    /// Hears of every one that waits; those that don't answer, and those that
    /// nobody needs, are gone.
    async fn round(&self) {
        let mut gone = Vec::new();
        let waiting: Vec<(Shape, Vec<Member>)> = {
            let mut state = self.lock();
            let idle: Vec<Shape> = state
                .shelves
                .iter()
                .filter(|(_, shelf)| shelf.needed.elapsed() > IDLE)
                .map(|(shape, _)| shape.clone())
                .collect();
            for shape in idle {
                gone.extend(state.shelves.remove(&shape));
            }
            let take = |(shape, shelf): (&Shape, &mut Shelf)| (shape.clone(), std::mem::take(&mut shelf.waiting));
            state.shelves.iter_mut().map(take).collect()
        };
        self.clear(gone);
        for (shape, members) in waiting {
            for mut member in members {
                if !answers(&mut member).await {
                    continue;
                }
                if let Made::Unwanted(member) = self.returned(&shape, member) {
                    self.tasks.spawn(taken_down(member.sandbox, member.session, None));
                }
            }
        }
    }

    /// One that was looked at goes back to its shelf.
    fn returned(&self, shape: &Shape, member: Member) -> Made {
        match self.lock().shelves.get_mut(shape) {
            Some(shelf) => {
                shelf.waiting.push(member);
                Made::Waits
            }
            None => Made::Unwanted(Box::new(member)),
        }
    }

    /// Ends all that waits, and waits for what is being made or taken down.
    pub(crate) async fn drain(&self) {
        let shelves = {
            let mut state = self.lock();
            state.closed = true;
            std::mem::take(&mut state.shelves)
        };
        self.clear(shelves.into_values());
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
