//! One request being put together.

use std::collections::BTreeMap;
use std::sync::Arc;

use env_contracts::{ActionRequest, Code, Observation, OutcomeKind, Principal, Problem};
use glovebox_plane::{Asking, Submission, TaskContext, Unwatched, Watch};
use glovebox_runtime::{Clock as _, Stop, SystemClock};
use serde_json::Value;

use crate::guests::Guest;
use crate::house::{House, TENANT, TOKIO};
use crate::seen::Seen;

/// A request, and the tool that it is for.
pub(crate) struct Act<'h> {
    house: &'h House,
    /// `None`: a built-in tool.
    guest: Option<Guest>,
    name: String,
    received: Vec<u8>,
    entry: String,
    input: String,
    mounts: Vec<&'static str>,
    limits: Vec<&'static str>,
    clauses: Vec<String>,
    change: Box<dyn FnOnce(&mut Submission) + Send + 'h>,
    watch: Arc<dyn Watch>,
    stop: Stop,
}

/// A backend said beforehand that it can't keep the promise: the payload of
/// the unwinding that ends the row.
pub(crate) struct RefusedByBackend(pub(crate) String);

/// This machine lacks what the row takes: the payload of the unwinding that
/// ends it.
pub(crate) struct Lacking(pub(crate) &'static str);

impl<'h> Act<'h> {
    pub(crate) fn new(house: &'h House, guest: Option<Guest>, args: &Value) -> Self {
        Self {
            house,
            guest,
            name: house.next_name(),
            received: args.to_string().into_bytes(),
            entry: "kind = \"command\"".into(),
            input: "type = \"object\"".into(),
            mounts: Vec::new(),
            limits: Vec::new(),
            clauses: Vec::new(),
            change: Box::new(|_| {}),
            watch: Arc::new(Unwatched),
            stop: Stop::default(),
        }
    }

    /// For the tool of this name.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Arguments as bytes, however wrong.
    pub(crate) fn bytes(mut self, received: impl Into<Vec<u8>>) -> Self {
        self.received = received.into();
        self
    }

    /// How the guest is called: the inside of the manifest's `entry`.
    pub(crate) fn entry(mut self, entry: &str) -> Self {
        self.entry = entry.into();
        self
    }

    /// Its arguments: the inside of the manifest's `input`.
    pub(crate) fn input(mut self, input: &str) -> Self {
        self.input = input.into();
        self
    }

    /// Standard output is text, and as long as it likes.
    pub(crate) fn text(self) -> Self {
        self.entry("kind = \"command\", result = \"text\"")
    }

    /// A folder: `workspace read`, `outputs`, `scratch`, `inputs`.
    pub(crate) fn mount(mut self, which: &'static str) -> Self {
        self.mounts.push(match which {
            "workspace read" => "{ guest = \"/workspace\", source = \"workspace\", access = \"read\" }",
            "workspace write" => "{ guest = \"/workspace\", source = \"workspace\", access = \"write\" }",
            "workspace read, hiding nothing" => {
                "{ guest = \"/workspace\", source = \"workspace\", access = \"read\", hide = [] }"
            }
            "outputs" => "{ guest = \"/outputs\", source = \"outputs\", access = \"write\" }",
            "scratch" => "{ guest = \"/tmp\", source = \"scratch\", access = \"write\" }",
            "inputs" => "{ guest = \"/inputs\", source = \"input:*\", access = \"read\" }",
            other => panic!("no such mount: {other}"),
        });
        self
    }

    /// One line of `[limits]`.
    pub(crate) fn limit(mut self, line: &'static str) -> Self {
        self.limits.push(line);
        self
    }

    /// Lines of the contract.
    pub(crate) fn clause(mut self, lines: impl Into<String>) -> Self {
        self.clauses.push(lines.into());
        self
    }

    /// Changes the submission.
    pub(crate) fn asking(mut self, change: impl FnOnce(&mut Submission) + Send + 'h) -> Self {
        self.change = Box::new(change);
        self
    }

    /// Somebody watches.
    pub(crate) fn watched(mut self, watch: impl Watch + 'static) -> Self {
        self.watch = Arc::new(watch);
        self
    }

    /// Somebody can stop it.
    pub(crate) fn stopped_by(mut self, stop: &Stop) -> Self {
        self.stop = stop.clone();
        self
    }

    /// The contract as it is written down.
    fn contract(&self) -> String {
        let mut text = "schema = \"glovebox/contract/v1\"\n".to_owned();
        if !self.mounts.is_empty() {
            text.push_str(&format!("filesystem = [{}]\n", self.mounts.join(", ")));
        }
        if !self.limits.is_empty() {
            text.push_str(&format!("limits = {{ {} }}\n", self.limits.join(", ")));
        }
        text.push_str(&self.clauses.join("\n"));
        if !self.clauses.iter().any(|lines| lines.contains("platform = ")) {
            text.push_str(&format!("\n{}", self.house.platform(&[])));
        }
        text
    }

    fn register(&self) {
        let Some(guest) = &self.guest else { return };
        let manifest = format!(
            "schema = \"glovebox/tool/v1\"\nname = \"{}\"\nversion = \"1.0.0\"\ntitle = \"t\"\ndescription = \"d\"\n\
             entry = {{ {} }}\ninput = {{ {} }}\n[contract]\n{}",
            self.name,
            self.entry,
            self.input,
            self.contract()
        );
        let added = self.house.service.registry().add(&manifest, &self.house.artifact(guest), SystemClock.now());
        added.unwrap_or_else(|problem| panic!("{problem:?}"));
    }

    /// Runs it. A backend that refuses a clause ends the row.
    pub(crate) fn run(self) -> Seen<'h> {
        let house = self.house;
        let seen = self.attempt();
        if let Some(clause) = refusal(house, &seen) {
            std::panic::resume_unwind(Box::new(RefusedByBackend(clause)));
        }
        seen
    }

    /// Runs it, for a row that is about refusals.
    pub(crate) fn attempt(self) -> Seen<'h> {
        let (house, received) = (self.house, self.received.clone());
        let seen = self.submit().unwrap_or_else(|problem| panic!("nothing was observed: {problem:?}"));
        house.after(&received, &seen);
        if seen.outcome.code.is_some() {
            house.still_works();
        }
        Seen::new(house, seen)
    }

    /// Runs it, whatever comes of it.
    pub(crate) fn submit(self) -> Result<Observation, Problem> {
        TOKIO.block_on(self.future())
    }

    /// The action, not yet waited for.
    pub(crate) fn future(self) -> impl Future<Output = Result<Observation, Problem>> + 'h {
        self.register();
        let mut submission = submission(self.house, &self.name, self.received);
        (self.change)(&mut submission);
        let (house, watch, stop) = (self.house, self.watch, self.stop);
        async move { house.run(submission, watch, &stop).await }
    }

    /// The same request, to be sent again and again.
    pub(crate) fn repeated(self) -> Repeated<'h> {
        self.register();
        Repeated { house: self.house, name: self.name, received: self.received }
    }
}

