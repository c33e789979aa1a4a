//! What the harness remembers: the event log and the state that it adds up
//! to, written together or not at all.
//!
//! What it is: [`Store`], a handful of compare-and-set commands and queries,
//! each one transaction; and [`Sqlite`], which keeps them in one file that any
//! number of processes share. Events are chained by hashes; texts and contents
//! stand beside them and can be erased.
//!
//! What it is not: it knows no clock, decides nothing, and does not know which
//! event may follow which. It caches no state: another process may have
//! changed it.

mod audit;
mod chain;
mod holder;
mod query;
mod random;
mod sqlite;
mod store;

pub use audit::{
    AuditFault, AuditFinding, AuditReport, Checkpoint, CheckpointSchema, ExportError, ExportFilter, ExportFormat, Head,
};
pub use query::*;
pub use sqlite::{Options, Sqlite};
pub use store::*;
