//! Everything that can go wrong before a component runs.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use env_contracts::{Code, Diagnose};

/// An error of this crate. What happens while a component runs is no error
/// but an [`End`](glovebox_runtime::job::End).
#[derive(Debug, thiserror::Error)]
pub enum WasmError {
    /// The host has no room for the pool of instances.
    #[error("the engine can't be set up with {slots} instance slots: {reason}")]
    Engine {
        /// How many instances were asked for.
        slots: u32,
        /// The engine's own words.
        reason: String,
    },
    /// Cells can't be made by this process.
    #[error("components can't be run in cells here: {0}")]
    Cells(String),
    /// The bytes are not a module or component that can be used.
    #[error("{0}")]
    Invalid(String),
    /// The component is larger than the limit.
    #[error("the component has {size} bytes; the limit is {limit}")]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Nothing that can be called is exported.
    #[error("the component exports nothing that can be called (it exports {})", list(.found))]
    Exports {
        /// What it exports, names bounded.
        found: Vec<String>,
    },
    /// Imports that nothing grants.
    #[error("the component imports what is not granted: {}", list(.ungranted))]
    Imports {
        /// All of them, names bounded.
        ungranted: Vec<String>,
    },
    /// The compiler failed, was killed, or ran out of its limits.
    #[error("the component could not be compiled: {0}")]
    Compile(String),
    /// What works on strangers' bytes can't be shut in on this host.
    #[error("untrusted code can't be shut in here: {reason}")]
    Jail {
        /// Which wall is missing, and why.
        reason: String,
        /// The way out.
        remedy: String,
    },
    /// The bytes are not those that the digest names.
    #[error("the component's bytes have the digest {found}, not {expected}")]
    Digest {
        /// The sha256 that was asked for.
        expected: String,
        /// The sha256 of the bytes.
        found: String,
    },
    /// The engine does not take the artefact.
    #[error("the compiled component can't be loaded: {0}")]
    Load(String),
    /// A file of the cache can't be used.
    #[error("cache file {}", .path.display())]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl WasmError {
    /// An IO error of the cache at `path`.
    pub(crate) fn cache(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Cache { path, source }
    }
}

impl Diagnose for WasmError {
    fn code(&self) -> Code {
        match self {
            Self::Engine { .. } | Self::Cells(_) => Code::BackendUnavailable,
            Self::Invalid(_) => Code::ComponentInvalid,
            Self::TooLarge { .. } => Code::ComponentTooLarge,
            Self::Exports { .. } => Code::ComponentExports,
            Self::Imports { .. } => Code::ComponentImports,
            Self::Compile(_) => Code::CompileFailed,
            Self::Jail { .. } => Code::IsolationUnavailable,
            Self::Digest { .. } => Code::StateUnavailable,
            Self::Load(_) => Code::BackendError,
            Self::Cache { source, .. } if is_full(source) => Code::DiskFull,
            Self::Cache { .. } => Code::StateUnavailable,
        }
    }

    fn help(&self) -> Cow<'static, str> {
        match self {
            Self::Engine { .. } => {
                "lower the number of parallel actions, or raise the address space limit (`ulimit -v`)".into()
            }
            Self::Digest { .. } => {
                "the file was changed after it was registered: `glovebox tool remove` it and register it again".into()
            }
            Self::Jail { remedy, .. } => remedy.clone().into(),
            other => Cow::Borrowed(other.code().remedy()),
        }
    }
}

/// Whether a write failed because there is no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "nothing".into() } else { names.join(", ") }
}
