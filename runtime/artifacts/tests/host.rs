//! What the host does to a store: a full disk, a read-only file system, a
//! kill. Each test runs itself again as a child, which the host then troubles.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test, helpers included")]

use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use env_contracts::{Code, Diagnose};
use glovebox_artifacts::{ArtifactMeta, ArtifactStore, CollectLimits, Filter, OutputsMeta, Retention};

/// Where the child finds its folder; without it, this is the parent.
const FOLDER: &str = "GLOVEBOX_TEST_FOLDER";

/// A time at which everything made here is old.
const LATER: u64 = 4_000_000_000_000;

#[test]
fn a_full_disk_costs_only_what_did_not_fit() {
    let Some(folder) = child_on_tmpfs("a_full_disk_costs_only_what_did_not_fit", "size=8m") else {
        return;
    };
    block_on(async {
        let store = ArtifactStore::open(&folder, "tenant").unwrap();
        let action = store.action("a").unwrap();
        let put = |size: usize, fill: u8| {
            action.put(ArtifactMeta::new("n", "p", 0), std::io::Cursor::new(vec![fill; size]), u64::MAX)
        };
        let first = put(1 << 20, 0).await.unwrap();

        // In parts and in one step.
        for size in [20 << 20, 11 << 20] {
            let error = put(size, 1).await.unwrap_err();
            assert_eq!(error.code(), Code::DiskFull, "{error}");
            assert_eq!(unfinished(&folder), Vec::<PathBuf>::new());
        }
        let mut fill = 1;
        let error = loop {
            match put(1 << 20, fill).await {
                Ok(_) => fill += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.code(), Code::DiskFull, "{error}");
        assert_eq!(unfinished(&folder), Vec::<PathBuf>::new());

        // What is there stays there, and can be taken away.
        let kept = store.list(&Filter::default()).await.unwrap().artifacts;
        assert_eq!(kept.len(), usize::from(fill));
        assert_eq!(store.get(&first.uri).await.unwrap().into_bytes(u64::MAX).await.unwrap(), vec![0; 1 << 20]);
        let report = store.gc(Retention { max_age_ms: Some(0), max_bytes: None, now_ms: LATER }, false).await.unwrap();
        assert_eq!(report.dropped.len(), kept.len());

        // Outputs: those that fit are stored, and the error is told.
        let outputs = tempfile::tempdir().unwrap();
        for (name, fill) in [("a", 0), ("b", 1), ("c", 2)] {
            fs_err::write(outputs.path().join(name), vec![fill; 3 << 20]).unwrap();
        }
        let dir = fs_err::File::open(outputs.path()).unwrap();
        let collected = action.collect_outputs(dir.as_fd(), CollectLimits::default(), &OutputsMeta::default()).await;
        assert_eq!(collected.error.unwrap().code(), Code::DiskFull);
        assert_eq!(store.list(&Filter::default()).await.unwrap().artifacts, collected.artifacts);
        assert_eq!(collected.artifacts.len(), 2);
    });
}

#[test]
fn a_read_only_file_system_is_a_coded_error() {
    let Some(folder) = child_on_tmpfs("a_read_only_file_system_is_a_coded_error", "size=8m") else {
        return;
    };
    block_on(async {
        let store = ArtifactStore::open(&folder, "tenant").unwrap();
        let action = store.action("a").unwrap();
        let stored = action.put(ArtifactMeta::new("n", "p", 0), &b"content"[..], 100).await.unwrap();
        assert!(command("mount").args(["-o", "remount,ro"]).arg(&folder).status().unwrap().success());

        let size = 11 << 20;
        for result in [
            ArtifactStore::open(&folder, "other").map(drop),
            action.put(ArtifactMeta::new("n", "p", 0), &b"more"[..], 100).await.map(drop),
            action.put(ArtifactMeta::new("n", "p", 0), std::io::Cursor::new(vec![0; size]), u64::MAX).await.map(drop),
            store.remove(&stored.uri).await,
            store.gc(Retention { max_age_ms: Some(0), max_bytes: None, now_ms: LATER }, false).await.map(drop),
        ] {
            assert_eq!(result.unwrap_err().code(), Code::StateUnavailable);
        }
        // Reading needs no right to write.
        let store = ArtifactStore::open(&folder, "tenant").unwrap();
        assert_eq!(store.get(&stored.uri).await.unwrap().into_bytes(100).await.unwrap(), b"content");
        let plan = store.gc(Retention { max_age_ms: Some(0), max_bytes: None, now_ms: LATER }, true).await.unwrap();
        assert_eq!(plan.blobs, 1);
    });
}

#[test]
fn a_kill_in_the_middle_leaves_what_gc_takes() {
    /// Content whose source kills the process once 8 MiB of it were read.
    struct Deadly(usize);
    impl std::io::Read for Deadly {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0 += buffer.len();
            if self.0 > 8 << 20 {
                std::process::abort();
            }
            Ok(buffer.len())
        }
    }
    let name = "a_kill_in_the_middle_leaves_what_gc_takes";
    if let Some(folder) = std::env::var_os(FOLDER) {
        return block_on(async {
            let store = ArtifactStore::open(Path::new(&folder), "tenant").unwrap();
            let action = store.action("a").unwrap();
            action.put(ArtifactMeta::new("n", "p", 0), &b"before"[..], 100).await.unwrap();
            let result = action.put(ArtifactMeta::new("n", "p", 0), Deadly(0), u64::MAX).await;
            panic!("still alive: {result:?}");
        });
    }
    let folder = tempfile::tempdir().unwrap();
    let status = again(command(std::env::current_exe().unwrap()), name, folder.path());
    assert_eq!(status.signal(), Some(6), "{status}");
    assert_eq!(unfinished(folder.path()).len(), 1);
    block_on(async {
        let store = ArtifactStore::open(folder.path(), "tenant").unwrap();
        let kept = store.list(&Filter::default()).await.unwrap().artifacts;
        assert_eq!(store.get(&kept[0].uri).await.unwrap().into_bytes(100).await.unwrap(), b"before");
        let report = store.gc(Retention { max_age_ms: None, max_bytes: None, now_ms: LATER }, false).await.unwrap();
        assert_eq!((report.kept, report.blobs, report.leftovers), (1, 0, 1));
        assert_eq!(unfinished(folder.path()), Vec::<PathBuf>::new());
    });
}

