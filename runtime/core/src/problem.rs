//! From the host's errors to coded ones.

use std::io;

use env_contracts::{Code, Problem};
use rustix::io::Errno;

/// The coded form of a host error: a full disk and an unusable state folder
/// have codes of their own, anything else has the one given.
///
/// `what` says what was being done, as a fragment: `cannot write the cache`.
pub fn io_problem(what: &str, otherwise: Code, error: &io::Error) -> Problem {
    let code = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC | Errno::DQUOT) => Code::DiskFull,
        Some(Errno::ROFS) => Code::StateUnavailable,
        _ => otherwise,
    };
    Problem::new(code, format!("{what}: {error}"))
}
