//! Failures that a caller can act upon.

use std::io;

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
}

impl Failure {
    /// The arguments are wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { kind: Kind::InvalidArgs, message: message.into(), retryable: false }
    }

    /// What an error of the file system means for the caller who named `path`.
    pub fn io(path: &str, error: &io::Error) -> Self {
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
                format!("`{path}` may not be read: it leads out of the mounted folders, or permissions forbid it"),
            ),
            (Is::NotADirectory, _) => {
                (Kind::NotFound, format!("`{path}` does not exist: a part of the path is a file, not a folder"))
            }
            (Is::IsADirectory, _) => (Kind::InvalidArgs, format!("`{path}` is a folder; name a file")),
            (Is::InvalidInput, _) | (_, Some(TOO_MANY_LINKS | NAME_TOO_LONG)) => {
                (Kind::InvalidArgs, format!("`{path}` is not a usable path: {error}"))
            }
            _ => (Kind::Internal, format!("`{path}` could not be read: {error}")),
        };
        Self { kind, message, retryable: false }
    }
}

/// `ELOOP` of WASI; the library has no stable kind for it.
const TOO_MANY_LINKS: i32 = 32;

/// `ENAMETOOLONG` of WASI; the library of older compilers has no kind for it.
const NAME_TOO_LONG: i32 = 37;

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        Self { kind: failure.kind, message: failure.message, retryable: failure.retryable, details: None }
    }
}
