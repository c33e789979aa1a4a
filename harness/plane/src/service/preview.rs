//! Looking before doing: a tool's preview, before a person is asked about the
//! tool. What it finds is evidence for people, and no authority.

use env_contracts::canon::{Canonical, ParseLimits};
use env_contracts::{CapabilityRef, Code, Observation, OutcomeKind, Problem};
use glovebox_events::{PayloadRole, Previewed, What};
use glovebox_runtime::Stop;
use serde_json::Value;

use super::companion::{Companion, Errand, named};
use super::flight::{Flight, Halt};
use super::running::interrupted;
use super::submission::{Edit, EditSchema, Kept};
use super::{ActionService, looking};
use crate::observe::Refusal;

/// The longest version of an object, in bytes: a digest or a URL's worth, and
/// it is shown on cards.
const MAX_VERSION: usize = 512;

/// Whether there is a preview to look at that was not looked at for this plan.
pub(super) fn looks(flight: &Flight) -> Result<bool, Problem> {
    let action = flight.action();
    let due = flight.companion.is_none() && action.asks.runs() && action.preview.is_none();
    Ok(due && flight.tool()?.manifest.preview.is_some())
}

impl ActionService {
    /// Runs the preview of the action's tool. Returns whether what it found
    /// made another plan of it.
    pub(super) async fn preview(&self, flight: &mut Flight, arguments: &Value, stop: &Stop) -> Result<bool, Halt> {
        let Some(capability) = flight.tool()?.manifest.preview.clone() else { return Ok(false) };
        // It names this action as its parent: so there has to be one.
        self.write(flight).await?;
        let seen = self.look(flight, &capability, arguments, stop).await;
        if stop.is_requested() {
            return Err(interrupted("preview").into());
        }
        let mut preview = found(seen);
        let field = flight.tool()?.input.version().map(str::to_owned);
        let mut edit = None;
        if let (Some(field), true) = (field, preview.ok) {
            match preview.version.clone() {
                Some(version) => {
                    let meant = self.meant(flight, &field, arguments)?;
                    if let Some(meant) = meant.filter(|meant| *meant != version) {
                        flight.journal.event(self.now_ms(), What::Previewed { preview, edit: None })?;
                        return Err(moved(&meant, &version).into());
                    }
                    edit = with(arguments, &field, &version)?;
                }
                None => {
                    let why = "its result names no `version`: what is done is bound to none";
                    preview.reason.get_or_insert_with(|| why.to_owned());
                }
            }
        }
        let changed = edit.is_some();
        let edit = edit.map(|arguments| {
            let scope = flight.kept.request.scope.clone();
            let edit = Edit { schema: EditSchema::V1, arguments: Some(arguments), scope, filled: true };
            flight.kept = flight.kept.clone().edited(edit.clone());
            flight.journal.payload(PayloadRole::Edit, &edit)
        });
        flight.journal.event(self.now_ms(), What::Previewed { preview, edit })?;
        self.write(flight).await?;
        Ok(changed)
    }

    async fn look(
        &self,
        flight: &Flight,
        capability: &CapabilityRef,
        arguments: &Value,
        stop: &Stop,
    ) -> Result<Observation, Problem> {
        let tool = self.companion(capability)?;
        let errand = Errand {
            role: Companion::Preview,
            capability: capability.clone(),
            principal: flight.principal.clone(),
            arguments: Value::Object(named(&tool, arguments)),
            limit: None,
        };
        self.send_out(flight, errand, stop).await
    }

    /// The version that the requester, or a person who edited the arguments,
    /// means; not one that an earlier preview put there.
    fn meant(&self, flight: &Flight, field: &str, arguments: &Value) -> Result<Option<String>, Problem> {
        let text = |arguments: &Value| arguments.get(field).and_then(Value::as_str).map(str::to_owned);
        let action = flight.action();
        let Some(edit) = &action.edit else { return Ok(text(arguments)) };
        let edit: Edit = looking::payload(&self.parts, action, edit)?;
        if !edit.filled {
            return Ok(text(arguments));
        }
        let asked: Kept = looking::payload(&self.parts, action, &action.submission)?;
        let received = asked.received.as_ref().map(|text| Canonical::parse(text.as_bytes(), ParseLimits::default()));
        Ok(match received {
            Some(received) => received.ok().and_then(|received| text(received.value())),
            None => text(&asked.request.arguments),
        })
    }
}

/// What came of a preview.
fn found(seen: Result<Observation, Problem>) -> Previewed {
    let seen = match seen {
        Ok(seen) => seen,
        Err(problem) => {
            return Previewed { action: None, ok: false, version: None, reason: Some(problem.message) };
        }
    };
    let ok = seen.outcome.code.is_none();
    let version = seen.data.get("version").and_then(Value::as_str).filter(|_| ok);
    let (version, long) = match version {
        Some(version) if version.len() > MAX_VERSION => (None, true),
        version => (version.map(str::to_owned), false),
    };
    let reason = if long {
        Some(format!("the version that it names has more than {MAX_VERSION} bytes"))
    } else {
        seen.outcome.message.filter(|_| !ok)
    };
    Previewed { action: Some(seen.action_id), ok, version, reason }
}

/// The arguments with the version in them; `None` where they have it already.
fn with(arguments: &Value, field: &str, version: &str) -> Result<Option<String>, Problem> {
    if arguments.get(field).and_then(Value::as_str) == Some(version) {
        return Ok(None);
    }
    let mut values = arguments.as_object().cloned().unwrap_or_default();
    values.insert(field.to_owned(), Value::String(version.to_owned()));
    let canonical = Canonical::from_value(&Value::Object(values)).map_err(|error| Problem::of(&error))?;
    Ok(Some(canonical.as_str().to_owned()))
}

/// The object is not the one that was meant.
fn moved(meant: &str, version: &str) -> Refusal {
    let message = format!(
        "the object changed: `{}` was meant, and its preview sees `{}`",
        meant.escape_debug(),
        version.escape_debug()
    );
    Refusal::new(OutcomeKind::Drift, Problem::new(Code::Drift, message)).which("object")
}
