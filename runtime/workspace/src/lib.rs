//! Snapshots of folders: what lay in a folder at one moment, kept under the
//! sha256 of its content.
//!
//! What it is: [`Snapshots`], a store of [`Tree`]s and of the content of their
//! files. Equal content is kept once; nothing is believed when it is read again.
//!
//! What it is not: it knows nothing of tools, environments and who may do what.
//! Whoever takes a snapshot sees to it that nobody writes meanwhile; where
//! somebody does, that is an error and no snapshot.
//!
//! ```
//! use glovebox_workspace::{Bounds, Snapshots};
//! use std::os::fd::AsFd;
//!
//! let place = tempfile::tempdir()?;
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("notes.txt"), "first")?;
//! let snapshots = Snapshots::open(&place.path().join("snapshots"))?;
//! let open = |path: &std::path::Path| std::fs::File::open(path);
//!
//! let bounds = Bounds { entries: 1000, bytes: 1 << 20 };
//! let first = snapshots.take(open(folder.path())?.as_fd(), bounds)?;
//! std::fs::write(folder.path().join("notes.txt"), "second")?;
//! let second = snapshots.take(open(folder.path())?.as_fd(), bounds)?;
//! let changes = snapshots.tree(&first.tree)?.changes(&snapshots.tree(&second.tree)?);
//! assert_eq!(changes[0].to_string(), "changed  notes.txt");
//!
//! let again = tempfile::tempdir()?;
//! snapshots.restore(&first.tree, open(again.path())?.as_fd())?;
//! assert_eq!(std::fs::read_to_string(again.path().join("notes.txt"))?, "first");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod names;
mod objects;
mod snapshots;
mod tree;
mod walk;

pub use error::Error;
pub use snapshots::{Freed, Snapshots, Taken};
pub use tree::{Change, Entry, Kind, Tree, Was};
pub use walk::{Bounds, Measured, joined, measure, open_beneath};
