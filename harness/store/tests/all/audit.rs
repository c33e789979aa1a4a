//! What an audit finds when somebody who can write the file has changed it.

use env_contracts::digest::Hasher;
use env_contracts::{Digest, Id};
use glovebox_events::{LogKey, Logged, Owner, Payload, PayloadRole};
use glovebox_store::{AuditFault, AuditReport, Checkpoint, ExportError, ExportFilter, ExportFormat, Sqlite, Store};
use rusqlite::{Connection, params};

use crate::sqlite::Fresh;
use crate::suite::made::*;
use crate::suite::opened::*;

/// Two sessions: in `s` the actions `a` and `b`, three events each; in `t` one
/// event of `c`.
async fn filled() -> Fresh {
    let fresh = Fresh::new();
    for id in ["a", "b"] {
        let mut action = action(&log("s"), id);
        fresh.store.commit(request(&action)).await.unwrap();
        fresh.store.commit(claim(&mut action, 2000)).await.unwrap();
        fresh.store.commit(end(&mut action, 2001)).await.unwrap();
    }
    fresh.store.commit(request(&action(&log("t"), "c"))).await.unwrap();
    fresh
}

/// The file, for somebody who goes past the store.
fn intruder(fresh: &Fresh) -> Connection {
    let sql = Connection::open(fresh.folder.path().join("store.db")).unwrap();
    sql.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    sql
}

/// At which event, and what.
type Found = Vec<(Option<u64>, AuditFault)>;

fn found(report: &AuditReport) -> Found {
    assert_eq!(report.sound(), report.findings.is_empty());
    report.findings.iter().map(|finding| (finding.seq, finding.fault.clone())).collect()
}

#[tokio::test]
async fn what_nobody_touched_is_sound() {
    let fresh = filled().await;
    let checkpoint = fresh.store.checkpoint(3000).unwrap();
    let report = fresh.store.verify(Some(&checkpoint)).unwrap();
    assert_eq!(found(&report), []);
    assert_eq!((report.logs, report.events, report.payloads, report.erased), (2, 7, 5, 0));
    // What is erased in the right way is still sound, and so is what came later.
    fresh.store.erase(&house(), &Owner::Action(of("a")), &of("bob"), 4000).await.unwrap();
    let report = fresh.store.verify(Some(&checkpoint)).unwrap();
    assert_eq!(found(&report), []);
    assert_eq!((report.events, report.payloads, report.erased), (8, 3, 2));
}

#[tokio::test]
async fn every_change_is_found_where_it_is() {
    let lost =
        |action: &str, content: &[u8]| AuditFault::PayloadLost { action: of(action), sha256: Digest::of(content) };
    let changed = AuditFault::PayloadChanged { action: of("a"), sha256: Digest::of(b"{}") };
    let words = submission("a").into_bytes();
    let cases: Vec<(&str, Found)> = vec![
        (
            "UPDATE events SET body = replace(body, 'policy', 'polite') WHERE seq = 2",
            vec![(Some(2), AuditFault::Edited)],
        ),
        ("UPDATE events SET at_ms = at_ms - 1 WHERE seq = 6", vec![(Some(6), AuditFault::Edited)]),
        ("UPDATE events SET action = 1 WHERE seq = 5", vec![(Some(5), AuditFault::Edited)]),
        ("UPDATE events SET action = NULL WHERE seq = 5", vec![(Some(5), AuditFault::Edited)]),
        // A changed hash breaks itself and the link of the next.
        (
            "UPDATE events SET hash = zeroblob(32) WHERE seq = 3",
            vec![(Some(3), AuditFault::Edited), (Some(4), AuditFault::Edited)],
        ),
        // So does a change of owner, everywhere.
        ("UPDATE logs SET session = 'u' WHERE session = 't'", vec![(Some(1), AuditFault::Edited)]),
        ("UPDATE logs SET tenant = 'mine' WHERE session = 't'", vec![(Some(1), AuditFault::Edited)]),
        ("DELETE FROM events WHERE seq = 4", vec![(Some(5), AuditFault::Gap { expected: 4 })]),
        ("DELETE FROM events WHERE seq = 6", vec![(None, AuditFault::HeadMismatch)]),
        ("UPDATE logs SET head = zeroblob(32) WHERE session = 't'", vec![(None, AuditFault::HeadMismatch)]),
        (
            "INSERT INTO events (log, seq, at_ms, body, hash) SELECT log, 7, at_ms, body, hash FROM events WHERE seq = 6",
            vec![(Some(7), AuditFault::Edited), (None, AuditFault::HeadMismatch)],
        ),
        ("DELETE FROM logs WHERE session = 't'", vec![(None, AuditFault::LogLost { events: 1 })]),
        ("UPDATE payloads SET bytes = '{1}' WHERE role = 'observation' AND action = 1", vec![(None, changed)]),
        ("UPDATE payloads SET bytes = NULL WHERE role = 'submission' AND action = 1", vec![(None, lost("a", &words))]),
        ("DELETE FROM payloads WHERE role = 'submission' AND action = 1", vec![(Some(1), lost("a", &words))]),
    ];
    for (change, expected) in cases {
        let fresh = filled().await;
        let changed = intruder(&fresh).execute(change, []).unwrap();
        assert!(changed > 0, "{change}");
        let report = fresh.store.verify(None).unwrap();
        // A log that is gone takes the owners of its payloads with it.
        assert_eq!(found(&report), expected, "{change}");
        for finding in &report.findings {
            assert!(!finding.to_string().is_empty());
        }
    }
}

