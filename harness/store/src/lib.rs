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
//!
//! ```
//! use glovebox_events::{Event, Halt, LogKey, What};
//! use glovebox_store::{Commit, Condition, Conflict, Options, Record, Sqlite, Store, StoreError};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! # let folder = tempfile::tempdir().unwrap();
//! let store = Sqlite::open(folder.path(), &Options::default()).unwrap();
//! let log = LogKey { tenant: "local".parse().unwrap(), session: "operator".parse().unwrap() };
//!
//! // The operator stops everything: what happened, and what things are now.
//! let halt = Halt { by: "ann".parse().unwrap(), at_ms: 1, reason: None };
//! let mut stop = Commit::new(log.clone());
//! stop.events.push(Event { at_ms: 1, action: None, what: What::Halted { halt: halt.clone() } });
//! stop.records.push(Record::Halt(Some(halt.clone())));
//! assert_eq!(store.commit(stop).await, Ok(vec![1]));
//!
//! // Whatever is tied to the condition that nothing is stopped is refused.
//! let mut run = Commit::new(log);
//! run.conditions.push(Condition::NotHalted);
//! assert_eq!(store.commit(run).await, Err(StoreError::Conflict(Conflict::Halted(halt))));
//! # });
//! ```

mod audit;
mod chain;
mod holder;
mod query;
mod random;
mod sqlite;
mod store;

pub use audit::{
    AuditFault, AuditFinding, AuditReport, Checkpoint, CheckpointSchema, CloudEvent, ExportError, ExportFilter,
    ExportFormat, Head,
};
pub use holder::process_of;
pub use query::*;
pub use sqlite::{Options, Sqlite, VERSION};
pub use store::*;
