//! Compilers for WASI, and what makes their output the same everywhere.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use wasi_preview1_component_adapter_provider as adapter;

use super::{Guest, Shape};
use crate::process;
use crate::root::Root;

/// Names a stand-in for cargo that compiles for `wasm32-wasip1`, for machines
/// whose rustup can't get a WASI target. It takes cargo's arguments and puts its
/// output into `wasm32-wasip1/release`.
const WASI_CARGO: &str = "GLOVEBOX_WASI_CARGO";

/// Components.
const COMPONENTS: &str = "wasm32-wasip2";

/// Core modules.
const MODULES: &str = "wasm32-wasip1";

/// Static programs: the linker that comes with Rust links for all processors.
const STATIC: [&str; 2] = ["-Clinker=rust-lld", "-Clink-self-contained=yes"];

/// How components come to be.
pub(super) enum Toolchain {
    /// rustup's compiler makes them.
    Rustup,
    /// The command that [`WASI_CARGO`] names makes core modules; we adapt them.
    Adapted(PathBuf),
}

/// A guest, and what built it.
pub(super) struct Built {
    pub(super) bytes: Vec<u8>,
    pub(super) toolchain: String,
}

impl Toolchain {
    /// The toolchain of this machine; installs rustup's targets where they can be had.
    pub(super) fn get(root: &Root) -> Result<Self> {
        let missing: Vec<&str> = [COMPONENTS, MODULES].into_iter().filter(|target| !has_target(root, target)).collect();
        let mut add = root.command("rustup");
        if missing.is_empty() || process::succeeds(add.args(["target", "add"]).args(&missing)) {
            return Ok(Self::Rustup);
        }
        Self::present(root).with_context(|| {
            format!(
                "no compiler for WASI: `rustup target add {}` failed, and ${WASI_CARGO} names no command that builds for {MODULES}",
                missing.join(" "),
            )
        })
    }

    /// The toolchain that is there already.
    pub(super) fn present(root: &Root) -> Option<Self> {
        if has_target(root, COMPONENTS) && has_target(root, MODULES) {
            return Some(Self::Rustup);
        }
        let command = PathBuf::from(env::var_os(WASI_CARGO)?);
        // A bare name is looked up as usual; a relative path is meant from the
        // checkout, wherever we run it.
        let bare = command.components().count() == 1;
        Some(Self::Adapted(if bare { command } else { root.join(command) }))
    }

    /// What a guest of this shape is built with, as the index says it: equal
    /// where equal sources give equal bytes. `None` where that can't be known.
    pub(super) fn id(&self, root: &Root, shape: Shape) -> Result<Option<String>> {
        let Self::Rustup = self else { return Ok(None) };
        let rustc = process::stdout(root.command("rustc").arg("--version"))?;
        // The host counts: cargo derives the names of symbols from it too.
        let (rustc, host, target) = (rustc.trim(), env::consts::ARCH, self.target(shape));
        Ok(Some(format!("{rustc} on {host} for {target}")))
    }

    /// Builds guests of one workspace, in their order.
    pub(super) fn build(&self, root: &Root, folder: &str, guests: &[Guest]) -> Result<Vec<Built>> {
        let mut packages: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for guest in guests {
            packages.entry(self.target(guest.shape)).or_default().push(guest.package);
        }
        for (target, packages) in packages {
            self.compile(root, folder, &target, &packages)?;
        }
        guests.iter().map(|guest| self.finish(root, guest)).collect()
    }

    fn target(&self, shape: Shape) -> String {
        match (self, shape) {
            (_, Shape::Native(processor)) => format!("{processor}-unknown-linux-musl"),
            (Self::Rustup, Shape::Tool | Shape::Command) => COMPONENTS.to_owned(),
            _ => MODULES.to_owned(),
        }
    }

