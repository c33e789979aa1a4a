//! A person has to decide: how the client is told, and how it comes back.
//!
//! A client that declares tasks gets one. A client that can open a page for its
//! user is sent to the inbox. Any other gets an answer that names the action and
//! what to do. In each case the store decides: that a client says its user
//! accepted, or declined, to open a page changes nothing.

use std::sync::Arc;

use env_contracts::Id;
use glovebox_events::Action;
use glovebox_plane::{Asking, Submitted};
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, ClientResult, ContentBlock, CreateTaskResult, ElicitRequest,
    ElicitRequestParams, ElicitationAction, InputRequest, InputRequests, InputRequiredResult, InputResponses,
    MetaObject, ProtocolVersion, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext, RequestHandle};
use rmcp::{ErrorData, RoleServer};
use serde_json::json;
use tokio::sync::Notify;

use crate::answer::{OUTCOME, refused};
use crate::door::Door;
use crate::drive::OnGone;
use crate::party::Party;
use crate::state::{Call, Round};
use crate::tools::RESULT;

/// A page where a person decides, and what it is about.
pub(crate) struct Page {
    pub(crate) approval: Id,
    pub(crate) url: String,
    message: String,
}

impl Page {
    pub(crate) fn request(&self) -> ElicitRequest {
        ElicitRequest::new(ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message: self.message.clone(),
            url: self.url.clone(),
            elicitation_id: self.approval.to_string(),
        })
    }

    /// As a request that travels in a result. Its key is the approval's id: an
    /// action that is asked about again has another.
    pub(crate) fn requests(&self) -> InputRequests {
        InputRequests::from([(self.approval.to_string(), InputRequest::Elicitation(self.request()))])
    }
}

/// What a client can do where a person has to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Can {
    /// Come back for a task.
    Task,
    /// Open a page, and repeat the request.
    Repeat,
    /// Open a page while the request is open.
    Open,
    /// Nothing of it.
    Nothing,
}

/// Whether a client opens pages for its user.
pub(crate) fn opens_pages(client: Option<&ClientCapabilities>) -> bool {
    client.and_then(|client| client.elicitation.as_ref()).is_some_and(|elicitation| elicitation.url.is_some())
}

/// Whether a client comes back for what it is given as a task.
pub(crate) fn declares_tasks(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().as_ref().is_some_and(ClientCapabilities::supports_tasks)
}

fn can(context: &RequestContext<RoleServer>) -> Can {
    let client = context.client_capabilities();
    let version = context.protocol_version();
    let rounds = version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    match (declares_tasks(context), opens_pages(client.as_ref())) {
        (true, _) => Can::Task,
        (false, true) if rounds => Can::Repeat,
        (false, true) => Can::Open,
        (false, false) => Can::Nothing,
    }
}

