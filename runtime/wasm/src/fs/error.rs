//! What a file operation can answer.

use std::io;

use rustix::io::Errno;
use wasmtime::component::ResourceTableError;

use crate::bindings::files::wasi::filesystem::types::ErrorCode;

/// An error for the guest, or the end of the guest.
#[derive(Debug)]
pub(crate) enum FsError {
    /// The guest gets this code.
    Code(ErrorCode),
    /// The guest ends.
    Trap(wasmtime::Error),
}

/// The result of a file operation.
pub(crate) type FsResult<T> = Result<T, FsError>;

impl From<ErrorCode> for FsError {
    fn from(code: ErrorCode) -> Self {
        Self::Code(code)
    }
}

impl From<ResourceTableError> for FsError {
    fn from(error: ResourceTableError) -> Self {
        Self::Trap(error.into())
    }
}

impl From<Errno> for FsError {
    fn from(errno: Errno) -> Self {
        Self::Code(code(errno))
    }
}

impl FsError {
    /// As a stream reports it: the guest can ask for the code.
    pub(crate) fn into_stream(self) -> wasmtime_wasi::p2::StreamError {
        use wasmtime_wasi::p2::StreamError;
        match self {
            Self::Code(code) => StreamError::LastOperationFailed(wasmtime::Error::new(StreamCode(code))),
            Self::Trap(error) => StreamError::Trap(error),
        }
    }
}

/// A code on its way through a stream.
#[derive(Debug)]
pub(crate) struct StreamCode(pub(crate) ErrorCode);

impl std::fmt::Display for StreamCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.message())
    }
}

impl std::error::Error for StreamCode {}

/// The code of an IO error of any stream.
pub(crate) fn code_of(error: &wasmtime::Error) -> Option<ErrorCode> {
    if let Some(StreamCode(code)) = error.downcast_ref() {
        return Some(*code);
    }
    let raw = error.downcast_ref::<io::Error>()?.raw_os_error()?;
    Some(code(Errno::from_raw_os_error(raw)))
}

fn code(errno: Errno) -> ErrorCode {
    match errno {
        Errno::ACCESS => ErrorCode::Access,
        Errno::AGAIN => ErrorCode::WouldBlock,
        Errno::ALREADY => ErrorCode::Already,
        Errno::BADF => ErrorCode::BadDescriptor,
        Errno::BUSY => ErrorCode::Busy,
        Errno::DEADLK => ErrorCode::Deadlock,
        Errno::DQUOT => ErrorCode::Quota,
        Errno::EXIST => ErrorCode::Exist,
        Errno::FBIG => ErrorCode::FileTooLarge,
        Errno::ILSEQ => ErrorCode::IllegalByteSequence,
        Errno::INPROGRESS => ErrorCode::InProgress,
        Errno::INTR => ErrorCode::Interrupted,
        Errno::INVAL => ErrorCode::Invalid,
        Errno::ISDIR => ErrorCode::IsDirectory,
        Errno::LOOP => ErrorCode::Loop,
        Errno::MLINK => ErrorCode::TooManyLinks,
        Errno::NAMETOOLONG => ErrorCode::NameTooLong,
        Errno::NODEV => ErrorCode::NoDevice,
        Errno::NOENT => ErrorCode::NoEntry,
        Errno::NOMEM => ErrorCode::InsufficientMemory,
        Errno::NOSPC => ErrorCode::InsufficientSpace,
        Errno::NOTDIR => ErrorCode::NotDirectory,
        Errno::NOTEMPTY => ErrorCode::NotEmpty,
        Errno::NOTSUP | Errno::NOSYS => ErrorCode::Unsupported,
        Errno::NXIO => ErrorCode::NoSuchDevice,
        Errno::OVERFLOW => ErrorCode::Overflow,
        // The kernel's word for a path that leads out of the folder.
        Errno::PERM | Errno::XDEV => ErrorCode::NotPermitted,
        Errno::PIPE => ErrorCode::Pipe,
        Errno::ROFS => ErrorCode::ReadOnly,
        Errno::SPIPE => ErrorCode::InvalidSeek,
        Errno::TXTBSY => ErrorCode::TextFileBusy,
        _ => ErrorCode::Io,
    }
}
