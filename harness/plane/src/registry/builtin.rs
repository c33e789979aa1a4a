//! The tools that come with the program, each read once.

use std::sync::{Arc, OnceLock};

use env_contracts::{CapabilityName, Digest, Manifest, Problem};
use glovebox_runtime::ArtifactBytes;

use super::{Tool, parse};

/// A tool that comes with the program.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// Its `tool.toml`.
    pub manifest: &'static str,
    /// Its component.
    pub component: &'static [u8],
}

/// One of them, and what was read of it.
#[derive(Debug)]
pub(super) struct Shipped {
    builtin: Builtin,
    name: String,
    tool: OnceLock<Result<Arc<Tool>, Problem>>,
}

impl Shipped {
    pub(super) fn new(builtin: Builtin) -> Self {
        Self { builtin, name: name(builtin.manifest), tool: OnceLock::new() }
    }

    /// Whether it has this name.
    pub(super) fn is(&self, name: &CapabilityName) -> bool {
        self.name == name.as_str()
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is none that somebody calls by its name: a decision, or a
    /// tool of an agent's own.
    pub(super) fn unlisted(&self) -> bool {
        super::unlisted().any(|name| name == self.name)
    }

    /// The tool, read when it is first asked for.
    pub(super) fn tool(&self) -> Result<Arc<Tool>, Problem> {
        let read = || {
            let Builtin { manifest, component } = self.builtin;
            let (digest, bytes) = (Digest::of(component), ArtifactBytes::Embedded(component));
            Tool::new(parse(manifest)?, digest, bytes, true).map(Arc::new)
        };
        self.tool.get_or_init(read).clone()
    }
}

/// The name in a manifest. A command that runs one tool must not read all
/// manifests: the name stands before the first table, or is looked for with
/// everything else.
fn name(manifest: &str) -> String {
    let mut head = manifest.lines().take_while(|line| !line.starts_with('['));
    let quoted = head.find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    match quoted {
        Some(name) => name.to_owned(),
        None => Manifest::from_toml(manifest).map(|manifest| manifest.name.to_string()).unwrap_or_default(),
    }
}
