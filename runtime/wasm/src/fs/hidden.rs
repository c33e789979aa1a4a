//! Paths that don't exist for the guest.

use std::sync::Arc;

use glovebox_runtime::{Hide, HideLists};

/// The hidden paths of a mount.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    pub(super) hide: Hide,
    /// Folders that must keep their name: a glob with a slash, such as
    /// `.git/config`, hides a file by the folder it lies in. Renaming that
    /// folder would bring the file to light.
    pub(super) anchors: Hide,
}

impl Hidden {
    fn new(globs: &[String]) -> Result<Self, String> {
        let mut anchors = Vec::new();
        for glob in globs {
            // A slash at the start only says where the glob begins.
            let glob = glob.trim_end_matches('/');
            let ends = glob.match_indices('/').map(|(end, _)| end).filter(|end| *end > 0);
            anchors.extend(ends.map(|end| glob[..end].to_owned()));
        }
        Ok(Self { hide: Hide::new(globs)?, anchors: Hide::places(&anchors)? })
    }
}

/// Lists that were compiled before.
#[derive(Debug, Default)]
pub(crate) struct HiddenLists(HideLists<Hidden>);

impl HiddenLists {
    /// Compiles a list before it is wanted.
    pub(crate) fn know(&self, globs: &[&str]) {
        let globs: Vec<String> = globs.iter().map(|&glob| glob.to_owned()).collect();
        if let Ok(hidden) = self.get(&globs) {
            // Matching sets up more, the first time.
            let _ = hidden.hide.hides("a/b.txt");
        }
    }

    pub(super) fn get(&self, globs: &[String]) -> Result<Arc<Hidden>, String> {
        self.0.get(globs, Hidden::new)
    }
}
