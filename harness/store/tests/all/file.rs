//! The file: what is opened, what is refused and left as it is.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use env_contracts::{Code, Digest, Problem};
use glovebox_store::{Options, Sqlite, Store};

use crate::sqlite::Fresh;
use crate::suite::made::*;
use crate::suite::opened::*;

/// A folder with a store that has something in it and that nobody has open.
async fn closed() -> tempfile::TempDir {
    let Fresh { store, folder } = Fresh::new();
    for n in 0..200 {
        let mut action = action(&log("s"), numbered("a", n).as_str());
        action.turn = Some(n as u64);
        store.commit(request(&action)).await.unwrap();
    }
    let child = session(&log("s"), Some(&session(&log("top"), None)));
    let opened = task(&log("s"), "one");
    store.commit(open_session(&child)).await.unwrap();
    store.commit(open_task(&opened)).await.unwrap();
    store.commit(open_question(&question(&opened, "q", "colour"))).await.unwrap();
    drop(store);
    folder
}

fn open(folder: &Path) -> Result<Sqlite, Problem> {
    Sqlite::open(folder, &Options::default())
}

fn refused(folder: &Path, code: Code) -> String {
    let Err(problem) = open(folder) else { panic!("it was opened") };
    assert_eq!(problem.code, code, "{}", words(&problem));
    problem.message
}

fn content(folder: &Path) -> Vec<(String, Digest)> {
    let mut files: Vec<_> = fs_err::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), Digest::of(&fs_err::read(entry.path()).unwrap())))
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn what_is_damaged_is_refused_and_nothing_is_made_beside_it() {
    type Damage = fn(&Path);
    let cases: [(&str, Damage); 4] = [
        ("not a database", |file| fs_err::write(file, "these are words, not a database, and long enough").unwrap()),
        ("empty", |file| fs_err::write(file, "").unwrap()),
        ("without its beginning", |file| {
            let bytes = fs_err::read(file).unwrap();
            fs_err::write(file, &bytes[4096..]).unwrap();
        }),
        ("of another program", |file| {
            fs_err::remove_file(file).unwrap();
            rusqlite::Connection::open(file).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
        }),
    ];
    for (title, damage) in cases {
        let folder = closed().await;
        damage(&folder.path().join("store.db"));
        let before = content(folder.path());
        let message = refused(folder.path(), Code::StoreCorrupt);
        assert!(message.contains("store.db"), "{title}: {message}");
        assert_eq!(message.contains("is empty"), title == "empty", "{title}: {message}");
        assert_eq!(content(folder.path()), before, "{title}");
        assert_eq!(Sqlite::check(folder.path()).unwrap_err().code, Code::StoreCorrupt, "{title}");
    }
}

#[tokio::test]
async fn a_file_whose_log_was_left_behind_is_not_made_anew() {
    let Fresh { store, folder } = Fresh::new();
    store.commit(request(&action(&log("s"), "a"))).await.unwrap();
    fs_err::remove_file(folder.path().join("store.db")).unwrap();
    assert!(refused(folder.path(), Code::StoreCorrupt).contains("store.db-wal"));
    assert!(!folder.path().join("store.db").exists());
    drop(store);
}

#[tokio::test]
async fn damage_inside_is_found_by_whoever_meets_it() {
    let folder = closed().await;
    let file = folder.path().join("store.db");
    let bytes = fs_err::read(&file).unwrap();
    assert_eq!(Sqlite::check(folder.path()).unwrap(), Vec::<String>::new());

    // Cut off in the middle.
    fs_err::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let check = Sqlite::check(folder.path());
    assert!(check.as_ref().is_ok_and(|faults| !faults.is_empty()) || check.is_err(), "{check:?}");
    let met = open(folder.path()).and_then(|store| {
        (0..200).try_for_each(|n| store.action(&house(), &numbered("a", n)).map(drop))?;
        store.verify(None).map(drop)
    });
    assert_eq!(met.unwrap_err().code, Code::StoreCorrupt);

    // Every page but the first overwritten.
    let mut noise = bytes.clone();
    noise[4096..].fill(0x55);
    fs_err::write(&file, &noise).unwrap();
    let met = open(folder.path()).and_then(|store| store.actions(&house(), &Default::default()).map(drop));
    let problem = met.unwrap_err();
    assert_eq!(problem.code, Code::StoreCorrupt, "{}", words(&problem));
    assert!(problem.help.contains("glovebox db backup"), "{}", problem.help);
}