impl Door {
    /// Tells the client that a person has to decide.
    pub(crate) async fn ask(
        &self,
        party: &Arc<Party>,
        action: &Action,
        call: &Call<'_>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match (can(context), self.page(action)) {
            (Can::Task, _) => Ok(CreateTaskResult::new(self.seed(action)).into()),
            (Can::Repeat, Some(page)) => {
                let state = self.parts.key.seal(&Round::new(&action.id, &page.approval, self.now_ms()), call)?;
                Ok(InputRequiredResult::new(Some(page.requests()), Some(state)).into())
            }
            (Can::Open, Some(page)) => self.open_page(party, action, &page, call, context).await,
            (Can::Repeat | Can::Open | Can::Nothing, _) => Ok(self.waiting(action).into()),
        }
    }

    /// The page of the approval that waits, where one is served.
    pub(crate) fn page(&self, action: &Action) -> Option<Page> {
        let approval = action.pending()?;
        let url = (self.parts.inbox_url)(&approval.id)?;
        let message = format!(
            "A person has to decide about `{}` (plan {}). The page shows what would happen and why it is asked.",
            action.capability,
            approval.digest.short()
        );
        Some(Page { approval: approval.id.clone(), url, message })
    }

    /// A client comes back with what it was given: it gets the end of that
    /// action, or another round.
    pub(crate) async fn next_round(
        &self,
        party: &Arc<Party>,
        round: &Round,
        responses: Option<InputResponses>,
        call: &Call<'_>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let said = responses.as_ref().and_then(|responses| responses.get(round.approval.as_str()));
        let unopened = said.is_some_and(|said| said["action"] != "accept");
        let patience = async {
            // Nobody looks at the page now, and so nothing is waited for.
            if !unopened {
                tokio::time::sleep(self.parts.wait).await;
            }
        };
        let of = (&party.principal, &round.action);
        match self.traffic.follow(self.service(), of, Asking::Wait, patience, (context, OnGone::Stop)).await {
            Ok(Submitted::Done(seen)) => self.told(party, call.tool, &seen).map(Into::into),
            Ok(Submitted::Waiting(action)) if unopened => Ok(self.waiting(&action).into()),
            Ok(Submitted::Waiting(action)) => {
                let Some(page) = self.page(&action) else { return Ok(self.waiting(&action).into()) };
                // The page is shown again only if it is another one.
                let requests = (page.approval != round.approval).then(|| page.requests());
                let state = self.parts.key.seal(&Round::new(&action.id, &page.approval, self.now_ms()), call)?;
                Ok(InputRequiredResult::new(requests, Some(state)).into())
            }
            Err(problem) => refused(&problem).map(Into::into),
        }
    }

    /// Sends the client's user to the page while the request stays open, for
    /// revisions in which a server asks its client.
    async fn open_page(
        &self,
        party: &Arc<Party>,
        action: &Action,
        page: &Page,
        call: &Call<'_>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let request = ServerRequest::ElicitRequest(page.request());
        let sent = context.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let Ok(mut asked) = sent else { return Ok(self.waiting(action).into()) };
        let unopened = Notify::new();
        let patience = async {
            tokio::select! {
                () = unopened.notified() => {}
                () = tokio::time::sleep(self.parts.wait) => {}
            }
        };
        let of = (&party.principal, &action.id);
        let gone = (context, OnGone::Stop);
        let mut follow = Box::pin(self.traffic.follow(self.service(), of, Asking::Wait, patience, gone));
        let mut answered = false;
        let done = loop {
            tokio::select! {
                biased;
                done = &mut follow => break done,
                accepted = accepted(&mut asked), if !answered => {
                    answered = true;
                    if !accepted {
                        unopened.notify_one();
                    }
                }
            }
        };
        drop(follow);
        if !answered {
            // It was decided elsewhere, or nobody answers: the page is needed no
            // more. A client that is gone needs no word of it.
            let _ = asked.cancel(Some("decided, or waited for long enough".to_owned())).await;
        }
        match done {
            Ok(Submitted::Done(seen)) => self.told(party, call.tool, &seen).map(Into::into),
            Ok(Submitted::Waiting(action)) => Ok(self.waiting(&action).into()),
            Err(problem) => refused(&problem).map(Into::into),
        }
    }

    /// Where a person decides about an action, in words.
    pub(crate) fn where_decided(&self, action: &Action) -> Option<String> {
        let approval = &action.pending()?.id;
        let command = format!("`glovebox approvals show {approval}`");
        Some((self.parts.inbox_url)(approval).map_or_else(|| command.clone(), |url| format!("{url} or {command}")))
    }

    /// What is told of an action that has not ended, to a client that can do
    /// nothing but repeat it to its model.
    pub(crate) fn waiting(&self, action: &Action) -> CallToolResult {
        let (id, capability) = (&action.id, &action.capability);
        let mut text = match self.where_decided(action) {
            Some(place) => format!(
                "[approval-pending] `{capability}` has not run: a person has to decide first.\n\
                 where they decide: {place}\n"
            ),
            None => format!("[action-running] `{capability}` is {} and has not ended.\n", action.state),
        };
        text.push_str(&format!(
            "what helps: call `{RESULT}` with {{\"action_id\": \"{id}\"}}: it waits for the end and gives the result. \
             Don't call the tool again: that would be another action."
        ));
        let code = if action.pending().is_some() { "approval-pending" } else { "action-running" };
        let mut waits = json!({
            "action_id": id, "state": action.state, "code": code,
            "next": { "tool": RESULT, "arguments": { "action_id": id } },
        });
        if let Some(approval) = action.pending() {
            waits["approval_id"] = json!(approval.id);
            waits["decide_with"] = json!(format!("glovebox approvals show {}", approval.id));
            if let Some(url) = (self.parts.inbox_url)(&approval.id) {
                waits["decide_at"] = json!(url);
            }
            if let Some(expires) = approval.expires_ms {
                waits["expires_ms"] = json!(expires);
            }
        }
        let mut meta = MetaObject::new();
        meta.insert(OUTCOME.to_owned(), waits);
        // No `structuredContent`: it would not be what a tool promises.
        CallToolResult::error(vec![ContentBlock::text(text)]).with_meta(Some(meta))
    }
}

/// Whether the client opened the page. A client that can't is one that didn't.
async fn accepted(asked: &mut RequestHandle<RoleServer>) -> bool {
    match (&mut asked.rx).await {
        Ok(Ok(ClientResult::ElicitResult(said))) => said.action == ElicitationAction::Accept,
        _ => false,
    }
}
