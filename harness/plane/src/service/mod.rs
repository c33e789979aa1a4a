//! The one way in: every door hands its requests to the [`ActionService`].

mod answerers;
mod answering;
mod answers;
mod asking;
mod attention;
mod binding;
mod claiming;
mod companion;
mod deciding;
mod deed;
mod describing;
mod disclosing;
mod drift;
mod ending;
mod environments;
mod execution;
mod explaining;
mod flight;
mod granting;
mod halting;
mod interrupting;
mod journal;
mod keeping;
mod looking;
mod natives;
mod offers;
mod output;
mod people;
mod permission;
mod preview;
mod proposing;
mod questions;
mod receiving;
mod recovering;
mod reviewing;
mod running;
mod saying;
mod seeing;
mod serving;
mod settings;
mod settling;
mod standing;
mod starting;
mod submission;
mod submitting;
mod task_view;
mod tasks;
mod tracing;
mod turns;
mod verify;
mod waiting;

pub use answerers::Answerers;
pub use answering::{Answering, Reply, Settled};
pub use attention::Attention;
pub use deciding::{LivePolicy, PolicySource};
pub use explaining::Explained;
pub(crate) use granting::describe;
pub use halting::Halted;
pub use interrupting::{Interrupted, Interrupting, MAX_GRACE, Target};
pub use keeping::{EnvironmentState, EnvironmentView, SnapshotView, Tended};
pub use looking::ActionView;
pub use output::{MAX_OUTPUT_CHUNK, OutputChunk, OutputMoved};
pub use people::{Key, People, Signed};
pub use permission::PermissionRequest;
pub use questions::{
    AnswerSource, Answered, Answering as QuestionReply, Asking as NewQuestion, MAX_ANSWER, MAX_OPTION, MAX_QUESTION,
    QuestionOption, QuestionText, QuestionView,
};
pub use recovering::{Holders, Recovered};
pub use saying::Saying;
pub use settings::{AskLimits, EnvironmentLimits, Settings};
pub use starting::{
    ChildQuestion, Choice, DecidedProposal, GrantView, Happened, OpenAction, PermissionDiff, TurnSchema, TurnStart,
};
pub(crate) use submission::Kept;
pub use submission::{Asking, Submission, TaskContext};
pub use submitting::{Made, PlanProposal, PlanStep, ResultProposal};
pub use task_view::{BudgetView, GoalView, Said, TaskView};
pub use tasks::{MAX_DEPTH, MAX_TEXT, NewSession, NewTask};
pub use tracing::{Trace, TraceNode};
pub use turns::{MAX_ENTRY, OpenTurn, Telling};

use std::path::PathBuf;
use std::sync::Arc;

use env_contracts::{ByteSize, Code, Digest, Id, Observation, Principal, Problem, Wanted};
use glovebox_artifacts::ArtifactStore;
use glovebox_events::{Action, Asks, KeyClaim};
use glovebox_runtime::{Admission, Authority, Clock, Runtime, Stop};
use glovebox_store::{Condition, Conflict, Store};

use crate::ids::IdSource;
use crate::live::Live;
use crate::operator::OperatorSource;
use crate::registry::{Registry, Tool};
use crate::slots::Slots;
use crate::watch::Watch;
use flight::Flight;
use journal::Lost;

/// Everything the service is made of.
pub struct Parts {
    /// Which capabilities there are.
    pub registry: Registry,
    /// What the operator allows at most, and which of them an agent may see and
    /// run.
    pub operator: Arc<dyn OperatorSource>,
    /// Who decides.
    pub policy: Arc<dyn PolicySource>,
    /// Who may approve, and how their answers are told from others'.
    pub people: Arc<dyn People>,
    /// What is remembered.
    pub store: Arc<dyn Store>,
    /// Which processes live.
    pub holders: Arc<dyn Holders>,
    /// What executes.
    pub runtime: Runtime,
    /// The right to let it.
    pub authority: Authority,
    /// Who gets room.
    pub admission: Admission,
    /// Where artifacts go.
    pub artifacts: ArtifactStore,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn IdSource>,
    /// The folder of run folders and locks.
    pub run_root: PathBuf,
    /// The folder of environments, of all tenants.
    pub environments: PathBuf,
    /// Folders of ours that no guest may see.
    pub protect: Vec<PathBuf>,
    /// The most bytes that one action may seal.
    pub max_sealed: ByteSize,
    /// How people are asked.
    pub settings: Settings,
}

/// Takes requests, and gives Observations back.
///
/// Cloning shares it.
#[derive(Clone)]
pub struct ActionService {
    parts: Arc<Parts>,
    slots: Slots,
    live: Live,
    /// Whether people see all of their tenant here.
    overseeing: bool,
}

/// What became of a submission.
#[derive(Debug)]
pub enum Submitted {
    /// It ended, now or earlier.
    Done(Observation),
    /// A person has to decide, and whoever asked comes back for it.
    Waiting(Action),
}

impl ActionService {
    /// The service over these parts.
    pub fn new(parts: Parts) -> Self {
        Self { slots: Slots::new(&parts.run_root), parts: Arc::new(parts), live: Live::default(), overseeing: false }
    }