#[tokio::test]
async fn what_is_missing_or_changed_of_a_task_is_found() {
    let lost = |words: &str| AuditFault::TextLost { task: of("one"), sha256: Digest::of(words.as_bytes()) };
    let changed = AuditFault::TextChanged { task: of("one"), sha256: Digest::of(b"faster") };
    let goal = goal("one");
    let cases: Vec<(&str, Found)> = vec![
        ("UPDATE texts SET bytes = 'slower' WHERE role = 'remark'", vec![(None, changed)]),
        ("UPDATE texts SET bytes = NULL WHERE role = 'goal' AND task = 'one'", vec![(None, lost(&goal))]),
        ("DELETE FROM texts WHERE role = 'goal' AND task = 'one'", vec![(Some(1), lost(&goal))]),
        ("DELETE FROM texts WHERE role = 'remark'", vec![(Some(3), lost("faster"))]),
        ("DELETE FROM texts WHERE role = 'question'", vec![(Some(4), lost("which of the two?"))]),
        ("DELETE FROM texts WHERE role = 'answer'", vec![(Some(5), lost("green"))]),
        ("DELETE FROM texts WHERE role = 'start'", vec![(Some(6), lost("what it was told"))]),
        (
            "UPDATE events SET body = replace(body, 'steer-2', 'steer-3') WHERE seq = 3",
            vec![(Some(3), AuditFault::Edited)],
        ),
    ];
    for (change, expected) in cases {
        let fresh = Fresh::new();
        let (mut one, two) = (task(&log("s"), "one"), task(&log("s"), "two"));
        let mut asked = question(&one, "q", "colour");
        fresh.store.commit(open_task(&one)).await.unwrap();
        fresh.store.commit(open_task(&two)).await.unwrap();
        fresh.store.commit(steer(&mut one, "faster")).await.unwrap();
        fresh.store.commit(open_question(&asked)).await.unwrap();
        fresh.store.commit(answer_question(&mut asked, "green")).await.unwrap();
        fresh.store.commit(open_turn(&mut one)).await.unwrap();
        // What is erased in the right way is no fault, and excuses no other.
        fresh.store.erase(&house(), &Owner::Task(two.id), &of("bob"), 4000).await.unwrap();
        let report = fresh.store.verify(None).unwrap();
        assert_eq!(found(&report), []);
        assert_eq!((report.events, report.payloads, report.erased), (7, 5, 1));
        assert!(intruder(&fresh).execute(change, []).unwrap() > 0, "{change}");
        let report = fresh.store.verify(None).unwrap();
        assert_eq!(found(&report), expected, "{change}");
        assert!(!report.findings[0].to_string().is_empty());
    }
}

