//! What a door hands in, and its durable form.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use env_contracts::canon::{Canonical, ParseLimits};
use env_contracts::digest::Hasher;
use env_contracts::{ActionRequest, Code, Id, Name, Principal, Problem, Scope};
use glovebox_events::KeyClaim;
use glovebox_runtime::open_plain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a request comes in: the session, the task, and what their opener said.
/// All of it is the channel's, nothing the model's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskContext {
    /// The session, in whose log the action stands.
    pub session: Id,
    /// The task.
    pub task: Id,
    /// The turn of the task, where the loop has turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// What the task is for, as whoever opened it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// At which stage the task is, as the loop's credential set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
}

/// What happens where a person has to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Asking {
    /// The request waits for the answer.
    Wait,
    /// The action is left waiting, and whoever asked comes back for it.
    Leave,
    /// Nobody can decide: it ends at once.
    Never,
}

/// A request as a door received it.
#[derive(Clone)]
pub struct Submission {
    /// Who asks, as the channel knows it.
    pub principal: Principal,
    /// What it belongs to, as the channel knows it.
    pub context: TaskContext,
    /// What is asked.
    pub request: ActionRequest,
    /// The arguments as bytes, where the door received bytes: they are parsed
    /// strictly here, once.
    pub received: Option<Vec<u8>>,
    /// The folder on the host that is the workspace.
    pub workspace: Option<PathBuf>,
    /// Files of the host that the door itself may name, by name. Artifacts
    /// come by URI through the request.
    pub inputs: BTreeMap<Name, PathBuf>,
    /// What happens where a person has to decide.
    pub asking: Asking,
    /// Whether the door goes on with it by itself once it was answered, also
    /// after a restart: its client may be gone by then. It finds it with
    /// [`ActionService::held`](super::ActionService::held). It is no part of what
    /// makes two requests with one key the same.
    pub held: bool,
}

/// A submission as it is kept: enough to carry it out later, by whoever asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    pub(crate) schema: KeptSchema,
    pub(crate) context: TaskContext,
    pub(crate) request: ActionRequest,
    /// The arguments as they were received: evidence, and what is parsed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) received: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) inputs: BTreeMap<Name, PathBuf>,
}

/// The version tag of a kept submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KeptSchema {
    #[serde(rename = "glovebox/submission/v1")]
    V1,
}

/// What a person, or a preview, put in place of what was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    pub(crate) schema: EditSchema,
    /// All of the arguments, as text. Absent: as they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<String>,
    /// The scope. Absent: as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<Scope>,
    /// Whether a preview put the version of its object there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) filled: bool,
}

/// The version tag of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EditSchema {
    #[serde(rename = "glovebox/edit/v1")]
    V1,
}

/// What an action is opened with: a submission in its durable form.
pub(crate) struct Opening {
    pub(crate) principal: Principal,
    pub(crate) kept: Kept,
    /// Its claim on its key, if it has one.
    pub(crate) key: Option<KeyClaim>,
    pub(crate) asking: Asking,
    pub(crate) held: bool,
}

impl Submission {
    /// It with its durable form, and the claim on its key.
    ///
    /// # Errors
    /// As of [`Submission::kept`].
    pub(crate) fn opening(&self) -> Result<Opening, Problem> {
        let kept = self.kept()?;
        let key = kept.key(&self.principal);
        Ok(Opening { principal: self.principal.clone(), kept, key, asking: self.asking, held: self.held })
    }

    /// Its durable form. Paths become absolute: who resumes it may stand
    /// elsewhere.
    ///
    /// # Errors
    /// `arguments-invalid` for arguments that are no text.
    fn kept(&self) -> Result<Kept, Problem> {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // It is written down, and shown to whoever decides.
        let text = |path: PathBuf, code| match path.to_str() {
            Some(_) => Ok(path),
            None => Err(Problem::new(code, format!("`{}` is not UTF-8 text", path.display()))),
        };
        let workspace = self.workspace.as_deref().map(absolute);
        let workspace = workspace.map(|path| text(path, Code::WorkspaceUnavailable)).transpose()?;
        let input = |(name, path): (&Name, &PathBuf)| Ok((name.clone(), text(absolute(path), Code::FileUnreadable)?));
        let inputs = self.inputs.iter().map(input).collect::<Result<_, Problem>>()?;
        let received = self.received.clone().map(String::from_utf8).transpose();
        let received =
            received.map_err(|_| Problem::new(Code::ArgumentsInvalid, "the arguments are not UTF-8 text"))?;
        Ok(Kept {
            schema: KeptSchema::V1,
            context: self.context.clone(),
            request: self.request.clone(),
            received,
            workspace,
            inputs,
        })
    }
}

impl Kept {
    /// The same with what a person put in its place.
    pub(crate) fn edited(mut self, edit: Edit) -> Self {
        if let Some(arguments) = edit.arguments {
            self.received = Some(arguments);
        }
        if let Some(scope) = edit.scope {
            self.request.scope = Some(scope);
        }
        self
    }

    /// The claim on its key, where it has one and the arguments can be read at
    /// all: otherwise the request is refused anyway.
    fn key(&self, principal: &Principal) -> Option<KeyClaim> {
        let key = self.request.idempotency_key.as_ref()?;
        let arguments = match &self.received {
            Some(text) => Canonical::parse(text.as_bytes(), ParseLimits::default()).ok()?,
            None => Canonical::from_value(&self.request.arguments).ok()?,
        };
        let mut scope = Hasher::new("glovebox/key/v1");
        scope
            .part("tenant", principal.tenant.as_str().as_bytes())
            .part("user", principal.user.as_str().as_bytes())
            .part("agent", principal.agent.as_ref().map_or("", Name::as_str).as_bytes())
            .part("capability", self.request.capability.name.as_str().as_bytes())
            .part("key", key.as_str().as_bytes());
        // What makes it the same request: everything but how it was spelled,
        // what the model and the channel said about it, and the ids that a
        // repetition may have anew.
        let mut same = self.clone();
        same.received = None;
        same.request.arguments = serde_json::Value::Null;
        (same.request.purpose, same.request.stage, same.request.action_id) = (None, None, None);
        (same.context.purpose, same.context.stage) = (None, None);
        same.request.parents.clear();
        let mut request = Hasher::new("glovebox/same-request/v1");
        request.part("arguments", arguments.as_str().as_bytes()).part("rest", &crate::json(&same));
        Some(KeyClaim { scope: scope.finish(), request: request.finish() })
    }

    /// Opens the files that it names.
    ///
    /// # Errors
    /// `file-unreadable`.
    pub(crate) fn open_inputs(&self) -> Result<BTreeMap<Name, OwnedFd>, Problem> {
        let unreadable = |error: std::io::Error| Problem::new(Code::FileUnreadable, error.to_string());
        let open = |path| open_plain(path).map(OwnedFd::from).map_err(unreadable);
        self.inputs.iter().map(|(name, path)| Ok((name.clone(), open(path)?))).collect()
    }
}
