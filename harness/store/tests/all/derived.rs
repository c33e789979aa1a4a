//! The tables beside the log: what is taken out of them, put in or changed is
//! found, and the schema is what this version makes.

use env_contracts::{Code, Digest};
use glovebox_events::{Answered, KeyClaim, What};
use glovebox_store::{Condition, Sqlite, Store};

use crate::sqlite::Fresh;
use crate::suite::made::*;

/// A store in which everything is filed that can be.
async fn full() -> Fresh {
    let fresh = Fresh::new();
    let mut asked = action(&log("s"), "asked");
    let key = KeyClaim { scope: Digest::of(b"scope"), request: Digest::of(b"request") };
    asked.key = Some(key.clone());
    let mut requested = request(&asked);
    let free = Condition::KeyFree { scope: key.scope.clone(), request: key.request.clone(), action: asked.id.clone() };
    requested.conditions.push(free);
    let What::Requested { key: taken, .. } = &mut requested.events[0].what else { panic!("it is a request") };
    *taken = Some(key);
    fresh.store.commit(requested).await.unwrap();
    fresh.store.commit(ask(&mut asked, approval("p-1", b"intent", 2000))).await.unwrap();
    fresh.store.commit(answer(&mut asked, Answered::Edit, 3000)).await.unwrap();
    // An older approval stands in no action any more.
    fresh.store.commit(ask(&mut asked, approval("p-2", b"intent", 4000))).await.unwrap();
    fresh.store.commit(answer(&mut asked, Answered::Decline, 5000)).await.unwrap();
    let mut ran = action(&log("s"), "ran");
    fresh.store.commit(request(&ran)).await.unwrap();
    fresh.store.commit(claim(&mut ran, 2000)).await.unwrap();
    fresh.store.commit(end(&mut ran, 3000)).await.unwrap();
    fresh
}

fn changed(fresh: &Fresh, sql: &str) -> Vec<String> {
    let file = fresh.folder.path().join("store.db");
    rusqlite::Connection::open(file).unwrap().execute_batch(sql).unwrap();
    fresh.store.derived().unwrap()
}

#[tokio::test]
async fn what_was_taken_out_put_in_or_changed_beside_the_log_is_found() {
    assert_eq!(full().await.store.derived().unwrap(), Vec::<String>::new());
    let cases = [
        ("DELETE FROM keys", "the key of action `asked` is not taken"),
        ("UPDATE keys SET request = zeroblob(32)", "the key of action `asked` is not taken"),
        ("INSERT INTO keys VALUES (zeroblob(32), zeroblob(32), 'asked')", "1 rows of keys follow from no event"),
        ("DELETE FROM claims", "the run of action `ran` is not counted"),
        ("UPDATE claims SET at_ms = 1", "the run of action `ran` is not counted"),
        (
            "INSERT INTO claims SELECT tenant, capability, 7, action FROM claims",
            "1 rows of claims follow from no event",
        ),
        ("DELETE FROM approvals WHERE id = 'p-1'", "approval `p-1` is in the log and not filed"),
        ("DELETE FROM approvals WHERE id = 'p-2'", "approval `p-2` is in the log and not filed"),
        (
            "UPDATE approvals SET body = CAST(replace(CAST(body AS TEXT), '\"edited\"', '\"approved\"') AS BLOB) WHERE id = 'p-1'",
            "approval `p-1` is not what the log says",
        ),
        (
            "INSERT INTO approvals (tenant, id, action, log, task, intent, state, opened_ms, body) \
             SELECT tenant, 'p-3', action, log, task, intent, state, opened_ms, body FROM approvals WHERE id = 'p-1'",
            "1 rows of approvals follow from no event",
        ),
        ("DELETE FROM tasks", "what task `task-1` used is not filed"),
        ("UPDATE tasks SET run_us = 0", "what task `task-1` used is not what the log adds up to"),
        (
            "INSERT INTO tasks (tenant, task, actions, run_us, artifact_bytes) VALUES ('house', 'more', 1, 0, 0)",
            "what task `more` used is not what the log adds up to",
        ),
    ];
    for (sql, fault) in cases {
        assert_eq!(changed(&full().await, sql), [fault], "{sql}");
    }
}

#[tokio::test]
async fn a_schema_that_is_not_the_one_this_version_makes_is_listed() {
    for (sql, fault) in [
        (
            "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM claims; END",
            "trigger `t` is none that this version makes",
        ),
        ("CREATE VIEW v AS SELECT 1", "view `v` is none that this version makes"),
        ("CREATE TABLE more (x)", "table `more` is none that this version makes"),
        ("DROP INDEX approvals_due", "index `approvals_due` is missing"),
        (
            "DROP INDEX approvals_due; CREATE INDEX approvals_due ON approvals (state)",
            "index `approvals_due` is not what this version makes",
        ),
        ("INSERT INTO facts VALUES ('more', x'00')", "fact `more` is none that this version knows"),
    ] {
        let fresh = full().await;
        changed(&fresh, sql);
        assert_eq!(Sqlite::check(fresh.folder.path()).unwrap(), [fault], "{sql}");
    }
}

#[tokio::test]
async fn a_version_that_was_taken_away_is_no_new_file() {
    for version in [0, -1] {
        let Fresh { store, folder } = full().await;
        drop(store);
        let file = folder.path().join("store.db");
        rusqlite::Connection::open(file).unwrap().pragma_update(None, "user_version", version).unwrap();
        let opened = Sqlite::open(folder.path(), &glovebox_store::Options::default()).map(drop).unwrap_err();
        let checked = Sqlite::check(folder.path()).unwrap_err();
        for problem in [opened, checked] {
            assert_eq!(problem.code, Code::StoreCorrupt, "{}", words(&problem));
            assert!(problem.message.contains("there is none below 1"), "{}", words(&problem));
        }
    }
}
