//! Where things are.

use std::path::PathBuf;

use env_contracts::{Code, Problem};
use glovebox_runtime::io_problem;

use crate::config::{Config, trusted};

/// Where things are in the state folder.
pub(crate) struct Places {
    /// The state folder itself.
    pub(crate) state: PathBuf,
}

impl Places {
    pub(crate) fn of(config: &Config) -> Self {
        let state: PathBuf = config.entry("state").0.into();
        // Relative folders would move with the working directory of a child.
        Self { state: std::path::absolute(&state).unwrap_or(state) }
    }

    /// Registered tools.
    pub(crate) fn tools(&self) -> PathBuf {
        self.state.join("tools")
    }

    /// Artifacts of all tenants.
    pub(crate) fn artifacts(&self) -> PathBuf {
        self.state.join("artifacts")
    }

    /// Compiled components.
    pub(crate) fn compiled(&self) -> PathBuf {
        self.state.join("compiled")
    }

    /// Folders of runs.
    pub(crate) fn runs(&self) -> PathBuf {
        self.state.join("run")
    }

    /// Locks of actions that may run so many times at once.
    pub(crate) fn slots(&self) -> PathBuf {
        self.state.join("slots")
    }

    /// Which policies were checked already.
    pub(crate) fn checked(&self) -> PathBuf {
        self.state.join("checked")
    }

    /// Scratch folders that a contract wants kept.
    pub(crate) fn kept(&self) -> PathBuf {
        self.state.join("kept")
    }

    /// Who runs and who waits, over all processes.
    pub(crate) fn room(&self) -> PathBuf {
        self.state.join("room")
    }

    /// Makes the state folder, private to its owner.
    ///
    /// # Errors
    /// `state-unavailable`, `disk-full`.
    pub(crate) fn make(&self) -> Result<(), Problem> {
        use std::os::unix::fs::DirBuilderExt as _;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.state);
        made.map_err(|error| {
            io_problem(
                &format!("cannot make the state folder `{}`", self.state.display()),
                Code::StateUnavailable,
                &error,
            )
        })?;
        trusted(&self.state).map_err(|why| {
            Problem::new(Code::StateUnavailable, why)
                .with_help("name another with --state DIR, or take the others' write permission away")
        })
    }
}

/// What no guest may see or change: our state, and what the operator decides
/// with. A tool that could write there could raise its own ceiling.
pub(crate) fn protect(config: &Config, places: &Places) -> Vec<PathBuf> {
    let configuration = crate::config::file_path();
    let mut paths = vec![places.state.clone(), configuration.clone()];
    paths.extend(["ceiling", "policy", "profiles", "approvers"].map(|key| PathBuf::from(config.entry(key).0)));
    // The folder that is ours alone, also before there is a file in it.
    paths.extend(configuration.parent().filter(|folder| folder.ends_with("glovebox")).map(Into::into));
    // Without a home there is no such place; an empty path would be every one.
    paths.retain(|path| path.is_absolute());
    paths
}
