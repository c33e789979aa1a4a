//! One webhook at work: reads the log from where it was, tells what is to be
//! told, and tries again what was not taken. Each is a task of its own, so a
//! slow receiver delays nobody else's.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use env_contracts::{Principal, Problem};
use glovebox_identity::Webhook;
use glovebox_plane::ActionService;
use tracing::{info, warn};

use super::Webhooks;
use super::kept::{Kept, Notice};
use super::notice::{self, Desk};
use super::send::Receiver;
use super::target;
use crate::state::App;

/// How many events are read in one go.
const BATCH: u32 = 200;

/// How many events that are none of its own are read before that is written
/// down: they are read again after a crash, and that is all.
const UNSAVED: u64 = 10_000;

/// How long to wait where the store or the folder can't be used for a moment.
const TROUBLE: Duration = Duration::from_secs(30);

/// A webhook at work.
pub(super) struct Hook {
    app: App,
    webhook: Webhook,
    folder: PathBuf,
    first: Duration,
    desk: Desk,
    receiver: Receiver,
    kept: Kept,
    /// How far it is written down.
    saved: u64,
}

impl Hook {
    /// Tells its receiver for as long as nobody stops it.
    pub(super) async fn run(app: App, webhook: Webhook, settings: Arc<Webhooks>) {
        let mut ticks = app.feed.inbox(&webhook.tenant);
        let name = webhook.name.clone();
        loop {
            match Self::open(&app, &webhook, &settings) {
                Ok(mut hook) => loop {
                    ticks.mark_unchanged();
                    match hook.work().await {
                        Ok(()) => hook.wait(&mut ticks).await,
                        Err(problem) => {
                            warn!(webhook = %name, problem = %problem, "a webhook waits");
                            break;
                        }
                    }
                },
                Err(problem) => warn!(webhook = %name, problem = %problem, "a webhook can't begin"),
            }
            tokio::time::sleep(TROUBLE).await;
        }
    }

    fn open(app: &App, webhook: &Webhook, settings: &Webhooks) -> Result<Self, Problem> {
        let service: ActionService = app.service(&webhook.tenant)?.overseeing();
        let newest = service.last_recorded()?;
        let known = Kept::load(&settings.state, webhook)?;
        let mut kept = known.unwrap_or_else(|| Kept::new(webhook, newest));
        // An older copy of the database was put back.
        kept.read = kept.read.min(newest);
        kept.save(&settings.state, &webhook.name)?;
        let principal = Principal { tenant: webhook.tenant.clone(), ..app.own().principal() };
        let desk = Desk { database: service.database()?, principal, service };
        Ok(Self {
            app: app.clone(),
            receiver: Receiver::of(webhook, target::system())?,
            webhook: webhook.clone(),
            folder: settings.state.clone(),
            first: settings.first_retry,
            saved: kept.read,
            desk,
            kept,
        })
    }

    /// Does what can be done now.
    async fn work(&mut self) -> Result<(), Problem> {
        loop {
            while let Some(notice) = self.kept.due(self.app.now_ms()) {
                self.tell(&notice).await?;
            }
            if self.kept.is_full() {
                return Ok(());
            }
            let batch = self.desk.service.recorded(self.kept.read, BATCH)?;
            if batch.is_empty() {
                return Ok(());
            }
            for recorded in &batch {
                let ours = recorded.logged.log.tenant == self.webhook.tenant;
                let notice = if ours { notice::of(recorded) } else { None };
                if let Some(notice) = notice {
                    if self.kept.is_full() {
                        return Ok(());
                    }
                    // First it waits, then it is sent: what is written down in
                    // between loses nothing.
                    let behind = self.kept.holds(&notice.of);
                    self.kept.park(notice.clone(), self.app.now_ms());
                    self.kept.read = recorded.rank;
                    if !behind {
                        self.tell(&notice).await?;
                    }
                }
                self.kept.read = recorded.rank;
            }
            if self.kept.read - self.saved >= UNSAVED {
                self.save()?;
            }
        }
    }

    /// Tries to send a notice that waits.
    async fn tell(&mut self, notice: &Notice) -> Result<(), Problem> {
        let Some(letter) = self.desk.letter(&self.webhook, notice)? else {
            self.kept.done(notice, None);
            return Ok(());
        };
        let now = self.app.now_ms();
        match self.receiver.send(&self.webhook, &letter, now).await {
            Ok(()) => self.kept.done(notice, Some(now)),
            Err(problem) => {
                let name = &self.webhook.name;
                if self.kept.failed(notice, &problem.to_string(), self.first, self.app.now_ms()) {
                    warn!(webhook = %name, id = %letter.id, problem = %problem, "a notice is given up");
                } else {
                    info!(webhook = %name, id = %letter.id, problem = %problem, "a notice is sent again later");
                }
            }
        }
        self.save()
    }

    fn save(&mut self) -> Result<(), Problem> {
        self.kept.save(&self.folder, &self.webhook.name)?;
        self.saved = self.kept.read;
        Ok(())
    }

    /// Waits until there is something to do.
    async fn wait(&self, ticks: &mut tokio::sync::watch::Receiver<u64>) {
        let next = self.kept.next_ms().map(|at| Duration::from_millis(at.saturating_sub(self.app.now_ms())));
        let retry = async {
            match next {
                Some(next) => tokio::time::sleep(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = retry => {}
            // The sender lives as long as the server.
            _ = ticks.changed() => {}
        }
    }
}
