//! A client of this door, over a pair of pipes in memory.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use env_contracts::{Access, Id, Principal};
use glovebox_events::{Action, ActionState};
use glovebox_mcp::{Door, DoorParts, Party, StateKey, Workspace};
use glovebox_plane::{Asking, Signed, TaskContext};
use glovebox_store::ActionFilter;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorData, Implementation, ProgressNotificationParam,
    ProtocolVersion, UrlElicitationCapability,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RoleClient, RunningService,
};
use rmcp::{ClientHandler, ServiceError};
use serde_json::Value;

use crate::house::{House, Setup, agent, approval, id, name, offered, person};

/// Whoever is asked can say yes.
pub(crate) const ASK: &str = "permit (principal, action, resource) when { context has approval };\n\
     permit (principal, action, resource) when { context.effects == \"none\" };";

/// The clients that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// They begin with a handshake.
    Old,
    /// Each request stands for itself.
    New,
}

pub(crate) const ERAS: [Era; 2] = [Era::Old, Era::New];

/// What a client does for its user.
#[derive(Clone, Default)]
pub(crate) struct Hand {
    pub(crate) tasks: bool,
    /// What it answers when it is sent to a page. `None`: it opens none.
    pub(crate) page: Option<Answers>,
    /// The pages that it was sent to.
    pub(crate) pages: Arc<Mutex<Vec<String>>>,
    pub(crate) progress: Arc<Mutex<Vec<f64>>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Answers {
    Accept,
    Decline,
    Never,
}

impl Hand {
    pub(crate) fn opens(answers: Answers) -> Self {
        Self { page: Some(answers), ..Self::default() }
    }

    pub(crate) fn with_tasks() -> Self {
        Self { tasks: true, ..Self::default() }
    }
}

impl ClientHandler for Hand {
    fn get_info(&self) -> ClientConfig {
        let mut can = ClientCapabilities::default();
        if self.tasks {
            can = ClientCapabilities::builder().enable_tasks().build();
        }
        if self.page.is_some() {
            can.elicitation = Some(ElicitationCapability::new().with_url(UrlElicitationCapability::default()));
        }
        ClientConfig::new(can, Implementation::new("test", "1")).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::UrlElicitationParams { url, .. } = request else { panic!("a form") };
        self.pages.lock().unwrap().push(url);
        match self.page.unwrap() {
            Answers::Accept => Ok(ElicitResult::new(ElicitationAction::Accept)),
            Answers::Decline => Ok(ElicitResult::new(ElicitationAction::Decline)),
            Answers::Never => std::future::pending().await,
        }
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(told.progress);
    }
}

/// A door in a house.
pub(crate) struct Seat {
    pub(crate) house: House,
    pub(crate) door: Door,
}

pub(crate) type Client = RunningService<RoleClient, Hand>;

impl Seat {
    pub(crate) fn of(setup: &Setup) -> Self {
        Self::in_house(House::of(setup), Duration::from_secs(300))
    }

    /// A door that waits for people no longer than this.
    pub(crate) fn in_house(house: House, wait: Duration) -> Self {
        let door = door(&house, wait);
        Self { house, door }
    }

    /// A client at another door of the house, which waits for as long as it
    /// takes.
    pub(crate) async fn patient(&self, hand: Hand) -> Client {
        connected(&door(&self.house, Duration::from_secs(300)), self.party(), Era::New, hand).await
    }

    /// The agent `coder`, on a workspace that it may write.
    pub(crate) fn party(&self) -> Party {
        self.party_of(agent("u", "coder"), Access::Write, Asking::Leave)
    }

    pub(crate) fn party_of(&self, principal: Principal, access: Access, asking: Asking) -> Party {
        let context = TaskContext { session: id("s1"), task: id("s1"), turn: None, purpose: None, stage: None };
        Party::new(principal, context, Some(Workspace { dir: self.house.path("workspace"), access }), asking)
    }

    pub(crate) async fn client(&self, era: Era, hand: Hand) -> Client {
        self.client_of(self.party(), era, hand).await
    }

    pub(crate) async fn client_of(&self, party: Party, era: Era, hand: Hand) -> Client {
        connected(&self.door, party, era, hand).await
    }

    /// All actions, the newest first.
    pub(crate) fn actions(&self) -> Vec<Action> {
        self.house.store.actions(&name("local"), &ActionFilter::default()).unwrap().items
    }

    /// The one action in this state, once there is one.
    pub(crate) async fn once(&self, state: ActionState) -> Action {
        let mut changes = self.house.store.changes().unwrap();
        loop {
            if let Some(action) = self.actions().into_iter().find(|action| action.state == state) {
                return action;
            }
            changes.changed().await.unwrap();
        }
    }

    /// The user's answer.
    pub(crate) async fn answer(&self, action: &Action, offer: &str, words: Option<&str>) {
        let principal = person("u");
        let by = Signed { principal: &principal, key: None, channel: name("test") };
        self.house.service.answer(by, offered(approval(action), offer, words)).await.unwrap();
    }
}

fn door(house: &House, wait: Duration) -> Door {
    Door::new(DoorParts {
        service: house.service.clone(),
        clock: house.ground.clock.clone(),
        key: StateKey::new([7; 32]),
        inbox_url: Arc::new(|approval| Some(format!("http://127.0.0.1:1/approvals/{approval}"))),
        wait,
    })
}

async fn connected(door: &Door, party: Party, era: Era, hand: Hand) -> Client {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(theirs);
    let door = door.of(party);
    tokio::spawn(async move { door.serve(read, write).await });
    let lifecycle = match era {
        Era::Old => ClientLifecycleMode::Initialize,
        Era::New => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
    };
    hand.serve_with_lifecycle(ours, lifecycle).await.unwrap()
}

pub(crate) fn calling(tool: &str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.as_object().unwrap().clone())
}

/// A call that gets its answer at once.
pub(crate) async fn call(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    match client.peer().call_tool_once(calling(tool, arguments)).await.unwrap() {
        CallToolResponse::Complete(result) => result,
        other => panic!("no answer yet: {other:?}"),
    }
}

/// A call that can't be answered.
pub(crate) async fn refused(client: &Client, tool: &str, arguments: Value) -> ErrorData {
    error(client.peer().call_tool_once(calling(tool, arguments)).await)
}

pub(crate) fn error<T: std::fmt::Debug>(answer: Result<T, ServiceError>) -> ErrorData {
    match answer.unwrap_err() {
        ServiceError::McpError(error) => error,
        other => panic!("{other}"),
    }
}

/// The text of a result.
pub(crate) fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

/// A word of how the action ended, or what it waits for.
pub(crate) fn said<'a>(result: &'a CallToolResult, key: &str) -> &'a str {
    result.meta.as_ref().unwrap()["glovebox/outcome"][key].as_str().unwrap()
}

/// The action that an answer names.
pub(crate) fn named(result: &CallToolResult) -> Id {
    id(said(result, "action_id"))
}