#[tokio::test]
async fn whoever_writes_the_log_anew_is_found_with_a_checkpoint() {
    let fresh = filled().await;
    let signed = fresh.store.checkpoint(3000).unwrap().to_bytes();
    let checkpoint = Checkpoint::from_bytes(&signed).unwrap();
    assert_eq!(checkpoint.logs.iter().map(|head| head.seq).collect::<Vec<_>>(), [6, 1]);
    let sql = intruder(&fresh);

    // The third event is another one, and everything after it fits again.
    forge(&fresh.store, &sql);
    assert_eq!(found(&fresh.store.verify(None).unwrap()), [], "the chain alone can't tell");
    assert_eq!(found(&fresh.store.verify(Some(&checkpoint)).unwrap()), [(Some(6), AuditFault::Rewritten)]);

    // Cut off, cleanly.
    sql.execute_batch(
        "DELETE FROM events WHERE log = 1 AND seq > 4; \
         UPDATE logs SET seq = 4, head = (SELECT hash FROM events WHERE log = 1 AND seq = 4) WHERE log = 1",
    )
    .unwrap();
    assert_eq!(found(&fresh.store.verify(None).unwrap()), []);
    let cut = (None, AuditFault::Truncated { checkpoint: 6 });
    assert_eq!(found(&fresh.store.verify(Some(&checkpoint)).unwrap()), [cut]);

    // A whole session taken out.
    sql.execute_batch("DELETE FROM payloads; DELETE FROM events WHERE log = 2; DELETE FROM logs WHERE log = 2")
        .unwrap();
    let report = fresh.store.verify(Some(&checkpoint)).unwrap();
    let session = |name: &str| {
        report
            .findings
            .iter()
            .any(|finding| finding.log == Some(log(name)) && matches!(finding.fault, AuditFault::Truncated { .. }))
    };
    assert!(session("s") && session("t"), "{report:?}");

    let other = filled().await;
    let report = other.store.verify(Some(&checkpoint)).unwrap();
    assert!(found(&report).contains(&(None, AuditFault::OtherDatabase)));
}

/// Changes an event and seals everything again, as the format says.
fn forge(store: &Sqlite, sql: &Connection) {
    let mut lines = Vec::new();
    let filter = ExportFilter { tenant: Some(house()), session: Some(of("s")), ..Default::default() };
    store.export(&mut lines, ExportFormat::Ndjson, &filter).unwrap();
    let mut previous = String::new();
    for line in str::from_utf8(&lines).unwrap().lines() {
        let mut logged: Logged = serde_json::from_str(line).unwrap();
        logged.event.at_ms += u64::from(logged.seq == 3);
        let mut hasher = Hasher::new("glovebox/event/v1");
        hasher
            .part("previous", previous.as_bytes())
            .part("tenant", b"house")
            .part("session", b"s")
            .part("seq", &logged.seq.to_be_bytes())
            .part("at", &logged.event.at_ms.to_be_bytes())
            .part("action", logged.event.action.as_ref().map_or("", Id::as_str).as_bytes())
            .part("body", &serde_json::to_vec(&logged.event.what).unwrap());
        let hash = hasher.finish();
        sql.execute(
            "UPDATE events SET at_ms = ?, hash = unhex(?) WHERE log = 1 AND seq = ?",
            params![logged.event.at_ms, hash.as_str(), logged.seq],
        )
        .unwrap();
        previous = hash.to_string();
    }
    sql.execute("UPDATE logs SET head = unhex(?) WHERE log = 1", [previous]).unwrap();
}

#[tokio::test]
async fn events_are_exported_as_they_are() {
    let fresh = filled().await;
    let stranger = LogKey { tenant: of("stranger"), session: of("s") };
    fresh.store.commit(request(&action(&stranger, "x"))).await.unwrap();
    let export = |format, filter: &ExportFilter| {
        let mut lines = Vec::new();
        let count = fresh.store.export(&mut lines, format, filter).unwrap();
        let lines: Vec<serde_json::Value> =
            str::from_utf8(&lines).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len() as u64, count);
        lines
    };
    let all = export(ExportFormat::Ndjson, &ExportFilter::default());
    assert_eq!(all.len(), 8);
    let first: Logged = serde_json::from_value(all[0].clone()).unwrap();
    assert_eq!((first.log, first.seq), (log("s"), 1));
    let kinds: Vec<_> = all.iter().map(|line| line["event"]["what"]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds[..3], ["requested", "claimed", "ended"]);

    let of_house = ExportFilter { tenant: Some(house()), ..Default::default() };
    assert_eq!(export(ExportFormat::Ndjson, &of_house).len(), 7);
    let of_session = ExportFilter { session: Some(of("t")), ..of_house.clone() };
    assert_eq!(export(ExportFormat::Ndjson, &of_session).len(), 1);
    let of_times = ExportFilter { since_ms: Some(2000), before_ms: Some(2001), ..of_house.clone() };
    assert_eq!(export(ExportFormat::Ndjson, &of_times).len(), 2);
    let of_nobody = ExportFilter { session: Some(of("t")), ..Default::default() };
    let error = fresh.store.export(&mut Vec::new(), ExportFormat::Ndjson, &of_nobody).unwrap_err();
    assert!(matches!(error, ExportError::Problem(_)));

    let cloud = export(ExportFormat::CloudEvents, &of_house);
    let database = fresh.store.checkpoint(0).unwrap().database;
    assert_eq!(cloud[1]["specversion"], "1.0");
    assert_eq!(cloud[1]["type"], "dev.glovebox.claimed.v1");
    assert_eq!(cloud[1]["source"], format!("urn:glovebox:store:{database}"));
    assert_eq!(cloud[1]["id"], "house/s/2");
    assert_eq!(cloud[1]["subject"], "a");
    assert_eq!(cloud[1]["time"], "1970-01-01T00:00:02Z");
    assert_eq!(cloud[1]["datacontenttype"], "application/json");
    assert_eq!(cloud[1]["data"], all[1]);

    // What belongs to no action is of a task, a question or nobody.
    let opened = task(&log("u"), "one");
    fresh.store.commit(open_session(&session(&log("u"), None))).await.unwrap();
    fresh.store.commit(open_task(&opened)).await.unwrap();
    fresh.store.commit(open_question(&question(&opened, "q", "colour"))).await.unwrap();
    let cloud = export(ExportFormat::CloudEvents, &ExportFilter { session: Some(of("u")), ..of_house });
    let named: Vec<_> = cloud.iter().map(|line| (line["type"].as_str().unwrap(), line["subject"].as_str())).collect();
    assert_eq!(
        named,
        [
            ("dev.glovebox.session-opened.v1", None),
            ("dev.glovebox.task-opened.v1", Some("one")),
            ("dev.glovebox.question-opened.v1", Some("q")),
        ]
    );
}

