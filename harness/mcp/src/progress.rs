//! Progress of a running call, for clients that asked for it.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use env_contracts::Id;
use glovebox_plane::Watch;
use glovebox_runtime::job::Frame;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::Notify;

/// How often a client is told at most: people read no faster, and a tool may
/// report a million steps a second.
const EVERY: Duration = Duration::from_millis(250);

/// By how much a step without a number moves progress on.
const STEP: f64 = 0.001;

/// The newest of what was said, until it is told.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    newest: Mutex<Option<Said>>,
    moved: Notify,
    action: OnceLock<Id>,
}

#[derive(Debug, Default, Clone)]
struct Said {
    done: Option<u64>,
    total: Option<u64>,
    message: String,
}

impl Watch for Progress {
    fn begun(&self, action: &Id) {
        let _ = self.action.set(action.clone());
    }

    fn phase(&self, line: &str) {
        self.say(Said { message: plain(line), ..Said::default() });
    }

    fn frame(&self, frame: &Frame<'_>) {
        if let Frame::Progress { done, total, message } = frame {
            self.say(Said { done: Some(*done), total: *total, message: plain(message) });
        }
    }
}

impl Progress {
    /// The action that is carried, once there is one.
    pub(crate) fn action(&self) -> Option<&Id> {
        self.action.get()
    }

    fn say(&self, said: Said) {
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
        self.moved.notify_one();
    }

    fn take(&self) -> Option<Said> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Tells the client what there is, merged, for as long as it is polled.
    pub(crate) async fn tell(&self, context: &RequestContext<RoleServer>) {
        match context.meta.get_progress_token() {
            Some(token) => self.tell_to(&context.peer, &token).await,
            None => std::future::pending().await,
        }
    }

    async fn tell_to(&self, peer: &Peer<RoleServer>, token: &ProgressToken) {
        let mut last = 0.0;
        loop {
            self.moved.notified().await;
            let Some(said) = self.take() else { continue };
            last = after(last, said.done);
            let mut told = ProgressNotificationParam::new(token.clone(), last).with_message(said.message);
            told.total = said.total.map(number);
            // Who is gone needs none, and the call itself finds that out.
            let _ = peer.notify_progress(told).await;
            tokio::time::sleep(EVERY).await;
        }
    }
}

/// What comes after `last`: always more, whatever a tool says.
fn after(last: f64, done: Option<u64>) -> f64 {
    match done.map(number) {
        Some(done) if done > last => done,
        _ => (last + STEP).max(last.next_up()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "progress is shown, not counted with")]
fn number(number: u64) -> f64 {
    number as f64
}

/// A tool's words without what a terminal would obey.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_only_ever_grows() {
        let said = [None, Some(5), Some(3), Some(5), None, Some(u64::MAX), None, Some(0), Some(u64::MAX)];
        let mut last = 0.0;
        for done in said {
            let next = after(last, done);
            assert!(next > last, "{done:?} after {last}");
            last = next;
        }
    }
}
