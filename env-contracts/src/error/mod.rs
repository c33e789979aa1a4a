//! One list of error codes and one trait, [`Diagnose`], that every error a
//! user can see implements.
//!
//! A code is a stable name: the CLI prints it, HTTP and MCP carry it, and
//! `glovebox explain CODE` tells its cause and its way out. What a code means
//! (exit code, HTTP status, whether a retry can help) stands in one table,
//! [`Code::ALL`], and nowhere else.

mod codes;

pub use codes::Code;

use std::borrow::Cow;

/// An error that a user can see: what it is called and what to do about it.
///
/// The error's `Display` is the message: one lower-case fragment without a
/// full stop that names the object at fault. [`Diagnose::help`] is the way
/// out for this very instance; by default it is the code's general one.
pub trait Diagnose: std::error::Error {
    /// The stable name of this kind of error.
    fn code(&self) -> Code;

    /// What the reader can do now.
    fn help(&self) -> Cow<'static, str> {
        Cow::Borrowed(self.code().remedy())
    }

    /// The process exit code that the CLI answers with.
    fn exit_code(&self) -> u8 {
        self.code().exit_code()
    }

    /// The HTTP status that the server answers with.
    fn http_status(&self) -> u16 {
        self.code().http_status()
    }

    /// Whether the same request can succeed later without being changed.
    fn retryable(&self) -> bool {
        self.code().retryable()
    }
}

/// An error as data: what crosses a process or a wire.
///
/// Made from any [`Diagnose`] with [`Problem::of`]; it is itself one, so an
/// error keeps its code, message and help however often it is passed on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// The stable name of this kind of error.
    pub code: Code,
    /// What went wrong, naming the object at fault.
    pub message: String,
    /// What the reader can do now.
    pub help: String,
    /// Whether the same request can succeed later without being changed.
    pub retryable: bool,
}

impl Problem {
    /// A problem with the code's own way out.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: code.remedy().into(), retryable: code.retryable() }
    }

    /// The same problem with a way out that fits this instance better.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// The data form of an error, its causes joined into the message.
    pub fn of(error: &dyn Diagnose) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            let text = next.to_string();
            // Some libraries repeat their cause in their own text.
            if !message.contains(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            cause = next.source();
        }
        Self { code: error.code(), message, help: error.help().into_owned(), retryable: error.retryable() }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnose for Problem {
    fn code(&self) -> Code {
        self.code
    }

    fn help(&self) -> Cow<'static, str> {
        Cow::Owned(self.help.clone())
    }

    fn retryable(&self) -> bool {
        self.retryable
    }
}
