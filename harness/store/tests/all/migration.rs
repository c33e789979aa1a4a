//! Files of older versions.

use std::path::Path;

use glovebox_events::{Answered, Owner};
use glovebox_store::{ActionFilter, Checkpoint, EventFilter, EventsOf, Options, QuestionFilter, Sqlite, Store};
use rusqlite::Connection;

use crate::sqlite::Fresh;
use crate::suite::made::*;
use crate::suite::opened::*;

/// This file in a folder of its own.
fn golden(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
    fs_err::copy(file, folder.path().join("store.db")).unwrap();
    folder
}

/// The store, which was whole before it was opened and is so after.
fn opened(folder: &Path) -> Sqlite {
    let before = fs_err::read(folder.join("store.db")).unwrap();
    assert_eq!(Sqlite::check(folder).unwrap(), Vec::<String>::new());
    assert_eq!(fs_err::read(folder.join("store.db")).unwrap(), before, "looking changes nothing");
    let store = Sqlite::open(folder, &Options { create: false }).unwrap();
    let report = store.verify(None).unwrap();
    assert!(report.sound() && report.events > 5, "{report:?}");
    assert_eq!(Sqlite::check(folder).unwrap(), Vec::<String>::new());
    store
}

#[tokio::test]
async fn a_file_of_the_first_version_opens() {
    let folder = golden("store.v1.db");
    let store = opened(folder.path());
    let mut action = store.action(&house(), &of("golden")).unwrap().unwrap();
    assert!(store.by_approval(&house(), &of("golden-approval")).unwrap().is_some());
    store.commit(end(&mut action, 9000)).await.unwrap();

    let checkpoint = fs_err::read(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/checkpoint.v1.json")).unwrap();
    let checkpoint = Checkpoint::from_bytes(checkpoint.trim_ascii()).unwrap();
    let report = store.verify(Some(&checkpoint)).unwrap();
    assert!(report.sound(), "{report:?}");
    // And it knows what came with the second.
    let task = task(&log("golden"), "golden-task");
    store.commit(open_task(&task)).await.unwrap();
    assert_eq!(store.task(&house(), &task.id).unwrap().record, Some(task));
}

#[tokio::test]
async fn a_file_of_the_second_version_opens() {
    let folder = golden("store.v2.db");
    let store = opened(folder.path());
    let mut action = store.action(&house(), &of("golden")).unwrap().unwrap();
    store.commit(end(&mut action, 9000)).await.unwrap();
    let session = store.session(&house(), &of("golden")).unwrap().unwrap();
    assert_eq!(session.parent, Some(of("golden-top")));
    let seen = store.task(&house(), &of("golden-task")).unwrap();
    let mut task = seen.record.unwrap();
    assert_eq!((seen.used.actions, seen.used.asks, task.turn.as_ref().unwrap().number), (1, 2, 1));
    assert_eq!(store.stopping(10).unwrap(), [task.clone()]);
    let told = QuestionFilter { untold: false, task: Some(task.id.clone()), ..Default::default() };
    assert_eq!(store.questions(&house(), &told).unwrap().items.len(), 1);
    assert_eq!(
        store.payload(&house(), &Owner::Task(of("golden-erased")), &of_goal("golden-erased")).unwrap(),
        Some(glovebox_store::Content::Erased)
    );
    store.commit(open_turn(&mut task)).await.unwrap();
    let story = EventFilter { of: EventsOf::Task(task.id), after: 0, limit: 0 };
    let story = store.events(&house(), &story).unwrap();
    assert_eq!(story.last().unwrap().event.what.name(), "turn-opened");
    assert_eq!(Sqlite::check(folder.path()).unwrap(), Vec::<String>::new());
}

fn of_goal(task: &str) -> env_contracts::Digest {
    env_contracts::Digest::of(goal(task).as_bytes())
}

/// The same content in a file of the first version, as far as that could hold
/// it.
fn first_version(from: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let sql = Connection::open(folder.path().join("store.db")).unwrap();
    sql.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA application_id = 0x474c5642; PRAGMA user_version = 1")
        .unwrap();
    sql.execute_batch(include_str!("../../src/sqlite/schema.v1.sql")).unwrap();
    sql.execute("ATTACH ? AS now", [from.join("store.db").to_str().unwrap()]).unwrap();
    let names = |query: &str| -> Vec<String> {
        sql.prepare(query).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    for table in names("SELECT name FROM main.sqlite_schema WHERE type = 'table'") {
        let columns = names(&format!("SELECT name FROM pragma_table_info('{table}', 'main')")).join(", ");
        sql.execute(&format!("INSERT INTO main.{table} ({columns}) SELECT {columns} FROM now.{table}"), []).unwrap();
    }
    folder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_used_for_long_is_brought_up_to_date() {
    const ACTIONS: usize = 3000;
    let fresh = std::sync::Arc::new(Fresh::new());
    let callers: Vec<_> = (0..ACTIONS)
        .map(|n| {
            let fresh = fresh.clone();
            tokio::spawn(async move {
                let mut action = action(&log(&format!("s-{}", n % 7)), numbered("a", n).as_str());
                action.task = of(&format!("task-{}", n % 50));
                fresh.store.commit(request(&action)).await.unwrap();
                if n % 3 == 0 {
                    let approval = approval(numbered("q", n).as_str(), b"i", 2000);
                    fresh.store.commit(ask(&mut action, approval)).await.unwrap();
                    fresh.store.commit(answer(&mut action, Answered::Approve, 2500)).await.unwrap();
                }
                // A task in which nothing ran was only asked about.
                if n % 50 > 1 {
                    fresh.store.commit(claim(&mut action, 3000)).await.unwrap();
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let checkpoint = fresh.store.checkpoint(4000).unwrap();
    let before: Vec<_> = (0..50).map(|n| fresh.store.task(&house(), &of(&format!("task-{n}"))).unwrap()).collect();
    assert!(before.iter().all(|seen| seen.used.asks == 20) && before[0].used.actions == 0, "{before:?}");

    let folder = first_version(fresh.folder.path());
    let store = opened(folder.path());
    let report = store.verify(Some(&checkpoint)).unwrap();
    assert!(report.sound(), "{:?}", report.findings);
    for (n, before) in before.iter().enumerate() {
        assert_eq!(store.task(&house(), &of(&format!("task-{n}"))).unwrap(), *before, "task-{n}");
    }
    // What was there before goes on, and what is new has its place.
    let mut old = store.action(&house(), &numbered("a", 7)).unwrap().unwrap();
    store.commit(end(&mut old, 5000)).await.unwrap();
    let mut next = action(&log("s-0"), "next");
    (next.task, next.turn) = (of("task-0"), Some(1));
    store.commit(open_task(&task(&log("s-0"), "task-0"))).await.unwrap();
    store.commit(request(&next)).await.unwrap();
    let filter = ActionFilter { task: Some(of("task-0")), turn: Some(1), ..Default::default() };
    assert_eq!(store.actions(&house(), &filter).unwrap().items, [next]);
    assert!(store.verify(Some(&checkpoint)).unwrap().sound());
    assert_eq!(Sqlite::check(folder.path()).unwrap(), Vec::<String>::new());
}
