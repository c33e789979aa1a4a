use std::io::{self, Cursor, Read};

use env_contracts::{Code, Diagnose};

use super::*;
use crate::testing::{Fixture, LARGE, THEN, large};
use crate::{ArtifactMeta, LEFTOVER_AGE_MS};

#[tokio::test]
async fn what_is_put_is_got() {
    let fixture = Fixture::new();
    let part = 5 * 1024 * 1024;
    for content in [&b""[..], b"x", &large()[..part - 1], &large()[..part], &large()[..part + 1], &large()] {
        let stored = fixture.put("a", content).await;
        assert_eq!((stored.size, &stored.sha256), (content.len() as u64, &Digest::of(content)));
        assert!(fixture.read(&stored).await.unwrap() == content);
        assert_eq!(fixture.store.record(&stored.uri).await.unwrap(), stored);
    }
    assert!(
        fixture.files().iter().all(|file| !file.contains("incoming") && !file.contains('#')),
        "{:?}",
        fixture.files()
    );
}

#[tokio::test]
async fn equal_bytes_are_stored_once_in_a_tenant_and_never_across() {
    let fixture = Fixture::new();
    for content in [b"same".to_vec(), large()] {
        let one = fixture.put("a", &content).await;
        let two = fixture.put("b", &content).await;
        assert!(one.uri != two.uri && one.sha256 == two.sha256);
        assert_eq!(fixture.files().iter().filter(|file| file.ends_with(one.sha256.as_str())).count(), 1);

        let other = Fixture {
            store: ArtifactStore::open(fixture.folder.path(), "other").unwrap(),
            folder: tempfile::tempdir().unwrap(),
        };
        assert!(matches!(other.read(&one).await, Err(Error::Unknown(_))));
        other.put("a", &content).await;
        assert_eq!(fixture.files().iter().filter(|file| file.ends_with(one.sha256.as_str())).count(), 2);
    }
}

#[tokio::test]
async fn damaged_entries_are_named_and_can_be_removed() {
    let fixture = Fixture::new();
    let stored = fixture.put("a", b"x").await;
    let fine = fixture.put("a", b"y").await;
    fs_err::write(fixture.folder.path().join("tenant/index/a/1.json"), "{\"schema\":").unwrap();
    fs_err::write(fixture.folder.path().join("tenant/index/a/not-ours"), "").unwrap();
    assert_eq!(fixture.read(&stored).await.unwrap_err().code(), Code::ArtifactCorrupt);
    assert_eq!(fixture.list().await, Listing { artifacts: vec![fine], unreadable: vec![stored.uri.clone()] });
    fixture.store.remove(&stored.uri).await.unwrap();
    assert!(fixture.list().await.unreadable.is_empty());
}

#[tokio::test]
async fn listing_and_removing() {
    let fixture = Fixture::new();
    let second = fixture.put_at("a", b"2", THEN + 1).await;
    let first = fixture.put_at("b", b"1", THEN).await;
    assert_eq!(fixture.list().await.artifacts, [first.clone(), second.clone()]);
    let of = |action: Option<&str>, producer: Option<&str>| Filter {
        action: action.map(Into::into),
        producer: producer.map(Into::into),
    };
    for (filter, wanted) in [
        (of(Some("a"), None), vec![&second]),
        (of(Some("none"), None), vec![]),
        (of(None, Some("test")), vec![&first, &second]),
        (of(None, Some("else")), vec![]),
    ] {
        let found = fixture.store.list(&filter).await.unwrap().artifacts;
        assert_eq!(found.iter().collect::<Vec<_>>(), wanted, "{filter:?}");
    }
    assert_eq!(fixture.store.list(&of(Some("../x"), None)).await.unwrap_err().code(), Code::Usage);

    fixture.store.remove(&first.uri).await.unwrap();
    for result in [fixture.store.remove(&first.uri).await, fixture.read(&first).await.map(drop)] {
        assert_eq!(result.unwrap_err().code(), Code::ArtifactUnknown);
    }
    assert_eq!(fixture.list().await.artifacts, [second]);
    assert!(!fixture.folder.path().join("tenant/index/b").exists(), "an empty folder stayed");
}

#[tokio::test]
async fn numbers_are_not_given_twice() {
    let fixture = Fixture::new();
    let action = fixture.store.action("a").unwrap();
    let meta = || ArtifactMeta::new("n", "p", THEN);
    let first = action.put(meta(), &b"1"[..], 10).await.unwrap();
    fixture.store.remove(&first.uri).await.unwrap();
    // Meanwhile another process stores for the same action.
    for number in 1..=3 {
        assert_eq!(fixture.put("a", b"x").await.uri.number(), number);
    }
    assert_eq!(action.put(meta(), &b"2"[..], 10).await.unwrap().uri.number(), 4);
}

