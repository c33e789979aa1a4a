//! What an engine's errors mean.

use std::time::Duration;

use bollard::errors::Error;
use env_contracts::{Code, Problem};

/// The longest text of the engine's that is passed on.
const TEXT_MAX: usize = 1024;

/// What the engine said, with what we were doing.
pub(crate) fn problem(doing: &str, error: &Error) -> Problem {
    match error {
        Error::DockerResponseServerError { status_code, message } => {
            let said = cut(message);
            Problem::new(Code::BackendError, format!("{doing}: the container engine answers {status_code}: {said}"))
                .with_help(
                    "its words say what it can't do: with this image (its VOLUMEs, what lies where folders go), these \
                     limits, or this folder",
                )
        }
        Error::RequestTimeoutError => silent(doing, None),
        other => {
            Problem::new(Code::BackendUnavailable, format!("{doing}: the container engine: {}", cut(&causes(other))))
                .with_help("see whether it runs: `glovebox doctor` tells what is found")
        }
    }
}

/// It did not answer in time.
pub(crate) fn silent(doing: &str, after: Option<Duration>) -> Problem {
    let time = after.map(|time| format!(" within {} s", time.as_secs())).unwrap_or_default();
    Problem::new(Code::BackendUnavailable, format!("{doing}: the container engine does not answer{time}"))
        .with_help("it is stuck or overloaded: look at it, restart it, then run `glovebox gc`")
}

/// Whether what was asked for is not there.
pub(crate) fn is_missing(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 404, .. })
}

/// Whether the engine said no: then nothing was done.
pub(crate) fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { .. })
}

/// Whether what was asked for is so already, or on its way.
pub(crate) fn is_so(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 304 | 409, .. })
}

/// An error with what is behind it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_MAX)]
}
