//! The action plane: which capabilities there are, what exactly a request
//! would run, and the one service that every door goes through.
//!
//! What it is: the [`Registry`], planning (pure), and the [`ActionService`]
//! that carries an action from its request to its Observation.
//!
//! What it is not: it knows no engine and no daemon, only
//! [`Backend`](glovebox_runtime::Backend)s; it knows no door; it never runs
//! anything without a permit from the authority it was given.
//!
//! ```
//! use env_contracts::canon::{Canonical, ParseLimits};
//! use glovebox_plane::arguments::Schema;
//!
//! let schema = Schema::compile(&serde_json::json!({
//!     "type": "object",
//!     "required": ["path"],
//!     "properties": { "path": { "type": "string" } },
//! })).unwrap();
//! let check = |text: &str| schema.accept(&Canonical::parse(text.as_bytes(), ParseLimits::default()).unwrap());
//! assert!(check(r#"{ "path": "README.md" }"#).is_ok());
//! assert!(check(r#"{ "path": 5 }"#).is_err());
//! ```

pub mod arguments;
pub mod planning;

mod collect;
mod command;
mod ids;
mod observe;
mod registry;
mod result;
mod service;
mod slots;
mod streams;
mod watch;

pub use ids::{IdSource, TimeOrderedIds};
pub use observe::Refusal;
pub use registry::{Added, Builtin, Listed, Listing, Registry, Tool};
pub use service::{ActionService, Parts, Submission};
pub use watch::{Unwatched, Watch};
