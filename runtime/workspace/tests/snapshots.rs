//! Snapshots of folders that tools left behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use env_contracts::Digest;
use glovebox_workspace::{Bounds, Error, Measured, Snapshots, Taken, measure};

const ROOM: Bounds = Bounds { entries: 5000, bytes: 1 << 20 };

struct Ground {
    dir: tempfile::TempDir,
    snapshots: Snapshots,
}

impl Ground {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("folder")).unwrap();
        let snapshots = Snapshots::open(&dir.path().join("snapshots")).unwrap();
        Self { dir, snapshots }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join("folder").join(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        fs_err::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs_err::write(self.at(path), text).unwrap();
    }

    fn take(&self) -> Result<Taken, Error> {
        self.snapshots.take(open(&self.at("")).as_fd(), ROOM)
    }

    /// A new folder with what a snapshot holds.
    fn restored(&self, digest: &Digest) -> Result<tempfile::TempDir, Error> {
        let into = tempfile::tempdir().unwrap();
        self.snapshots.restore(digest, open(into.path()).as_fd())?;
        Ok(into)
    }

    /// Where the content of a file is kept.
    fn object(&self, text: &str) -> PathBuf {
        let digest = Digest::of(text.as_bytes());
        self.dir.path().join("snapshots/objects").join(&digest.as_str()[..2]).join(digest.as_str())
    }
}

fn open(path: &Path) -> File {
    fs_err::File::open(path).unwrap().into_file()
}

#[test]
fn everything_comes_back_as_it_was() {
    let ground = Ground::new();
    ground.write("a/b/run.sh", "#!/bin/sh");
    ground.write("empty", "");
    fs_err::create_dir(ground.at("nothing")).unwrap();
    symlink("../../outside", ground.at("a/link")).unwrap();
    let odd = ground.at("").join(std::ffi::OsStr::from_bytes(b"\xFF\n%"));
    fs_err::write(&odd, "odd").unwrap();
    let mode = |path: &Path, mode| fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    // A set-user-id bit is not kept, and a folder that may not be written is.
    mode(&ground.at("a/b/run.sh"), 0o4755);
    mode(&ground.at("a/b"), 0o500);

    let taken = ground.take().unwrap();
    let bytes = "#!/bin/sh".len() as u64 + "odd".len() as u64;
    assert_eq!(taken.measured, Measured { entries: 7, bytes });
    let into = ground.restored(&taken.tree).unwrap();
    let at = |path: &str| into.path().join(path);
    assert_eq!(fs_err::read(at("a/b/run.sh")).unwrap(), b"#!/bin/sh");
    let bits = |path: &Path| fs_err::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((bits(&at("a/b/run.sh")), bits(&at("a/b"))), (0o755, 0o500));
    assert_eq!(fs_err::read_link(at("a/link")).unwrap(), Path::new("../../outside"));
    assert_eq!(fs_err::read(into.path().join(odd.file_name().unwrap())).unwrap(), b"odd");
    assert!(at("nothing").is_dir() && fs_err::read(at("empty")).unwrap().is_empty());

    // The same again is the same snapshot, wherever it lies.
    let again = ground.snapshots.take(open(into.path()).as_fd(), ROOM).unwrap();
    let changes = ground.snapshots.tree(&taken.tree).unwrap().changes(&ground.snapshots.tree(&again.tree).unwrap());
    assert_eq!(changes.len(), 0, "{changes:?}");
    assert_eq!(again.tree, taken.tree);
}

#[test]
fn what_is_no_file_and_what_is_too_much_is_refused() {
    let ground = Ground::new();
    ground.write("file", [7; 1000]);
    let take = |bounds| ground.snapshots.take(open(&ground.at("")).as_fd(), bounds);
    assert!(take(Bounds { entries: 1, bytes: 1000 }).is_ok());
    assert!(matches!(take(Bounds { entries: 1, bytes: 999 }), Err(Error::TooMuch { what: "bytes", most: 999 })));
    assert!(matches!(take(Bounds { entries: 0, bytes: 1000 }), Err(Error::TooMuch { what: "entries", .. })));
    // A length that nobody wrote counts as well.
    fs_err::File::create(ground.at("sparse")).unwrap().set_len(1 << 40).unwrap();
    assert!(matches!(take(ROOM), Err(Error::TooMuch { what: "bytes", .. })));
    fs_err::remove_file(ground.at("sparse")).unwrap();

    rustix::fs::mknodat(rustix::fs::CWD, ground.at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let refused = take(ROOM).unwrap_err();
    assert!(matches!(&refused, Error::Special { path } if path == "pipe"), "{refused}");
    fs_err::remove_file(ground.at("pipe")).unwrap();

    let mut deep = ground.at("");
    for _ in 0..300 {
        deep.push("d");
    }
    fs_err::create_dir_all(&deep).unwrap();
    assert!(matches!(measure(open(&ground.at("")).as_fd(), ROOM), Err(Error::TooMuch { what: "levels", .. })));
}

#[test]
fn what_was_changed_behind_its_back_is_not_restored() {
    let ground = Ground::new();
    ground.write("file", "content");
    let taken = ground.take().unwrap();
    let object = ground.object("content");
    for (damage, restores) in [("content", true), ("contenT", false), ("content and more", false), ("", false)] {
        fs_err::write(&object, damage).unwrap();
        match ground.restored(&taken.tree) {
            Ok(_) => assert!(restores, "{damage:?}"),
            Err(error) => assert!(!restores && matches!(error, Error::Damaged(_)), "{damage:?}: {error}"),
        }
    }
    fs_err::remove_file(&object).unwrap();
    assert!(matches!(ground.restored(&taken.tree), Err(Error::Damaged(_))));

    let tree = ground.dir.path().join("snapshots/trees").join(taken.tree.as_str());
    let text = fs_err::read_to_string(&tree).unwrap();
    fs_err::write(&tree, text.replace("\"file\"", "\"life\"")).unwrap();
    assert!(matches!(ground.snapshots.tree(&taken.tree), Err(Error::Damaged(_))));
    fs_err::remove_file(&tree).unwrap();
    assert!(matches!(ground.snapshots.tree(&taken.tree), Err(Error::Unknown(_))));
}

#[test]
fn what_nobody_needs_goes_and_nothing_else() {
    let ground = Ground::new();
    ground.write("shared", "shared");
    ground.write("first", "only in the first");
    let first = ground.take().unwrap();
    fs_err::remove_file(ground.at("first")).unwrap();
    let second = ground.take().unwrap();

    let keep = BTreeSet::from([second.tree.clone()]);
    let would = ground.snapshots.retain(&keep, true).unwrap();
    assert_eq!((would.trees, would.objects), (1, 1));
    assert!(ground.restored(&first.tree).is_ok(), "only looked");
    assert_eq!(ground.snapshots.retain(&keep, false).unwrap(), would);
    assert!(matches!(ground.restored(&first.tree), Err(Error::Unknown(_))));
    assert!(ground.restored(&second.tree).is_ok());
    assert!(!ground.object("only in the first").exists() && ground.object("shared").exists());

    // Nobody knows what a damaged tree needs.
    let tree = ground.dir.path().join("snapshots/trees").join(second.tree.as_str());
    fs_err::write(&tree, "x").unwrap();
    assert!(matches!(ground.snapshots.retain(&keep, false), Err(Error::Damaged(_))));
    assert!(ground.object("shared").exists());
}
