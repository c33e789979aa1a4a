//! Cedar behind one trait: allow, deny or ask, with the rules that decided.
//!
//! What it is: [`PolicySet`], read from files that an operator can read, checked
//! against a schema made of the tools and by the tests beside the rules;
//! [`Facts`], all that it sees of an action; [`Decision`], what it says and why.
//!
//! What it is not: it opens no approval and remembers no grant, runs nothing,
//! and never looks at what a model says of its own reasons.
//!
//! How it decides: without an approval, permitted is *allow*. Otherwise once for
//! each class of approvers, as if one of it had approved: the classes for which
//! that is permitted may be asked, and if there are any, it is *ask*. Otherwise
//! *deny*. A rule that can't be evaluated, at any of these steps, is *deny*, and so
//! is having no rule. What goes beyond the tool's contract is never a part of
//! *allow* unless a rule names it (`@delta`).
//!
//! | in Cedar | what it is |
//! |---|---|
//! | `principal` | `User::"TENANT/NAME"`, or `Agent::"TENANT/NAME"`, which is `in` its user, in the agents that handed the work down, and in `Tenant::"TENANT"` |
//! | `action` | `Action::"text.count@1.0.0"`, in `Action::"text.count"`, in `Action::"run"` |
//! | `resource` | `Capability::"text.count@1.0.0"`: name, version, artifact, classes of declared effects, who vouches for it |
//! | `context.args` | the arguments, by the mapping in `arguments.rs` |
//! | `context.facets`, `simple`, `wrapper`, `may_run` | what is known of arguments that are command lines |
//! | the rest of `context` | derived effects, what the contract grants, what goes beyond it, data, budget, past, task, backend, and `approval` where one was given |
//!
//! ```
//! use env_contracts::{DerivedEffects, Digest, Id, Label, Manifest, Principal, Verdict};
//! use glovebox_policy::{BudgetFacts, Facts, LabelFacts, PastFacts, Policy, PolicySet, TaskFacts, ToolFacts};
//!
//! let manifest = Manifest::from_toml(r#"
//!     schema = "glovebox/tool/v1"
//!     name = "text.count"
//!     version = "1.0.0"
//!     title = "Count"
//!     description = "Counts words."
//!     entry = { kind = "tool" }
//!     input = { type = "object" }
//!     contract = { schema = "glovebox/contract/v1" }
//! "#).unwrap();
//! let principal = Principal {
//!     tenant: "acme".parse().unwrap(),
//!     user: "ann".parse().unwrap(),
//!     agent: Some("coder".parse().unwrap()),
//!     agent_version: None,
//!     chain: vec![],
//! };
//! let (artifact, id): (Digest, Id) = (Digest::of(b"component"), "one".parse().unwrap());
//! let facts = Facts {
//!     principal: &principal,
//!     tool: ToolFacts { manifest: &manifest, artifact: &artifact, builtin: true, accepted: false },
//!     arguments: &serde_json::json!({}),
//!     contract: &manifest.contract,
//!     effects: DerivedEffects::of(&manifest.contract),
//!     delta: &[],
//!     backend: "wasm",
//!     task: TaskFacts { session: &id, task: &id, purpose: None, stage: None },
//!     budget: BudgetFacts::default(),
//!     past: PastFacts::default(),
//!     attended: false,
//!     bound: None,
//!     labels: LabelFacts { inputs: Label::Public, tenants: &[] },
//!     secrets: &[],
//!     always_ask: false,
//!     approval: None,
//! };
//! let decision = PolicySet::shipped().unwrap().decide(&facts);
//! assert_eq!(decision.verdict, Verdict::Allow);
//! assert_eq!(decision.rules[0].id, "reads-only");
//! ```

mod approvers;
mod arguments;
mod cases;
mod check;
mod context;
mod decision;
mod depth;
mod error;
mod explain;
mod facets;
mod facts;
mod groups;
mod live;
mod looks;
mod narrower;
mod request;
mod rules;
mod sample;
mod scene;
mod schema;
mod set;
mod source;
mod stamp;
#[cfg(test)]
mod wanted_tests;

pub use approvers::{MAX_CLASSES, Reviewer};
pub use arguments::{Hidden, wrong_marks};
pub use cases::TestReport;
pub use check::{CheckReport, HiddenArgument, check, hidden_arguments, run_tests, schema_text};
pub use decision::{Decision, Effect, Policy, Reason, Rule};
pub use error::{PolicyError, PolicyProblem};
pub use explain::{ExplainedFacet, ExplainedNarrower, ExplainedRule, Explanation};
pub use facets::{Facet, WRAPPERS, WRAPPERS_WITH};
pub use facts::*;
pub use live::Live;
pub use request::LONG_LIVED;
pub use rules::MAX_RULES;
pub use set::PolicySet;
pub use source::SHIPPED;
