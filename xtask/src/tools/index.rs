//! The index of a `dist` folder.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The index's file name.
pub(super) const INDEX: &str = "index.toml";

/// What a `dist` folder holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Index {
    schema: Schema,
    component: Vec<Entry>,
}

/// The format of the index.
#[derive(Serialize, Deserialize)]
enum Schema {
    #[serde(rename = "glovebox/dist/v1")]
    V1,
}

/// One component, or core module.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// The tool's name.
    pub(super) name: String,
    /// The tool's version.
    pub(super) version: String,
    /// The file in the folder of the index.
    pub(super) file: String,
    /// The sha256 of the file.
    pub(super) sha256: String,
    /// The hash of what it was built from.
    pub(super) source: String,
    /// What it was built with.
    pub(super) toolchain: String,
}

impl Index {
    /// An index of `entries`, in their order.
    pub(super) fn new(entries: Vec<Entry>) -> Self {
        Self { schema: Schema::V1, component: entries }
    }

    /// Reads the index of a folder.
    pub(super) fn read(dist: &Path) -> Result<Self> {
        let path = dist.join(INDEX);
        let text = fs_err::read_to_string(&path)?;
        toml::from_str(&text).with_context(|| format!("{} is no index", path.display()))
    }

    /// Writes the index into a folder.
    pub(super) fn write(&self, dist: &Path) -> Result<()> {
        let text = toml::to_string(self).context("an index is plain data")?;
        let text = format!("# Written by `cargo xtask tools build`.\n{text}");
        Ok(fs_err::write(dist.join(INDEX), text)?)
    }

    /// All entries.
    pub(super) fn components(&self) -> &[Entry] {
        &self.component
    }

    /// The entry of that name.
    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.component.iter().find(|entry| entry.name == name)
    }

    /// WebAssembly files in the folder that the index doesn't name.
    pub(super) fn strangers(&self, dist: &Path) -> Result<Vec<String>> {
        let mut strangers = Vec::new();
        for entry in fs_err::read_dir(dist)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let known = self.component.iter().any(|entry| entry.file == name);
            if name.ends_with(".wasm") && !known {
                strangers.push(name);
            }
        }
        strangers.sort();
        Ok(strangers)
    }
}
