//! What policy sees of an action. All of it are facts of ours or of the
//! channel; what a model says of its own reasons is not among them.

use env_contracts::{
    Assurance, BoundFacts, ClausePath, Contract, DerivedEffects, Digest, Id, Label, Manifest, Name, Principal, Span,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What policy sees of an action.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Who asks, as the channel knows it.
    pub principal: &'a Principal,
    /// What would run.
    pub tool: ToolFacts<'a>,
    /// The canonical arguments.
    pub arguments: &'a serde_json::Value,
    /// The effective contract, with what a delta asks.
    pub contract: &'a Contract,
    /// What the contract lets it do to the world, derived.
    pub effects: DerivedEffects,
    /// What the request asks beyond the tool's own contract.
    pub delta: &'a [DeltaFact],
    /// The runtime that executes.
    pub backend: &'a str,
    /// Session and task, as their opener set them.
    pub task: TaskFacts<'a>,
    /// What the task has used so far.
    pub budget: BudgetFacts,
    /// What people said to this intent before.
    pub past: PastFacts,
    /// Whether somebody is there to answer.
    pub attended: bool,
    /// What binding found. `None` before it.
    pub bound: Option<&'a BoundFacts>,
    /// Labels and owners of the data that it is given.
    pub labels: LabelFacts<'a>,
    /// What is known of the contract's secrets. One that is missing here lives
    /// for ever, as far as policy is concerned.
    pub secrets: &'a [SecretFact<'a>],
    /// Whether a person has to decide in any case: the requester wants it, or
    /// the tool is not what was registered.
    pub always_ask: bool,
    /// The answer of a person or grant. `None` on the first evaluation.
    pub approval: Option<Given<'a>>,
}

/// What would run.
#[derive(Debug, Clone, Copy)]
pub struct ToolFacts<'a> {
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// The sha256 of what was registered.
    pub artifact: &'a Digest,
    /// Whether it comes with Glovebox.
    pub builtin: bool,
    /// Whether an operator accepted, by digest, that it has less effect than
    /// its contract lets it have.
    pub accepted: bool,
}

/// One clause that a request asks beyond the tool's contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeltaFact {
    /// Which clause.
    pub clause: ClausePath,
    /// What was asked for.
    pub asked: String,
    /// What the tool's contract has there.
    #[serde(default)]
    pub had: Option<String>,
}

/// Session and task. Purpose and stage are those that the task's opener and the
/// loop's credential set, never a model's words.
#[derive(Debug, Clone, Copy)]
pub struct TaskFacts<'a> {
    /// The session.
    pub session: &'a Id,
    /// The task.
    pub task: &'a Id,
    /// What the task is for.
    pub purpose: Option<&'a str>,
    /// Where the task stands.
    pub stage: Option<&'a str>,
}

/// What a task has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetFacts {
    /// Actions that ran.
    pub actions: u64,
    /// Milliseconds that they ran.
    pub run_ms: u64,
    /// Cost in millionths of the operator's unit.
    pub cost_micros: u64,
    /// Bytes of artifacts.
    pub artifact_bytes: u64,
}

/// What people said to this intent in the task before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PastFacts {
    /// How often it was approved.
    pub approvals: u64,
    /// How often it was declined.
    pub declines: u64,
    /// How many grants for it are in force.
    pub grants: u64,
}

/// Labels and owners of the data that an action is given.
#[derive(Debug, Clone, Copy)]
pub struct LabelFacts<'a> {
    /// The highest label of its inputs.
    pub inputs: Label,
    /// The tenants of the objects that it refers to.
    pub tenants: &'a [Name],
}

/// What is known of a secret.
#[derive(Debug, Clone, Copy)]
pub struct SecretFact<'a> {
    /// Which one.
    pub reference: &'a Name,
    /// How long its value stays good. `None`: until somebody changes it.
    pub lifetime: Option<Span>,
}

/// The answer of a person or grant.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// Who answered, or who gave the grant: a user of the requester's tenant.
    pub approver: &'a str,
    /// How sure it is that it was they.
    pub assurance: Assurance,
    /// The classes in which the answer was given. Those in which the approver
    /// is not, by the policy that is in force now, do not count.
    pub classes: &'a [Name],
    /// Whether a person answered this very question.
    pub source: Source,
    /// How far the answer reaches.
    pub scope: GivenScope,
}

/// Where an approval comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A person answered this very question.
    Person,
    /// A person answered once for all such questions.
    Grant,
    /// A capability answered this very question, in place of a person.
    Reviewer,
}

impl Source {
    /// The source as policies spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Grant => "grant",
            Self::Reviewer => "reviewer",
        }
    }
}

/// How far an approval reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GivenScope {
    /// This plan, once.
    Once,
    /// This intent until the model's next step.
    Turn,
    /// This intent while the task lasts.
    Task,
    /// This intent while the session lasts.
    Session,
    /// Until the rule is taken back.
    Rule,
}

impl GivenScope {
    /// The scope as policies spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Turn => "turn",
            Self::Task => "task",
            Self::Session => "session",
            Self::Rule => "rule",
        }
    }
}