    fn compile(&self, root: &Root, folder: &str, target: &str, packages: &[&str]) -> Result<()> {
        let manifest = root.join(folder).join("Cargo.toml");
        // First of all, so that the folders to be mapped are there.
        process::run(root.cargo().args(["fetch", "--locked", "--quiet", "--manifest-path"]).arg(&manifest))?;
        let native = target != COMPONENTS && target != MODULES;
        if native {
            process::run(root.command("rustup").args(["target", "add", target]))?;
        }
        let by_rustup = native || matches!(self, Self::Rustup);
        let mut cargo = match self {
            Self::Adapted(command) if !by_rustup => root.command(command),
            _ => root.cargo(),
        };
        cargo.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]);
        cargo.arg(&manifest).arg("--target-dir").arg(target_dir()?);
        if by_rustup {
            cargo.args(["--target", target]);
        }
        let mut flags = remap(root.path())?;
        if native {
            flags.extend(STATIC.map(str::to_owned));
        }
        cargo.arg("--config").arg(format!("target.{target}.rustflags={flags:?}"));
        for package in packages {
            cargo.args(["--package", package]);
        }
        process::run(without_flags(&mut cargo))
    }

    /// Reads what was compiled, and adapts it where needed.
    fn finish(&self, root: &Root, guest: &Guest) -> Result<Built> {
        let stem = match guest.shape {
            Shape::Tool => guest.package.replace('-', "_"),
            Shape::Command | Shape::Core | Shape::Native(_) => guest.package.to_owned(),
        };
        let folder = target_dir()?.join(self.target(guest.shape)).join("release");
        let extension = if matches!(guest.shape, Shape::Native(_)) { "" } else { "wasm" };
        let path = folder.join(stem).with_extension(extension);
        let mut bytes = fs_err::read(&path)?;
        if let (Self::Adapted(_), Some(adapter)) = (self, guest.shape.adapter()) {
            bytes = adapt(&bytes, adapter).with_context(|| format!("can't make a component of {}", path.display()))?;
        }
        let toolchain = self.id(root, guest.shape)?.unwrap_or_else(|| format!("${WASI_CARGO} for {MODULES}"));
        Ok(Built { bytes, toolchain })
    }
}

impl Shape {
    /// What turns a core module into a component of this shape.
    fn adapter(self) -> Option<&'static [u8]> {
        match self {
            Self::Tool => Some(adapter::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER),
            Self::Command => Some(adapter::WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER),
            Self::Core | Self::Native(_) => None,
        }
    }
}

fn adapt(module: &[u8], adapter: &[u8]) -> Result<Vec<u8>> {
    wit_component::ComponentEncoder::default()
        .validate(true)
        .module(module)?
        .adapter(adapter::WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, adapter)?
        .encode()
}

/// Outside the checkout, and apart from the host's own builds.
fn target_dir() -> Result<PathBuf> {
    let base = match env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => std::path::absolute(folder)?,
        None => home()?.join(".cache/glovebox/target"),
    };
    Ok(base.join("guests"))
}

fn home() -> Result<PathBuf> {
    env::home_dir().context("no home folder is known: set HOME or CARGO_TARGET_DIR")
}

/// Compiler flags that take the folders of this machine out of panic messages.
/// Where several apply, the last one does.
fn remap(root: &Path) -> Result<Vec<String>> {
    let home = home()?;
    let cargo = env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let mut folders = vec![(home, "home"), (cargo.clone(), "cargo")];
    // Each registry has a folder that is named after its address.
    if let Ok(registries) = fs_err::read_dir(cargo.join("registry/src")) {
        folders.extend(registries.flatten().map(|registry| (registry.path(), "registry")));
    }
    folders.push((target_dir()?, "target"));
    folders.push((root.to_owned(), "glovebox"));
    folders
        .into_iter()
        .map(|(folder, name)| {
            let folder = folder.to_str().context("a folder of this machine is not UTF-8")?;
            ensure!(!folder.contains('='), "`{folder}`: a path with `=` can't be mapped");
            Ok(format!("--remap-path-prefix={folder}={name}"))
        })
        .collect()
}

/// Whatever the caller's environment adds would change the bytes.
fn without_flags(cargo: &mut Command) -> &mut Command {
    let flags = |name: &OsString| {
        let name = name.to_string_lossy();
        name.ends_with("RUSTFLAGS") || name.starts_with("CARGO_PROFILE_") || name == "CARGO_BUILD_TARGET"
    };
    for (name, _) in env::vars_os().filter(|(name, _)| flags(name)) {
        cargo.env_remove(name);
    }
    cargo
}

fn has_target(root: &Root, target: &str) -> bool {
    let folder = process::stdout(root.command("rustc").args(["--print", "target-libdir", "--target", target]));
    folder.is_ok_and(|folder| Path::new(folder.trim()).is_dir())
}
