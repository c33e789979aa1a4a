//! Programs that are installed on first use, outside the checkout.

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

/// A helper that comes as a package for Python.
pub(crate) struct PythonHelper {
    /// Package and program, which have the same name.
    pub(crate) name: &'static str,
    /// The exact version.
    pub(crate) version: &'static str,
}

/// Whether a document is OpenAPI.
pub(crate) const OPENAPI_SPEC_VALIDATOR: PythonHelper =
    PythonHelper { name: "openapi-spec-validator", version: "0.9.0" };

/// Makes up requests from an OpenAPI document, and holds the answers against it.
pub(crate) const SCHEMATHESIS: PythonHelper = PythonHelper { name: "schemathesis", version: "4.32.5" };

impl PythonHelper {
    /// Path of the program; installs it if this version is not there yet. `None`
    /// where that is not possible here: what is skipped then is named.
    pub(crate) fn path(&self, root: &Root) -> Result<Option<PathBuf>> {
        let folder = root.cache()?.join("helpers").join(format!("{}-{}", self.name, self.version));
        let program = folder.join("bin").join(self.name);
        if program.exists() {
            return Ok(Some(program));
        }
        println!("installing {} {} into {} (once)", self.name, self.version, folder.display());
        let package = format!("{}=={}", self.name, self.version);
        let made = process::run(root.command("python3").args(["-m", "venv"]).arg(&folder));
        let pip = || process::run(root.command(folder.join("bin/pip")).args(["install", "--quiet", &package]));
        if let Err(error) = made.and_then(|()| pip()) {
            println!(
                "skipped: {}: it needs python3 with venv (Debian: python3-venv) and a package index ({error:#})",
                self.name
            );
            return Ok(None);
        }
        Ok(Some(program))
    }
}

/// A helper that comes as a package for Node.js.
pub(crate) struct NodeHelper {
    /// The package.
    pub(crate) name: &'static str,
    /// The exact version.
    pub(crate) version: &'static str,
    /// Its script, in the folder of the package.
    pub(crate) script: &'static str,
}

/// What servers and clients of the Model Context Protocol are held against.
pub(crate) const MCP_CONFORMANCE: NodeHelper =
    NodeHelper { name: "@modelcontextprotocol/conformance", version: "0.2.0-alpha.12", script: "dist/index.js" };

/// The Node.js that helpers run on: Debian's is too old for some.
const NODE: &str = "node@22.23.3";

impl NodeHelper {
    /// Node.js and the script for it; installs them if this version is not
    /// there yet. `None` where that is not possible here: what is skipped then
    /// is named.
    pub(crate) fn path(&self, root: &Root) -> Result<Option<(PathBuf, PathBuf)>> {
        let short = self.name.trim_start_matches('@').replace('/', "-");
        let folder = root.cache()?.join("helpers").join(format!("{short}-{}", self.version));
        let node = folder.join("node_modules/.bin/node");
        let script = folder.join("node_modules").join(self.name).join(self.script);
        if node.exists() && script.exists() {
            return Ok(Some((node, script)));
        }
        println!("installing {} {} into {} (once)", self.name, self.version, folder.display());
        fs_err::create_dir_all(&folder)?;
        let package = format!("{}@{}", self.name, self.version);
        let mut install = root.command("npm");
        install
            .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
            .arg(&folder)
            .args([&package, NODE]);
        if let Err(error) = process::run(&mut install) {
            println!("skipped: {}: it needs npm and its package index ({error:#})", self.name);
            return Ok(None);
        }
        Ok(Some((node, script)))
    }
}