    /// Which capabilities there are.
    pub fn registry(&self) -> &Registry {
        &self.parts.registry
    }

    /// The artifacts.
    pub fn artifacts(&self) -> &ArtifactStore {
        &self.parts.artifacts
    }

    /// Carries an action from its request to its Observation, or to the
    /// person who has to decide. Must be called within a tokio runtime of at
    /// least two threads.
    ///
    /// However the action ends, the answer is an Observation. Dropping the
    /// future asks a run to stop; an action that waits for a person goes on
    /// waiting.
    ///
    /// # Errors
    /// A [`Problem`] only where there is no action to speak of: the request
    /// can't be read, no such tool is there for this requester, the id or the
    /// key is taken by another.
    pub async fn submit(
        &self,
        submission: Submission,
        watch: Arc<dyn Watch>,
        stop: &Stop,
    ) -> Result<Submitted, Problem> {
        submission.request.validate().map_err(|error| Problem::of(&error))?;
        let opening = submission.opening()?;
        // Whatever became of the task and the tool since: what was done, was done.
        if let Some(key) = &opening.key
            && let Some((request, action)) = self.parts.store.key(&key.scope)?
        {
            same_request(key, &request, &action)?;
            return Box::pin(self.resume(&submission.principal, &action, submission.asking, watch, stop)).await;
        }
        let tool = self.runnable(&submission.principal, &submission.request.capability)?;
        let mut flight = Flight::begin(&self.parts, opening, tool, Asks::Run)?;
        watch.begun(flight.journal.id());
        if let Some(key) = flight.action().key.clone() {
            let action = flight.journal.id().clone();
            let claim = Condition::KeyFree { scope: key.scope.clone(), request: key.request.clone(), action };
            flight.journal.condition(claim);
            match flight.journal.commit(&*self.parts.store).await {
                Ok(_) => {}
                Err(Lost::Refused(Conflict::Key { request, action })) => {
                    same_request(&key, &request, &action)?;
                    return Box::pin(self.resume(&submission.principal, &action, submission.asking, watch, stop)).await;
                }
                Err(lost) => return Err(self.lost(lost)),
            }
        } else if submission.request.action_id.is_some() {
            // An id of the requester's may come twice: it is taken before
            // anything runs.
            flight.journal.commit(&*self.parts.store).await.map_err(|lost| self.lost(lost))?;
        }
        Box::pin(self.go_on(flight, watch, stop)).await
    }

    /// Goes on with an action that was left: runs it if it was approved,
    /// waits for the answer or the end, or gives the Observation that there is.
    /// A person goes on with all that was asked in their name; it runs as
    /// whoever asked.
    ///
    /// # Errors
    /// `action-unknown` where there is none or it is another's.
    pub async fn resume(
        &self,
        principal: &Principal,
        action: &Id,
        asking: Asking,
        watch: Arc<dyn Watch>,
        stop: &Stop,
    ) -> Result<Submitted, Problem> {
        let action = self.same_user(principal, action)?;
        if let Some(submitted) = self.left_to_its_agent(&action)? {
            return Ok(submitted);
        }
        let action = self.reaffirmed(action).await?;
        let flight = Flight::of(&self.parts, action, asking)?;
        Box::pin(self.go_on(flight, watch, stop)).await
    }

    /// The capability, if it is registered and disclosed to who asks.
    ///
    /// # Errors
    /// `tool-unknown`, also for what is not disclosed.
    pub fn capability(&self, principal: &Principal, wanted: &Wanted) -> Result<Arc<Tool>, Problem> {
        self.parts.registry.disclosed(wanted, principal, &self.parts.operator.current()?.profiles)
    }

    fn lost(&self, lost: Lost) -> Problem {
        match lost {
            Lost::Changed => Problem::new(Code::ActionConflict, "an action of that id was asked for before"),
            Lost::Refused(Conflict::Halted(halt)) => halting::halted(&halt),
            Lost::Refused(Conflict::Task(moved)) => halting::problem_of(standing::moved(&moved)),
            Lost::Refused(conflict) => Problem::new(Code::BackendError, format!("not expected here: {conflict:?}")),
            Lost::Failed(problem) => problem,
        }
    }

    fn now_ms(&self) -> u64 {
        self.parts.clock.now().unix_millis
    }
}

/// Refuses a key that was claimed for another request.
fn same_request(key: &KeyClaim, request: &Digest, action: &Id) -> Result<(), Problem> {
    if key.request == *request {
        return Ok(());
    }
    Err(Problem::new(Code::KeyConflict, format!("the key was used for another request, which is action {action}")))
}

/// What is answered alike for a task that nobody opened and for one of others.
fn unknown_task(id: &Id) -> Problem {
    Problem::new(Code::TaskUnknown, format!("there is no task `{id}`"))
}

/// The same for a session.
fn unknown_session(id: &Id) -> Problem {
    Problem::new(Code::SessionUnknown, format!("there is no session `{id}`"))
}

/// What is answered alike for an action that does not exist and for one of
/// others.
fn unknown_action(id: &Id) -> Problem {
    Problem::new(Code::ActionUnknown, format!("there is no action `{id}`"))
}
