//! A call of a tool: from what the client sent to what it is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use env_contracts::{ActionRequest, CapabilityName, Code, Id, Problem, Scope, Wanted};
use glovebox_plane::{Asking, PermissionRequest, Submission, Submitted, Unwatched, limit_workspace};
use glovebox_runtime::Stop;
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::answer::{answer, refused};
use crate::asking::declares_tasks;
use crate::door::Door;
use crate::drive::OnGone;
use crate::party::Party;
use crate::state::Call;
use crate::tools;

/// The arguments of a call as they came, byte for byte. A transport that has
/// them puts them among the extensions of the request: what is parsed twice is
/// not what was sent, where a key stands twice or a number is long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received(pub String);

impl Received {
    /// Those of a whole message. `None`: it has none, or is no message.
    pub fn of(message: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            #[serde(borrow)]
            params: Parameters<'a>,
        }
        #[derive(Deserialize)]
        struct Parameters<'a> {
            #[serde(borrow)]
            arguments: &'a RawValue,
        }
        let envelope = serde_json::from_slice::<Envelope<'_>>(message).ok()?;
        Some(Self(envelope.params.arguments.get().to_owned()))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultArguments {
    action_id: Id,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PermissionArguments {
    capability: String,
    scope: Scope,
    #[serde(default)]
    reason: Option<String>,
}

impl Door {
    pub(crate) async fn call(
        &self,
        party: &Arc<Party>,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let received = received(context).map(|received| received.0.as_str());
        let name = request.name.as_ref();
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let call = Call { principal: &party.principal, tool: name, received, arguments: &arguments };
        if let Some(sealed) = &request.request_state {
            // Whatever it says, another action is never begun for it.
            let round = self.parts.key.open(sealed, &call, self.now_ms())?;
            return self.next_round(party, &round, request.input_responses, &call, context).await;
        }
        if name != tools::RESULT {
            party.open(self.service()).await;
        }
        let done = match name {
            tools::RESULT => match parsed::<ResultArguments>(&call) {
                Ok(arguments) => return self.result(party, &arguments.action_id, context).await,
                Err(problem) => Err(problem),
            },
            tools::REQUEST_PERMISSION => self.permission(party, &call).await,
            _ => match self.submission(party, &call) {
                Ok(submission) => {
                    let comes_back = declares_tasks(context);
                    Box::pin(self.traffic.submit(self.service(), submission, context, comes_back)).await
                }
                Err(problem) => Err(problem),
            },
        };
        match done {
            Ok(Submitted::Done(seen)) => self.told(party, name, &seen).map(Into::into),
            Ok(Submitted::Waiting(action)) => self.ask(party, &action, &call, context).await,
            Err(problem) => refused(&problem).map(Into::into),
        }
    }

    fn submission(&self, party: &Party, call: &Call<'_>) -> Result<Submission, Problem> {
        let name = call.tool;
        // What can't be a name is the name of nothing.
        let unknown = |_| Problem::new(Code::ToolUnknown, format!("no tool `{}` is registered", name.escape_debug()));
        let wanted = Wanted { name: name.parse::<CapabilityName>().map_err(unknown)?, version: None };
        let tool = self.service().capability(&party.principal, &wanted)?;
        let mut request = ActionRequest::new(wanted, call.arguments.clone());
        if let Some(workspace) = &party.workspace {
            limit_workspace(&mut request.scope, &tool.manifest.contract, workspace.access);
        }
        Ok(Submission {
            principal: party.principal.clone(),
            context: party.context.clone(),
            request,
            received: call.received.map(|text| text.as_bytes().to_vec()),
            workspace: party.workspace.as_ref().map(|workspace| workspace.dir.clone()),
            inputs: BTreeMap::new(),
            asking: party.asking,
            // Whoever comes back for it goes on with it.
            held: false,
        })
    }

    /// Waits for an action that was left, and gives what came of it.
    async fn result(
        &self,
        party: &Arc<Party>,
        action: &Id,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let patience = tokio::time::sleep(self.parts.wait);
        let of = (&party.principal, action);
        match self.traffic.follow(self.service(), of, Asking::Wait, patience, (context, OnGone::Leave)).await {
            Ok(Submitted::Done(seen)) => answer(&seen, false).map(Into::into),
            Ok(Submitted::Waiting(action)) => Ok(self.waiting(&action).into()),
            Err(problem) => refused(&problem).map(Into::into),
        }
    }

    /// Opens a request for a person. Asking gives nothing.
    async fn permission(&self, party: &Party, call: &Call<'_>) -> Result<Submitted, Problem> {
        let arguments: PermissionArguments = parsed(call)?;
        let capability = arguments.capability.parse().map_err(|error: String| Problem::new(Code::Usage, error))?;
        let request = PermissionRequest {
            principal: party.principal.clone(),
            context: party.context.clone(),
            capability,
            scope: arguments.scope,
            reason: arguments.reason,
            asking: party.asking,
        };
        self.service().request_permission(request, Arc::new(Unwatched), &Stop::default()).await
    }
}

/// The arguments as they came, where the transport kept them.
fn received(context: &RequestContext<RoleServer>) -> Option<&Received> {
    let of_http = || context.extensions.get::<http::request::Parts>()?.extensions.get();
    context.extensions.get().or_else(of_http)
}

/// The arguments of a tool of our own.
fn parsed<T: DeserializeOwned>(call: &Call<'_>) -> Result<T, Problem> {
    let parsed = match call.received {
        Some(received) => serde_json::from_str(received),
        None => T::deserialize(call.arguments),
    };
    parsed.map_err(|error| Problem::new(Code::ArgumentsInvalid, error.to_string()))
}
