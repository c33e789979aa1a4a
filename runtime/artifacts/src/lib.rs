//! The artifact store: bytes that actions made, kept durably and referred to
//! by name, and the collection of a guest's `/outputs` folder into it.
//!
//! What it is: content-addressed blobs, shared inside one tenant only, and an
//! index entry for each artifact. Everything is on disk before a `put`
//! returns, so that no event can name what a power cut takes away. Several
//! processes use one store at once.
//!
//! What it is not: it opens nothing by a name that a guest chose, it trusts no
//! media type, and it decides nothing about who may read. It knows no actions
//! beyond their identifiers, and no clock: time comes in from outside.
//!
//! ```
//! use glovebox_artifacts::{ArtifactMeta, ArtifactStore};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
//! # let folder = tempfile::tempdir().unwrap();
//! # runtime.block_on(async {
//! let store = ArtifactStore::open(folder.path(), "tenant-1")?;
//! let action = store.action("action-1")?;
//!
//! let meta = ArtifactMeta::new("report.txt", "text.count@1.0.0", 1_700_000_000_000);
//! let stored = action.put(meta, &b"three lines"[..], 1024).await?;
//! assert_eq!(stored.uri.to_string(), "artifact/action-1/1");
//! assert_eq!(stored.media_type, "text/plain");
//!
//! let reader = store.get(&"artifact/action-1/1".parse()?).await?;
//! assert_eq!(reader.into_bytes(1024).await?, b"three lines");
//! # Ok::<(), glovebox_artifacts::Error>(())
//! # }).unwrap();
//! ```

mod action;
mod error;
mod folder;
mod gc;
mod media;
mod outputs;
mod reader;
mod record;
mod store;
mod uri;

pub use action::ActionArtifacts;
pub use error::Error;
pub use gc::{BLOB_GRACE_MS, GcReport, LEFTOVER_AGE_MS, Retention};
pub use outputs::{CollectLimits, Collected, Notice, NoticeKind, OutputsMeta};
pub use reader::ArtifactReader;
pub use record::{ArtifactMeta, ArtifactRecord};
pub use store::{ArtifactStore, Filter, Listing};
pub use uri::ArtifactUri;

#[cfg(test)]
mod testing;