#[tokio::test]
async fn concurrent_puts_lose_nothing() {
    let fixture = Fixture::new();
    let root = fixture.folder.path().to_owned();
    let tasks: Vec<_> = (0..8_u8)
        .map(|task| {
            // A store of its own each, as in another process.
            let store = ArtifactStore::open(&root, "tenant").unwrap();
            tokio::spawn(async move {
                let action = store.action("a").unwrap();
                for round in 0..5_u8 {
                    let content = vec![round; if task == 0 { LARGE } else { 10 }];
                    action
                        .put(ArtifactMeta::new(format!("{task}-{round}"), "p", THEN), Cursor::new(content), u64::MAX)
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let listing = fixture.list().await;
    let numbers: Vec<u64> = listing.artifacts.iter().map(|record| record.uri.number()).collect();
    assert_eq!(listing.artifacts.len(), 40);
    assert_eq!(numbers.len(), numbers.iter().collect::<BTreeSet<_>>().len());
    for record in &listing.artifacts {
        fixture.read(record).await.unwrap();
    }
    assert_eq!(fixture.files().iter().filter(|file| file.contains("blobs")).count(), 10);
}

#[tokio::test]
async fn refused_content_leaves_nothing() {
    struct Broken(usize);
    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let given = buffer.len().min(self.0);
            self.0 -= given;
            if given == 0 { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(given) }
        }
    }
    let fixture = Fixture::new();
    let action = fixture.store.action("a").unwrap();
    let meta = || ArtifactMeta::new("n", "p", THEN);
    for size in [10, LARGE] {
        let content = Cursor::new(vec![0; size]);
        let error = action.put(meta(), content.clone(), size as u64 - 1).await.unwrap_err();
        assert_eq!(error.code(), Code::LimitHit);
        assert!(action.put(meta(), Broken(size), u64::MAX).await.is_err());
        assert_eq!(fixture.files(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_put_that_is_dropped_midway_is_swept() {
    let fixture = Fixture::new();
    let object = fixture.store.path(["incoming", "x"]);
    let mut upload = fixture.store.objects.put_multipart(&object).await.unwrap();
    upload.put_part(large().into()).await.unwrap();
    // As if the process were killed here: no destructor runs.
    std::mem::forget(upload);
    fixture.store.objects.put(&fixture.store.path(["incoming", "y"]), "whole".into()).await.unwrap();
    assert_eq!(fixture.files(), ["tenant/incoming/x#1", "tenant/incoming/y"]);

    let now = crate::testing::now_ms();
    let collect = |now_ms| fixture.store.gc(crate::Retention { max_age_ms: None, max_bytes: None, now_ms }, false);
    assert_eq!(collect(now + LEFTOVER_AGE_MS / 2).await.unwrap().leftovers, 0);
    let report = collect(now + LEFTOVER_AGE_MS * 2).await.unwrap();
    assert_eq!((report.leftovers, report.leftover_bytes), (2, LARGE as u64 + 5));
    assert_eq!(fixture.files(), Vec::<String>::new());
}

#[tokio::test]
async fn folders_that_cannot_be_used_are_coded_errors() {
    let fixture = Fixture::new();
    let file = fixture.folder.path().join("file");
    fs_err::write(&file, "").unwrap();
    for folder in [file.as_path(), &file.join("below"), Path::new("/proc/none"), Path::new("/sys/none")] {
        let error = ArtifactStore::open(folder, "tenant").unwrap_err();
        assert_eq!(error.code(), Code::StateUnavailable, "{}: {error}", folder.display());
    }
    for tenant in ["", "..", "a/b", "-a"] {
        assert_eq!(ArtifactStore::open(fixture.folder.path(), tenant).unwrap_err().code(), Code::Usage);
        assert_eq!(fixture.store.action(tenant).unwrap_err().code(), Code::Usage);
    }
}

#[test]
fn the_folder_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let mode = fs_err::metadata(fixture.folder.path().join("tenant")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

/// Servers run all of this on several threads.
#[test]
fn futures_can_be_sent() {
    fn check<T: Send>(_: &T) {}
    let fixture = Fixture::new();
    let uri: ArtifactUri = "artifact/a/1".parse().unwrap();
    let action = ActionArtifacts::new(fixture.store.clone(), "a".into());
    let file = tempfile::tempfile().unwrap();
    check(&fixture.store.get(&uri));
    check(&fixture.store.list(&Filter::default()));
    check(&fixture.store.remove(&uri));
    check(&fixture.store.gc(crate::Retention { max_age_ms: None, max_bytes: None, now_ms: 0 }, false));
    check(&action.put(ArtifactMeta::new("n", "p", 0), io::empty(), 0));
    check(&action.collect_outputs(
        std::os::fd::AsFd::as_fd(&file),
        crate::CollectLimits::default(),
        &crate::OutputsMeta::default(),
    ));
}

/// An event must never be ahead of the bytes it names. Whether they survive a
/// power cut can't be tried here; that we ask for it can.
#[test]
fn writes_are_durable() {
    let fixture = Fixture::new();
    assert!(format!("{:?}", fixture.store.objects).contains("fsync: true"), "{:?}", fixture.store.objects);
}
