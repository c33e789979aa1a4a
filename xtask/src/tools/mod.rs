//! `cargo xtask tools`: the committed components, the supervisor of containers,
//! and what they were built from.
//!
//! A fresh checkout needs no compiler for WASI: the shipped tools and the guests
//! of the tests lie in `dist/` folders, each with an index that names source
//! hash and toolchain. `build` writes both; `check` compares source hashes
//! always, and bytes where this machine has the same toolchain.

mod index;
mod source;
mod supervisor;
mod toolchain;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::root::Root;
use index::{Entry, INDEX, Index};
use toolchain::{Built, Toolchain};

/// A cargo workspace of guests, with a `dist` folder.
struct Workspace {
    /// The folder, relative to the checkout.
    folder: &'static str,
    /// What all its guests are built from, besides their own folder and the
    /// workspace's manifest and lock file.
    shared: &'static [&'static str],
    guests: &'static [Guest],
}

/// What is built from one package.
struct Guest {
    /// The name in the index and of the file in `dist`.
    name: &'static str,
    /// The package, and its folder in the workspace.
    package: &'static str,
    shape: Shape,
    /// What it is built from beyond that.
    more: &'static [&'static str],
}

impl Guest {
    const fn new(name: &'static str, package: &'static str, shape: Shape) -> Self {
        Self { name, package, shape, more: &[] }
    }

    /// The name of its file in `dist`.
    fn file(&self) -> String {
        match self.shape {
            Shape::Native(_) => self.name.to_owned(),
            Shape::Tool | Shape::Command | Shape::Core => format!("{}.wasm", self.name),
        }
    }
}

/// What kind of file a guest is: WebAssembly, or a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A component that is called: through the `tool` interface, or functions of its own.
    Tool,
    /// A component that exports `wasi:cli/run`.
    Command,
    /// A core module for WASI preview 1, left as it is.
    Core,
    /// A static program for Linux on this processor, as Rust calls it.
    Native(&'static str),
}

/// A guest of the tests that is a program, for containers.
const fn program(name: &'static str, processor: &'static str) -> Guest {
    Guest {
        name,
        package: "hostile",
        shape: Shape::Native(processor),
        more: &["runtime/jail/Cargo.toml", "runtime/jail/src"],
    }
}

const WORKSPACES: [Workspace; 2] = [
    Workspace {
        folder: "tools",
        shared: &["tools/archive", "tools/guest", "tools/manifest", "tools/wit"],
        guests: &[
            Guest::new("archive.extract", "archive-extract", Shape::Tool),
            Guest::new("archive.list", "archive-list", Shape::Tool),
            Guest::new("fs.patch", "fs-patch", Shape::Tool),
            Guest::new("fs.read", "fs-read", Shape::Tool),
            Guest::new("fs.search", "fs-search", Shape::Tool),
            Guest::new("fs.write", "fs-write", Shape::Tool),
            Guest::new("json.query", "json-query", Shape::Tool),
            Guest::new("text.count", "text-count", Shape::Tool),
            Guest::new("text.diff", "text-diff", Shape::Tool),
        ],
    },
    Workspace {
        folder: "tests/guests",
        shared: &["tools/wit"],
        guests: &[
            Guest::new("hostile", "hostile", Shape::Command),
            program("hostile-x86_64", "x86_64"),
            Guest::new("hostile-tool", "hostile-tool", Shape::Tool),
            Guest::new("preview1", "preview1", Shape::Core),
            Guest::new("typed", "typed", Shape::Tool),
        ],
    },
];

/// Builds all guests and writes them and the indexes into the `dist` folders.
pub(crate) fn build(root: &Root) -> Result<()> {
    let toolchain = Toolchain::get(root)?;
    for workspace in &WORKSPACES {
        let dist = workspace.dist(root);
        fs_err::create_dir_all(&dist)?;
        let mut entries = Vec::new();
        for (guest, built) in workspace.guests.iter().zip(workspace.build(root, &toolchain)?) {
            let entry = workspace.entry(root, guest, &built)?;
            fs_err::write(dist.join(&entry.file), &built.bytes)?;
            println!("{}/dist/{}: {} bytes, {}", workspace.folder, entry.file, built.bytes.len(), built.toolchain);
            entries.push(entry);
        }
        let index = Index::new(entries);
        for stale in index.strangers(&dist)? {
            fs_err::remove_file(dist.join(stale))?;
        }
        index.write(&dist)?;
    }
    supervisor::build(root)
}

