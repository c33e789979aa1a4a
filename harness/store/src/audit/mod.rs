//! Whether the log is what was recorded, and a copy of it for others.
//!
//! A chain of hashes shows an edit or a gap, but whoever can write the file can
//! also write it anew from some point on, or cut it off. A [`Checkpoint`] that
//! was signed and kept elsewhere shows that.

mod checkpoint;
mod export;
mod report;

pub use checkpoint::{Checkpoint, CheckpointSchema, Head};
pub(crate) use export::write;
pub use export::{CloudEvent, ExportError, ExportFilter, ExportFormat};
pub(crate) use report::Findings;
pub use report::{AuditFault, AuditFinding, AuditReport};
