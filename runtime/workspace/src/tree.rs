//! What lies in a folder: every entry, and the digest of all of it.

use std::collections::BTreeMap;
use std::fmt;

use env_contracts::Digest;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::names;

/// The first line of a tree that is written down.
const HEAD: &str = "glovebox/tree/v1";

/// What lies in a folder, by path: bytes, relative, with `/` between names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    pub(crate) entries: BTreeMap<Vec<u8>, Entry>,
}

/// A file, folder or link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its permissions: nine bits.
    pub mode: u32,
    /// What it is.
    #[serde(flatten)]
    pub kind: Kind,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Kind {
    /// A folder.
    Folder,
    /// A file.
    File {
        /// Its length in bytes.
        size: u64,
        /// The sha256 of its content.
        sha256: Digest,
    },
    /// A symbolic link.
    Link {
        /// Where it leads, as text: see the paths of a tree.
        target: String,
    },
}

/// A line of a tree that is written down.
#[derive(Serialize, Deserialize)]
struct Line {
    path: String,
    #[serde(flatten)]
    entry: Entry,
}

/// How two trees differ in one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What happened to it.
    pub was: Was,
    /// Its path as text: what is no UTF-8, controls and `%` as `%XX`.
    pub path: String,
}

/// What happened to a path between two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Was {
    /// It is new.
    Added,
    /// Its content, kind or permissions are others.
    Changed,
    /// It is gone.
    Deleted,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let was = match self.was {
            Was::Added => "added",
            Was::Changed => "changed",
            Was::Deleted => "deleted",
        };
        write!(f, "{was}  {}", self.path)
    }
}

impl Tree {
    /// Its entries, with their paths as text, folders before what lies in them.
    pub fn entries(&self) -> impl Iterator<Item = (String, &Entry)> {
        self.entries.iter().map(|(path, entry)| (names::text(path), entry))
    }

    /// The digests of the contents that it needs.
    pub fn contents(&self) -> impl Iterator<Item = &Digest> {
        self.entries.values().filter_map(|entry| match &entry.kind {
            Kind::File { sha256, .. } => Some(sha256),
            Kind::Folder | Kind::Link { .. } => None,
        })
    }

    /// How `later` differs from it, by path.
    pub fn changes(&self, later: &Self) -> Vec<Change> {
        let of = |was, path: &[u8]| Change { was, path: names::text(path) };
        let gone = self.entries.keys().filter(|path| !later.entries.contains_key(*path));
        let mut changes: Vec<(&[u8], Was)> = gone.map(|path| (&path[..], Was::Deleted)).collect();
        for (path, entry) in &later.entries {
            match self.entries.get(path) {
                None => changes.push((path, Was::Added)),
                Some(before) if before != entry => changes.push((path, Was::Changed)),
                Some(_) => {}
            }
        }
        changes.sort_unstable();
        changes.into_iter().map(|(path, was)| of(was, path)).collect()
    }

    /// As it is written down: a line for each entry, in the order of the paths.
    /// Equal trees have equal bytes.
    pub(crate) fn written(&self) -> Vec<u8> {
        let mut out = format!("{HEAD}\n").into_bytes();
        for (path, entry) in &self.entries {
            let line = Line { path: names::text(path), entry: entry.clone() };
            // Plain data with text keys: it always can be written.
            out.extend(serde_json::to_vec(&line).unwrap_or_default());
            out.push(b'\n');
        }
        out
    }

    /// Reads what was written down; its digest was compared before.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Error> {
        let damaged = |why: &str| Error::Damaged(why.to_owned());
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("a tree that is no text"))?;
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Err(damaged("a tree of another version"));
        }
        let mut tree = Self::default();
        for line in lines {
            let line: Line = serde_json::from_str(line).map_err(|_| damaged("a tree with a line that is none"))?;
            let path = names::bytes(&line.path).filter(|path| names::is_below(path));
            let path = path.ok_or_else(|| damaged("a tree with a path that leads elsewhere"))?;
            let above = path.iter().rposition(|byte| *byte == b'/').map(|at| &path[..at]);
            let lies =
                above.is_none_or(|above| tree.entries.get(above).is_some_and(|entry| entry.kind == Kind::Folder));
            if !lies || line.entry.mode > 0o777 || tree.entries.insert(path, line.entry).is_some() {
                return Err(damaged("a tree with an entry that can't be"));
            }
        }
        Ok(tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Entry {
        Entry { mode: 0o644, kind: Kind::File { size: text.len() as u64, sha256: Digest::of(text.as_bytes()) } }
    }

    fn tree(entries: &[(&str, Entry)]) -> Tree {
        Tree { entries: entries.iter().map(|(path, entry)| (path.as_bytes().to_vec(), entry.clone())).collect() }
    }

    #[test]
    fn a_tree_is_read_as_it_was_written() {
        let folder = Entry { mode: 0o755, kind: Kind::Folder };
        let link = Entry { mode: 0o777, kind: Kind::Link { target: "b/%25".into() } };
        let tree = tree(&[("a", folder), ("a-b", file("1")), ("a/b\n%", file("2")), ("a/l", link)]);
        assert_eq!(Tree::read(&tree.written()).unwrap(), tree);
    }

    #[test]
    fn a_tree_that_leads_elsewhere_is_damaged() {
        let line = |path: &str| format!("{HEAD}\n{{\"path\":\"{path}\",\"mode\":420,\"kind\":\"folder\"}}\n");
        assert!(Tree::read(line("a").as_bytes()).is_ok());
        for path in ["../a", "/etc", "a/b", "", ".", "a/../../b", "%41"] {
            assert!(matches!(Tree::read(line(path).as_bytes()), Err(Error::Damaged(_))), "{path}");
        }
        let twice = format!("{0}{1}", line("a"), line("a").lines().nth(1).unwrap());
        let setuid = line("a").replace("420", "2541");
        for text in [twice.as_str(), &setuid, "glovebox/tree/v2\n", "", "glovebox/tree/v1\n{}\n"] {
            assert!(matches!(Tree::read(text.as_bytes()), Err(Error::Damaged(_))), "{text}");
        }
    }

    #[test]
    fn what_differs_is_named_in_order() {
        let before = tree(&[("a", file("1")), ("b", file("1")), ("c", file("1"))]);
        let mut later = before.clone();
        later.entries.remove(&b"a"[..]);
        later.entries.insert(b"b".to_vec(), Entry { mode: 0o755, ..file("1") });
        later.entries.insert(b"d\x1b".to_vec(), file("1"));
        let changes: Vec<String> = before.changes(&later).iter().map(ToString::to_string).collect();
        assert_eq!(changes, ["deleted  a", "changed  b", "added  d%1B"]);
        assert!(before.changes(&before).is_empty());
    }
}
