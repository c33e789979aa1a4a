//! What happens, to whoever wants to know at once.
//!
//! One task reads each newly recorded event once, whoever recorded it, and
//! keeps the newest of each session that somebody reads. Readers take from
//! there, and from the log what they missed: so nothing waits for a reader,
//! and a slow one holds no memory.

mod live;
mod project;
mod stream;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use env_contracts::{Id, Name, Observation, Problem};
use glovebox_events::{LogKey, Logged, What};
use glovebox_plane::ActionService;
use tokio::sync::watch;

use crate::auth::Sight;
use crate::telemetry::Telemetry;

pub(crate) use live::Live;
pub(crate) use project::{Kind, Wire, project};
pub(crate) use stream::{of_action, of_session};

/// How many of the newest events of a session are kept for its readers: some
/// steps of a busy loop. Who is further behind reads the log.
const KEPT: usize = 256;

/// How many events are read in one go.
const BATCH: u32 = 500;

/// How long what is recorded gathers until it is read: nobody sees it, and a
/// busy store is read once for many actions.
const GATHER: Duration = Duration::from_millis(2);

/// What happens.
pub(crate) struct Feed {
    shared: Arc<Shared>,
    service: ActionService,
}

#[derive(Default)]
struct Shared {
    topics: Mutex<HashMap<LogKey, Arc<Topic>>>,
    /// Ticks for each tenant where something changed that people decide on.
    inbox: Mutex<HashMap<Name, watch::Sender<u64>>>,
}

/// A session that somebody reads.
pub(crate) struct Topic {
    newest: Mutex<VecDeque<Arc<Item>>>,
    /// The number of the newest event that is known here; 0: none yet.
    head: watch::Sender<u64>,
    /// What runs in it and says something.
    live: live::Running,
}

/// A recorded event, with its form for readers: worked out by the first of
/// them, for all.
pub(crate) struct Item {
    logged: Logged,
    /// One for each [`Sight`].
    forms: [OnceLock<Arc<[Sent]>>; 3],
}

impl Item {
    fn new(logged: Logged) -> Arc<Self> {
        Arc::new(Self { logged, forms: Default::default() })
    }

    /// The events that it is, for who sees so much.
    fn sent(
        &self,
        sight: Sight,
        end: impl FnOnce() -> Result<Option<Box<Observation>>, Problem>,
    ) -> Result<Arc<[Sent]>, Problem> {
        let place = &self.forms[sight as usize];
        if let Some(sent) = place.get() {
            return Ok(sent.clone());
        }
        let ended = matches!(self.logged.event.what, What::Ended { .. });
        let end = if ended { end()? } else { None };
        let sent: Arc<[Sent]> = project(&self.logged, end.as_deref(), sight).iter().map(Sent::of).collect();
        Ok(place.get_or_init(|| sent).clone())
    }
}

/// An event as it is sent.
#[derive(Clone)]
pub(crate) struct Sent {
    kind: Kind,
    seq: Option<u64>,
    text: Arc<str>,
}

impl Sent {
    fn of(wire: &Wire) -> Self {
        let text = serde_json::to_string(wire).unwrap_or_default();
        Self { kind: wire.kind, seq: wire.seq, text: text.into() }
    }
}

/// Somebody who reads a session. The topic goes with its last reader.
pub(crate) struct Subscription {
    key: LogKey,
    topic: Arc<Topic>,
    shared: Arc<Shared>,
}

impl Feed {
    pub(crate) fn new(service: &ActionService) -> Result<Self, Problem> {
        Ok(Self { shared: Arc::default(), service: service.clone() })
    }

