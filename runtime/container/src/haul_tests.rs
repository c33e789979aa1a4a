use proptest::prelude::*;

use super::*;

fn folder() -> (tempfile::TempDir, OwnedFd) {
    let dir = tempfile::tempdir().unwrap();
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(dir.path(), flags, Mode::empty()).unwrap();
    (dir, fd)
}

fn found(path: &[u8], what: Laid) -> Report<'static> {
    Report::Found(Placing { path: path.to_vec(), mode: 0o644, modified: (0, 0), what })
}

#[test]
fn what_comes_out_lies_where_it_says() {
    let (dir, fd) = folder();
    let mut haul = Haul::new(fd, 100);
    for report in [
        found(b"d", Laid::Folder),
        found(b"d/f", Laid::File),
        Report::Content(b"one"),
        Report::Content(b"two"),
        found(b"l", Laid::Link(b"/etc/passwd".to_vec())),
        Report::LeftOut(Left::Special, b"h".to_vec()),
        Report::Collected,
    ] {
        haul.take(report).unwrap();
    }
    assert!(haul.is_done());
    assert_eq!(fs_err::read(dir.path().join("d/f")).unwrap(), b"onetwo");
    assert!(fs_err::symlink_metadata(dir.path().join("l")).is_err(), "a link was made");
    assert_eq!(haul.notices("k")[0].message, "FIFOs, sockets and devices were left out: \"h\"");
    assert!(haul.take(Report::Collected).is_err());
}

#[test]
fn hostile_reports_are_refused() {
    for path in ["", ".", "..", "/etc/x", "../x", "a/../../x", "a//b", "a/", "./a", "x\0y"] {
        let (_dir, fd) = folder();
        assert!(Haul::new(fd, 100).take(found(path.as_bytes(), Laid::File)).is_err(), "{path:?}");
    }
    let (dir, fd) = folder();
    let mut haul = Haul::new(fd, 5);
    assert!(haul.take(Report::Content(b"x")).is_err(), "content of no file");
    haul.take(found(b"a", Laid::File)).unwrap();
    assert!(haul.take(found(b"a", Laid::File)).is_err(), "twice");
    assert!(haul.take(found(b"a/b", Laid::File)).is_err(), "below a file");
    assert!(haul.take(found(b"none/b", Laid::File)).is_err(), "below nothing");
    haul.take(found(b"c", Laid::File)).unwrap();
    assert_eq!(haul.take(Report::Content(b"123456")), Err(HaulError::TooMuch));
    assert!(haul.take(Report::Pong(1)).is_err());
    // A link on the way, as somebody else may have put it there.
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), dir.path().join("way")).unwrap();
    assert!(haul.take(found(b"way/x", Laid::File)).is_err());
    assert_eq!(fs_err::read_dir(outside.path()).unwrap().count(), 0);
}

proptest! {
    /// Whatever is said, nothing lands outside.
    #[test]
    fn nothing_lands_outside(paths in proptest::collection::vec("[a./\\x00]{0,8}", 0..20), kinds in proptest::collection::vec(0_u8..3, 20)) {
        let above = tempfile::tempdir().unwrap();
        let root = above.path().join("root");
        fs_err::create_dir(&root).unwrap();
        let fd = rustix::fs::open(&root, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let mut haul = Haul::new(fd, 1000);
        for (path, kind) in paths.iter().zip(kinds) {
            let what = match kind { 0 => Laid::File, 1 => Laid::Folder, _ => Laid::Link(b"..".to_vec()) };
            let _ = haul.take(found(path.as_bytes(), what));
            let _ = haul.take(Report::Content(b"x"));
        }
        prop_assert_eq!(fs_err::read_dir(above.path()).unwrap().count(), 1);
    }
}