/// In the child, the folder it works in; in the parent, which runs the child
/// in a mount namespace of its own with a small file system, `None`.
fn child_on_tmpfs(name: &str, options: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return Some(folder.into());
    }
    let folder = tempfile::tempdir().unwrap();
    let script = format!("mount -t tmpfs -o {options} none \"${FOLDER}\" && exec \"$0\" \"$@\"");
    let mut probe = command("unshare");
    if !probe
        .args(["-rm", "mount", "-t", "tmpfs", "none"])
        .arg(folder.path())
        .status()
        .is_ok_and(|status| status.success())
    {
        println!("skipped {name}: no mount namespaces for this user here");
        return None;
    }
    let mut unshare = command("unshare");
    unshare.args(["-rm", "sh", "-c", &script]).arg(std::env::current_exe().unwrap());
    assert!(again(unshare, name, folder.path()).success());
    None
}

/// Runs only the test `name`, as a child; what it says is shown if it fails.
fn again(mut command: Command, name: &str, folder: &Path) -> ExitStatus {
    let output = command.args(["--exact", name, "--nocapture"]).env(FOLDER, folder).output().unwrap();
    if !output.status.success() {
        println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
    output.status
}

#[expect(clippy::disallowed_methods, reason = "the host's trouble takes a process to be troubled")]
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

/// Files that a put began and did not finish.
fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_str().unwrap().contains(['#']) || path.parent().unwrap().ends_with("incoming") {
                found.push(path);
            }
        }
    }
    found
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}