/// A request that is sent again and again.
pub(crate) struct Repeated<'h> {
    house: &'h House,
    name: String,
    received: Vec<u8>,
}

impl Repeated<'_> {
    /// Sends it.
    pub(crate) async fn run(&self, stop: &Stop) -> Result<Observation, Problem> {
        let submission = submission(self.house, &self.name, self.received.clone());
        self.house.run(submission, Arc::new(Unwatched), stop).await
    }
}

fn submission(house: &House, name: &str, received: Vec<u8>) -> Submission {
    Submission {
        principal: Principal {
            tenant: TENANT.parse().unwrap(),
            user: "u".parse().unwrap(),
            agent: None,
            agent_version: None,
            chain: Vec::new(),
        },
        request: ActionRequest::new(name.parse().unwrap(), Value::Null),
        received: Some(received),
        workspace: Some(house.workspace()),
        inputs: BTreeMap::new(),
        context: TaskContext {
            turn: None,
            session: "promises".parse().unwrap(),
            task: "promises".parse().unwrap(),
            purpose: None,
            stage: None,
        },
        asking: Asking::Never,
        held: false,
    }
}

/// Why the backend refused the runtime that the column asks for, if it did: the
/// engine has none of that name, or what it keeps of a contract can't be seen.
pub(crate) fn runtime_refusal(seen: &Observation, runtime: &str) -> Option<String> {
    let outcome = &seen.outcome;
    let message = outcome.message.as_deref().unwrap_or_default();
    if outcome.kind != OutcomeKind::ContractUnsatisfied || !message.contains(runtime) {
        return None;
    }
    assert!(outcome.help.as_ref().is_some_and(|remedy| remedy.len() > 5), "no remedy: {outcome:?}");
    assert_eq!((outcome.code, outcome.retryable), (Some(Code::ContractUnsatisfied), false), "{outcome:?}");
    assert!(seen.artifacts.is_empty() && seen.output.stdout.total == 0, "something ran: {seen:?}");
    let reason = message.split_once(&format!("({runtime}): ")).map_or(message, |(_, reason)| reason);
    Some(reason.to_owned())
}

/// The clause that the backend refused, if it did; and that it refused it as
/// a refusal has to be: with clause, backend, reason and remedy, before
/// anything ran.
pub(crate) fn refusal(house: &House, seen: &Observation) -> Option<String> {
    let outcome = &seen.outcome;
    let message = outcome.message.as_deref().unwrap_or_default();
    let by_backend = format!("can't be enforced by backend `{}`: ", house.backend.name());
    if outcome.kind != OutcomeKind::ContractUnsatisfied || !message.contains(&by_backend) {
        return None;
    }
    let clause = outcome.which.clone().unwrap_or_default();
    assert!(!clause.is_empty() && message.starts_with(&format!("`{clause}` (")), "{outcome:?}");
    assert!(message.split(&by_backend).nth(1).is_some_and(|reason| reason.len() > 5), "no reason: {outcome:?}");
    assert!(outcome.help.as_ref().is_some_and(|remedy| remedy.len() > 5), "no remedy: {outcome:?}");
    assert_eq!((outcome.code, outcome.retryable), (Some(Code::ContractUnsatisfied), false), "{outcome:?}");
    assert!(seen.plan.is_none() && seen.artifacts.is_empty(), "something ran: {seen:?}");
    assert_eq!((seen.output.stdout.total, seen.usage.wall_us, seen.times.run_us), (0, 0, 0), "something ran");
    Some(clause)
}
