use super::*;
use crate::testing::{Fixture, THEN, later, now_ms};
use crate::{ArtifactMeta, Error};

fn keep(max_age_ms: Option<u64>, max_bytes: Option<u64>, now_ms: u64) -> Retention {
    Retention { max_age_ms, max_bytes, now_ms }
}

/// Divides artifacts, given as (name, content, size, made at, kept until), and
/// compares the names of those that go.
fn check(retention: Retention, artifacts: &[(&str, &str, u64, u64, Option<u64>)], wanted: &[&str]) {
    let records = artifacts.iter().map(|(name, content, size, created_ms, keep_until_ms)| ArtifactRecord {
        uri: ArtifactUri::new("a", 1),
        sha256: Digest::of(content.as_bytes()),
        size: *size,
        media_type: "text/plain".into(),
        name: (*name).into(),
        label: env_contracts::Label::default(),
        producer: "p".into(),
        created_ms: *created_ms,
        keep_until_ms: *keep_until_ms,
    });
    let (dropped, kept) = retention.choose(records.collect());
    let names: Vec<&str> = dropped.iter().map(|record| record.name.as_str()).collect();
    assert_eq!(names, wanted);
    assert_eq!(dropped.len() + kept.len(), artifacts.len());
}

#[test]
fn age_then_quota_oldest_first() {
    let artifacts = [("old", "x", 10, 100, None), ("mid", "y", 20, 200, None), ("new", "z", 30, 300, None)];
    check(keep(None, None, 1000), &artifacts, &[]);
    check(keep(Some(800), None, 1000), &artifacts, &["old"]);
    check(keep(Some(900), None, 1000), &artifacts, &[]);
    check(keep(None, Some(60), 1000), &artifacts, &[]);
    check(keep(None, Some(59), 1000), &artifacts, &["old"]);
    check(keep(None, Some(30), 1000), &artifacts, &["old", "mid"]);
    check(keep(None, Some(0), 1000), &artifacts, &["old", "mid", "new"]);
    check(keep(Some(800), Some(30), 1000), &artifacts, &["old", "mid"]);
    // A clock that went backwards makes nothing old.
    check(keep(Some(0), None, 50), &artifacts, &[]);
}

#[test]
fn equal_content_counts_once_and_is_free_with_its_last_name() {
    let artifacts = [("old", "x", 10, 100, None), ("mid", "y", 20, 200, None), ("new", "x", 10, 300, None)];
    check(keep(None, Some(30), 1000), &artifacts, &[]);
    check(keep(None, Some(29), 1000), &artifacts, &["old", "mid"]);
}

#[test]
fn what_must_be_kept_is_kept() {
    let artifacts =
        [("held", "x", 10, 100, Some(1001)), ("past", "y", 20, 200, Some(1000)), ("new", "z", 30, 300, None)];
    check(keep(Some(0), None, 1000), &artifacts, &["past", "new"]);
    check(keep(None, Some(30), 1000), &artifacts, &["past", "new"]);
}

#[tokio::test]
async fn collection_takes_entries_then_blobs() {
    let fixture = Fixture::new();
    let old = fixture.put_at("a", b"old", THEN).await;
    let shared = fixture.put_at("a", b"both", THEN).await;
    let new = fixture.put_at("b", b"both", later()).await;
    let before = fixture.files();

    let retention = keep(Some(1000), None, later());
    let plan = fixture.store.gc(retention, true).await.unwrap();
    assert_eq!(fixture.files(), before, "a dry run changed something");
    let report = fixture.store.gc(retention, false).await.unwrap();
    assert_eq!(report, plan);
    assert_eq!(report.dropped, [old.clone(), shared]);
    assert_eq!((report.kept, report.kept_bytes, report.blobs, report.blob_bytes), (1, 4, 1, 3));
    assert_eq!(fixture.list().await.artifacts, std::slice::from_ref(&new));
    assert_eq!(fixture.read(&new).await.unwrap(), b"both");
    assert!(!fixture.blob(&old).exists());
    assert!(!fixture.folder.path().join("tenant/index/a").exists(), "an empty folder stayed");
}

