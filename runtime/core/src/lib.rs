//! What every backend shares.
//!
//! What it is: the [`Backend`] trait and the values that go through it
//! ([`Permit`], [`Bound`], [`Ports`], [`Job`](job::Job)), the algebra of
//! contracts ([`algebra`]), the operator's ceiling, binding of files by
//! descriptor ([`bind`]), admission ([`Admission`]).
//!
//! What it is not: it knows no engine, no daemon, no door, no policy and no
//! database. It never decides whether an action may run; it refuses to run
//! one without a [`Permit`] for exactly that plan.
//!
//! ```
//! use env_contracts::{Contract, Scope};
//! use glovebox_runtime::algebra;
//!
//! let tool = Contract::from_toml("schema = \"glovebox/contract/v1\"\n[limits]\nwall = \"30s\"").unwrap();
//! let less = Scope::from_toml("[limits]\nwall = \"5s\"").unwrap();
//! let more = Scope::from_toml("[limits]\nwall = \"60s\"").unwrap();
//!
//! assert!(algebra::delta(&tool, &less).is_empty());
//! let delta = algebra::delta(&tool, &more);
//! assert_eq!(delta[0].clause.as_str(), "limits.wall");
//! // Whatever was asked, the result is never more than the tool's contract.
//! assert_eq!(algebra::narrow(&tool, &more), tool);
//! ```

pub mod algebra;
pub mod bind;
pub mod frames;
pub mod job;

mod admission;
mod authority;
mod backend;
mod ceiling;
mod clock;
mod effects;
mod enforceable;
mod hide;
mod plain;
mod private;
mod problem;

pub use admission::{Admission, Budgets, Room};
pub use authority::{Authority, Permit, Runtime};
pub use backend::{
    ArtifactBytes, Backend, Bound, BoxFuture, Cleared, Enforcement, Found, Ports, Prepared, Registered, RunReport,
    Stop, enforcement_report,
};
pub use ceiling::{DEFAULT_CEILING, default_ceiling};
pub use clock::{Clock, Instant, SystemClock};
pub use effects::derived_effects;
pub use enforceable::{BackendAnswer, ClauseAnswer, ClauseReport, ContractReport};
pub use hide::{Hide, HideLists};
pub use plain::{holds_plain_files, open_plain, read_plain};
pub use private::private_dir;
pub use problem::io_problem;
