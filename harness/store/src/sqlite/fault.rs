//! What went wrong with the file, in words and codes for people.

use std::path::Path;

use env_contracts::{Code, Problem};
use rusqlite::{Error, ErrorCode, ffi};

/// What damaged files need, where the general way out is not enough.
const RESTORE: &str = "`glovebox db check` lists the damage; stop every Glovebox process, move the files away and put a \
                       copy made by `glovebox db backup` in their place; nothing is repaired or replaced by itself";

/// Why a transaction could not be carried out.
#[derive(Debug)]
pub(crate) enum Fault {
    /// SQLite says so.
    Sql(Error),
    /// A stored value is none that we write.
    Damaged(String),
    /// A commit that makes no sense: a mistake in the code that made it.
    Misuse(String),
    /// Something else, with its code.
    Problem(Problem),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl Fault {
    /// For whoever called.
    pub(crate) fn problem(self, path: &Path) -> Problem {
        let path = path.display();
        match self {
            Self::Problem(problem) => problem,
            Self::Damaged(what) => corrupt(format!("`{path}` is damaged: {what}")),
            Self::Misuse(what) => Problem::new(Code::BackendError, format!("nothing was recorded: {what}")),
            Self::Sql(error) => match code(&error) {
                Code::StoreCorrupt => corrupt(format!("`{path}` is damaged: {error}")),
                Code::DiskFull => Problem::new(Code::DiskFull, format!("no room to write `{path}`: {error}")),
                Code::Busy => Problem::new(Code::Busy, format!("`{path}` is held by another process: {error}"))
                    .with_help("try again; if it stays so, look for a process that was stopped while it held the file"),
                code => Problem::new(code, format!("`{path}`: {error}")),
            },
        }
    }
}

/// Damage, and what to do about it.
pub(crate) fn corrupt(message: String) -> Problem {
    Problem::new(Code::StoreCorrupt, message).with_help(RESTORE)
}

fn code(error: &Error) -> Code {
    let Error::SqliteFailure(failure, _) = error else {
        return match error {
            Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
            | Error::InvalidColumnType(..) => Code::StoreCorrupt,
            _ => Code::BackendError,
        };
    };
    match (failure.code, failure.extended_code) {
        (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) => Code::StoreCorrupt,
        // The index of the write-ahead log is a file too, and grows on the same disk.
        (ErrorCode::DiskFull, _) | (_, ffi::SQLITE_IOERR_SHMSIZE) => Code::DiskFull,
        (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => Code::Busy,
        (
            ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure
            | ErrorCode::FileLockingProtocolFailed,
            _,
        ) => Code::StateUnavailable,
        _ => Code::BackendError,
    }
}
