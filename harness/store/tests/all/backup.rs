//! A copy while the file is in use.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

use env_contracts::Code;
use glovebox_events::{Owner, Payload, PayloadRole};
use glovebox_store::{Options, Sqlite, Store};

use crate::sqlite::Fresh;
use crate::suite::made::*;

/// Commits after which the writer gives up: far more than fit beside a copy
/// that does not begin again with each of them.
const PATIENCE: usize = 5000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_busy_store_is_whole() {
    let fresh = std::sync::Arc::new(Fresh::new());
    for n in 0..300 {
        let action = action(&log("s"), numbered("a", n).as_str());
        let mut commit = request(&action);
        // In all, more than is copied in one step.
        commit.payloads.push(Payload::new(Owner::Action(action.id.clone()), PayloadRole::Plan, vec![b' '; 50_000]));
        fresh.store.commit(commit).await.unwrap();
    }
    let before = fresh.store.checkpoint(1).unwrap();
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn({
        let (fresh, stop) = (fresh.clone(), stop.clone());
        async move {
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) && n < PATIENCE {
                fresh.store.commit(request(&action(&log("s"), numbered("b", n).as_str()))).await.unwrap();
                n += 1;
            }
            n
        }
    });
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("store.db");
    fresh.store.backup(&copy).unwrap();
    stop.store(true, Ordering::Relaxed);
    assert!(writing.await.unwrap() < PATIENCE, "the copy was made while others wrote");
    assert_eq!(fs_err::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let names: Vec<_> = fs_err::read_dir(elsewhere.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["store.db"], "one file, and nothing left over");

    // It stands in the place of the store, and goes on from there.
    let restored = Sqlite::open(elsewhere.path(), &Options { create: false }).unwrap();
    let report = restored.verify(Some(&before)).unwrap();
    assert!(report.sound(), "{:?}", report.findings);
    assert!(report.events >= 300);
    restored.commit(request(&action(&log("s"), "restored"))).await.unwrap();
    assert_eq!(Sqlite::check(elsewhere.path()).unwrap(), Vec::<String>::new());

    let again = fresh.store.backup(&copy).unwrap_err();
    assert_eq!(again.code, Code::Usage, "{}", words(&again));
    let nowhere = fresh.store.backup(&elsewhere.path().join("no-such/copy")).unwrap_err();
    assert_eq!(nowhere.code, Code::StateUnavailable, "{}", words(&nowhere));
}
