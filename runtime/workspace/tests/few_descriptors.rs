//! A test of its own process: it has few descriptors.

use std::os::fd::AsFd as _;

use glovebox_workspace::{Bounds, Snapshots};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn more_folders_than_descriptors_are_all_there() {
    const FOLDERS: u64 = 300;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("folder");
    for number in 0..FOLDERS {
        fs_err::create_dir_all(folder.join(format!("{number}/below"))).unwrap();
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..getrlimit(Resource::Nofile) }).unwrap();
    let snapshots = Snapshots::open(&dir.path().join("snapshots")).unwrap();
    let bounds = Bounds { entries: 10 * FOLDERS, bytes: 1 };
    let taken = snapshots.take(fs_err::File::open(&folder).unwrap().as_fd(), bounds).unwrap();
    assert_eq!(taken.measured.entries, 2 * FOLDERS);
    let again = dir.path().join("again");
    fs_err::create_dir(&again).unwrap();
    let restored = snapshots.restore(&taken.tree, fs_err::File::open(&again).unwrap().as_fd()).unwrap();
    assert_eq!(restored, taken.measured);
}
