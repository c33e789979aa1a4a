//! Several processes in one folder.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use env_contracts::{Code, Id};
use glovebox_store::{Conflict, Options, Sqlite, Store, StoreError};

use crate::child;
use crate::sqlite::Fresh;
use crate::suite::made::*;

/// What a child is waited for at most: only a broken test takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn two_processes_never_win_the_same_version() {
    const ROUNDS: u64 = 300;
    let name = "processes::two_processes_never_win_the_same_version";
    if let Some(folder) = child::folder() {
        let store = Sqlite::open(&folder, &Options::default()).unwrap();
        loop {
            let mut action = store.action(&house(), &of("a")).unwrap().unwrap();
            if action.version >= ROUNDS {
                return;
            }
            let won = action.version + 1;
            match store.commit(claim(&mut action, 2000)).await {
                Ok(_) => std::io::stdout().write_all(format!("\nwon {won}\n").as_bytes()).unwrap(),
                Err(StoreError::Conflict(Conflict::Version { .. })) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
    }
    let fresh = Fresh::new();
    fresh.store.commit(request(&action(&log("s"), "a"))).await.unwrap();
    let children: Vec<_> =
        (0..2).map(|_| child::again(name, fresh.folder.path()).stdout(Stdio::piped()).spawn().unwrap()).collect();
    let mut won: Vec<u64> = Vec::new();
    for mut child in children {
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{said}");
        won.extend(said.lines().filter_map(|line| line.strip_prefix("won ")?.parse::<u64>().ok()));
    }
    won.sort_unstable();
    assert_eq!(won, (2..=ROUNDS).collect::<Vec<_>>(), "each version was won once");
    assert!(fresh.store.verify(None).unwrap().sound());
}

/// Whoever saw an event has seen all that were recorded before it, whichever
/// process wrote them: otherwise whoever goes on from there would miss some.
#[tokio::test]
async fn what_processes_record_has_one_order_without_gaps() {
    const EACH: u32 = 400;
    const ALL: u64 = 2 * EACH as u64;
    let name = "processes::what_processes_record_has_one_order_without_gaps";
    if let Some(folder) = child::folder() {
        let store = Sqlite::open(&folder, &Options::default()).unwrap();
        let own = store.holder().to_string();
        for n in 0..EACH {
            // Commits that are refused take no place away.
            let action = action(&log(&own), &format!("{own}-{n}"));
            store.commit(request(&action)).await.unwrap();
            assert!(store.commit(request(&action)).await.is_err());
        }
        return;
    }
    let fresh = Fresh::new();
    let mut children: Vec<_> = (0..2).map(|_| child::again(name, fresh.folder.path()).spawn().unwrap()).collect();
    let mut after = 0;
    while after < ALL {
        let page = fresh.store.recorded(after, 64).unwrap();
        for event in &page {
            after += 1;
            assert_eq!(event.rank, after, "an event came after one that was recorded later");
        }
        if page.is_empty() {
            let ended = children.iter_mut().all(|child| child.try_wait().unwrap().is_some());
            let newest = fresh.store.last_recorded().unwrap();
            assert!(newest >= after && (!ended || newest > after || after == ALL), "they ended at {after}");
        }
    }
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    assert_eq!(fresh.store.last_recorded().unwrap(), ALL);
}

/// Who commits runs other tasks besides, and so is not held up by a process that
/// writes; where nobody does, nothing has to be waited for at all.
#[tokio::test]
async fn a_commit_waits_for_other_processes_elsewhere() {
    let fresh = Fresh::new();
    let mut look = Context::from_waker(Waker::noop());
    let other = rusqlite::Connection::open(fresh.folder.path().join("store.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut commit = fresh.store.commit(request(&action(&log("s"), "a")));
    let first = commit.as_mut().poll(&mut look);
    assert!(first.is_pending(), "{first:?}");
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(commit.await.unwrap(), [1]);

    let mut alone = fresh.store.commit(request(&action(&log("s"), "b")));
    assert_eq!(alone.as_mut().poll(&mut look), Poll::Ready(Ok(vec![2])));
}

#[tokio::test]
async fn listeners_hear_of_commits_of_other_processes() {
    let name = "processes::listeners_hear_of_commits_of_other_processes";
    if let Some(folder) = child::folder() {
        let store = Sqlite::open(&folder, &Options::default()).unwrap();
        store.commit(request(&action(&log("s"), "theirs"))).await.unwrap();
        return;
    }
    let fresh = Fresh::new();
    // Listening ended once, and begins anew.
    drop(fresh.store.changes().unwrap());
    tokio::time::sleep(3 * glovebox_store::WATCH_EVERY).await;
    let mut heard = fresh.store.changes().unwrap();
    heard.borrow_and_update();
    let mut child = child::again(name, fresh.folder.path()).spawn().unwrap();
    tokio::time::timeout(PATIENCE, heard.changed()).await.unwrap().unwrap();
    assert!(child.wait().unwrap().success());
    assert!(fresh.store.action(&house(), &of("theirs")).unwrap().is_some());
}

#[test]
fn a_dead_holder_is_told_from_a_living_one() {
    let name = "processes::a_dead_holder_is_told_from_a_living_one";
    if let Some(folder) = child::folder() {
        let store = Sqlite::open(&folder, &Options::default()).unwrap();
        println!("\nholder {}", store.holder());
        // Until it is killed, or the parent is gone.
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let fresh = Fresh::new();
    let mut child =
        child::again(name, fresh.folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let id: Id = lines.map(Result::unwrap).find_map(|line| line.strip_prefix("holder ").map(of)).unwrap();
    let file = fresh.folder.path().join("holders").join(id.as_str());
    assert!(fresh.store.holder_alive(&id).unwrap());
    assert!(fresh.store.holder_alive(fresh.store.holder()).unwrap());
    assert!(!fresh.store.holder_alive(&of("never-was")).unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(file.exists());
    assert!(!fresh.store.holder_alive(&id).unwrap());
    assert!(!file.exists(), "whoever finds it dead removes it");
    assert!(!fresh.store.holder_alive(&id).unwrap());

    // One that ended well leaves nothing; and who opens finds the dead.
    let other = Sqlite::open(fresh.folder.path(), &Options::default()).unwrap();
    let ended = other.holder().clone();
    assert!(fresh.store.holder_alive(&ended).unwrap());
    fs_err::write(&file, "").unwrap();
    drop(other);
    assert!(!fresh.store.holder_alive(&ended).unwrap());
    drop(Sqlite::open(fresh.folder.path(), &Options::default()).unwrap());
    assert!(!file.exists());
}

#[tokio::test]
async fn a_process_that_holds_the_file_makes_others_busy_and_no_more() {
    let fresh = Fresh::new();
    let other = rusqlite::Connection::open(fresh.folder.path().join("store.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let first = action(&log("s"), "a");
    match fresh.store.commit(request(&first)).await {
        Err(StoreError::Problem(problem)) => {
            assert_eq!(problem.code, Code::Busy, "{}", words(&problem));
            assert!(problem.retryable);
        }
        other => panic!("{other:?}"),
    }
    // Reading waits for nobody.
    assert_eq!(fresh.store.action(&house(), &first.id).unwrap(), None);
    other.execute_batch("ROLLBACK").unwrap();
    fresh.store.commit(request(&first)).await.unwrap();
}