#[tokio::test]
async fn documents_that_disagree_with_their_columns_are_found() {
    let folder = closed().await;
    let sql = rusqlite::Connection::open(folder.path().join("store.db")).unwrap();
    for (change, found) in [
        ("UPDATE actions SET state = 'running' WHERE id = 'a-00007'", "action a-00007 is filed as something else"),
        ("UPDATE actions SET body = 'no' WHERE id = 'a-00008'", "action a-00008 can't be read"),
        ("UPDATE actions SET turn = 1 WHERE id = 'a-00006'", "action a-00006 is filed as something else"),
        ("UPDATE sessions SET parent = NULL", "session s is filed as something else"),
        ("UPDATE sessions SET stopping = 1", "session s is filed as something else"),
        ("UPDATE questions SET opened_ms = 1", "question q is filed as something else"),
        ("UPDATE task_records SET state = 'done'", "task one is filed as something else"),
        ("UPDATE task_records SET stopping = 1", "task one is filed as something else"),
        ("UPDATE questions SET topic = 'size'", "question q is filed as something else"),
        ("UPDATE questions SET untold = 1", "question q is filed as something else"),
        ("UPDATE task_events SET task = 'two'", "event 202 of session s of tenant house is filed as something else"),
        ("UPDATE task_events SET event = 9 WHERE event = 202", "event 9 of session s of tenant house is filed as"),
        ("DELETE FROM task_events", "event 203 of session s of tenant house is not found under its task"),
        ("UPDATE logs SET seq = seq + 1", "does not have as many events"),
        ("DELETE FROM actions WHERE id = 'a-00009'", "names something that is not in actions"),
    ] {
        sql.execute_batch("PRAGMA foreign_keys = OFF; SAVEPOINT s").unwrap();
        sql.execute_batch(change).unwrap();
        sql.execute_batch("RELEASE s").unwrap();
        let faults = Sqlite::check(folder.path()).unwrap();
        assert!(faults.iter().any(|fault| fault.contains(found)), "{change}: {faults:?}");
    }
}

#[tokio::test]
async fn a_newer_file_is_left_as_it_is() {
    let folder = closed().await;
    let file = folder.path().join("store.db");
    rusqlite::Connection::open(&file).unwrap().execute_batch("PRAGMA user_version = 3").unwrap();
    let before = content(folder.path());
    assert!(refused(folder.path(), Code::StoreNewer).contains("version 3"));
    assert_eq!(content(folder.path()).iter().find(|(name, _)| name == "store.db"), before.first());
    rusqlite::Connection::open(&file).unwrap().execute_batch("PRAGMA user_version = 2").unwrap();
    assert_eq!(open(folder.path()).unwrap().actions(&house(), &Default::default()).unwrap().items.len(), 200);
}

#[tokio::test]
async fn the_files_are_private_and_looking_makes_none() {
    let fresh = Fresh::new();
    fresh.store.commit(request(&action(&log("s"), "a"))).await.unwrap();
    let holder = format!("holders/{}", fresh.store.holder());
    for name in ["store.db", "store.db-wal", "store.db-shm", &holder] {
        let mode = fs_err::metadata(fresh.folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
    }
    let empty = tempfile::tempdir().unwrap();
    let Err(problem) = Sqlite::open(empty.path(), &Options { create: false }) else { panic!("there is none") };
    assert_eq!(problem.code, Code::StateUnavailable);
    assert_eq!(Sqlite::check(empty.path()).unwrap_err().code, Code::StateUnavailable);
    assert_eq!(content(empty.path()), []);
    refused(&empty.path().join("no-such"), Code::StateUnavailable);
}

#[test]
fn many_who_make_it_at_once_share_one() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| open(folder.path()).unwrap().checkpoint(0).unwrap());
        }
    });
    let databases: Vec<_> = (0..2).map(|_| open(folder.path()).unwrap().checkpoint(0).unwrap().database).collect();
    assert_eq!(databases[0], databases[1]);
    let left: Vec<_> = content(folder.path()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, ["store.db"], "no drafts");
}
