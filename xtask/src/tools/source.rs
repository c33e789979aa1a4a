//! Hashes of sources.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use sha2::{Digest as _, Sha256};

/// The sha256 of `bytes` in lower-case hex.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// One hash over the names and contents of files, and of all files in folders;
/// the order in which they are given does not matter.
pub(super) fn hash<'a>(root: &Path, paths: impl Iterator<Item = &'a str>) -> Result<String> {
    let mut files = Vec::new();
    for path in paths {
        collect(root, Path::new(path), &mut files)?;
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        // Lengths first, so that no two trees give the same stream of bytes.
        for part in [file.as_os_str().as_encoded_bytes(), &fs_err::read(root.join(&file))?] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    Ok(hex(&hash.finalize()))
}

fn collect(root: &Path, path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !root.join(path).is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs_err::read_dir(root.join(path))? {
        let name = entry?.file_name();
        // Left behind by editors and by cargo called by hand.
        if !name.to_string_lossy().starts_with('.') && name != "target" {
            collect(root, &path.join(name), files)?;
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_tells_trees_apart() {
        let hashed = |files: &[(&str, &str)], paths: &[&str]| {
            let root = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = root.path().join(path);
                fs_err::create_dir_all(path.parent().unwrap()).unwrap();
                fs_err::write(path, text).unwrap();
            }
            hash(root.path(), paths.iter().copied()).unwrap()
        };
        let tree = [("a/x", "1"), ("a/y", "23"), ("b", "4")];
        let expected = hashed(&tree, &["a", "b"]);
        assert_eq!(hashed(&tree, &["b", "a"]), expected, "the order of the paths counts");
        let left_behind = [&tree[..], &[("a/.x.swp", "5"), ("a/target/x", "6")]].concat();
        assert_eq!(hashed(&left_behind, &["a", "b"]), expected, "what is left behind counts");
        for other in [
            [("a/x", "12"), ("a/y", "3"), ("b", "4")],
            [("a/x1", ""), ("a/y", "23"), ("b", "4")],
            [("a/x", "1"), ("a/z", "23"), ("b", "4")],
        ] {
            assert_ne!(hashed(&other, &["a", "b"]), expected, "{other:?}");
        }
    }
}
