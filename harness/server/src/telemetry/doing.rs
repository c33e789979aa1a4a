//! Actions, as their events tell of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use env_contracts::{CapabilityName, Id};
use glovebox_events::{Action, End, LogKey, Logged, What};

use super::Telemetry;
use super::spans::{Deed, Parents};

/// How many actions are followed from their request to their end: more than
/// people have waiting for them. Of others only the end is counted.
const MOST: usize = 65_536;

/// Actions that have not ended.
#[derive(Default)]
pub(super) struct Doing {
    open: Mutex<HashMap<(LogKey, Id), Open>>,
    pub(super) parents: Parents,
}

/// One of them.
struct Open {
    capability: CapabilityName,
    asked_ms: u64,
    /// Since when it waits for people.
    waits_since_ms: Option<u64>,
    waited_ms: u64,
    /// Whether its tool began to run.
    ran: bool,
}

impl Open {
    fn new(capability: &CapabilityName, asked_ms: u64) -> Self {
        Self { capability: capability.clone(), asked_ms, waits_since_ms: None, waited_ms: 0, ran: false }
    }

    fn no_longer_waits(&mut self, at_ms: u64) {
        if let Some(since) = self.waits_since_ms.take() {
            self.waited_ms += at_ms.saturating_sub(since);
        }
    }
}

impl Telemetry {
    /// Something was recorded.
    pub(crate) fn recorded(&self, logged: &Logged) {
        let (event, Some(action)) = (&logged.event, &logged.event.action) else { return };
        let change = |change: &dyn Fn(&mut Open)| {
            let mut open = self.doing.open.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(one) = open.get_mut(&(logged.log.clone(), action.clone())) {
                change(one);
            }
        };
        match &event.what {
            What::Requested { capability, .. } => {
                self.follow(&logged.log, action, Open::new(&capability.name, event.at_ms));
            }
            What::ApprovalOpened { .. } => change(&|open| open.waits_since_ms = Some(event.at_ms)),
            What::ApprovalAnswered { .. } | What::ApprovalExpired { .. } | What::ApprovalWithdrawn { .. } => {
                change(&|open| open.no_longer_waits(event.at_ms));
            }
            What::Claimed { .. } => change(&|open| open.ran = true),
            What::Ended { end } => self.ended(&logged.log, action, event.at_ms, end),
            _ => {}
        }
    }

    /// Follows an action that was asked for before this server was there.
    pub(crate) fn found(&self, action: &Action) {
        let log = LogKey { tenant: action.principal.tenant.clone(), session: action.session.clone() };
        let mut open = Open::new(&action.capability.name, action.requested_ms);
        open.ran = action.holder.is_some();
        open.waits_since_ms = action.pending().map(|approval| approval.opened_ms);
        self.follow(&log, &action.id, open);
    }

    fn follow(&self, log: &LogKey, action: &Id, new: Open) {
        let mut open = self.doing.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() < MOST {
            // What was found may be recorded again right after.
            open.entry((log.clone(), action.clone())).or_insert(new);
        }
    }

    fn ended(&self, log: &LogKey, action: &Id, at_ms: u64, end: &End) {
        let key = (log.clone(), action.clone());
        let known = self.doing.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        let parent = self.doing.parents.take(action.as_str());
        let Some(mut open) = known else {
            self.metrics.ended(None, end.kind, None, None);
            return;
        };
        open.no_longer_waits(at_ms);
        let ran = open.ran.then(|| Duration::from_micros(end.run_us));
        let waited = (open.waited_ms > 0).then(|| Duration::from_millis(open.waited_ms));
        self.metrics.ended(Some(&open.capability), end.kind, ran, waited);
        if let Some(spans) = &self.spans {
            spans.action(Deed {
                tool: open.capability.as_str(),
                action: action.as_str(),
                session: log.session.as_str(),
                outcome: end.kind.to_string(),
                code: end.code,
                asked_ms: open.asked_ms,
                ended_ms: at_ms,
                waited_ms: open.waited_ms,
                parent,
            });
        }
    }
}
