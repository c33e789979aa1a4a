//! Admission: an action starts only when there is room for all it may use.
//!
//! Budgets are the operator's. Whoever does not fit waits in a queue that is
//! fair between tenants; a full queue answers `busy`, and so does a wait that
//! takes too long. What can never fit is refused at once. Processes that share
//! a folder can share their budgets as well.

mod shared;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use env_contracts::{ByteSize, Code, Problem};
use tokio::sync::oneshot;

use shared::{Claim, Shared};

/// What all actions of this process together may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budgets {
    /// Memory, summed over the actions' limits.
    pub memory: ByteSize,
    /// Actions at one time.
    pub actions: u32,
    /// Actions that may wait, for each tenant.
    pub queue: u32,
    /// The longest wait.
    pub wait: Duration,
}

impl Budgets {
    /// The share of the host's memory that actions get unless the operator
    /// says otherwise, in percent: the rest is for the host and for us.
    pub const DEFAULT_SHARE: u64 = 75;

    /// The default budgets for a host of this size.
    pub fn for_host(memory: ByteSize, cpus: u32) -> Self {
        Self {
            memory: ByteSize(memory.0 / 100 * Self::DEFAULT_SHARE),
            // More than a few per processor only makes each of them slower.
            actions: cpus.max(1) * 8,
            queue: 1024,
            wait: Duration::from_secs(60),
        }
    }
}

/// Hands out room. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Admission(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    budgets: Budgets,
    state: Mutex<State>,
    shared: Option<Arc<Shared>>,
}

#[derive(Debug)]
struct State {
    memory: u64,
    actions: u32,
    /// Who waits, by tenant, first come first.
    queues: BTreeMap<String, VecDeque<Waiter>>,
    /// The tenants that have somebody waiting, in turn.
    turns: VecDeque<String>,
}

#[derive(Debug)]
struct Waiter {
    memory: u64,
    ready: oneshot::Sender<Room>,
}

/// Room for one action. Dropping it gives it back.
#[derive(Debug)]
pub struct Room {
    memory: u64,
    admission: Option<Admission>,
    claim: Option<Claim>,
}

impl Admission {
    /// With these budgets, all free.
    pub fn new(budgets: Budgets) -> Self {
        Self::over(budgets, None)
    }

    /// With these budgets, shared by all processes that use this folder. It is
    /// made when it is needed.
    pub fn shared(budgets: Budgets, folder: PathBuf) -> Self {
        Self::over(budgets, Some(Arc::new(Shared::new(folder))))
    }

    fn over(budgets: Budgets, shared: Option<Arc<Shared>>) -> Self {
        let state = State {
            memory: budgets.memory.0,
            actions: budgets.actions,
            queues: BTreeMap::new(),
            turns: VecDeque::new(),
        };
        Self(Arc::new(Inner { budgets, state: Mutex::new(state), shared }))
    }

    /// Room for an action of this tenant that may use so much memory, now or
    /// when it is its turn.
    ///
    /// # Errors
    /// `contract-unsatisfied` if it can never fit, `busy` if the queue is full
    /// or the wait too long, and the host's where budgets are shared.
    pub async fn enter(&self, tenant: &str, memory: ByteSize) -> Result<Room, Problem> {
        let mut room = self.enter_here(tenant, memory).await?;
        if let Some(shared) = self.0.shared.clone() {
            let budgets = self.0.budgets.clone();
            let waits = Waits(Arc::new(AtomicBool::new(true)));
            let wanted = waits.0.clone();
            let claim = tokio::task::spawn_blocking(move || shared.enter(&budgets, memory.0, &wanted)).await;
            room.claim = Some(claim.map_err(|error| Problem::new(Code::BackendError, error.to_string()))??);
        }
        Ok(room)
    }

    async fn enter_here(&self, tenant: &str, memory: ByteSize) -> Result<Room, Problem> {
        let budgets = &self.0.budgets;
        if memory > budgets.memory {
            let message = format!("`limits.memory` is {memory}, and all actions together may use {}", budgets.memory);
            return Err(Problem::new(Code::ContractUnsatisfied, message)
                .with_help("lower `limits.memory`, or raise `admission.memory` in the configuration"));
        }
        let waiting = {
            let mut state = self.lock();
            if state.turns.is_empty() && state.fits(memory.0) {
                return Ok(self.take(&mut state, memory.0));
            }
            let queue = state.queues.entry(tenant.to_owned()).or_default();
            // Those who gave up don't count.
            queue.retain(|waiter| !waiter.ready.is_closed());
            if queue.len() >= budgets.queue as usize {
                return Err(Problem::new(
                    Code::Busy,
                    format!("{} actions of tenant `{tenant}` are waiting already", queue.len()),
                ));
            }
            let (ready, waiting) = oneshot::channel();
            queue.push_back(Waiter { memory: memory.0, ready });
            if !state.turns.iter().any(|turn| turn == tenant) {
                state.turns.push_back(tenant.to_owned());
            }
            self.serve(&mut state);
            waiting
        };
        match tokio::time::timeout(budgets.wait, waiting).await {
            Ok(Ok(room)) => Ok(room),
            _ => {
                // The place in the queue is gone with its receiver; whoever
                // stood behind it may fit.
                self.serve(&mut self.lock());
                Err(Problem::new(Code::Busy, format!("no room within {:?}", budgets.wait)))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is plain numbers: a panic elsewhere leaves it whole.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, state: &mut State, memory: u64) -> Room {
        state.memory -= memory;
        state.actions -= 1;
        Room { memory, admission: Some(self.clone()), claim: None }
    }

    /// Lets in whose turn it is, tenant by tenant, as long as they fit. The
    /// first that does not fit stops everybody, so that a large action is not
    /// passed by small ones for ever.
    fn serve(&self, state: &mut State) {
        while let Some(tenant) = state.turns.front().cloned() {
            let Some(queue) = state.queues.get_mut(&tenant) else {
                state.turns.pop_front();
                continue;
            };
            while queue.front().is_some_and(|waiter| waiter.ready.is_closed()) {
                queue.pop_front();
            }
            let Some(memory) = queue.front().map(|waiter| waiter.memory) else {
                state.queues.remove(&tenant);
                state.turns.pop_front();
                continue;
            };
            if !state.fits(memory) {
                return;
            }
            let waiter = state.queues.get_mut(&tenant).and_then(VecDeque::pop_front);
            state.turns.rotate_left(1);
            if let Some(waiter) = waiter {
                let room = self.take(state, waiter.memory);
                if let Err(mut unwanted) = waiter.ready.send(room) {
                    // Given up in this very moment. Not through Drop, which
                    // would lock again.
                    unwanted.admission = None;
                    state.memory += unwanted.memory;
                    state.actions += 1;
                }
            }
        }
    }
}

/// Tells a thread that waits for us when we don't any more.
struct Waits(Arc<AtomicBool>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl State {
    fn fits(&self, memory: u64) -> bool {
        self.actions > 0 && self.memory >= memory
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(admission) = self.admission.take() {
            self.claim = None;
            let mut state = admission.lock();
            state.memory += self.memory;
            state.actions += 1;
            admission.serve(&mut state);
        }
    }
}
