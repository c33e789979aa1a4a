//! The program that is PID 1 of containers: built static for each processor
//! that Glovebox runs on, and committed, so that a fresh checkout needs no
//! toolchain for it.

use std::path::PathBuf;

use anyhow::Result;

use super::index::{Entry, INDEX, Index};
use super::source;
use crate::process;
use crate::root::Root;

/// Its package, and its folder.
const PACKAGE: &str = "glovebox-supervisor";
const FOLDER: &str = "runtime/supervisor";
/// The processors, as Rust calls them. A static program needs musl.
const PROCESSORS: [&str; 2] = ["aarch64", "x86_64"];
/// The linker that comes with Rust links for all of them.
const FLAGS: &str = "-C linker=rust-lld -C link-self-contained=yes";
/// What it may have at most: it is sent to every container.
const MAX_BYTES: usize = 3 << 19;

fn dist(root: &Root) -> PathBuf {
    root.join(FOLDER).join("dist")
}

/// Builds it for every processor.
pub(super) fn build(root: &Root) -> Result<()> {
    let toolchain = process::stdout(root.command("rustc").arg("--version"))?.trim().to_owned();
    let mut entries = Vec::new();
    for processor in PROCESSORS {
        let target = format!("{processor}-unknown-linux-musl");
        process::run(root.command("rustup").args(["target", "add", &target]))?;
        let checkout = root.path().display();
        process::run(
            root.cargo()
                .args(["build", "--quiet", "--profile", "supervisor", "--package", PACKAGE, "--target", &target])
                // No path of this machine gets into it.
                .env("RUSTFLAGS", format!("{FLAGS} --remap-path-prefix={checkout}=/src")),
        )?;
        let bytes = fs_err::read(root.target().join(&target).join("supervisor").join(PACKAGE))?;
        fs_err::create_dir_all(dist(root))?;
        fs_err::write(dist(root).join(processor), &bytes)?;
        println!("{FOLDER}/dist/{processor}: {} bytes", bytes.len());
        entries.push(Entry {
            name: processor.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            file: processor.to_owned(),
            sha256: source::sha256(&bytes),
            source: hash(root)?,
            toolchain: toolchain.clone(),
        });
    }
    Index::new(entries).write(&dist(root))
}

/// What is wrong with what is committed.
pub(super) fn faults(root: &Root) -> Result<Vec<String>> {
    let index = Index::read(&dist(root))?;
    let source = hash(root)?;
    let mut faults = Vec::new();
    for processor in PROCESSORS {
        let Some(entry) = index.get(processor) else {
            faults.push(format!("the supervisor for {processor} is missing in {INDEX}"));
            continue;
        };
        let bytes = fs_err::read(dist(root).join(processor))?;
        if entry.source != source {
            faults.push(format!("the supervisor for {processor} was built from other sources than these"));
        }
        if entry.sha256 != source::sha256(&bytes) {
            faults.push(format!("the supervisor for {processor} does not have the sha256 that {INDEX} says"));
        }
        if bytes.len() > MAX_BYTES {
            faults.push(format!("the supervisor for {processor} has {} bytes: at most {MAX_BYTES}", bytes.len()));
        }
    }
    Ok(faults)
}

fn hash(root: &Root) -> Result<String> {
    let own = ["src", "Cargo.toml"].map(|name| format!("{FOLDER}/{name}"));
    source::hash(root.path(), own.iter().map(String::as_str))
}
