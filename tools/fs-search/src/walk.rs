//! Visits the files of a tree, in one order on every host.

use std::fs;
use std::ops::ControlFlow;

use globset::GlobMatcher;

use crate::Tally;
use crate::folder::{Kind, Listing, Mounts};
use crate::ignored::{self, Rules};

/// A tree to visit.
pub(crate) struct Walk<'a> {
    /// Its folder, absolute.
    pub(crate) root: &'a str,
    /// Whether names that begin with a dot are visited.
    pub(crate) hidden: bool,
    /// Which files are visited, by their path below the root.
    pub(crate) glob: Option<&'a GlobMatcher>,
}

/// A folder on the way.
struct Folder {
    path: String,
    rest: std::vec::IntoIter<(String, Kind)>,
    rules: Rules,
}

impl Walk<'_> {
    /// Visits files in the order of their paths, depth first, until `visit`
    /// breaks off. Symbolic links are not followed.
    pub(crate) fn run(&self, tally: &mut Tally, visit: &mut dyn FnMut(&str, &mut Tally) -> ControlFlow<()>) {
        let mounts = Mounts::new();
        let above = rules_above(self.root, tally);
        // The root alone may be a link: it was named by the caller.
        let mut folders = Vec::from_iter(enter(&mounts, self.root.trim_end_matches('/'), true, tally));
        while let Some(folder) = folders.last_mut() {
            let Some((name, kind)) = folder.rest.next() else {
                folders.pop();
                continue;
            };
            let path = format!("{}/{name}", folder.path);
            let chain = above.iter().chain(folders.iter().map(|folder| &folder.rules));
            let hidden = !self.hidden && name.starts_with('.');
            // The innards of version control are nobody's text.
            if name == ".git" || ignored::excluded(chain, &path, kind == Kind::Folder, hidden) {
                continue;
            }
            if kind == Kind::Folder {
                folders.extend(enter(&mounts, &path, false, tally));
                continue;
            }
            if self.glob.is_some_and(|glob| !glob.is_match(self.below(&path))) {
                continue;
            }
            match kind {
                Kind::Symlink => tally.symlinks += 1,
                Kind::Special => tally.special += 1,
                Kind::File | Kind::Folder => {
                    if visit(&path, tally).is_break() {
                        return;
                    }
                }
            }
        }
    }

    fn below<'p>(&self, path: &'p str) -> &'p str {
        path.strip_prefix(self.root).map_or(path, |rest| rest.trim_start_matches('/'))
    }
}

/// Lists a folder and reads its ignore files.
fn enter(mounts: &Mounts, path: &str, follow: bool, tally: &mut Tally) -> Option<Folder> {
    let Listing { entries, errors } = match mounts.list(path, follow) {
        Ok(listed) => listed,
        Err(error) => {
            tally.unreadable(path, error.name());
            return None;
        }
    };
    for error in errors {
        tally.unreadable(path, &format!("an entry of this folder can't be named: {}", error.name()));
    }
    let mut rules = Rules::default();
    let named = entries.iter().filter(|(name, kind)| *kind == Kind::File && ignored::NAMES.contains(&name.as_str()));
    for (name, _) in named {
        read_rules(&mut rules, path, name, tally);
    }
    Some(Folder { path: path.to_owned(), rest: entries.into_iter(), rules })
}

/// The rules of the folders between the mount (the first part of the path) and `root`.
fn rules_above(root: &str, tally: &mut Tally) -> Vec<Rules> {
    let ends = root.trim_end_matches('/').match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
    ends.map(|end| {
        let folder = &root[..end];
        let mut rules = Rules::default();
        for name in ignored::NAMES {
            if fs::symlink_metadata(format!("{folder}/{name}")).is_ok_and(|kind| kind.is_file()) {
                read_rules(&mut rules, folder, name, tally);
            }
        }
        rules
    })
    .collect()
}

fn read_rules(rules: &mut Rules, folder: &str, name: &str, tally: &mut Tally) {
    if let Err(error) = rules.add(folder, name) {
        tally.unreadable(&format!("{folder}/{name}"), &error.to_string());
    }
}
