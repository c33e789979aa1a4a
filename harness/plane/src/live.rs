//! What runs in this process, for whoever follows its output.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use env_contracts::{Id, Name, Principal};
use tokio::sync::watch;

use crate::streams::Streams;

/// The runs of this process that are under way. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct Live(Arc<Shared>);

#[derive(Default)]
struct Shared {
    runs: Mutex<BTreeMap<Key, Running>>,
    /// Ticks when a run begins.
    began: watch::Sender<u64>,
}

type Key = (Name, Id);

/// A run that is under way.
#[derive(Clone)]
pub(crate) struct Running {
    /// Who asked for it.
    pub(crate) principal: Principal,
    /// What it says.
    pub(crate) streams: Streams,
}

impl Live {
    /// Lists a run until the answer is dropped, however that comes about.
    pub(crate) fn list(&self, principal: &Principal, action: &Id, streams: &Streams) -> Listed {
        let key = (principal.tenant.clone(), action.clone());
        let running = Running { principal: principal.clone(), streams: streams.clone() };
        {
            let mut runs = self.lock();
            runs.insert(key.clone(), running);
            // Under the lock: whoever listens does so before it looks.
            if self.0.began.receiver_count() > 0 {
                self.0.began.send_modify(|count| *count = count.wrapping_add(1));
            }
        }
        Listed { live: self.clone(), key, streams: streams.clone() }
    }

    /// A run of this process.
    pub(crate) fn get(&self, tenant: &Name, action: &Id) -> Option<Running> {
        self.lock().get(&(tenant.clone(), action.clone())).cloned()
    }

    /// Ticks from now on when a run begins.
    pub(crate) fn began(&self) -> watch::Receiver<u64> {
        self.0.began.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Running>> {
        // It is whole after every step: a panic elsewhere leaves it so.
        self.0.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run that is listed.
pub(crate) struct Listed {
    live: Live,
    key: Key,
    streams: Streams,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.live.lock().remove(&self.key);
        // Whoever follows it looks once more, and finds how it ended. A thread
        // that was left behind can keep the streams for ever.
        self.streams.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_runtime::bind::RunDir;

    #[test]
    fn a_run_is_listed_until_whoever_carries_it_is_gone() {
        let live = Live::default();
        let principal: Principal = serde_json::from_str(r#"{ "tenant": "local", "user": "u" }"#).unwrap();
        let (action, other): (Id, Name) = ("a1".parse().unwrap(), "other".parse().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let streams = Streams::new(&Arc::new(RunDir::new(folder.path(), "a1")), 0);
        let moved = streams.moved();
        let listed = live.list(&principal, &action, &streams);
        assert!(live.get(&principal.tenant, &action).is_some());
        assert!(live.get(&other, &action).is_none(), "another tenant's may have the same name");
        let panicked = std::thread::spawn(move || {
            let _listed = listed;
            panic!("on purpose");
        });
        assert!(panicked.join().is_err());
        assert!(live.get(&principal.tenant, &action).is_none() && live.lock().is_empty());
        assert!(moved.has_changed().unwrap(), "whoever follows it is told");
    }
}
