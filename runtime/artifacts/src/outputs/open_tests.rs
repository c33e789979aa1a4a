use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::CWD;
use tempfile::TempDir;

use super::super::{CollectLimits, walk};
use super::*;

/// What no collection may ever read.
const CANARY: &str = "canary: the host's own file";

/// Long enough for any machine to open a file, short of a patience test.
const HANG: Duration = Duration::from_secs(20);

/// Walks `outputs/sub/file`, then lets the enemy `swap` something, then opens
/// what the walk found and compares what comes out: content, or why not.
fn check(swap: fn(outputs: &Path, canary: &Path), wanted: Result<&str, NoticeKind>) {
    let folder = TempDir::new().unwrap();
    let (outputs, canary) = (folder.path().join("outputs"), folder.path().join("host"));
    fs_err::create_dir_all(outputs.join("sub")).unwrap();
    fs_err::create_dir(&canary).unwrap();
    fs_err::write(outputs.join("sub/file"), "output").unwrap();
    fs_err::write(canary.join("file"), CANARY).unwrap();
    let root: OwnedFd = fs_err::File::open(&outputs).unwrap().into_parts().0.into();

    let (paths, _) = walk::walk(&root, CollectLimits::default()).unwrap();
    assert_eq!(paths, ["sub/file"]);
    swap(&outputs, &canary);

    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let opened = regular(&root, &paths[0]).unwrap().map(|mut file| {
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            text
        });
        send.send(opened)
    });
    let opened = receive.recv_timeout(HANG).expect("opening must not wait for anybody");
    assert_eq!(opened.as_deref().map_err(|kind| *kind), wanted);
}

fn replace(outputs: &Path) -> std::path::PathBuf {
    fs_err::remove_file(outputs.join("sub/file")).unwrap();
    outputs.join("sub/file")
}

#[test]
fn nothing_swapped() {
    check(|_, _| (), Ok("output"));
}

#[test]
fn a_file_swapped_for_a_link_is_not_followed() {
    check(|outputs, canary| symlink(canary.join("file"), replace(outputs)).unwrap(), Err(NoticeKind::Symlink));
    check(|outputs, _| symlink("../../host/file", replace(outputs)).unwrap(), Err(NoticeKind::Symlink));
    // Not even to a file of its own: nobody could tell whose it is.
    check(
        |outputs, _| {
            fs_err::write(outputs.join("own"), "own").unwrap();
            symlink("../own", replace(outputs)).unwrap();
        },
        Err(NoticeKind::Symlink),
    );
}

#[test]
fn a_folder_swapped_for_a_link_is_not_followed() {
    fn swap(outputs: &Path, target: &Path) {
        fs_err::rename(outputs.join("sub"), outputs.join("moved")).unwrap();
        symlink(target, outputs.join("sub")).unwrap();
    }
    check(swap, Err(NoticeKind::Symlink));
    check(|outputs, _| swap(outputs, Path::new("../host")), Err(NoticeKind::Symlink));
    check(|outputs, _| swap(outputs, Path::new("moved")), Err(NoticeKind::Symlink));
}

#[test]
fn a_fifo_is_not_waited_for() {
    let fifo = |outputs: &Path, _: &Path| rustix::fs::mkfifoat(CWD, replace(outputs), Mode::RUSR).unwrap();
    check(fifo, Err(NoticeKind::Special));
}

#[test]
fn other_swaps() {
    check(
        |outputs, _| drop(std::os::unix::net::UnixListener::bind(replace(outputs)).unwrap()),
        Err(NoticeKind::Special),
    );
    check(
        |outputs, canary| fs_err::hard_link(canary.join("file"), replace(outputs)).unwrap(),
        Err(NoticeKind::HardLink),
    );
    check(|outputs, _| fs_err::create_dir(replace(outputs)).unwrap(), Err(NoticeKind::Changed));
    check(|outputs, _| drop(replace(outputs)), Err(NoticeKind::Changed));
    check(|outputs, _| fs_err::remove_dir_all(outputs.join("sub")).unwrap(), Err(NoticeKind::Changed));
}

/// A path can't climb out either, whoever made it.
#[test]
fn paths_stay_beneath() {
    let folder = TempDir::new().unwrap();
    fs_err::create_dir(folder.path().join("outputs")).unwrap();
    fs_err::write(folder.path().join("canary"), CANARY).unwrap();
    let root = fs_err::File::open(folder.path().join("outputs")).unwrap();
    for path in ["../canary", "/etc/passwd", "./../canary"] {
        assert!(regular(root.file(), OsStr::new(path)).unwrap().is_err(), "{path}");
    }
}
