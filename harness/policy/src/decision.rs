//! What policy says, and why.

use env_contracts::{Assurance, Digest, Name, Principal, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Explanation, Facts, Reviewer};

/// Who decides about actions.
pub trait Policy: Send + Sync {
    /// What policy says about an action. Whatever goes wrong on the way is a
    /// [`Verdict::Deny`] that names it.
    ///
    /// With an approval in the facts, [`Verdict::Ask`] means that the approval
    /// does not reach that far and a person of `classes` has to be asked.
    fn decide(&self, facts: &Facts<'_>) -> Decision;

    /// Why the decision is what it is. One that has no rules to show shows the
    /// decision alone.
    fn explain(&self, facts: &Facts<'_>) -> Explanation {
        Explanation::of(self.decide(facts))
    }

    /// The classes in which an approver is with this assurance. The agent that
    /// asks and those that handed the work down to it are in none.
    fn classes_of(&self, approver: &str, assurance: Assurance, requester: &Principal) -> Vec<Name>;

    /// The classes that are capabilities, and no people. Whoever has none need
    /// not say so.
    fn reviewers(&self) -> Vec<Reviewer> {
        Vec::new()
    }

    /// The digest of the rules and the approvers.
    fn revision(&self) -> Digest;
}

/// What policy says about an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// The answer.
    pub verdict: Verdict,
    /// Why, in one word.
    pub reason: Reason,
    /// The rules that decided: for [`Verdict::Ask`] those that want a person and
    /// those that permit once one approved.
    pub rules: Vec<Rule>,
    /// Why, for those who approve and operate.
    pub for_people: Vec<String>,
    /// Why, and what can be done instead, for the model that asked.
    pub for_model: Vec<String>,
    /// The classes of which somebody may approve, for [`Verdict::Ask`].
    pub classes: Vec<Name>,
    /// The clauses beyond the tool's contract that no rule names.
    pub delta: Vec<String>,
    /// What went wrong, rule by rule.
    pub errors: Vec<String>,
    /// The policy that said so.
    pub revision: Digest,
    /// Whether a rule wants the tool's preview shown before a person decides.
    pub preview: bool,
    /// Whether a rule wants the changes shown as a diff.
    pub diff: bool,
}

/// Why policy says what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// No rule permits it.
    NoRule,
    /// A rule forbids it, whoever approves.
    Forbidden,
    /// A rule permits it.
    Permitted,
    /// A rule permits it once somebody approved.
    NeedsApproval,
    /// A rule could not be evaluated.
    EvaluationError,
}

/// A rule that decided.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    /// Its `@id`, or its file's name and its number in it.
    pub id: String,
    /// The file.
    pub file: String,
    /// The line on which it begins, counted from 1.
    pub line: usize,
    /// What it does where it holds.
    pub effect: Effect,
}

/// What a rule does where it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// It permits.
    Permit,
    /// It forbids.
    Forbid,
}
