//! The log in formats that others read, one event a line.

use std::io::{self, Write};

use env_contracts::{Id, Name, Problem};
use glovebox_events::{Event, Logged, What};
use serde::Serialize;

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// As they are in the log, as JSON.
    Ndjson,
    /// CloudEvents 1.0 in their JSON format, with the same as data.
    CloudEvents,
}

/// Which events. Empty fields take all.
#[derive(Debug, Clone, Default)]
pub struct ExportFilter {
    /// Of this tenant.
    pub tenant: Option<Name>,
    /// Of this session.
    pub session: Option<Id>,
    /// From this moment on, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// Before this moment, in milliseconds since 1970.
    pub before_ms: Option<u64>,
}

/// Why an export ended early.
#[derive(Debug)]
pub enum ExportError {
    /// It could not be written any further.
    Write(io::Error),
    /// The store could not be read.
    Problem(Problem),
}

/// An event in the form of CloudEvents 1.0, to be written as JSON.
#[derive(Debug, Serialize)]
pub struct CloudEvent<'a, T> {
    specversion: &'static str,
    r#type: String,
    source: String,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a Id>,
    /// Absent for moments that no calendar has.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    datacontenttype: &'static str,
    data: T,
}

impl<'a, T> CloudEvent<'a, T> {
    /// An event of this database. `name` becomes part of its type; `id` is its
    /// own among all of the database, and the same whenever it is told again.
    pub fn new(database: &Id, name: &str, id: String, subject: Option<&'a Id>, at_ms: u64, data: T) -> Self {
        let time = i64::try_from(at_ms).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
        Self {
            specversion: "1.0",
            r#type: format!("dev.glovebox.{name}.v1"),
            source: format!("urn:glovebox:store:{database}"),
            id,
            subject,
            time: time.map(|time| time.to_string()),
            datacontenttype: "application/json",
            data,
        }
    }
}

/// One line.
pub(crate) fn write(to: &mut dyn Write, format: ExportFormat, database: &Id, logged: &Logged) -> io::Result<()> {
    match format {
        ExportFormat::Ndjson => serde_json::to_writer(&mut *to, logged)?,
        ExportFormat::CloudEvents => serde_json::to_writer(&mut *to, &cloud_event(database, logged))?,
    }
    to.write_all(b"\n")
}

fn cloud_event<'a>(database: &Id, logged: &'a Logged) -> CloudEvent<'a, &'a Logged> {
    let id = format!("{}/{}/{}", logged.log.tenant, logged.log.session, logged.seq);
    let Event { at_ms, what, .. } = &logged.event;
    CloudEvent::new(database, what.name(), id, subject(&logged.event), *at_ms, logged)
}

/// What it happened to: an action, a question or a task.
fn subject(event: &Event) -> Option<&Id> {
    event.action.as_ref().or(match &event.what {
        What::Question { question, .. } => Some(question),
        What::Task { task, .. } => Some(task),
        _ => None,
    })
}
