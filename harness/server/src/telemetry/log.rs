//! What the server writes on standard error: a line for each thing that
//! happened, as text or as JSON.
//!
//! No line has a token, a body, arguments, a path or what stands behind a
//! question mark. What strangers chose is escaped and bounded, so that a line
//! is one line whatever they send.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use env_contracts::text::escaped_line;
use tracing::level_filters::LevelFilter;
use tracing::{Dispatch, dispatcher};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

use super::Finished;

/// How much of a stranger's text stands in a line, in characters: a host name
/// with its port.
const MOST: usize = 260;

/// What the names of our crates begin with. Others write what they like, also
/// what came over a connection.
const OURS: &str = "glovebox";

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogForm {
    /// For people.
    Text,
    /// An object each.
    Json,
    /// There are none.
    Off,
}

impl FromStr for LogForm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "off" => Ok(Self::Off),
            other => Err(format!("`{other}` is none of text, json, off")),
        }
    }
}

/// From which weight on things are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLevel(LevelFilter);

impl FromStr for LogLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "error" => Ok(Self(LevelFilter::ERROR)),
            "warn" => Ok(Self(LevelFilter::WARN)),
            "info" => Ok(Self(LevelFilter::INFO)),
            other => Err(format!("`{other}` is none of error, warn, info")),
        }
    }
}

/// Where lines go. Cloning shares it; the default writes nothing.
#[derive(Clone, Default)]
pub struct Logs(Dispatch);

impl fmt::Debug for Logs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logs")
    }
}

impl Logs {
    /// Lines of this form and weight, to this writer: each in one write.
    pub fn to<W>(form: LogForm, level: LogLevel, writer: W) -> Self
    where
        W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    {
        let ours = Targets::new().with_target(OURS, level.0);
        let lines = tracing_subscriber::fmt().with_max_level(level.0).with_ansi(false).with_target(false);
        match form {
            LogForm::Text => Self(Dispatch::new(lines.with_writer(writer).finish().with(ours))),
            LogForm::Json => {
                Self(Dispatch::new(lines.json().flatten_event(true).with_writer(writer).finish().with(ours)))
            }
            LogForm::Off => Self::default(),
        }
    }

    /// Takes what all other parts of this process have to say, too.
    pub fn everywhere(&self) {
        // Whoever was first stays.
        let _ = dispatcher::set_global_default(self.0.clone());
    }

    fn with(&self, write: impl FnOnce()) {
        dispatcher::with_default(&self.0, write);
    }

    /// A request was answered; for streams, its answer began.
    pub(super) fn request(&self, done: &Finished<'_>) {
        let who = done.caller.as_ref();
        let credential = who.map(|who| who.credential.as_str());
        let tenant = who.map(|who| who.tenant.as_str());
        let code = done.code.map(env_contracts::Code::as_str);
        let (method, route, status) = (done.method, done.route, done.status);
        let micros = u64::try_from(done.took.as_micros()).unwrap_or(u64::MAX);
        self.with(|| {
            // What is not done here is no fault.
            if status >= 500 && status != 501 {
                tracing::error!(method, route, status, micros, credential, tenant, code, "request");
            } else {
                tracing::info!(method, route, status, micros, credential, tenant, code, "request");
            }
        });
    }

    /// A foreign page or name was refused.
    pub(super) fn foreign(&self, route: &str, host: Option<&[u8]>, origin: Option<&[u8]>) {
        let (host, origin) = (host.map(foreign), origin.map(foreign));
        self.with(|| tracing::warn!(route, host, origin, "origin refused"));
    }

    /// It serves.
    pub(crate) fn started(&self, address: Option<&str>) {
        self.with(|| tracing::info!(address, version = env!("CARGO_PKG_VERSION"), "started"));
    }

    /// It was told to stop.
    pub(crate) fn stopping(&self, carried: usize, grace: Duration) {
        let grace = grace.as_secs();
        self.with(|| tracing::info!(carried, grace_s = grace, "stopping"));
    }

    /// It has stopped.
    pub(crate) fn stopped(&self) {
        self.with(|| tracing::info!("stopped"));
    }

    /// It goes on with an action of the server before it.
    pub(crate) fn adopted(&self, action: &str, capability: &str) {
        self.with(|| tracing::info!(action, capability, "adopted"));
    }

    /// The files of the certificate changed; `why`: they are not taken.
    pub(crate) fn certificate(&self, why: Option<&str>) {
        let why = why.map(|why| foreign(why.as_bytes()));
        self.with(|| match why {
            Some(why) => tracing::error!(why, "the new certificate is not taken, the old one stays"),
            None => tracing::info!("new certificate"),
        });
    }

    /// Traces could not be handed over; told once, until it works again.
    pub(super) fn traces(&self, why: &str) {
        let why = foreign(why.as_bytes());
        self.with(|| tracing::warn!(why, "traces were not taken"));
    }
}

/// A stranger's text: on one line, with nothing that a reader would obey, and
/// bounded.
fn foreign(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut short: String = text.chars().take(MOST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    escaped_line(&short)
}
