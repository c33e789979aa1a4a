//! Files that can't be believed are refused, each with its reason.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use env_contracts::{Code, Diagnose as _};
use glovebox_identity::{Approvers, CheckpointKey};

use crate::{NOW_MS, PASSPHRASE, name, problem};

const APPROVERS: &str = include_str!("../../golden/approvers.v1.toml");
const KEY: &str = include_str!("../../golden/checkpoint-key.v1.toml");

fn put(path: &Path, text: &str) {
    fs_err::write(path, text).unwrap();
    chmod(path, 0o600);
}

fn chmod(path: &Path, mode: u32) {
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_list_that_is_not_of_its_form_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("approvers.toml");
    let one = APPROVERS.find("[[approver]]").unwrap();
    let twice = format!("{APPROVERS}\n{}", &APPROVERS[one..]);
    let cases = [
        ("", "missing field `schema`"),
        (&APPROVERS.replace("approvers/v1", "approvers/v2"), "glovebox/approvers/v2"),
        (&APPROVERS[..APPROVERS.len() - 20], "TOML parse error"),
        (&APPROVERS.replace("created", "made"), "unknown field `made`"),
        (&twice, "two approvers are called `mira` and `mira`"),
        (&twice.replacen("\"mira\"", "\"Mira\"", 1), "two approvers are called `Mira` and `mira`"),
        (&APPROVERS.replace("64MiB", "8MiB"), "`derivation.memory` lies between 64MiB and 1GiB"),
        (&APPROVERS.replace("64MiB", "64GiB"), "`derivation.memory` lies between"),
        (&APPROVERS.replace("passes = 8", "passes = 1"), "`derivation.passes` lies between"),
        (&APPROVERS.replace("passes = 8", "passes = 4000000000"), "`derivation.passes` lies between"),
        (&APPROVERS.replace("lanes = 1", "lanes = 0"), "`derivation.lanes` lies between"),
        (&APPROVERS.replace("argon2id", "argon2i"), "argon2i"),
        (&APPROVERS.replace("salt = \"", "salt = \"00"), "a salt is 32"),
        (&APPROVERS.replace("ed25519:", ""), "a public key is `ed25519:`"),
        // The neutral element: every message is signed by it.
        (&with_public(&format!("01{}", "0".repeat(62))), "proves nothing"),
        (&format!("#{}", "x".repeat(1 << 20)), "at most 1048576 are read"),
    ];
    for (text, why) in cases {
        put(&path, text);
        let (code, message) = problem(Approvers::load(&path));
        assert_eq!(code, Code::ApproversInvalid, "{message}");
        assert!(message.contains(why), "`{why}` is not in: {message}");
    }
}

fn with_public(digits: &str) -> String {
    let at = APPROVERS.find("ed25519:").unwrap() + "ed25519:".len();
    format!("{}{digits}{}", &APPROVERS[..at], &APPROVERS[at + 64..])
}

/// A list that became bad after it was loaded is not overwritten.
#[test]
fn a_bad_list_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("approvers.toml");
    put(&path, APPROVERS);
    let mut approvers = Approvers::load(&path).unwrap();
    put(&path, "schema = \"glovebox/approvers/v2\"\n");
    assert_eq!(problem(approvers.add(&name("noor"), PASSPHRASE, NOW_MS)).0, Code::ApproversInvalid);
    assert_eq!(problem(approvers.remove(&name("mira"))).0, Code::ApproversInvalid);
    assert_eq!(fs_err::read_to_string(&path).unwrap(), "schema = \"glovebox/approvers/v2\"\n");
}

