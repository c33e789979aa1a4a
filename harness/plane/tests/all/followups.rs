//! Tools that name others: a deployment with its preview, its verify and what
//! puts it right, and what the tests of them share.

use env_contracts::{Id, Observation};
use glovebox_events::{Action, Logged, What};
use glovebox_plane::{Card, Submitted};
use glovebox_runtime::Bound;
use glovebox_runtime::job::{End, ToolFailure};
use glovebox_store::ActionFilter;
use serde_json::Value;

use crate::fake::returned;
use crate::house::{House, Setup, approval, name, person};

/// It changes the workspace, so an agent has to ask.
pub(crate) const DEPLOY: &str = r#"
name = "fake.deploy"
preview = "fake.preview@1.0.0"
verify = "fake.verify@1.0.0"
repair = "fake.repair@1.0.0"
compensate = "fake.undo@1.0.0"
entry = { kind = "tool" }
[input]
type = "object"
additionalProperties = false
[input.properties]
target = { type = "string" }
note = { type = "string" }
version = { type = "string", x-glovebox-version = true }
key = { type = "string", x-glovebox-key = true }
[contract]
schema = "glovebox/contract/v1"
filesystem = [{ guest = "/workspace", source = "workspace", access = "write" }]
limits = { wall = "10s", memory = "64MiB", output = "1MiB" }
"#;

pub(crate) const PREVIEW: &str = r#"
name = "fake.preview"
entry = { kind = "tool" }
input = { type = "object", additionalProperties = false, properties = { target = { type = "string" } } }
[contract]
schema = "glovebox/contract/v1"
filesystem = [{ guest = "/workspace", source = "workspace", access = "read" }]
limits = { wall = "10s", memory = "64MiB", output = "1MiB" }
"#;

pub(crate) const VERIFY: &str = r#"
name = "fake.verify"
entry = { kind = "tool" }
[input]
type = "object"
additionalProperties = false
properties = { target = { type = "string" }, version = { type = "string" }, result = { type = ["object", "null"] } }
[contract]
schema = "glovebox/contract/v1"
filesystem = [{ guest = "/workspace", source = "workspace", access = "read" }]
limits = { wall = "10s", memory = "64MiB", output = "1MiB" }
"#;

/// What the three of them do, unless a test says otherwise.
#[derive(Clone)]
pub(crate) struct Plays {
    pub(crate) preview: &'static str,
    pub(crate) deploy: &'static str,
    pub(crate) verify: &'static str,
}

pub(crate) const PLAYS: Plays = Plays {
    preview: r#"{"version":"v1","changes":["a line"]}"#,
    deploy: r#"{"deployed":true}"#,
    verify: r#"{"holds":true,"why":"it answers"}"#,
};

/// A result, or `!kind` for a failure of the tool's, with `{…}` as its
/// details where they follow.
pub(crate) fn played(text: &str) -> End {
    match text.strip_prefix('!') {
        Some(failure) => {
            let (kind, details) = failure.split_at(failure.find('{').unwrap_or(failure.len()));
            End::Failed(ToolFailure {
                kind: kind.to_owned(),
                message: format!("it failed: {kind}"),
                retryable: false,
                details: Some(details.to_owned()).filter(|details| !details.is_empty()),
            })
        }
        None => returned(text),
    }
}

pub(crate) fn what(bound: &Bound) -> &str {
    bound.plan.capability.name.as_str()
}

pub(crate) fn setup() -> Setup {
    Setup::of(&[DEPLOY, PREVIEW, VERIFY])
}

impl House {
    pub(crate) fn plays(&self, plays: Plays) -> &Self {
        self.on_run(move |bound, _| {
            played(match what(bound) {
                "fake.preview" => plays.preview,
                "fake.verify" => plays.verify,
                _ => plays.deploy,
            })
        })
    }

    pub(crate) fn card_of(&self, action: &Action) -> Card {
        self.service.approval(&person("u"), approval(action)).unwrap()
    }

    /// Every action of the capability, newest first.
    pub(crate) fn all_of(&self, capability: &str) -> Vec<Action> {
        let page = self.store.actions(&name("local"), &ActionFilter::default()).unwrap();
        page.items.into_iter().filter(|action| action.capability.name.as_str() == capability).collect()
    }

    /// The one action of the capability.
    pub(crate) fn only(&self, capability: &str) -> Action {
        let mut all = self.all_of(capability);
        assert_eq!(all.len(), 1, "{capability}: {all:?}");
        all.remove(0)
    }

    /// The arguments of an action's plan.
    pub(crate) fn arguments(&self, action: &Id) -> Value {
        let action = self.now(action);
        let of = glovebox_events::Owner::Action(action.id.clone());
        let content = self.store.payload(&name("local"), &of, action.plan.as_ref().unwrap()).unwrap();
        let Some(glovebox_store::Content::Bytes(bytes)) = content else { panic!("it has no plan") };
        let plan: Value = serde_json::from_slice(&bytes).unwrap();
        serde_json::from_str(plan["arguments"].as_str().unwrap()).unwrap()
    }

    pub(crate) fn seen(&self, action: &Id) -> Observation {
        *self.service.action(&person("u"), action).unwrap().observation.unwrap()
    }

    pub(crate) fn of_action(&self, action: &Id) -> Vec<Logged> {
        self.log(&["s1"]).into_iter().filter(|logged| logged.event.action.as_ref() == Some(action)).collect()
    }

    /// Whether anybody was asked about an action.
    pub(crate) fn was_asked(&self, action: &Id) -> bool {
        self.of_action(action).iter().any(|logged| matches!(logged.event.what, What::ApprovalOpened { .. }))
    }
}

/// The Observation, or the action that waits.
pub(crate) fn either(submitted: Submitted) -> Result<Observation, Box<Action>> {
    match submitted {
        Submitted::Done(observation) => Ok(observation),
        Submitted::Waiting(action) => Err(Box::new(action)),
    }
}
