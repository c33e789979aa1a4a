//! Capabilities that nothing runs: a decision is all that is asked for. They are
//! capabilities, so that rules speak of them as of everything else.

use super::Builtin;

/// The name of the capability that asks for a decision on a plan.
pub(crate) const PLAN: &str = "plan.submit";

/// The name of the one that asks whether a result is accepted.
pub(crate) const RESULT: &str = "result.submit";

/// Both of them.
pub(super) const DECISIONS: [Builtin; 2] = [
    Builtin { manifest: include_str!("decisions/plan.toml"), component: b"" },
    Builtin { manifest: include_str!("decisions/result.toml"), component: b"" },
];
