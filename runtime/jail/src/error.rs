//! What can go wrong while a process shuts itself in.

use std::io;

/// A layer could not be put in place. Whoever gets this must end the process:
/// some layers may stand already, others do not.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    /// A system call that takes something away failed.
    #[error("cannot {what}")]
    System {
        /// What was being done, as a fragment.
        what: &'static str,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The process that is to be outlived by nobody has ended already.
    #[error("the parent is gone")]
    Orphan,
    /// Landlock did not take the rules.
    #[error("Landlock refused the rules")]
    Landlock(#[source] Box<landlock::RulesetError>),
    /// This kernel lacks a layer; see [`Layers::missing`](crate::Layers::missing).
    #[error("{layer}: {reason}")]
    Missing {
        /// Which layer.
        layer: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The filter could not be built.
    #[error("the system call filter is not valid")]
    Filter(#[source] seccompiler::BackendError),
    /// The filter could not be installed.
    #[error("the kernel refused the system call filter")]
    Seccomp(#[source] seccompiler::Error),
}

/// A layer stands, or why not.
pub type Result<T> = std::result::Result<T, JailError>;

impl JailError {
    pub(crate) fn system(what: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |errno| Self::System { what, source: errno.into() }
    }
}