#[tokio::test]
async fn what_was_erased_is_in_no_file_any_more() {
    let fresh = Fresh::new();
    let mut kept = 0;
    for id in ["a", "b"] {
        let action = action(&log("s"), id);
        let mut commit = request(&action);
        // One that lies within a page and one that fills several.
        for size in [40, 40_000] {
            let words = format!("unspeakable-{id}").repeat(size);
            commit.payloads.push(Payload::new(
                Owner::Action(action.id.clone()),
                PayloadRole::Words,
                words.into_bytes(),
            ));
        }
        fresh.store.commit(commit).await.unwrap();
    }
    let occurs = |words: &str| {
        fs_err::read_dir(fresh.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .any(|path| fs_err::read(path).unwrap().windows(words.len()).any(|window| window == words.as_bytes()))
    };
    assert!(occurs("unspeakable-a") && occurs("unspeakable-b"));
    // An open reader is in nobody's way once it has read.
    fresh.store.action(&house(), &of("a")).unwrap();
    fresh.store.erase(&house(), &Owner::Action(of("a")), &of("bob"), 9000).await.unwrap();
    assert!(!occurs("unspeakable-a"), "it is still in a file");
    let mut said = task(&log("s"), "said");
    fresh.store.commit(open_task(&said)).await.unwrap();
    fresh.store.commit(steer(&mut said, &"unutterable".repeat(4000))).await.unwrap();
    assert!(occurs("unutterable"));
    fresh.store.erase(&house(), &Owner::Task(said.id), &of("bob"), 9000).await.unwrap();
    assert!(!occurs("unutterable"), "it is still in a file");
    kept += usize::from(occurs("unspeakable-b"));
    assert_eq!(kept, 1);
}

#[tokio::test]
async fn who_still_reads_keeps_what_was_erased_and_that_is_said() {
    let fresh = Fresh::new();
    let action = action(&log("s"), "a");
    let mut commit = request(&action);
    commit.payloads.push(Payload::new(Owner::Action(action.id.clone()), PayloadRole::Words, b"unspeakable".to_vec()));
    fresh.store.commit(commit).await.unwrap();
    let reader = Connection::open(fresh.folder.path().join("store.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM payloads").unwrap();
    fresh.store.erase(&house(), &Owner::Action(of("a")), &of("bob"), 9000).await.unwrap();
    assert!(!fresh.store.scrubbed().unwrap(), "it can't be gone: somebody reads it");
    reader.execute_batch("COMMIT").unwrap();
    assert!(fresh.store.scrubbed().unwrap());
    let log = fs_err::read(fresh.folder.path().join("store.db-wal")).unwrap();
    let file = fs_err::read(fresh.folder.path().join("store.db")).unwrap();
    assert!(![log, file].iter().any(|bytes| bytes.windows(11).any(|window| window == b"unspeakable")));
}
