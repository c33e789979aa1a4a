//! Registered means: never changes.

use env_contracts::Code;
use glovebox_plane::{Added, Builtin, Registry};
use glovebox_runtime::Instant;

use crate::fake::{HEAD, TOOL};

const NOW: Instant = Instant { unix_millis: 1 };

fn manifest(version: &str) -> String {
    format!("{HEAD}{TOOL}").replace("version = \"1.0.0\"", &format!("version = \"{version}\""))
}

fn registry(dir: &tempfile::TempDir) -> Registry {
    let builtin: &'static str = manifest("1.0.0").replace("fake.tool", "built.in").leak();
    Registry::new(dir.path().join("tools"), vec![Builtin { manifest: builtin, component: b"c" }])
}

#[test]
fn a_name_and_version_never_come_to_mean_other_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&dir);
    assert_eq!(registry.add(&manifest("1.0.0"), b"one", NOW).unwrap().1, Added::New);
    assert_eq!(registry.add(&manifest("1.0.0"), b"one", NOW).unwrap().1, Added::Known);
    assert_eq!(registry.add(&manifest("1.0.0"), b"two", NOW).unwrap_err().code, Code::ToolConflict);
    let other = manifest("1.0.0").replace("title = \"t\"", "title = \"other\"");
    assert_eq!(registry.add(&other, b"one", NOW).unwrap_err().code, Code::ToolConflict);
    // Nor after a removal.
    registry.remove(&"fake.tool@1.0.0".parse().unwrap()).unwrap();
    assert_eq!(registry.get(&"fake.tool".parse().unwrap()).unwrap_err().code, Code::ToolUnknown);
    assert_eq!(registry.add(&manifest("1.0.0"), b"two", NOW).unwrap_err().code, Code::ToolConflict);
    assert_eq!(registry.add(&manifest("1.0.0"), b"one", NOW).unwrap().1, Added::New);
    assert_eq!(registry.add(&manifest("1.0.1"), b"two", NOW).unwrap().1, Added::New);
}

#[test]
fn what_was_removed_is_not_suggested_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&dir);
    for version in ["1.0.0", "1.1.0"] {
        registry.add(&manifest(version), version.as_bytes(), NOW).unwrap();
    }
    let get = |wanted: &str| registry.get(&wanted.parse().unwrap()).map(drop).unwrap_err();
    assert!(get("fake.tol").help.contains("did you mean `fake.tool`"));
    registry.remove(&"fake.tool@1.0.0".parse().unwrap()).unwrap();
    let problem = get("fake.tool@1.0.0");
    assert!(problem.message.ends_with("it was removed"), "{problem}");
    assert!(
        problem.help.contains("of `fake.tool`: 1.1.0;") && problem.help.ends_with("alone: 1.0.0"),
        "{}",
        problem.help
    );
    assert!(!get("fake.tool@7.0.0").message.contains("removed"));
    registry.remove(&"fake.tool@1.1.0".parse().unwrap()).unwrap();
    for wanted in ["fake.tool", "fake.tool@1.1.0"] {
        let problem = get(wanted);
        assert!(problem.message.ends_with("it was removed") && problem.help.ends_with("1.0.0, 1.1.0"), "{problem:?}");
    }
    assert!(!get("fake.tol").help.contains("did you mean"), "what was removed can't be meant");
}

#[test]
fn built_in_names_are_reserved() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&dir);
    let text = manifest("9.0.0").replace("fake.tool", "built.in");
    assert_eq!(registry.add(&text, b"one", NOW).unwrap_err().code, Code::ToolReserved);
    let problem = registry.remove(&"built.in@1.0.0".parse().unwrap()).unwrap_err();
    assert!(problem.code == Code::ToolReserved && problem.help.contains("can't be removed"), "{problem:?}");
}

#[test]
fn the_newest_version_is_taken_unless_another_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&dir);
    for version in ["1.9.0", "1.10.0", "2.0.0-rc.1"] {
        registry.add(&manifest(version), version.as_bytes(), NOW).unwrap();
    }
    let version = |wanted: &str| registry.get(&wanted.parse().unwrap()).map(|tool| tool.manifest.version.to_string());
    assert_eq!(version("fake.tool").unwrap(), "1.10.0");
    assert_eq!(version("fake.tool@2.0.0-rc.1").unwrap(), "2.0.0-rc.1");
    let problem = version("fake.tool@3.0.0").unwrap_err();
    assert!(problem.help.contains("1.9.0"), "{}", problem.help);
    let listed: Vec<String> = registry.list().unwrap().tools.iter().map(|tool| tool.capability.to_string()).collect();
    assert_eq!(listed, ["built.in@1.0.0", "fake.tool@1.9.0", "fake.tool@1.10.0", "fake.tool@2.0.0-rc.1"]);
}

#[test]
fn what_was_changed_behind_the_registrys_back_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&dir);
    registry.add(&manifest("1.0.0"), b"one", NOW).unwrap();
    let file = dir.path().join("tools/fake.tool/1.0.0/tool.toml");
    let wider = fs_err::read_to_string(&file).unwrap().replace("access = \"read\"", "access = \"write\"");
    fs_err::write(&file, wider).unwrap();
    assert_eq!(registry.get(&"fake.tool".parse().unwrap()).unwrap_err().code, Code::StateUnavailable);
}

#[test]
fn bad_manifests_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&dir);
    for text in [String::new(), manifest("1.0"), manifest("1.0.0").replace("type = \"object\"", "type = \"objct\"")] {
        assert!(registry.add(&text, b"one", NOW).is_err(), "{text}");
    }
    assert!(!dir.path().join("tools").exists());
}

#[test]
fn no_version_gets_in_the_way_of_another() {
    for order in [["1.0.0-a", "1.0.0-a.json"], ["1.0.0-a.json", "1.0.0-a"]] {
        let dir = tempfile::tempdir().unwrap();
        let registry = registry(&dir);
        for version in order {
            registry.add(&manifest(version), version.as_bytes(), NOW).unwrap();
        }
        for version in order {
            let tool = registry.get(&format!("fake.tool@{version}").parse().unwrap()).unwrap();
            assert_eq!(tool.registered.digest, env_contracts::Digest::of(version.as_bytes()));
        }
    }
}

#[test]
fn what_is_damaged_hides_nothing_else_and_can_be_put_right() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&dir);
    for version in ["1.0.0", "2.0.0"] {
        registry.add(&manifest(version), b"one", NOW).unwrap();
    }
    fs_err::write(dir.path().join("tools/@records/fake.tool@1.0.0.json"), "{").unwrap();
    let listing = registry.list().unwrap();
    assert_eq!((listing.tools.len(), listing.unreadable.len()), (2, 1), "the built-in one and 2.0.0");
    assert!(listing.unreadable[0].help.contains("tool remove fake.tool@1.0.0"), "{:?}", listing.unreadable);
    registry.remove(&"fake.tool@1.0.0".parse().unwrap()).unwrap();
    registry.add(&manifest("1.0.0"), b"one", NOW).unwrap();
    // A stray file is nothing; what can't be read is not waited for.
    fs_err::write(dir.path().join("tools/stray"), "").unwrap();
    let manifest = dir.path().join("tools/fake.tool/2.0.0/tool.toml");
    fs_err::remove_file(&manifest).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &manifest, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    let listing = registry.list().unwrap();
    assert_eq!((listing.tools.len(), listing.unreadable.len()), (2, 1));
}
