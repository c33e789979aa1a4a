//! How far a webhook is, in a file of its own: what was read of the log, and
//! what its receiver did not take yet. So a new server goes on where the last
//! one was.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use env_contracts::{Code, Digest, Id, Name, Problem};
use glovebox_identity::{Webhook, WebhookKind};
use glovebox_runtime::{io_problem, private_dir, read_plain};
use serde::{Deserialize, Serialize};

/// How many notices of one webhook wait to be sent again. While there are so
/// many its log is read no further: the rest stays there.
pub(super) const MOST_PARKED: usize = 64;

/// The longest wait between two tries: a receiver that comes back after a night
/// hears of what waits within the hour.
const MOST_WAIT: Duration = Duration::from_secs(3600);

/// After how long a notice is given up: a receiver that is down over a weekend
/// loses nothing.
const GIVE_UP: Duration = Duration::from_secs(4 * 24 * 3600);

/// The longest message of a failure that is kept, in characters: a line.
const MAX_MESSAGE: usize = 300;

/// The largest file: some hundred bytes for each notice.
const MAX_FILE: u64 = 1 << 20;

/// The version tag of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
enum KeptSchema {
    #[default]
    #[serde(rename = "glovebox/webhook-state/v1")]
    V1,
}

/// Something to be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Notice {
    /// What happened.
    pub(super) kind: WebhookKind,
    /// To which approval or question.
    pub(super) of: Id,
    /// When, in milliseconds since 1970.
    pub(super) at_ms: u64,
    /// Where it stands among all events.
    pub(super) rank: u64,
    /// Whether it says nothing new where it was answered before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) unless_answered: bool,
}

/// Something that its receiver did not take yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parked {
    pub(super) notice: Notice,
    /// How often it was tried.
    attempts: u32,
    /// When it was first to be sent.
    since_ms: u64,
    /// When it is tried again.
    next_ms: u64,
}

/// The last failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookFailure {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Why.
    pub message: String,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    schema: KeptSchema,
    /// When the webhook was added that it is of: another of the same name
    /// begins anew.
    created_ms: u64,
    /// All events up to this rank were sent, are parked, or are none of its.
    pub(super) read: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parked: Vec<Parked>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sent_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<WebhookFailure>,
    /// How many notices were given up.
    #[serde(default)]
    given_up: u64,
}

/// How a webhook fares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct WebhookStatus {
    /// How many notices wait to be sent again.
    pub pending: usize,
    /// When the next of them is tried, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_try_ms: Option<u64>,
    /// When its receiver last took one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_ms: Option<u64>,
    /// What last went wrong, until something is taken again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<WebhookFailure>,
    /// How many notices were given up.
    pub given_up: u64,
}

impl Kept {
    /// Of a webhook that is told of what comes after this rank.
    pub(super) fn new(webhook: &Webhook, read: u64) -> Self {
        let created_ms = webhook.created_ms;
        let schema = KeptSchema::V1;
        Self { schema, created_ms, read, parked: Vec::new(), sent_ms: None, failure: None, given_up: 0 }
    }

