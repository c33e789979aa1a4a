//! Which policies passed their checks already, so that a one-shot command does
//! not check again what has not changed.
//!
//! A stamp is an empty file named for the digest of all that the checks look at.
//! It spares the checks, never the rules: those are evaluated every time.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use env_contracts::digest::Hasher;
use env_contracts::{Digest, Manifest};

use crate::error::PolicyError;
use crate::schema;
use crate::source::Sources;

/// What a policy is made of, as it was read.
pub(crate) struct Material<'a> {
    pub(crate) sources: Sources,
    pub(crate) tools: Vec<&'a Manifest>,
    /// Whether it is the shipped one.
    pub(crate) shipped: bool,
    /// Of all of it: from the same, the same policy is made.
    pub(crate) stamp: Digest,
}

impl<'a> Material<'a> {
    pub(crate) fn read(dir: Option<&Path>, tools: impl IntoIterator<Item = &'a Manifest>) -> Result<Self, PolicyError> {
        let sources = Sources::read(dir)?;
        let tools: Vec<&Manifest> = tools.into_iter().collect();
        let stamp = of(&sources, &tools);
        Ok(Self { sources, tools, shipped: dir.is_none(), stamp })
    }
}

/// What the checks of a policy depend on.
fn of(sources: &Sources, tools: &[&Manifest]) -> Digest {
    let mut hasher = Hasher::new("glovebox/policy-stamp/v1");
    hasher
        .part("version", env!("CARGO_PKG_VERSION").as_bytes())
        .part("schema", schema::COMMON.as_bytes())
        .part("context", schema::CONTEXT.as_bytes())
        .part("rules", sources.revision().as_str().as_bytes());
    for file in &sources.tests {
        hasher.part(&file.name, file.text.as_bytes());
    }
    for tool in tools {
        // A tool that can't be written down is one that no stamp is good for.
        hasher.part("tool", &serde_json::to_vec(tool).unwrap_or_default());
    }
    hasher.finish()
}

pub(crate) fn holds(folder: &Path, stamp: &Digest) -> bool {
    folder.join(stamp.as_str()).exists()
}

/// So many stamps are kept: more than anybody goes back and forth between.
const MAX_STAMPS: usize = 32;

/// Leaves a stamp. Where that fails, the next start checks again.
pub(crate) fn put(folder: &Path, stamp: &Digest) {
    // This user's alone, whatever the umask is: a stamp spares the tests.
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let _ = made.and_then(|()| {
        let old: Vec<_> = fs_err::read_dir(folder)?.filter_map(Result::ok).map(|entry| entry.path()).collect();
        if old.len() >= MAX_STAMPS {
            old.iter().try_for_each(fs_err::remove_file)?;
        }
        fs_err::write(folder.join(stamp.as_str()), [])
    });
}