    /// Reads what is recorded from now on, for as long as the server lives.
    pub(crate) fn run(&self, telemetry: Arc<Telemetry>) -> Result<impl Future<Output = ()> + Send + use<>, Problem> {
        let (service, shared) = (self.service.clone(), self.shared.clone());
        let mut changes = service.changes()?;
        let mut rank = service.last_recorded()?;
        Ok(async move {
            loop {
                // A store that can't be read for a moment is read at the next
                // change: nothing is skipped, the rank stays where it was.
                while let Ok(batch) = service.recorded(rank, BATCH) {
                    let Some(last) = batch.last() else { break };
                    rank = last.rank;
                    let more = batch.len() >= BATCH as usize;
                    for recorded in batch {
                        telemetry.recorded(&recorded.logged);
                        shared.push(recorded.logged);
                    }
                    if !more {
                        break;
                    }
                }
                if changes.changed().await.is_err() {
                    match service.changes() {
                        Ok(again) => changes = again,
                        Err(_) => return,
                    }
                }
                tokio::time::sleep(GATHER).await;
            }
        })
    }

    /// Reads along in a session.
    pub(crate) fn subscribe(&self, key: LogKey) -> Subscription {
        let topic = lock(&self.shared.topics).entry(key.clone()).or_default().clone();
        Subscription { key, topic, shared: self.shared.clone() }
    }

    /// Where an action of this session says what it does.
    pub(crate) fn live(&self, tenant: Name, session: Id) -> Live {
        Live::new(self.shared.clone(), LogKey { tenant, session })
    }

    /// Ticks when something changed that people of this tenant decide on.
    pub(crate) fn inbox(&self, tenant: &Name) -> watch::Receiver<u64> {
        let mut inbox = lock(&self.shared.inbox);
        inbox.entry(tenant.clone()).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }
}

impl Default for Topic {
    fn default() -> Self {
        Self { newest: Mutex::default(), head: watch::Sender::new(0), live: live::Running::default() }
    }
}

impl Shared {
    fn push(&self, logged: Logged) {
        if concerns_people(&logged.event.what)
            && let Some(inbox) = lock(&self.inbox).get(&logged.log.tenant)
        {
            inbox.send_modify(|count| *count += 1);
        }
        let topic = lock(&self.topics).get(&logged.log).cloned();
        let Some(topic) = topic else { return };
        let seq = logged.seq;
        let mut newest = lock(&topic.newest);
        if newest.len() == KEPT {
            newest.pop_front();
        }
        newest.push_back(Item::new(logged));
        drop(newest);
        topic.head.send_replace(seq);
    }
}

/// Whether a card may have appeared, changed or gone.
fn concerns_people(what: &What) -> bool {
    matches!(
        what,
        What::ApprovalOpened { .. }
            | What::ApprovalAnswered { .. }
            | What::ApprovalExpired { .. }
            | What::ApprovalWithdrawn { .. }
            | What::Drifted { .. }
            | What::Claimed { .. }
            | What::Ended { .. }
            | What::Reviewed { .. }
            | What::Question { .. }
            | What::Halted { .. }
            | What::Released { .. }
    )
}

impl Subscription {
    /// The events after this one, where all of them are at hand.
    fn after(&self, after: u64) -> Option<Vec<Arc<Item>>> {
        let newest = lock(&self.topic.newest);
        let first = newest.front()?.logged.seq;
        (first <= after + 1).then(|| newest.iter().filter(|item| item.logged.seq > after).cloned().collect())
    }

    /// Ticks with each new event.
    fn head(&self) -> watch::Receiver<u64> {
        self.topic.head.subscribe()
    }

    /// Ticks when something that runs says something.
    fn ticks(&self) -> watch::Receiver<u64> {
        self.topic.live.ticks()
    }

    /// What runs and says something.
    fn live(&self) -> std::collections::BTreeMap<Id, live::Saying> {
        self.topic.live.now()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut topics = lock(&self.shared.topics);
        // Ours and that of the table.
        if topics.get(&self.key).is_some_and(|topic| Arc::strong_count(topic) <= 2) {
            topics.remove(&self.key);
        }
    }
}

/// Each of these locks is held for a look or a change that can't panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