    /// What is kept of a webhook. `None`: nothing yet.
    pub(super) fn load(folder: &Path, webhook: &Webhook) -> Result<Option<Self>, Problem> {
        let path = file(folder, &webhook.name);
        let text = match read_plain(&path, MAX_FILE) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_problem("cannot read how far a webhook is", Code::StateUnavailable, &error)),
        };
        let kept: Self = serde_json::from_str(&text).map_err(|error| {
            Problem::new(Code::StateUnavailable, format!("`{}`: {error}", path.display()))
                .with_help("take the file away: the webhook then goes on with what happens from now on")
        })?;
        Ok(Some(kept).filter(|kept| kept.created_ms == webhook.created_ms))
    }

    /// Writes it in the place of what was kept before.
    pub(super) fn save(&self, folder: &Path, name: &Name) -> Result<(), Problem> {
        let failed =
            |error: &std::io::Error| io_problem("cannot keep how far a webhook is", Code::StateUnavailable, error);
        private_dir(folder).map_err(|error| failed(&error))?;
        let mut new = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
        let text = serde_json::to_vec(self).unwrap_or_default();
        new.write_all(&text).and_then(|()| new.as_file().sync_all()).map_err(|error| failed(&error))?;
        new.persist(file(folder, name)).map_err(|error| failed(&error.error))?;
        Ok(())
    }

    /// Whether no more is to be read.
    pub(super) fn is_full(&self) -> bool {
        self.parked.len() >= MOST_PARKED
    }

    /// Whether something about this waits already: what comes later waits
    /// behind it.
    pub(super) fn holds(&self, of: &Id) -> bool {
        self.parked.iter().any(|parked| parked.notice.of == *of)
    }

    /// Puts a notice behind those that wait.
    pub(super) fn park(&mut self, notice: Notice, now_ms: u64) {
        self.parked.push(Parked { notice, attempts: 0, since_ms: now_ms, next_ms: now_ms });
    }

    /// Those that could be tried: of each approval only the first.
    fn heads(&self) -> impl Iterator<Item = &Parked> {
        self.parked.iter().enumerate().filter_map(|(at, parked)| {
            let mut before = self.parked.iter().take(at);
            (!before.any(|other| other.notice.of == parked.notice.of)).then_some(parked)
        })
    }

    /// What is to be tried now.
    pub(super) fn due(&self, now_ms: u64) -> Option<Notice> {
        self.heads().find(|parked| parked.next_ms <= now_ms).map(|parked| parked.notice.clone())
    }

    /// When something is to be tried next.
    pub(super) fn next_ms(&self) -> Option<u64> {
        self.heads().map(|parked| parked.next_ms).min()
    }

    /// A notice was taken, or is about nothing any more.
    pub(super) fn done(&mut self, notice: &Notice, sent_ms: Option<u64>) {
        self.parked.retain(|parked| parked.notice.rank != notice.rank);
        if sent_ms.is_some() {
            self.sent_ms = sent_ms;
            self.failure = None;
        }
    }

    /// A notice was not taken. Answers whether it is given up.
    pub(super) fn failed(&mut self, notice: &Notice, message: &str, first: Duration, now_ms: u64) -> bool {
        let message = message.chars().take(MAX_MESSAGE).collect();
        self.failure = Some(WebhookFailure { at_ms: now_ms, message });
        let give_up = ms(GIVE_UP);
        let mut over = false;
        for parked in self.parked.iter_mut().filter(|parked| parked.notice.rank == notice.rank) {
            parked.attempts = parked.attempts.saturating_add(1);
            parked.next_ms = now_ms.saturating_add(wait(first, parked.attempts, dice(notice, parked.attempts)));
            over = now_ms.saturating_sub(parked.since_ms) >= give_up;
        }
        if over {
            self.parked.retain(|parked| parked.notice.rank != notice.rank);
            self.given_up = self.given_up.saturating_add(1);
        }
        over
    }

    /// How it fares, for people.
    pub(super) fn status(&self) -> WebhookStatus {
        WebhookStatus {
            pending: self.parked.len(),
            next_try_ms: self.next_ms(),
            sent_ms: self.sent_ms,
            failure: self.failure.clone(),
            given_up: self.given_up,
        }
    }
}

/// How long to wait before the next try, in milliseconds: twice as long each
/// time, and somewhere in its second half, so that many do not come at once.
fn wait(first: Duration, attempts: u32, dice: u64) -> u64 {
    let doubled = ms(first).saturating_mul(1_u64 << attempts.saturating_sub(1).min(30));
    let whole = doubled.min(ms(MOST_WAIT)).max(2);
    whole - dice % (whole / 2)
}

/// What spreads the tries: ids are random, so nothing else has to be.
fn dice(notice: &Notice, attempts: u32) -> u64 {
    let digest = Digest::of(format!("{} {} {attempts}", notice.of, notice.kind).as_bytes());
    digest.as_str().bytes().filter(u8::is_ascii_hexdigit).take(8).fold(0, |sum, byte| sum * 31 + u64::from(byte))
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Where it is kept.
pub(super) fn file(folder: &Path, name: &Name) -> PathBuf {
    folder.join(format!("{name}.json"))
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
