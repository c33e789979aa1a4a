//! Failures that a caller can act upon.

use std::io;

use serde_json::Value;

use crate::bindings::exports::glovebox::tool::tool::ToolError;
pub use crate::bindings::glovebox::tool::types::ErrorKind as Kind;

/// Why a call has no result.
#[derive(Debug)]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: Kind,
    /// What went wrong and what would be right.
    pub message: String,
    /// Whether the same call can succeed later unchanged.
    pub retryable: bool,
    /// What a program can act upon, besides the message.
    pub details: Option<Value>,
}

impl Failure {
    /// A failure of a kind; the same call fails again.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retryable: false, details: None }
    }

    /// The arguments are wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::InvalidArgs, message)
    }

    /// The present state of things forbids it.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(Kind::Conflict, message)
    }

    /// The same with details.
    #[must_use]
    pub fn with_details(self, details: Value) -> Self {
        Self { details: Some(details), ..self }
    }

    /// What an error of the file system means for the caller who named `path`
    /// to be read.
    pub fn io(path: &str, error: &io::Error) -> Self {
        Self::of_files(path, "read", error)
    }

    /// The same for the caller who named `path` to be written.
    pub fn writing(path: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::new(Kind::Unavailable, format!("`{path}` could not be written: there is no room for it"))
            }
            io::ErrorKind::AlreadyExists => Self::conflict(format!("`{path}` exists already")),
            _ => Self::of_files(path, "written", error),
        }
    }

    fn of_files(path: &str, done: &str, error: &io::Error) -> Self {
        use io::ErrorKind as Is;
        let (kind, message) = match (error.kind(), error.raw_os_error()) {
            // Without a number it is the library's: no mounted folder holds the path.
            (Is::NotFound, _) | (_, None) => (
                Kind::NotFound,
                format!(
                    "`{path}` does not exist; paths are relative to /workspace, or absolute below a mounted folder"
                ),
            ),
            (Is::PermissionDenied, _) => (
                Kind::Denied,
                format!(
                    "`{path}` may not be {done}: it leads out of the mounted folders, or permissions or the contract forbid it"
                ),
            ),
            (Is::NotADirectory, _) => {
                (Kind::NotFound, format!("`{path}` does not exist: a part of the path is a file, not a folder"))
            }
            (Is::IsADirectory, _) => (Kind::InvalidArgs, format!("`{path}` is a folder; name a file")),
            (Is::InvalidInput, _) | (_, Some(TOO_MANY_LINKS | NAME_TOO_LONG)) => {
                (Kind::InvalidArgs, format!("`{path}` is not a usable path: {error}"))
            }
            _ => (Kind::Internal, format!("`{path}` could not be {done}: {error}")),
        };
        Self::new(kind, message)
    }
}

/// `ELOOP` of WASI; the library has no stable kind for it.
const TOO_MANY_LINKS: i32 = 32;

/// `ENAMETOOLONG` of WASI; the library of older compilers has no kind for it.
const NAME_TOO_LONG: i32 = 37;

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        let Failure { kind, message, retryable, details } = failure;
        Self { kind, message, retryable, details: details.map(|details| details.to_string()) }
    }
}
