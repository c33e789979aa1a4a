//! What a running action says, which is in no log: its phase, how far it is,
//! that there is more output. Only the newest is kept, so a flood of it costs
//! nothing; the output itself is read by its offset.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use env_contracts::Id;
use glovebox_events::LogKey;
use glovebox_runtime::job::Frame;
use tokio::sync::watch;

use super::{Shared, lock};

/// What runs in a session.
pub(crate) struct Running {
    actions: Mutex<BTreeMap<Id, Saying>>,
    ticks: watch::Sender<u64>,
}

/// What an action says now.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Saying {
    /// A line for people; guests have a part in it.
    pub(crate) line: Option<String>,
    /// How far it says that it is, and of how much.
    pub(crate) progress: Option<(u64, Option<u64>)>,
    /// Bytes of standard output and standard error until now.
    pub(crate) bytes: (u64, u64),
}

impl Default for Running {
    fn default() -> Self {
        Self { actions: Mutex::default(), ticks: watch::Sender::new(0) }
    }
}

impl Running {
    pub(crate) fn ticks(&self) -> watch::Receiver<u64> {
        self.ticks.subscribe()
    }

    pub(crate) fn now(&self) -> BTreeMap<Id, Saying> {
        lock(&self.actions).clone()
    }
}

/// Where an action says what it does. Where nobody reads, nothing is kept.
pub(crate) struct Live {
    shared: Arc<Shared>,
    key: LogKey,
}

impl Live {
    pub(super) fn new(shared: Arc<Shared>, key: LogKey) -> Self {
        Self { shared, key }
    }

    /// It entered a phase.
    pub(crate) fn phase(&self, action: &Id, line: &str) {
        self.change(action, |saying| saying.line = Some(line.to_owned()));
    }

    /// The guest said something.
    pub(crate) fn frame(&self, action: &Id, frame: &Frame<'_>) {
        self.change(action, |saying| match frame {
            Frame::Stdout(bytes) => saying.bytes.0 += bytes.len() as u64,
            Frame::Stderr(bytes) => saying.bytes.1 += bytes.len() as u64,
            Frame::Log { message, .. } => saying.bytes.1 += message.len() as u64,
            Frame::Progress { done, total, message } => {
                saying.progress = Some((*done, *total));
                saying.line = Some((*message).to_owned());
            }
        });
    }

    /// It says nothing more.
    pub(crate) fn over(&self, action: &Id) {
        if let Some(topic) = lock(&self.shared.topics).get(&self.key) {
            lock(&topic.live.actions).remove(action);
        }
    }

    fn change(&self, action: &Id, change: impl FnOnce(&mut Saying)) {
        let topic = lock(&self.shared.topics).get(&self.key).cloned();
        let Some(topic) = topic else { return };
        change(lock(&topic.live.actions).entry(action.clone()).or_default());
        topic.live.ticks.send_modify(|count| *count += 1);
    }
}