#[tokio::test]
async fn a_crash_between_blob_and_entry_leaves_only_a_blob_that_goes() {
    let fixture = Fixture::new();
    let action = fixture.store.action("a").unwrap();
    let staged = action.stage(&b"content"[..], 100).await.unwrap();
    action.place_blob(&staged).await.unwrap();
    drop((action, staged));
    assert!(fixture.list().await.artifacts.is_empty());

    let fresh = fixture.store.gc(keep(None, None, now_ms() + BLOB_GRACE_MS / 2), false).await.unwrap();
    assert_eq!((fresh.blobs, fixture.files().len()), (0, 1), "a fresh blob may be about to get its entry");
    assert_eq!((fresh.fresh, fresh.fresh_bytes), (1, 7));
    let report = fixture.store.gc(keep(None, None, later()), false).await.unwrap();
    assert_eq!((report.blobs, report.blob_bytes, report.fresh, fixture.files().len()), (1, 7, 0, 0));
}

#[tokio::test]
async fn a_blob_that_is_put_again_is_fresh_again() {
    let fixture = Fixture::new();
    let stored = fixture.put("a", b"content").await;
    fixture.store.remove(&stored.uri).await.unwrap();
    // It is older than the grace period when another process puts the same.
    let blob = fs_err::File::options().write(true).open(fixture.blob(&stored)).unwrap();
    let hours_ago = blob.metadata().unwrap().modified().unwrap() - std::time::Duration::from_secs(2 * 3600);
    blob.file().set_modified(hours_ago).unwrap();
    let now = now_ms();
    assert_eq!(fixture.store.gc(keep(None, None, now), true).await.unwrap().blobs, 1);

    let (unnamed, _) = fixture.store.unnamed_blobs(&HashSet::new(), now).await.unwrap();
    let again = fixture.put("b", b"content").await;
    // The collection decided before the put, and looks again.
    assert!(fixture.store.drop_blobs(&unnamed, now).await.unwrap().is_empty());
    assert_eq!(fixture.read(&again).await.unwrap(), b"content");
}

#[tokio::test]
async fn while_an_entry_is_unreadable_no_blob_goes() {
    let fixture = Fixture::new();
    let stored = fixture.put("a", b"content").await;
    fs_err::write(fixture.folder.path().join("tenant/index/a/1.json"), "from a later version").unwrap();
    let report = fixture.store.gc(keep(Some(0), Some(0), later()), false).await.unwrap();
    assert_eq!((report.unreadable, report.blobs), (vec![stored.uri.clone()], 0));
    assert!(fixture.blob(&stored).exists());
}

#[tokio::test]
async fn collection_and_publication_exclude_each_other() {
    let fixture = Fixture::new();
    let stored = fixture.put("a", b"content").await;
    let alone = fixture.store.folder.lock(false).await.unwrap();
    let (store, uri) = (fixture.store.clone(), stored.uri.clone());
    let put = tokio::spawn(async move {
        let action = store.action("b")?;
        action.put(ArtifactMeta::new("n", "p", THEN), &b"more"[..], 10).await
    });
    // As much as it could do without the lock, it does now.
    for _ in 0..50 {
        tokio::task::yield_now().await;
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    assert_eq!(fixture.list().await.artifacts.len(), 1);
    assert!(!put.is_finished());
    drop(alone);
    put.await.unwrap().unwrap();
    assert!(matches!(fixture.store.get(&uri).await, Ok(_) | Err(Error::Unknown(_))));
    assert_eq!(fixture.list().await.artifacts.len(), 2);
}

#[tokio::test]
async fn puts_during_collections_keep_their_content() {
    let fixture = Fixture::new();
    let store = fixture.store.clone();
    let collecting = tokio::spawn(async move {
        for _ in 0..20 {
            store.gc(keep(None, None, now_ms()), false).await.unwrap();
        }
    });
    for round in 0..20 {
        let stored = fixture.put("a", format!("{}", round % 3).as_bytes()).await;
        fixture.read(&stored).await.unwrap();
        if round % 2 == 0 {
            fixture.store.remove(&stored.uri).await.unwrap();
        }
    }
    collecting.await.unwrap();
    for record in fixture.list().await.artifacts {
        fixture.read(&record).await.unwrap();
    }
}
