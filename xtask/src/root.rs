//! The checkout, and the folder outside it that keeps what is slow to make.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// The workspace of the shipped tools: WASI guests whose tests run on the host.
pub(crate) const TOOLS: &str = "tools";

/// The workspace folder. Every path in xtask is relative to it.
pub(crate) struct Root {
    path: PathBuf,
}

impl Root {
    /// Takes the folder from cargo, which sets it for `cargo xtask`.
    ///
    /// The compiled-in path would be wrong where two checkouts share a target
    /// folder.
    pub(crate) fn find() -> Result<Self> {
        let xtask =
            env::var_os("CARGO_MANIFEST_DIR").context("the checkout is not known: start this as `cargo xtask …`")?;
        let path = Path::new(&xtask).parent().context("`CARGO_MANIFEST_DIR` has no parent folder")?;
        Ok(Self { path: path.to_owned() })
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A path inside the checkout.
    pub(crate) fn join(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.path.join(relative)
    }

    /// The cargo that started us, in the checkout.
    ///
    /// The target folder is left to cargo: whoever ran `cargo run --release`
    /// before must not have to compile wasmtime again.
    pub(crate) fn cargo(&self) -> Command {
        self.command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
    }

    /// The same for the workspace of the tools, which has a profile of its own
    /// and so a target folder of its own, inside ours.
    pub(crate) fn cargo_tools(&self, subcommand: &str) -> Command {
        let mut cargo = self.cargo();
        cargo
            .args([subcommand, "--manifest-path"])
            .arg(self.join(TOOLS).join("Cargo.toml"))
            .arg("--target-dir")
            .arg(self.target().join(TOOLS));
        cargo
    }

    /// The target folder of the checkout.
    pub(crate) fn target(&self) -> PathBuf {
        env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| self.join("target"), |folder| env::current_dir().unwrap_or_default().join(folder))
    }

    /// Workspaces of their own inside the checkout: those that the main manifest
    /// excludes and that are there.
    pub(crate) fn other_workspaces(&self) -> Result<Vec<PathBuf>> {
        let manifest: toml::Table = fs_err::read_to_string(self.join("Cargo.toml"))?.parse()?;
        let excluded = manifest["workspace"].get("exclude").and_then(toml::Value::as_array);
        Ok(excluded
            .into_iter()
            .flatten()
            .filter_map(toml::Value::as_str)
            .map(|folder| self.join(folder).join("Cargo.toml"))
            .filter(|manifest| manifest.is_file())
            .collect())
    }

    /// Any other program, in the checkout.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = process::command(program);
        command.current_dir(&self.path);
        command
    }

    /// Where installed helpers and fuzz corpora live:
    /// `$XDG_CACHE_HOME/glovebox`, by default `~/.cache/glovebox`.
    pub(crate) fn cache(&self) -> Result<PathBuf> {
        let base = match env::var_os("XDG_CACHE_HOME") {
            // The XDG specification says to ignore a relative path.
            Some(folder) if Path::new(&folder).is_absolute() => PathBuf::from(folder),
            _ => env::home_dir().context("no home folder is known: set HOME or XDG_CACHE_HOME")?.join(".cache"),
        };
        Ok(base.join("glovebox"))
    }
}
