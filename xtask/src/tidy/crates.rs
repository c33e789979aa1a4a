//! What `cargo metadata` says of our own crates.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::process;
use crate::root::Root;

/// A crate of the workspace.
pub(super) struct Package {
    /// Its folder, relative to the checkout: `runtime/core`.
    pub(super) folder: String,
    pub(super) dependencies: Vec<Dependency>,
    /// The library and the binaries.
    pub(super) roots: Vec<CrateRoot>,
}

/// One line of a manifest's dependencies.
pub(super) struct Dependency {
    /// `/runtime/core` for a crate of ours, the crate's name for any other.
    pub(super) label: String,
    /// Whether only tests, examples and benches see it.
    pub(super) dev: bool,
}

/// The file that opens a library or a binary.
pub(super) struct CrateRoot {
    /// Relative to the checkout.
    pub(super) path: String,
    pub(super) is_lib: bool,
}

/// Reads all members of the workspace.
pub(super) fn packages(root: &Root) -> Result<Vec<Package>> {
    let json = process::stdout(root.cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    parse(&json, root.path())
}

fn parse(json: &str, root: &Path) -> Result<Vec<Package>> {
    let metadata: Metadata = serde_json::from_str(json).context("`cargo metadata` printed something unexpected")?;
    let relative = |path: &str| -> Result<String> {
        Ok(Path::new(path)
            .strip_prefix(root)
            .with_context(|| format!("`{path}` is outside the checkout"))?
            .to_string_lossy()
            .into_owned())
    };
    let mut packages = Vec::new();
    for package in metadata.packages {
        let manifest = relative(&package.manifest_path)?;
        let mut dependencies = Vec::new();
        for dependency in package.dependencies {
            dependencies.push(Dependency {
                label: match &dependency.path {
                    Some(path) => format!("/{}", relative(path)?),
                    None => dependency.name,
                },
                dev: dependency.kind.as_deref() == Some("dev"),
            });
        }
        let mut roots = Vec::new();
        for target in package.targets {
            let is_lib = target.kind.iter().any(|kind| kind == "lib" || kind == "proc-macro");
            if is_lib || target.kind.iter().any(|kind| kind == "bin") {
                roots.push(CrateRoot { path: relative(&target.src_path)?, is_lib });
            }
        }
        packages.push(Package { folder: manifest.trim_end_matches("/Cargo.toml").to_owned(), dependencies, roots });
    }
    Ok(packages)
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<RawPackage>,
}

#[derive(Deserialize)]
struct RawPackage {
    manifest_path: String,
    dependencies: Vec<RawDependency>,
    targets: Vec<RawTarget>,
}

#[derive(Deserialize)]
struct RawDependency {
    name: String,
    kind: Option<String>,
    path: Option<String>,
}

#[derive(Deserialize)]
struct RawTarget {
    kind: Vec<String>,
    src_path: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_crates_are_told_from_others() {
        let json = r#"{"packages": [{
            "manifest_path": "/house/runtime/wasm/Cargo.toml",
            "dependencies": [
                {"name": "glovebox-runtime", "kind": null, "path": "/house/runtime/core"},
                {"name": "wasmtime", "kind": null},
                {"name": "tempfile", "kind": "dev"}
            ],
            "targets": [
                {"kind": ["lib"], "src_path": "/house/runtime/wasm/src/lib.rs"},
                {"kind": ["test"], "src_path": "/house/runtime/wasm/tests/limits.rs"}
            ]
        }]}"#;
        let packages = parse(json, Path::new("/house")).unwrap();
        assert_eq!(packages[0].folder, "runtime/wasm");
        let labels: Vec<_> =
            packages[0].dependencies.iter().map(|dependency| (dependency.label.as_str(), dependency.dev)).collect();
        assert_eq!(labels, [("/runtime/core", false), ("wasmtime", false), ("tempfile", true)]);
        assert_eq!(packages[0].roots.len(), 1);
        assert!(parse(json, Path::new("/elsewhere")).is_err());
    }
}
