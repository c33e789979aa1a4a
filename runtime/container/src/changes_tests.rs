use glovebox_supervisor::{Placing, Report};

use super::*;
use crate::layout::look;

fn open(path: &std::path::Path) -> OwnedFd {
    rustix::fs::open(path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap()
}

/// Brings one new file to a folder in which `meanwhile` happened after it was
/// looked at. What is refused.
fn brought(path: &str, hide: &[&str], meanwhile: impl FnOnce(&std::path::Path)) -> (tempfile::TempDir, usize) {
    let (live, stage) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs_err::create_dir(live.path().join("d")).unwrap();
    fs_err::write(live.path().join("d/f"), "old").unwrap();
    let copied = Copied {
        guest: "/workspace".into(),
        dir: open(live.path()),
        hide: hide.iter().map(|glob| (*glob).to_owned()).collect(),
        writable: true,
        kept: false,
        sealed: Vec::new(),
    };
    let tree = look(&copied, 1 << 20).unwrap();
    let mut haul = Haul::new(open(stage.path()), 1000);
    let found = |path: &str, what| Report::Found(Placing { path: path.into(), mode: 0o644, modified: (0, 0), what });
    if path.starts_with("d/") {
        haul.take(found("d", Laid::Folder)).unwrap();
    }
    haul.take(found(path, Laid::File)).unwrap();
    haul.take(Report::Content(b"new")).unwrap();
    if path != "d/f" {
        haul.take(Report::Kept("d/f".into())).unwrap();
    }
    haul.take(Report::Collected).unwrap();
    meanwhile(live.path());
    let folder = tempfile::tempdir().unwrap();
    let installation = crate::marks::Installation::open(folder.path()).unwrap();
    let scratch = installation.scratch("a1").unwrap();
    let applied = apply(&copied, &tree, &haul, open(stage.path()).as_fd(), &scratch).unwrap();
    assert!(
        fs_err::read(scratch.path().join("beside")).unwrap().starts_with(live.path().as_os_str().as_encoded_bytes())
    );
    (live, applied.refused.len())
}

#[test]
fn a_change_goes_to_what_was_there_and_to_nothing_else() {
    let (live, refused) = brought("d/f", &[], |_| {});
    assert_eq!((refused, &*fs_err::read_to_string(live.path().join("d/f")).unwrap()), (0, "new"));
    let (live, refused) = brought("d/g", &[], |_| {});
    assert_eq!((refused, &*fs_err::read_to_string(live.path().join("d/g")).unwrap()), (0, "new"));
    // Somebody wrote, removed, or made it.
    let (live, refused) = brought("d/f", &[], |live| fs_err::write(live.join("d/f"), "theirs").unwrap());
    assert_eq!((refused, &*fs_err::read_to_string(live.path().join("d/f")).unwrap()), (1, "theirs"));
    let (live, refused) = brought("d/f", &[], |live| fs_err::remove_file(live.join("d/f")).unwrap());
    assert!(refused == 1 && !live.path().join("d/f").exists());
    let (live, refused) = brought("d/g", &[], |live| fs_err::write(live.join("d/g"), "theirs").unwrap());
    assert_eq!((refused, &*fs_err::read_to_string(live.path().join("d/g")).unwrap()), (1, "theirs"));
}

#[test]
fn no_link_is_followed_and_nothing_hidden_is_made() {
    let outside = tempfile::tempdir().unwrap();
    fs_err::write(outside.path().join("f"), "outside").unwrap();
    let (_live, refused) = brought("d/f", &[], |live| {
        fs_err::remove_dir_all(live.join("d")).unwrap();
        std::os::unix::fs::symlink(outside.path(), live.join("d")).unwrap();
    });
    assert_eq!((refused, &*fs_err::read_to_string(outside.path().join("f")).unwrap()), (1, "outside"));
    let (live, refused) = brought("d/.env", &[".env*"], |_| {});
    assert!(refused == 1 && !live.path().join("d/.env").exists());
}
