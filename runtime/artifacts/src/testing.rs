//! What the tests of this crate share.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::{ArtifactMeta, ArtifactRecord, ArtifactStore, Error, Filter, Listing};

/// Larger than any part, so that content takes the way of large content.
pub(crate) const LARGE: usize = 11 * 1024 * 1024;

/// Content that takes the way of large content.
pub(crate) fn large() -> Vec<u8> {
    (0..251_u8).cycle().take(LARGE).collect()
}

/// A time in the past, in milliseconds; files made now are newer.
pub(crate) const THEN: u64 = 1_700_000_000_000;

/// A time at which whatever a test just made is old.
pub(crate) fn later() -> u64 {
    now_ms() + 2 * crate::BLOB_GRACE_MS
}

/// The time by which the file system stamps files.
pub(crate) fn now_ms() -> u64 {
    let file = tempfile::tempfile().unwrap();
    let since = file.metadata().unwrap().modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

/// A store of its own in a folder of its own.
pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) store: ArtifactStore,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = ArtifactStore::open(folder.path(), "tenant").unwrap();
        Self { folder, store }
    }

    /// Stores bytes as the next artifact of an action.
    pub(crate) async fn put(&self, action: &str, content: &[u8]) -> ArtifactRecord {
        self.put_at(action, content, THEN).await
    }

    pub(crate) async fn put_at(&self, action: &str, content: &[u8], created_ms: u64) -> ArtifactRecord {
        let content = std::io::Cursor::new(content.to_vec());
        self.store
            .action(action)
            .unwrap()
            .put(ArtifactMeta::new("name", "test", created_ms), content, u64::MAX)
            .await
            .unwrap()
    }

    pub(crate) async fn read(&self, record: &ArtifactRecord) -> Result<Vec<u8>, Error> {
        self.store.get(&record.uri).await?.into_bytes(u64::MAX).await
    }

    pub(crate) async fn list(&self) -> Listing {
        self.store.list(&Filter::default()).await.unwrap()
    }

    /// All files of all tenants, relative and sorted, without locks.
    pub(crate) fn files(&self) -> Vec<String> {
        files_below(self.folder.path().to_owned())
    }

    pub(crate) fn blob(&self, record: &ArtifactRecord) -> PathBuf {
        self.folder.path().join(self.store.blob_path(&record.sha256).as_ref())
    }
}

fn files_below(root: PathBuf) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().unwrap() != "lock" {
                found.push(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}
