//! The tasks extension, over our own store: a task is an action, and its id the
//! action's. Nothing is kept here.

use std::sync::Arc;
use std::time::Duration;

use env_contracts::{Code, Id, Moment, Observation, Problem};
use glovebox_events::Action;
use glovebox_plane::{ActionView, Asking, Submitted};
use rmcp::model::{CallToolResult, DetailedTask, GetTaskResult, JsonObject, Task, TaskPayload, TaskStatus};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Serialize;
use serde_json::Value;

use crate::answer::{broke, lost, unknown};
use crate::asking::opens_pages;
use crate::door::Door;
use crate::drive::OnGone;
use crate::party::Party;
use crate::project::{McpState, TaskImage, ended, project};
use crate::tools::REQUEST_PERMISSION;

/// How often a client should look, in milliseconds.
const POLL_MS: u64 = 2_000;

/// How long a look waits for what is nearly there: most runs are over by then,
/// and their client is spared another round.
const LOOK: Duration = Duration::from_millis(200);

impl Door {
    /// A task as it begins. It is durable: the approval that it waits for is.
    pub(crate) fn seed(&self, action: &Action) -> Task {
        let iso = |ms: u64| Moment::at(ms / 1000).to_string();
        let status = status(project(action).task);
        let task = Task::new(action.id.to_string(), status, iso(action.requested_ms), iso(action.changed_ms));
        let task = task.with_poll_interval_ms(POLL_MS);
        match self.where_decided(action) {
            Some(place) => task.with_status_message(format!("a person has to decide first: {place}")),
            None => task.with_status_message(action.state.to_string()),
        }
    }

    /// The action that a task is, for who may see it.
    ///
    /// # Errors
    /// `-32602` alike for what does not exist and for what is another's.
    pub(crate) fn known_task(&self, party: &Party, id: &str) -> Result<ActionView, ErrorData> {
        let nowhere = || Problem::new(Code::ActionUnknown, format!("there is no task `{}`", id.escape_debug()));
        let action: Id = id.parse().map_err(|_| unknown(&nowhere()))?;
        self.service().action(&party.principal, &action).map_err(|problem| match problem.code {
            Code::ActionUnknown => unknown(&nowhere()),
            _ => unknown(&problem),
        })
    }

    /// What a task is now. Whoever looks is who asked: what was approved goes on
    /// with it.
    pub(crate) async fn task(
        &self,
        party: &Arc<Party>,
        id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let ActionView { mut action, mut observation } = self.known_task(party, id)?;
        let mut image = project(&action);
        if !action.state.ended() {
            let of = (&party.principal, &action.id);
            let (patience, gone) = (tokio::time::sleep(LOOK), (context, OnGone::Leave));
            let looked = self.traffic.follow(self.service(), of, Asking::Leave, patience, gone).await;
            match looked.map_err(|problem| unknown(&problem))? {
                Submitted::Waiting(now) => {
                    image = project(&now);
                    action = now;
                }
                Submitted::Done(seen) => {
                    image = ended(seen.outcome.kind, seen.outcome.code);
                    action = self.known_task(party, id)?.action;
                    observation = Some(Box::new(seen));
                }
            }
        }
        let payload = self.payload(party, &action, image, observation.as_deref(), context)?;
        Ok(GetTaskResult::new(DetailedTask::new(self.seed(&action), payload)))
    }

    fn payload(
        &self,
        party: &Party,
        action: &Action,
        image: McpState,
        seen: Option<&Observation>,
        context: &RequestContext<RoleServer>,
    ) -> Result<TaskPayload, ErrorData> {
        Ok(match (image.task, seen) {
            (TaskImage::Working, _) => TaskPayload::Working,
            (TaskImage::Cancelled, _) => TaskPayload::Cancelled,
            (TaskImage::Asked, _) => {
                // A client that opens no pages has nothing to do but to wait.
                let opens = opens_pages(context.client_capabilities().as_ref());
                let page = self.page(action).filter(|_| opens);
                TaskPayload::InputRequired { input_requests: page.map(|page| page.requests()).unwrap_or_default() }
            }
            (TaskImage::Completed { .. }, Some(seen)) => {
                let called = if action.asks.runs() { seen.capability.name.as_str() } else { REQUEST_PERMISSION };
                let result: CallToolResult = self.told(party, called, seen)?;
                TaskPayload::Completed { result: object(&result)? }
            }
            (TaskImage::Failed, Some(seen)) => TaskPayload::Failed { error: object(&broke(seen))? },
            (TaskImage::Completed { .. } | TaskImage::Failed, None) => {
                TaskPayload::Failed { error: object(&lost(action))? }
            }
        })
    }
}

fn status(image: TaskImage) -> TaskStatus {
    match image {
        TaskImage::Working => TaskStatus::Working,
        TaskImage::Asked => TaskStatus::InputRequired,
        TaskImage::Completed { .. } => TaskStatus::Completed,
        TaskImage::Failed => TaskStatus::Failed,
        TaskImage::Cancelled => TaskStatus::Cancelled,
    }
}

fn object(value: &impl Serialize) -> Result<JsonObject, ErrorData> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(ErrorData::internal_error("a result that is no object", None)),
    }
}
