//! The wire vocabulary of Glovebox: what a harness asks for, what the
//! surroundings must be, what comes back, and what errors are called.
//!
//! What it is: plain data with serde and JSON Schema, parsers that refuse what
//! they don't understand, canonical bytes and digests.
//!
//! What it is not: it does no IO, knows no clock, starts nothing and decides
//! nothing. Contract *algebra* lives with the runtime; policy with the harness.
//!
//! ```
//! use env_contracts::{Contract, Access};
//!
//! let contract = Contract::from_toml(r#"
//!     schema = "glovebox/contract/v1"
//!     [[filesystem]]
//!     guest = "/workspace"
//!     source = "workspace"
//!     access = "read"
//!     [limits]
//!     wall = "30s"
//!     memory = "128MiB"
//! "#).unwrap();
//! assert_eq!(contract.filesystem[0].access, Access::Read);
//!
//! // Unknown keys are errors that point at the line.
//! let error = Contract::from_toml("schema = \"glovebox/contract/v1\"\n[limits]\nwal = \"30s\"\n").unwrap_err();
//! assert!(error.to_string().contains("wal"), "{error}");
//! ```

pub mod canon;
pub mod digest;
pub mod schemas;
pub mod text;

mod action;
mod artifact;
mod contract;
mod decision;
mod entry;
mod environment;
mod error;
mod followup;
mod ids;
mod manifest;
mod observation;
mod plan;
mod profiles;
mod rate;
mod units;

pub use action::*;
pub use artifact::*;
pub use contract::*;
pub(crate) use contract::{contract_from_toml, is_default};
pub use decision::*;
pub use entry::*;
pub use environment::*;
pub use error::{Code, Diagnose, Problem};
pub use followup::*;
pub use ids::*;
pub use manifest::*;
pub use observation::*;
pub use plan::*;
pub use profiles::*;
pub use rate::*;
pub use units::*;
