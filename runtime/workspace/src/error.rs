//! What can stand in the way of a snapshot.

use env_contracts::Digest;
use rustix::io::Errno;

/// Why there is no snapshot, or nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is more in the folder than a snapshot may hold.
    #[error("it has more than {most} {what}")]
    TooMuch {
        /// Of what: `entries`, `bytes`, `levels`.
        what: &'static str,
        /// So many may be.
        most: u64,
    },
    /// Something that is no file, folder or link.
    #[error("`{path}` is neither a file nor a folder nor a link")]
    Special {
        /// Where, escaped.
        path: String,
    },
    /// Somebody wrote while it was read.
    #[error("`{path}` changed while it was read")]
    Changed {
        /// Where, escaped.
        path: String,
    },
    /// There is no such snapshot here.
    #[error("there is no snapshot of {0}")]
    Unknown(Digest),
    /// What is kept is not what its name says.
    #[error("what is kept of the snapshot is damaged: {0}")]
    Damaged(String),
    /// The host's file system.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What it said.
        source: std::io::Error,
    },
}

impl Error {
    /// What the file system said when this was tried.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        |source| Self::Io { what: what.into(), source }
    }

    /// The same of the kernel.
    pub(crate) fn os(what: impl Into<String>) -> impl FnOnce(Errno) -> Self {
        |errno| Self::Io { what: what.into(), source: errno.into() }
    }
}
