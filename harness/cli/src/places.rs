//! Where things are.

use std::path::PathBuf;

use env_contracts::{Code, Problem};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use glovebox_runtime::{io_problem, private_dir};

use crate::config::{Config, trusted};

/// What is set aside for the kill switch, in bytes: the pages of a stop, of
/// grants that are taken back and of some hundred actions that end.
const RESERVE: u64 = 1 << 20;

/// How much has to be free for that: it must not be what fills the disk.
const PLENTY: u64 = 64 << 20;

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

    /// What is kept of containers: who asked for which.
    pub(crate) fn containers(&self) -> PathBuf {
        self.state.join("containers")
    }

    /// Environments that actions share.
    pub(crate) fn environments(&self) -> PathBuf {
        self.state.join("environments")
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

    /// What the MCP door seals with what its clients carry back and forth.
    pub(crate) fn door_key(&self) -> PathBuf {
        self.state.join("mcp.key")
    }

    /// Who runs and who waits, over all processes.
    pub(crate) fn room(&self) -> PathBuf {
        self.state.join("room")
    }

    /// The socket of a server.
    pub(crate) fn socket(&self) -> PathBuf {
        self.state.join("serve.sock")
    }

    /// Where a running server is found.
    pub(crate) fn serving(&self) -> PathBuf {
        self.state.join("serve.json")
    }

    /// Which agents are connected here, as a lock that each of them shares.
    pub(crate) fn agents(&self) -> PathBuf {
        self.state.join("agents")
    }

    /// Browsers that logged in.
    pub(crate) fn logins(&self) -> PathBuf {
        self.state.join("logins.toml")
    }

    /// How far each webhook is.
    pub(crate) fn webhooks(&self) -> PathBuf {
        self.state.join("webhooks")
    }

    /// The key with which this service vouches for who answered.
    pub(crate) fn witness(&self) -> PathBuf {
        self.state.join("witness-key.toml")
    }

    /// Space that is given back when everything has to stop on a full disk.
    fn reserve(&self) -> PathBuf {
        self.state.join("reserve")
    }

    /// Sets space aside for the kill switch, where there is plenty. Where that
    /// fails, the kill switch has what the disk has.
    pub(crate) fn set_aside(&self) {
        let path = self.reserve();
        let room = |stat: rustix::fs::StatVfs| stat.f_bavail.saturating_mul(stat.f_frsize) >= PLENTY;
        if path.exists() || !rustix::fs::statvfs(&self.state).is_ok_and(room) {
            return;
        }
        let opened = fs_err::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let set =
            opened.and_then(|file| Ok(rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, RESERVE)?));
        if set.is_err() {
            let _ = fs_err::remove_file(&path);
        }
    }

    /// Gives that space back. `false`: there is none.
    pub(crate) fn give_back(&self) -> bool {
        fs_err::remove_file(self.reserve()).is_ok()
    }

    /// Makes the state folder, private to its owner.
    ///
    /// # Errors
    /// `state-unavailable`, `disk-full`.
    pub(crate) fn make(&self) -> Result<(), Problem> {
        private_dir(&self.state).map_err(|error| {
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
    paths.extend(
        ["ceiling", "policy", "profiles", "approvers", "credentials", "webhooks"]
            .map(|key| PathBuf::from(config.entry(key).0)),
    );
    // The folder that is ours alone, also before there is a file in it.
    paths.extend(configuration.parent().filter(|folder| folder.ends_with("glovebox")).map(Into::into));
    // Without a home there is no such place; an empty path would be every one.
    paths.retain(|path| path.is_absolute());
    paths
}
