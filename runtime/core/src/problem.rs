//! From the host's errors to coded ones.

use std::io::{self, ErrorKind};

use env_contracts::{Code, Problem};

/// The coded form of a host error: a full disk and an unusable state folder
/// have codes of their own, anything else has the one given.
///
/// `what` says what was being done, as a fragment: `cannot write the cache`.
pub fn io_problem(what: &str, otherwise: Code, error: &io::Error) -> Problem {
    // By kind and not by number: an error that names its path has none.
    let code = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Code::DiskFull,
        ErrorKind::ReadOnlyFilesystem => Code::StateUnavailable,
        _ => otherwise,
    };
    Problem::new(code, format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_full_disk_is_known_also_where_the_error_names_a_path() {
        for (errno, code) in [
            (Errno::NOSPC, Code::DiskFull),
            (Errno::DQUOT, Code::DiskFull),
            (Errno::ROFS, Code::StateUnavailable),
            (Errno::ACCESS, Code::BackendError),
        ] {
            let bare = io::Error::from_raw_os_error(errno.raw_os_error());
            let named = io::Error::new(bare.kind(), format!("failed to write `a`: {bare}"));
            for error in [bare, named] {
                assert_eq!(io_problem("cannot write", Code::BackendError, &error).code, code, "{error}");
            }
        }
    }
}