#[test]
fn a_file_that_others_could_have_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (list, key) = (folder.path().join("approvers.toml"), folder.path().join("key.toml"));
    put(&list, APPROVERS);
    put(&key, KEY);
    let refused = |why: &str| {
        let list = problem(Approvers::load(&list));
        let key = problem(CheckpointKey::load(&key));
        assert_eq!((list.0, key.0), (Code::ApproversInvalid, Code::KeyInvalid));
        assert!(list.1.contains(why) && key.1.contains(why), "{list:?} {key:?}");
    };
    for mode in [0o602, 0o604, 0o620, 0o622, 0o666, 0o601] {
        chmod(&list, mode);
        chmod(&key, mode);
        refused(&format!("can be read or written by others (its mode is {mode:o})"));
    }
    let error = Approvers::load(&list).unwrap_err();
    assert!(error.help().contains(&format!("chmod 600 {}", list.display())), "{}", error.help());
    chmod(&list, 0o600);
    chmod(&key, 0o600);

    for mode in [0o770, 0o707, 0o777] {
        chmod(folder.path(), mode);
        refused(&format!("can be written by others (its mode is {mode:o})"));
        let mut new =
            problem(Approvers::load(&folder.path().join("new.toml")).unwrap().add(&name("mira"), PASSPHRASE, NOW_MS));
        assert!(new.0 == Code::ApproversInvalid && new.1.contains("can be written by others"), "{new:?}");
        new = problem(CheckpointKey::create(&folder.path().join("new.toml")));
        assert!(new.0 == Code::KeyInvalid && new.1.contains("can be written by others"), "{new:?}");
    }
    // Where only owners may take things away, nobody can put another there.
    chmod(folder.path(), 0o1777);
    Approvers::load(&list).unwrap();
    chmod(folder.path(), 0o700);

    // Only root can give a file away, so only as root can this be tried.
    if rustix::process::geteuid().is_root() {
        for path in [&list, &key] {
            std::os::unix::fs::chown(path, Some(4711), None).unwrap();
        }
        refused("belongs to user 4711");
        for path in [&list, &key] {
            std::os::unix::fs::chown(path, Some(0), None).unwrap();
        }
        std::os::unix::fs::chown(folder.path(), Some(4711), None).unwrap();
        refused("belongs to user 4711");
        std::os::unix::fs::chown(folder.path(), Some(0), None).unwrap();
        // A service in the file's group may read what root wrote.
        chmod(&list, 0o640);
        let mut approvers = Approvers::load(&list).unwrap();
        approvers.remove(&name("mira")).unwrap();
        assert_eq!(fs_err::metadata(&list).unwrap().permissions().mode() & 0o777, 0o640);
    }
}

#[test]
fn what_is_no_plain_file_is_neither_followed_nor_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (real, path) = (folder.path().join("real"), folder.path().join("approvers.toml"));
    put(&real, APPROVERS);
    symlink(&real, &path).unwrap();
    let (code, message) = problem(Approvers::load(&path));
    assert!(code == Code::ApproversInvalid && message.contains("is a link"), "{message}");
    fs_err::remove_file(&path).unwrap();

    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert!(problem(Approvers::load(&path)).1.contains("is not a plain file"));
    fs_err::remove_file(&path).unwrap();
    fs_err::create_dir(&path).unwrap();
    assert!(problem(Approvers::load(&path)).1.contains("is not a plain file"));
}

#[test]
fn a_key_that_is_not_of_its_form_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.toml");
    let secret = KEY.split("secret = \"").nth(1).unwrap().trim_end().trim_end_matches('"');
    let cases = [
        (String::new(), "missing field `schema`"),
        (KEY.replace("checkpoint-key/v1", "checkpoint-key/v2"), "glovebox/checkpoint-key/v2"),
        (KEY.replace(secret, &secret[..60]), "a secret is 64"),
        (KEY.replace(secret, &format!("{secret}00")), "a secret is 64"),
        (KEY.replace(secret, &"11".repeat(32)), "`public` is not that of `secret`"),
        (KEY.trim_end().trim_end_matches('"').to_owned(), "line "),
    ];
    for (text, why) in cases {
        put(&path, &text);
        let (code, message) = problem(CheckpointKey::load(&path));
        assert_eq!(code, Code::KeyInvalid, "{message}");
        assert!(message.contains(why), "`{why}` is not in: {message}");
        assert!(!message.contains(&secret[..8]), "the secret is in: {message}");
    }
    fs_err::remove_file(&path).unwrap();
    assert!(problem(CheckpointKey::load(&path)).1.contains("there is no such file"));
}
