//! What is kept is never older than the files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use env_contracts::Code;
use glovebox_runtime::Instant;

use super::cache::{Cache, Stamp};
use super::*;

const MANIFEST: &str = r#"
schema = "glovebox/tool/v1"
name = "my.tool"
version = "1.0.0"
title = "t"
description = "d"
entry = { kind = "tool" }
input = { type = "object" }
[contract]
schema = "glovebox/contract/v1"
limits = { wall = "10s" }
"#;

/// A registry with `my.tool@1.0.0`, and the path of its manifest.
fn registry(cache: Cache) -> (tempfile::TempDir, Registry, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let builtin = Builtin { manifest: MANIFEST.replace("my.tool", "built.in").leak(), component: b"c" };
    let registry = Registry { cache, ..Registry::new(dir.path().join("tools"), vec![builtin]) };
    registry.add(MANIFEST, b"one", Instant { unix_millis: 1 }).unwrap();
    let manifest = dir.path().join("tools/my.tool/1.0.0/tool.toml");
    (dir, registry, manifest)
}

/// Writes until the kernel's clock has moved on and the stamp is another.
fn write(path: &Path, text: &str) {
    let before = Stamp::of(path);
    while Stamp::of(path) == before {
        fs_err::write(path, text).unwrap();
    }
}

fn get(registry: &Registry, wanted: &str) -> Result<Arc<Tool>, Problem> {
    registry.get(&wanted.parse().unwrap())
}

#[test]
fn what_was_read_is_read_once() {
    let (_dir, registry, _) = registry(Cache::hasty());
    for wanted in ["my.tool", "my.tool@1.0.0", "built.in", "built.in@1.0.0"] {
        let (one, two) = (get(&registry, wanted).unwrap(), get(&registry.clone(), wanted).unwrap());
        assert!(Arc::ptr_eq(&one, &two), "{wanted}");
    }
}

#[test]
fn what_another_process_removed_is_gone_at_once_and_what_it_added_there() {
    let (dir, registry, _) = registry(Cache::hasty());
    let other = Registry::new(dir.path().join("tools"), Vec::new());
    let first = get(&registry, "my.tool").unwrap();
    let newer = MANIFEST.replace("1.0.0", "1.1.0");
    let versions = dir.path().join("tools/my.tool");
    let before = Stamp::of(&versions);
    other.add(&newer, b"two", Instant { unix_millis: 2 }).unwrap();
    // Within one moment of the kernel's clock, the folder would look the same.
    while Stamp::of(&versions) == before {
        fs_err::write(versions.join("stray"), "").unwrap();
        fs_err::remove_file(versions.join("stray")).unwrap();
    }
    assert_eq!(get(&registry, "my.tool").unwrap().manifest.version.as_str(), "1.1.0");

    other.remove(&"my.tool@1.0.0".parse().unwrap()).unwrap();
    assert_eq!(get(&registry, "my.tool@1.0.0").map(drop).unwrap_err().code, Code::ToolUnknown);
    other.add(MANIFEST, b"one", Instant { unix_millis: 3 }).unwrap();
    let again = get(&registry, "my.tool@1.0.0").unwrap();
    assert!(!Arc::ptr_eq(&first, &again) && first.registered.digest == again.registered.digest);
}

#[test]
fn what_was_changed_after_it_was_read_is_refused() {
    let (dir, registry, manifest) = registry(Cache::hasty());
    get(&registry, "my.tool").unwrap();
    // As long as before, and with its old time.
    let old = fs_err::metadata(&manifest).unwrap().modified().unwrap();
    write(&manifest, &MANIFEST.replace("10s", "99s"));
    std::fs::File::options().write(true).open(&manifest).unwrap().set_modified(old).unwrap();
    assert_eq!(get(&registry, "my.tool").map(drop).unwrap_err().code, Code::StateUnavailable);
    write(&manifest, MANIFEST);
    get(&registry, "my.tool").unwrap();

    let record = dir.path().join("tools/@records/my.tool@1.0.0.json");
    write(&record, &fs_err::read_to_string(&record).unwrap().replace("registered_ms", "registered"));
    assert_eq!(get(&registry, "my.tool").map(drop).unwrap_err().code, Code::StateUnavailable);
}

/// Two changes in one moment of the kernel's clock can't be told apart, so
/// nothing is kept that was changed just now.
#[test]
fn what_is_not_at_rest_is_not_kept() {
    let (_dir, registry, manifest) = registry(Cache::default());
    let later = std::time::UNIX_EPOCH + std::time::Duration::from_secs(5_000_000_000);
    std::fs::File::options().write(true).open(manifest).unwrap().set_modified(later).unwrap();
    let (one, two) = (get(&registry, "my.tool").unwrap(), get(&registry, "my.tool").unwrap());
    assert!(!Arc::ptr_eq(&one, &two));
}
