//! What can go wrong with artifacts.

use std::error::Error as StdError;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use env_contracts::{Code, Diagnose};

/// Any source of an error; the object store's own errors are of many types.
pub(crate) type Source = Box<dyn StdError + Send + Sync>;

/// An error of the artifact store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing of that name is kept: it never existed or was collected.
    #[error("no artifact `{0}` is kept here")]
    Unknown(String),
    /// The text is no artifact name.
    #[error("`{0}` is no artifact name: write artifact/ACTION/NUMBER")]
    BadUri(String),
    /// The text can't name a tenant or an action.
    #[error("`{0}` can't name a tenant or an action: write letters, digits, `_` or `-`")]
    BadId(String),
    /// What is stored is not what was recorded.
    #[error("artifact `{uri}` is damaged: {why}")]
    Corrupt {
        /// The artifact.
        uri: String,
        /// How that was noticed.
        why: String,
    },
    /// The content exceeds the caller's limit; nothing was stored.
    #[error("the content is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The content or the outputs folder could not be read.
    #[error("can't read what is to be stored")]
    Content(#[source] io::Error),
    /// No space or quota is left. What was begun was taken back.
    #[error("no space is left for the artifact store `{folder}`")]
    Full {
        /// The folder of the store.
        folder: PathBuf,
        /// What the system said.
        #[source]
        source: Source,
    },
    /// The store's folder can't be used.
    #[error("can't use the artifact store `{folder}`")]
    Unavailable {
        /// The folder of the store.
        folder: PathBuf,
        /// What the system said.
        #[source]
        source: Source,
    },
    /// Other processes kept the store busy for so long that collection gave up.
    #[error("the artifact store `{0}` is in use")]
    Busy(PathBuf),
}

impl Error {
    /// An error of the store itself, told apart by what the system said.
    pub(crate) fn of_store(folder: &Path, source: impl Into<Source>) -> Self {
        let (folder, source) = (folder.to_owned(), source.into());
        match io_kind(source.as_ref()) {
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => Self::Full { folder, source },
            _ => Self::Unavailable { folder, source },
        }
    }
}

impl Diagnose for Error {
    fn code(&self) -> Code {
        match self {
            Self::Unknown(_) | Self::BadUri(_) => Code::ArtifactUnknown,
            Self::BadId(_) => Code::Usage,
            Self::Corrupt { .. } => Code::ArtifactCorrupt,
            Self::TooLarge { .. } => Code::LimitHit,
            Self::Content(_) => Code::BackendError,
            Self::Full { .. } => Code::DiskFull,
            Self::Unavailable { .. } => Code::StateUnavailable,
            Self::Busy(_) => Code::Busy,
        }
    }
}

/// The first IO error among an error and its causes.
fn io_kind(error: &(dyn StdError + 'static)) -> Option<ErrorKind> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        next = error.source();
    }
    None
}
