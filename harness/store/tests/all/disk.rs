//! A disk without room.

use env_contracts::{Code, Digest, Problem};
use glovebox_events::{Owner, Payload, PayloadRole};
use glovebox_store::{Commit, Content, Options, Sqlite, Store, StoreError};

use crate::child;
use crate::suite::made::*;

#[tokio::test]
async fn a_full_disk_is_told_and_forgotten_when_there_is_room() {
    let name = "disk::a_full_disk_is_told_and_forgotten_when_there_is_room";
    let Some(folder) = child::folder() else {
        let folder = tempfile::tempdir().unwrap();
        let tmpfs = "mount -t tmpfs -o size=6m none \"$GLOVEBOX_TEST_FOLDER\"";
        let mut probe = child::command("unshare");
        probe.args(["-rm", "sh", "-c", tmpfs]).env(child::FOLDER, folder.path());
        if !probe.status().is_ok_and(|status| status.success()) {
            println!("skipped {name}: no mount namespaces for this user here");
            return;
        }
        let test = child::again(name, folder.path());
        let mut unshare = child::command("unshare");
        unshare.args(["-rm", "sh", "-c", &format!("{tmpfs} && exec \"$0\" \"$@\"")]);
        unshare.arg(test.get_program()).args(test.get_args()).env(child::FOLDER, folder.path());
        assert!(unshare.status().unwrap().success());
        return;
    };
    let filler = folder.join("filler");
    fs_err::write(&filler, vec![0; 3 << 20]).unwrap();
    let store = Sqlite::open(&folder, &Options::default()).unwrap();
    let mut written = 0;
    let full = loop {
        match store.commit(large(written)).await {
            Ok(_) => written += 1,
            Err(StoreError::Problem(problem)) => break problem,
            Err(other) => panic!("{other:?}"),
        }
    };
    assert_full(&full);
    assert!(written > 3, "there was room for some: {written}");
    // It stays so, and what is there can be read.
    match store.commit(large(written)).await {
        Err(StoreError::Problem(problem)) => assert_full(&problem),
        other => panic!("{other:?}"),
    }
    check(&store, written);
    fs_err::remove_file(&filler).unwrap();
    store.commit(large(written)).await.unwrap();
    check(&store, written + 1);
    drop(store);
    let store = Sqlite::open(&folder, &Options::default()).unwrap();
    check(&store, written + 1);
}

fn assert_full(problem: &Problem) {
    assert_eq!(problem.code, Code::DiskFull, "{}", words(problem));
    assert!(problem.retryable);
}

/// A commit that takes room.
fn large(n: usize) -> Commit {
    let action = action(&log("s"), numbered("a", n).as_str());
    let mut commit = request(&action);
    commit.payloads.push(Payload::new(Owner::Action(action.id.clone()), PayloadRole::Plan, plan(n)));
    commit
}

fn plan(n: usize) -> Vec<u8> {
    vec![u8::try_from(n).unwrap(); 200 << 10]
}

fn check(store: &Sqlite, written: usize) {
    let listed = store.actions(&house(), &Default::default()).unwrap().items;
    assert_eq!(listed.len(), written, "nothing half");
    for n in 0..written {
        let content = store.payload(&house(), &Owner::Action(numbered("a", n)), &Digest::of(&plan(n))).unwrap();
        assert_eq!(content, Some(Content::Bytes(plan(n))), "{n}");
    }
    assert!(store.verify(None).unwrap().sound());
}
