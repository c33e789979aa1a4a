//! What is left of the file system.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use glovebox_jail::Layers;

use crate::inmate::{Outcome, run};

const CELL: &str = "privileges,report,template,landlock,cell";

/// Two folders; the first holds a file and a folder.
struct Folders {
    _root: tempfile::TempDir,
    one: PathBuf,
    two: PathBuf,
}

fn folders() -> Folders {
    let root = tempfile::tempdir().unwrap();
    let (one, two) = (root.path().join("one"), root.path().join("two"));
    fs_err::create_dir_all(one.join("folder")).unwrap();
    fs_err::create_dir(&two).unwrap();
    fs_err::write(one.join("file"), "content").unwrap();
    fs_err::write(root.path().join("outside"), "secret").unwrap();
    Folders { _root: root, one, two }
}

#[test]
fn a_writable_folder_takes_all_that_a_guest_may_do() {
    let root = tempfile::tempdir().unwrap();
    let (one, two) = (root.path().join("one"), root.path().join("two"));
    fs_err::create_dir(&one).unwrap();
    fs_err::create_dir(&two).unwrap();
    assert_eq!(run(CELL, "work", &[('w', &one), ('w', &two)]), Outcome::Done);
}

#[test]
fn a_folder_for_reading_is_read() {
    let Folders { one, _root, .. } = folders();
    assert_eq!(run(CELL, "read=file", &[('r', &one)]), Outcome::Said("content".to_owned()));
    assert_eq!(run(CELL, "list", &[('r', &one)]), Outcome::Said("file folder".to_owned()));
}

#[test]
fn a_folder_for_reading_takes_no_change() {
    for deed in ["write", "truncate", "create", "mkdir", "symlink", "unlink", "rmdir", "rename"] {
        let Folders { one, _root, .. } = folders();
        for (how, expected) in [('r', Outcome::Refused(libc::EACCES)), ('w', Outcome::Done)] {
            assert_eq!(run(CELL, deed, &[(how, &one)]), expected, "{deed} {how}");
        }
    }
}

#[test]
fn nothing_moves_between_folders_unless_both_may_be_changed() {
    for deed in ["link-over", "rename-over"] {
        for (from, to) in [('r', 'w'), ('w', 'r'), ('w', 'w')] {
            let Folders { one, two, _root } = folders();
            let outcome = run("landlock", deed, &[(from, &one), (to, &two)]);
            let refused = matches!(outcome, Outcome::Refused(libc::EACCES | libc::EXDEV));
            assert!(refused != ((from, to) == ('w', 'w')), "{deed} {from} {to}: {outcome:?}");
        }
    }
}

#[test]
fn a_writable_folder_takes_no_pipes_sockets_and_programs() {
    let Folders { one, _root, .. } = folders();
    let program = one.join("program");
    // Its interpreter does not exist: that is noticed after it may be executed.
    fs_err::write(&program, "#!/nonexistent/interpreter\n").unwrap();
    fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let run_program = format!("execute-here={}", program.display());
    let reached = Outcome::Refused(libc::ENOENT);
    for (deed, free) in [("pipe", Outcome::Done), ("socket-file", Outcome::Done), (&*run_program, reached)] {
        assert_eq!(run("landlock", deed, &[('w', &one)]), Outcome::Refused(libc::EACCES), "{deed}");
        assert_eq!(run("", deed, &[('w', &one)]), free, "{deed} without walls");
        let _ = fs_err::remove_file(one.join("new"));
    }
}

#[test]
fn no_way_leads_out_of_a_folder() {
    let Folders { one, _root, .. } = folders();
    fs_err::os::unix::fs::symlink("/etc/passwd", one.join("link")).unwrap();
    for path in ["../outside", "link", "/etc/passwd"] {
        let deed = format!("read={path}");
        assert_eq!(run(CELL, &deed, &[('w', &one)]), Outcome::Refused(libc::EACCES), "{path}");
        assert!(matches!(run("", &deed, &[('w', &one)]), Outcome::Said(_)), "{path} without walls");
    }
}

#[test]
fn a_descriptor_without_a_rule_leads_nowhere() {
    let Folders { one, two, _root } = folders();
    // Opened before, and still no way in: the rules were made without it.
    let folders = [('r', &*one), ('r', &*two)];
    assert_eq!(run("landlock-but-first", "read=file", &folders), Outcome::Refused(libc::EACCES));
    assert_eq!(run("landlock", "read=file", &folders), Outcome::Said("content".to_owned()));
}

#[test]
fn abstract_sockets_of_others_are_out_of_reach() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    let name = format!("glovebox-jail-{}", std::process::id());
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let deed = format!("abstract-socket={name}");
    assert_eq!(run("", &deed, &[]), Outcome::Done);
    let expected = if Layers::probe().scopes() { Outcome::Refused(libc::EPERM) } else { Outcome::Done };
    assert_eq!(run("landlock", &deed, &[]), expected);
}
