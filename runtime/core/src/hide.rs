//! The `hide` clause: paths that don't exist for the guest.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Compiled hide globs.
///
/// A glob without a slash matches a name at any depth; one with a slash a
/// path suffix at any depth. What lies below a hidden folder is hidden too.
#[derive(Debug, Clone, Default)]
pub struct Hide(Option<GlobSet>);

impl Hide {
    /// Compiles the globs of a mount. One that begins with a slash is meant
    /// from the mount's own folder on, and nowhere else.
    ///
    /// # Errors
    /// The glob that is none, with the reason.
    pub fn new<S: AsRef<str>>(globs: &[S]) -> Result<Self, String> {
        Self::compile(globs, &["", "/**"])
    }

    /// The same for the places themselves, without what lies below them.
    ///
    /// # Errors
    /// The glob that is none, with the reason.
    pub fn places<S: AsRef<str>>(globs: &[S]) -> Result<Self, String> {
        Self::compile(globs, &[""])
    }

    fn compile<S: AsRef<str>>(globs: &[S], endings: &[&str]) -> Result<Self, String> {
        if globs.is_empty() {
            return Ok(Self(None));
        }
        let mut set = GlobSetBuilder::new();
        for glob in globs {
            // A trailing slash says "a folder": hiding a file of that name
            // as well is the safe side.
            let glob = glob.as_ref().trim_end_matches('/');
            let start = glob.strip_prefix('/').map_or_else(|| format!("**/{glob}"), str::to_owned);
            for ending in endings {
                let pattern = GlobBuilder::new(&format!("{start}{ending}"))
                    .literal_separator(true)
                    .build()
                    .map_err(|error| format!("`{glob}` is not a hide glob: {}", error.kind()))?;
                set.add(pattern);
            }
        }
        set.build().map(|set| Self(Some(set))).map_err(|error| format!("hide globs: {error}"))
    }

    /// Whether nothing is hidden.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether this path, relative to the mount, does not exist for the guest.
    pub fn hides(&self, path: impl AsRef<OsStr>) -> bool {
        self.0.as_ref().is_some_and(|set| set.is_match(Path::new(path.as_ref())))
    }
}

/// How many lists are kept compiled. Contracts share a few.
const KEPT: usize = 16;

/// What was made of lists of globs before: compiling one takes longer than a
/// call. It depends on the list and on nothing else.
#[derive(Debug)]
pub struct HideLists<T> {
    /// The one that was used last comes first.
    kept: Mutex<Vec<(Vec<String>, Arc<T>)>>,
}

impl<T> Default for HideLists<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> HideLists<T> {
    /// None yet.
    pub const fn new() -> Self {
        Self { kept: Mutex::new(Vec::new()) }
    }

    /// What is made of this list.
    ///
    /// # Errors
    /// Those of making it.
    pub fn get(&self, globs: &[String], make: impl FnOnce(&[String]) -> Result<T, String>) -> Result<Arc<T>, String> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = kept.iter().position(|(of, _)| of == globs) {
            kept[..=place].rotate_right(1);
            return Ok(Arc::clone(&kept[0].1));
        }
        let made = Arc::new(make(globs)?);
        kept.insert(0, (globs.to_vec(), Arc::clone(&made)));
        kept.truncate(KEPT);
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_were_used_last_are_kept() {
        let lists = HideLists::new();
        let list = |number: usize| vec![format!("file-{number}")];
        let get = |number: usize| lists.get(&list(number), |_| Ok(number)).unwrap();
        let first = get(0);
        for number in 1..KEPT {
            get(number);
        }
        assert!(Arc::ptr_eq(&first, &get(0)), "made once");
        get(KEPT);
        assert!(Arc::ptr_eq(&first, &get(0)), "another went");
        assert!(lists.get(&["[".to_owned()], |_| Err("no".to_owned())).is_err());
    }

    #[test]
    fn the_default_list_hides_credentials_at_any_depth() {
        let hide = Hide::new(env_contracts::DEFAULT_HIDE).unwrap();
        for path in [
            ".env",
            ".env.local",
            "a/.env",
            "k.pem",
            "a/b/k.key",
            ".git/config",
            "sub/.git/config",
            ".aws",
            ".aws/credentials",
            "x/.aws/a/b",
            ".npmrc",
        ] {
            assert!(hide.hides(path), "{path}");
        }
        for path in ["env", "a/env.txt", ".git", ".git/HEAD", "config", "git/config", "pem", "aws/x", "a.pem.txt", ""] {
            assert!(!hide.hides(path), "{path}");
        }
        assert!(Hide::new(&["a[".to_owned()]).is_err());
        let ours = Hide::new(&["/state"]).unwrap();
        assert!(ours.hides("state") && ours.hides("state/run/x") && !ours.hides("src/state/machine.rs"));
        let places = Hide::places(&[".git", "/a/b"]).unwrap();
        assert!(places.hides("x/.git") && places.hides("a/b") && !places.hides(".git/HEAD") && !places.hides("c/a/b"));
    }
}
