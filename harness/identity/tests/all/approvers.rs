//! Adding, unlocking and removing approvers.

use std::os::unix::fs::PermissionsExt as _;

use env_contracts::Code;
use glovebox_identity::Approvers;

use crate::{NOW_MS, PASSPHRASE, name, one_approver, problem};

#[test]
fn an_approver_is_added_unlocked_and_removed() {
    let (_folder, path, mut approvers) = one_approver();
    assert_eq!(problem(approvers.add(&name("Mira"), PASSPHRASE, NOW_MS)).0, Code::ApproverConflict);

    // Another process sees the same.
    let mut other = Approvers::load(&path).unwrap();
    assert_eq!(other.list(), approvers.list());
    assert_eq!(other.list()[0].created.to_string(), "2027-01-15T08:00:00Z");
    assert_eq!(other.unlock(&name("mira"), PASSPHRASE).unwrap().name(), &name("mira"));

    // Two lists that were loaded before both changed: neither change is lost.
    other.add(&name("noor"), PASSPHRASE, NOW_MS).unwrap();
    approvers.add(&name("odo"), PASSPHRASE, NOW_MS).unwrap();
    let names = |list: &Approvers| list.list().iter().map(|record| record.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&approvers), ["mira", "noor", "odo"]);
    assert_eq!(problem(other.add(&name("odo"), PASSPHRASE, NOW_MS)).0, Code::ApproverConflict);

    // One passphrase, three salts, three keys.
    let list = approvers.list();
    assert!(list[0].public != list[1].public && list[1].public != list[2].public && list[0].public != list[2].public);

    approvers.remove(&name("noor")).unwrap();
    assert_eq!(problem(approvers.remove(&name("noor"))).0, Code::ApproverUnknown);
    assert_eq!(names(&Approvers::load(&path).unwrap()), ["mira", "odo"]);
}

/// Somebody who guesses learns nothing but that the guess was wrong.
#[test]
fn a_wrong_passphrase_and_a_wrong_name_are_answered_alike() {
    let (_folder, _, approvers) = one_approver();
    let wrong = problem(approvers.unlock(&name("mira"), "four words that rhymed"));
    assert_eq!(wrong, (Code::CredentialWrong, "the name or the passphrase is wrong".into()));
    assert_eq!(problem(approvers.unlock(&name("nobody"), PASSPHRASE)), wrong);
    // Byte for byte: nothing is trimmed, no case is folded.
    for near in ["", "Four words that rhyme", "four words that rhyme ", "four words that rhyme\n", &"x".repeat(2000)] {
        assert_eq!(problem(approvers.unlock(&name("mira"), near)), wrong, "{near:?}");
    }
}

#[test]
fn what_is_easy_to_guess_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("approvers.toml");
    let mut approvers = Approvers::load(&path).unwrap();
    for (passphrase, why) in [
        ("", "is empty"),
        ("elevenchars", "has 11 characters, at least 12"),
        ("öööööäääääü", "has 11 characters, at least 12"),
        ("aaaaaaaaaaaaaaaaaaaa", "has 1 different characters, at least 5"),
        (&"four words ".repeat(100), "has 1100 bytes, at most 1024"),
    ] {
        let (code, message) = problem(approvers.add(&name("mira"), passphrase, NOW_MS));
        assert_eq!(code, Code::PassphraseWeak);
        assert!(message.contains(why), "{message}");
    }
    assert!(!path.exists() && approvers.list().is_empty());
}

/// The file is for its owner alone, and holds nothing that was secret.
#[test]
fn nothing_readable_is_stored() {
    let (folder, path, approvers) = one_approver();
    let mode = fs_err::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let files: Vec<_> = fs_err::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 2, "a list and its lock, and nothing left over: {files:?}");
    let text = fs_err::read_to_string(&path).unwrap();
    for word in PASSPHRASE.split(' ') {
        assert!(!text.split_once("[[").unwrap().1.contains(word), "{text}");
    }
    let approver = approvers.unlock(&name("mira"), PASSPHRASE).unwrap();
    assert_eq!(format!("{approver:?}"), r#"Approver { name: Name("mira"), .. }"#);
}