/// Checks that the `dist` folders belong to the sources.
pub(crate) fn check(root: &Root) -> Result<()> {
    let mut faults = supervisor::faults(root)?;
    let toolchain = Toolchain::present(root);
    for workspace in &WORKSPACES {
        let dist = workspace.dist(root);
        let index = Index::read(&dist)?;
        let before = faults.len();
        faults.extend(index.strangers(&dist)?.into_iter().map(|file| format!("{file} is not in {INDEX}")));
        for guest in workspace.guests {
            match index.get(guest.name) {
                Some(entry) => faults.extend(workspace.faults(root, guest, entry)?),
                None => faults.push(format!("{} is missing in {INDEX}", guest.name)),
            }
        }
        // Bytes say nothing new where the sources differ already.
        if faults.len() > before {
            continue;
        }
        match &toolchain {
            Some(toolchain) if workspace.same_toolchain(root, toolchain, &index)? => {
                faults.extend(workspace.byte_faults(root, toolchain, &index)?);
            }
            _ => println!(
                "{}: source hashes agree; bytes not compared, because this machine does not have the toolchain ({})",
                workspace.folder,
                index.components().first().map_or("none", |entry| entry.toolchain.as_str()),
            ),
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    bail!("{}\n`cargo xtask tools build` brings them up to date", faults.join("\n"));
}

impl Workspace {
    fn dist(&self, root: &Root) -> PathBuf {
        root.join(self.folder).join("dist")
    }

    /// Builds every guest, in their order.
    fn build(&self, root: &Root, toolchain: &Toolchain) -> Result<Vec<Built>> {
        toolchain.build(root, self.folder, self.guests)
    }

    fn entry(&self, root: &Root, guest: &Guest, built: &Built) -> Result<Entry> {
        Ok(Entry {
            name: guest.name.to_owned(),
            version: self.version(root, guest)?,
            file: guest.file(),
            sha256: source::sha256(&built.bytes),
            source: self.source(root, guest)?,
            toolchain: built.toolchain.clone(),
        })
    }

    /// The hash over everything that a guest is built from.
    fn source(&self, root: &Root, guest: &Guest) -> Result<String> {
        let folder = self.folder;
        let own = ["Cargo.toml", "Cargo.lock", guest.package].map(|name| format!("{folder}/{name}"));
        source::hash(root.path(), own.iter().map(String::as_str).chain(self.shared.iter().chain(guest.more).copied()))
    }

    /// The version in the package's manifest.
    fn version(&self, root: &Root, guest: &Guest) -> Result<String> {
        let path = root.join(self.folder).join(guest.package).join("Cargo.toml");
        let manifest: toml::Table = fs_err::read_to_string(&path)?.parse()?;
        let version = manifest["package"].get("version").and_then(toml::Value::as_str);
        Ok(version.with_context(|| format!("{} has no version", path.display()))?.to_owned())
    }

    /// What is wrong with an entry, without building anything.
    fn faults(&self, root: &Root, guest: &Guest, entry: &Entry) -> Result<Vec<String>> {
        let mut faults = Vec::new();
        if entry.source != self.source(root, guest)? {
            faults.push(format!("{} was built from other sources than these", guest.name));
        }
        if entry.version != self.version(root, guest)? {
            faults.push(format!("{} has another version in {INDEX} than in its Cargo.toml", guest.name));
        }
        match fs_err::read(self.dist(root).join(&entry.file)) {
            Ok(bytes) if source::sha256(&bytes) == entry.sha256 => {}
            Ok(_) => faults.push(format!("{} does not have the sha256 that {INDEX} says", entry.file)),
            Err(error) => faults.push(error.to_string()),
        }
        let manifest = root.join(self.folder).join(guest.package).join("tool.toml");
        if manifest.exists() {
            let manifest: toml::Table = fs_err::read_to_string(manifest)?.parse()?;
            for (key, value) in [("name", &entry.name), ("version", &entry.version)] {
                if manifest.get(key).and_then(toml::Value::as_str) != Some(value) {
                    faults.push(format!("{} has another {key} in its tool.toml than in {INDEX}", guest.name));
                }
            }
        }
        Ok(faults)
    }

    /// Whether everything was built by this toolchain.
    fn same_toolchain(&self, root: &Root, toolchain: &Toolchain, index: &Index) -> Result<bool> {
        for guest in self.guests {
            let id = toolchain.id(root, guest.shape)?;
            if id.is_none() || id.as_deref() != index.get(guest.name).map(|entry| entry.toolchain.as_str()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Builds again and compares. A program of this host is left out: its bytes
    /// differ with the place of the checkout, and its sources are compared as those
    /// of the supervisor are.
    fn byte_faults(&self, root: &Root, toolchain: &Toolchain, index: &Index) -> Result<Vec<String>> {
        let built = self.build(root, toolchain)?;
        let differs = |(guest, built): &(&Guest, Built)| {
            let native = matches!(guest.shape, Shape::Native(_));
            !native && index.get(guest.name).is_none_or(|entry| entry.sha256 != source::sha256(&built.bytes))
        };
        let names = self.guests.iter().zip(built).filter(differs);
        Ok(names
            .map(|(guest, _)| format!("{} built again from the same sources has other bytes", guest.name))
            .collect())
    }
}
