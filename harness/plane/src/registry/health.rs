//! Whether what is registered can be called.

use std::collections::BTreeSet;

use env_contracts::{CapabilityRef, Code, Problem};
use glovebox_runtime::ArtifactBytes;
use schemars::JsonSchema;
use serde::Serialize;

use super::cache::Stamp;
use super::{Registry, Tool};

/// Whether a capability can be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Health {
    /// It can.
    Ok,
    /// Its component is gone.
    ArtifactMissing,
    /// Something that it requires, itself or through another, is not
    /// registered or can't be read.
    UnmetDependency {
        /// What is missing.
        capability: CapabilityRef,
    },
}

impl std::fmt::Display for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::ArtifactMissing => f.write_str("its component is missing"),
            Self::UnmetDependency { capability } => write!(f, "`{capability}` is missing"),
        }
    }
}

impl Registry {
    /// Whether a tool can be called. Its component is looked at, not read:
    /// whoever reads it compares the digest.
    pub fn health(&self, tool: &Tool) -> Health {
        let missing = match &tool.registered.bytes {
            ArtifactBytes::File(path) => Stamp::of(path).is_none(),
            ArtifactBytes::Embedded(_) | ArtifactBytes::Memory(_) => false,
        };
        if missing {
            return Health::ArtifactMissing;
        }
        match self.unmet(tool) {
            Some(capability) => Health::UnmetDependency { capability },
            None => Health::Ok,
        }
    }

    /// Refuses a tool of which something that it requires is missing.
    pub(super) fn complete(&self, tool: &Tool) -> Result<(), Problem> {
        let Some(missing) = self.unmet(tool) else { return Ok(()) };
        let capability = tool.manifest.capability();
        let message = format!("`{capability}` requires `{missing}`, which is not registered");
        Err(Problem::new(Code::DependencyUnmet, message))
    }

    /// The first that is missing of what a tool requires, and of what that
    /// requires. Circles end where they began.
    fn unmet(&self, tool: &Tool) -> Option<CapabilityRef> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<CapabilityRef> = tool.manifest.requires.iter().rev().cloned().collect();
        while let Some(next) = open.pop() {
            if seen.contains(&next) {
                continue;
            }
            match self.exactly(&next) {
                Ok(Some(required)) => open.extend(required.manifest.requires.iter().rev().cloned()),
                Ok(None) | Err(_) => return Some(next),
            }
            seen.insert(next);
        }
        None
    }
}
