//! `cargo xtask tidy`: the rules of the house that the compiler doesn't check.
//!
//! Each rule is a pure function from what was read to a list of faults; this
//! module reads and prints.

mod crates;
mod directions;
mod one_build;
mod pages;
mod sizes;
mod sources;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::root::Root;

/// What a rule found: where, what and the way out, as one line.
type Faults = Vec<String>;

/// Checks every rule and reports all faults at once.
pub(crate) fn run(root: &Root) -> Result<()> {
    let packages = crates::packages(root)?;
    let mut faults = directions::faults(&packages);
    faults.extend(one_build::faults(root)?);

    let mut long = sizes::Sizes::default();
    for path in rust_files(root)? {
        long.add(&path, fs_err::read_to_string(root.join(&path))?.lines().count());
    }
    let (warnings, errors) = long.judge(sizes::ALLOWED);
    for warning in warnings {
        println!("warning: {warning}");
    }
    faults.extend(errors);

    for package in &packages {
        faults.extend(sources::manifest_faults(
            &package.folder,
            &fs_err::read_to_string(root.join(&package.folder).join("Cargo.toml"))?,
        ));
        for target in &package.roots {
            let text = fs_err::read_to_string(root.join(&target.path))?;
            faults.extend(sources::docs_faults(&target.path, &text, target.is_lib));
        }
    }

    let read = |page: &str| fs_err::read_to_string(root.join(page)).unwrap_or_default();
    faults.extend(pages::changelog_faults(&read(pages::CHANGELOG)));
    faults.extend(pages::code_faults(&read(pages::CODES), &read(pages::ERRORS)));

    if faults.is_empty() {
        return Ok(());
    }
    for fault in &faults {
        println!("{fault}");
    }
    bail!("{} fault(s) against the rules of the house", faults.len());
}

/// Every Rust file of the checkout, relative to it: the excluded workspaces
/// (tools, guests, fuzz targets) too.
fn rust_files(root: &Root) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name();
            let path = folder.join(&name);
            let kind = entry.file_type()?;
            if kind.is_dir() && !is_foreign(&name.to_string_lossy()) {
                folders.push(path);
            } else if kind.is_file() && has_extension(&path, "rs") {
                files.push(path.to_string_lossy().into_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Folders that hold nothing of ours.
fn is_foreign(folder: &str) -> bool {
    folder.starts_with('.') || folder == "target"
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}
