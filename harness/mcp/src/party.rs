//! On whose behalf a request comes.

use std::path::PathBuf;
use std::sync::Arc;

use env_contracts::{Access, Principal};
use glovebox_events::Budget;
use glovebox_plane::{ActionService, Asking, NewTask, TaskContext};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use tokio::sync::OnceCell;

/// On whose behalf a request comes, and what it belongs to. All of it is the
/// channel's: nothing of it is read from a message.
#[derive(Debug, Clone)]
pub struct Party {
    /// Who asks.
    pub principal: Principal,
    /// The session and its one task: this door has no turns.
    pub context: TaskContext,
    /// The folder that its tools work on. `None`: there is none.
    pub workspace: Option<Workspace>,
    /// Whether a person can be asked at all: [`Asking::Leave`] or
    /// [`Asking::Never`].
    pub asking: Asking,
    opened: OnceCell<()>,
}

/// What a task is for whose channel says nothing of it.
const GOAL: &str = "what the client of the MCP door asks for";

impl Party {
    /// Whoever asks, for this task, with this workspace.
    pub fn new(principal: Principal, context: TaskContext, workspace: Option<Workspace>, asking: Asking) -> Self {
        Self { principal, context, workspace, asking, opened: OnceCell::new() }
    }

    /// Opens the session and its task with the first call, so that people can
    /// say something to it: what they say reaches the model with the next
    /// result. Where they are there already, nothing happens.
    pub(crate) async fn open(&self, service: &ActionService) {
        let TaskContext { session, task, purpose, stage, .. } = self.context.clone();
        let goal = purpose.clone().unwrap_or_else(|| GOAL.to_owned());
        let new = NewTask { id: Some(task), session, goal, purpose, stage, budget: Budget::default() };
        // What is wrong with the task, the action itself will say.
        self.opened.get_or_init(|| async { drop(service.open_task(&self.principal, new).await) }).await;
    }
}

/// A folder, and the most that may be done with it.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The folder on the host.
    pub dir: PathBuf,
    /// The most that may be done with it.
    pub access: Access,
}

/// Where the party of a request is found.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// The whole channel is one party's.
    Channel(Arc<Party>),
    /// The HTTP server put it, as an `Arc<Party>`, among the extensions of
    /// each request that it let in.
    Request,
}

impl Origin {
    /// The party of a request.
    ///
    /// # Errors
    /// An internal error where a server let in a request without saying whose
    /// it is.
    pub(crate) fn of(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Party>, ErrorData> {
        let found = match self {
            Self::Channel(party) => Some(party.clone()),
            Self::Request => {
                let parts = context.extensions.get::<http::request::Parts>();
                parts.and_then(|parts| parts.extensions.get::<Arc<Party>>().cloned())
            }
        };
        found.ok_or_else(|| ErrorData::internal_error("nobody is known on whose behalf this request comes", None))
    }
}
