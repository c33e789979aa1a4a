//! Webhooks: a company's own front end is told when something waits for people,
//! and when it does no more.
//!
//! What it is: for each webhook of the operator's list a task that reads the
//! log from where it was and sends each notice until it is taken, at least
//! once, those of one approval in their order. What it is not: no way to
//! decide. Who is told answers through the API, as anybody does.

mod hook;
mod kept;
mod notice;
mod send;
pub(crate) mod target;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use env_contracts::{Code, Id, Name, Problem};
use glovebox_identity::{Webhook, Webhooks as List};
use glovebox_runtime::{io_problem, private_dir};
use rustix::fs::{FlockOperation, OFlags};
use tokio::task::AbortHandle;
use tracing::warn;

pub use kept::{WebhookFailure, WebhookStatus};

use crate::state::App;
use hook::Hook;

/// How often the operator's list is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// How long to wait before a notice is first sent again.
pub const FIRST_RETRY: Duration = Duration::from_secs(5);

/// Where webhooks are.
#[derive(Debug, Clone)]
pub struct Webhooks {
    /// The operator's list.
    pub list: PathBuf,
    /// The folder where it is kept how far each is. Ours.
    pub state: PathBuf,
    /// How long to wait before a notice is first sent again; each time twice
    /// as long.
    pub first_retry: Duration,
}

/// Whether a webhook may lead there, as far as it can be said without looking
/// its name up.
///
/// # Errors
/// `webhook-target`.
pub fn check_webhook(url: &str, allow_private: bool) -> Result<(), Problem> {
    target::parse(url, allow_private).map(drop)
}

/// How a webhook fares, as whoever serves it wrote down in this folder.
///
/// # Errors
/// `state-unavailable`.
pub fn webhook_status(folder: &Path, webhook: &Webhook) -> Result<WebhookStatus, Problem> {
    Ok(kept::Kept::load(folder, webhook)?.map(|kept| kept.status()).unwrap_or_default())
}

/// Sends something to a webhook's receiver that is about nothing, to see
/// whether it is taken.
///
/// # Errors
/// `webhook-secret`, `webhook-target`, `webhook-failed`.
pub async fn test_webhook(webhook: &Webhook, database: &Id, now_ms: u64) -> Result<(), Problem> {
    let receiver = send::Receiver::of(webhook, target::system())?;
    receiver.send(webhook, &notice::trial(database, &webhook.name, now_ms), now_ms).await
}

/// The tasks of a list, stopped when it goes.
#[derive(Default)]
struct Tasks(HashMap<Name, (Webhook, AbortHandle)>);

impl Tasks {
    /// Makes them those of this list.
    fn follow(&mut self, app: &App, settings: &Arc<Webhooks>, list: &[Webhook]) {
        self.0.retain(|name, (webhook, task)| {
            let stays = list.contains(webhook);
            if !stays {
                task.abort();
            }
            if !list.iter().any(|other| other.name == *name) {
                let _ = fs_err::remove_file(kept::file(&settings.state, name));
            }
            stays
        });
        for webhook in list.iter().filter(|webhook| !self.0.contains_key(&webhook.name)).cloned().collect::<Vec<_>>() {
            let task = tokio::spawn(Box::pin(Hook::run(app.clone(), webhook.clone(), settings.clone())));
            self.0.insert(webhook.name.clone(), (webhook, task.abort_handle()));
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.values().for_each(|(_, task)| task.abort());
    }
}

/// Serves the operator's list, as it is at each moment, until it is dropped.
pub(crate) async fn run(app: App, settings: Webhooks) {
    let settings = Arc::new(settings);
    let mut tasks = Tasks::default();
    let mut read: Option<List> = None;
    let mut held = None;
    let mut trouble = String::new();
    loop {
        if read.as_ref().is_none_or(|list| !list.is_current()) {
            match List::load(&settings.list) {
                Ok(list) => (read, trouble) = (Some(list), String::new()),
                Err(error) => {
                    // Nobody is told of anything by a list that others wrote.
                    say(&mut trouble, &Problem::of(&error));
                    read = None;
                    tasks = Tasks::default();
                }
            }
        }
        if let Some(list) = &read {
            // Of several servers over one state folder, one tells.
            if held.is_none() && !list.list().is_empty() {
                held = lock(&settings.state).unwrap_or_else(|problem| {
                    say(&mut trouble, &problem);
                    None
                });
            }
            if held.is_some() {
                tasks.follow(&app, &settings, list.list());
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Says what is wrong, once.
fn say(before: &mut String, problem: &Problem) {
    let now = problem.to_string();
    if *before != now {
        warn!(problem = %now, "no webhooks are served");
        *before = now;
    }
}

/// A lock that ends with this process. `None`: another one has it.
fn lock(folder: &Path) -> Result<Option<fs_err::File>, Problem> {
    use fs_err::os::unix::fs::OpenOptionsExt as _;
    let failed = |error: std::io::Error| io_problem("cannot lock the webhooks", Code::StateUnavailable, &error);
    private_dir(folder).map_err(failed)?;
    let mut options = fs_err::OpenOptions::new();
    options.create(true).append(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let file = options.open(folder.join("lock")).map_err(failed)?;
    match rustix::fs::flock(file.file(), FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(failed(errno.into())),
    }
}
