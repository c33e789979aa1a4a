//! Cargo subcommands that are installed on first use, outside the checkout.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::process;
use crate::root::Root;

/// A helper that comes as a crate.
pub(crate) struct Helper {
    /// Crate and program, which have the same name.
    pub(crate) name: &'static str,
    /// The exact version: a new one may find new faults in an old commit.
    pub(crate) version: &'static str,
}

/// Licences, bans and sources of dependencies.
pub(crate) const CARGO_DENY: Helper = Helper { name: "cargo-deny", version: "0.20.2" };

/// Drives libFuzzer.
pub(crate) const CARGO_FUZZ: Helper = Helper { name: "cargo-fuzz", version: "0.13.2" };

/// Profile settings that build a helper in half the time. It runs for seconds;
/// its own optimised link would take longer than it ever saves.
const QUICK_BUILD: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
];

impl Helper {
    /// Path of the program; installs it if this version is not there yet.
    pub(crate) fn path(&self, root: &Root) -> Result<PathBuf> {
        let folder = root.cache()?.join("helpers").join(format!("{}-{}", self.name, self.version));
        let program = folder.join("bin").join(self.name);
        if program.exists() {
            return Ok(program);
        }
        println!("installing {} {} into {} (once, some minutes)", self.name, self.version, folder.display());
        let mut install = root.cargo();
        install
            .args(["install", "--quiet", "--locked", self.name, "--version", self.version])
            .arg("--root")
            .arg(&folder)
            .envs(QUICK_BUILD)
            // Its objects are of no use to us: let cargo take and drop a temporary folder.
            .env_remove("CARGO_TARGET_DIR");
        process::run(&mut install).with_context(|| {
            format!(
                "can't install {name}; it needs crates.io and a C compiler. Offline, copy the \
                 program from another machine to {program}",
                name = self.name,
                program = program.display()
            )
        })?;
        Ok(program)
    }
}
