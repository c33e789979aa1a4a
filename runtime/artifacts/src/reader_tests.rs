use env_contracts::{Code, Diagnose};

use crate::testing::{Fixture, LARGE, large};

#[tokio::test]
async fn damage_is_found_before_content_looks_complete() {
    let fixture = Fixture::new();
    let content = large();
    let stored = fixture.put("a", &content).await;
    let (last, half) = (content.len() - 1, content.len() / 2);
    let damages = [
        ("a flipped bit at the end", last, content.len()),
        ("a flipped bit at the start", 0, content.len()),
        ("a missing end", 0, half),
    ];
    for (what, flipped, length) in damages {
        let mut bytes = content.clone();
        bytes[flipped] ^= 1;
        bytes.truncate(length);
        fs_err::write(fixture.blob(&stored), &bytes).unwrap();
        let error = match fixture.store.get(&stored.uri).await {
            Err(error) => error,
            Ok(mut reader) => {
                let mut read = 0;
                let error = loop {
                    match reader.next_chunk().await {
                        Ok(Some(chunk)) => read += chunk.len(),
                        Ok(None) => panic!("{what} was not found"),
                        Err(error) => break error,
                    }
                };
                assert!(read < LARGE, "{what}: all of it was handed out");
                assert!(reader.next_chunk().await.is_err(), "{what}: a second try must fail too");
                error
            }
        };
        assert_eq!(error.code(), Code::ArtifactCorrupt, "{what}: {error}");
    }
    fs_err::remove_file(fixture.blob(&stored)).unwrap();
    assert_eq!(fixture.read(&stored).await.unwrap_err().code(), Code::ArtifactCorrupt);

    // Storing the same again repairs it.
    fixture.put("b", &content).await;
    assert!(fixture.read(&stored).await.unwrap() == content);
}

#[tokio::test]
async fn parts_are_read_by_their_place() {
    let fixture = Fixture::new();
    let content = large();
    let stored = fixture.put("a", &content).await;
    let size = content.len();
    for (offset, max) in [(0, 0), (0, 7), (5, 100_000), (LARGE - 3, 10), (size, 10), (size + 9, 10), (3, usize::MAX)] {
        let part = fixture.store.range(&stored.uri, offset as u64, max).await.unwrap();
        let from = offset.min(size);
        assert!(part == content[from..from.saturating_add(max).min(size)], "{max} from {offset}");
    }
    fs_err::write(fixture.blob(&stored), &content[..size / 2]).unwrap();
    let cut = fixture.store.range(&stored.uri, 0, 7).await.unwrap_err();
    assert_eq!(cut.code(), Code::ArtifactCorrupt);
    fs_err::remove_file(fixture.blob(&stored)).unwrap();
    assert_eq!(fixture.store.range(&stored.uri, 0, 7).await.unwrap_err().code(), Code::ArtifactCorrupt);
    let unknown = fixture.store.range(&"artifact/nobody/1".parse().unwrap(), 0, 7).await;
    assert_eq!(unknown.unwrap_err().code(), Code::ArtifactUnknown);
}
