//! Storing the artifacts of one action.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use env_contracts::Digest;
use object_store::path::Path as ObjectPath;
use object_store::{MultipartUpload, ObjectStoreExt, PutMode};
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

use crate::error::Error;
use crate::media;
use crate::record::{ArtifactMeta, ArtifactRecord};
use crate::store::ArtifactStore;
use crate::uri::ArtifactUri;

/// How much is read, hashed and written at a time. S3 takes no smaller parts
/// than this; content that fits one is written in a single step.
const PART: u64 = 5 * 1024 * 1024;

/// Where one action stores its artifacts. See [`ArtifactStore::action`].
#[derive(Debug)]
pub struct ActionArtifacts {
    store: ArtifactStore,
    action: String,
    /// The next number, once somebody looked which are taken: most actions
    /// store nothing.
    next: OnceCell<AtomicU64>,
}

/// Content that is read and hashed and waits for its place.
pub(crate) struct Staged {
    body: Body,
    sha256: Digest,
    size: u64,
    head: Bytes,
}

enum Body {
    /// All of it.
    Held(Bytes),
    /// An object that is durable already.
    Incoming(ObjectPath),
}

impl ActionArtifacts {
    pub(crate) fn new(store: ArtifactStore, action: String) -> Self {
        Self { store, action, next: OnceCell::new() }
    }

    /// Stores `content` as the action's next artifact. It is hashed while it
    /// is copied, `limit` bytes at most; content and entry are durable when
    /// this returns.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Content`] if reading fails, and those of
    /// the store. After an error the artifact does not exist; at worst its
    /// bytes wait for [`gc`](ArtifactStore::gc).
    pub async fn put<R>(&self, meta: ArtifactMeta, content: R, limit: u64) -> Result<ArtifactRecord, Error>
    where
        R: Read + Send + 'static,
    {
        let staged = self.stage(content, limit).await?;
        let result = self.publish(&staged, meta).await;
        if let (Err(_), Body::Incoming(path)) = (&result, &staged.body) {
            // Gone already if it reached its place.
            let _ = self.store.objects.delete(path).await;
        }
        result
    }

    /// Reads all content, to memory if it is small and else to an object of
    /// its own.
    pub(crate) async fn stage<R>(&self, content: R, limit: u64) -> Result<Staged, Error>
    where
        R: Read + Send + 'static,
    {
        let (intake, first) = Intake { content, hasher: Sha256::new(), size: 0, limit }.read_part().await?;
        let head = first.slice(..first.len().min(media::SNIFFED));
        if intake.size < PART {
            return Ok(Staged {
                body: Body::Held(first),
                sha256: intake.sha256(),
                size: intake.size,
                head: Bytes::copy_from_slice(&head),
            });
        }
        // Its name is never seen; it only has to be new.
        let path = self.store.path(["incoming", &uuid::Uuid::now_v7().simple().to_string()]);
        let head = Bytes::copy_from_slice(&head);
        let mut upload =
            self.store.objects.put_multipart(&path).await.map_err(|source| self.store.folder.error(source))?;
        match self.upload(&mut *upload, intake, first).await {
            Ok((sha256, size)) => Ok(Staged { body: Body::Incoming(path), sha256, size, head }),
            Err(error) => {
                let _ = upload.abort().await;
                self.store.folder.remove_staged(&path);
                Err(error)
            }
        }
    }

    async fn upload<R>(
        &self,
        upload: &mut dyn MultipartUpload,
        mut intake: Intake<R>,
        mut part: Bytes,
    ) -> Result<(Digest, u64), Error>
    where
        R: Read + Send + 'static,
    {
        while !part.is_empty() {
            upload.put_part(part.into()).await.map_err(|source| self.store.folder.error(source))?;
            (intake, part) = intake.read_part().await?;
        }
        upload.complete().await.map_err(|source| self.store.folder.error(source))?;
        Ok((intake.sha256(), intake.size))
    }

    /// Puts content in its place, then the entry that names it. Between the
    /// two a crash leaves a blob that the next collection takes.
    async fn publish(&self, staged: &Staged, meta: ArtifactMeta) -> Result<ArtifactRecord, Error> {
        let _shared = self.store.folder.lock(true).await?;
        self.place_blob(staged).await?;
        let media_type = meta.media_type.unwrap_or_else(|| media::guess(&meta.name, &staged.head).to_owned());
        let mut record = ArtifactRecord {
            uri: ArtifactUri::new(&self.action, 0),
            sha256: staged.sha256.clone(),
            size: staged.size,
            media_type,
            name: meta.name,
            label: meta.label,
            producer: meta.producer,
            created_ms: meta.created_ms,
            keep_until_ms: meta.keep_until_ms,
        };
        let taken = || async { self.store.next_number(&self.action).await.map(AtomicU64::from) };
        let next = self.next.get_or_try_init(taken).await?;
        loop {
            record.uri = ArtifactUri::new(&self.action, next.fetch_add(1, Ordering::Relaxed));
            let entry = record.to_entry().map_err(|source| self.store.folder.error(source))?;
            let path = self.store.entry_path(&record.uri);
            match self.store.objects.put_opts(&path, entry.into(), PutMode::Create.into()).await {
                Ok(_) => return Ok(record),
                // Another process stores for the same action: go on after it.
                Err(object_store::Error::AlreadyExists { .. }) => {
                    next.fetch_max(self.store.next_number(&self.action).await?, Ordering::Relaxed);
                }
                Err(source) => return Err(self.store.folder.error(source)),
            }
        }
    }

    /// Puts content in its place even if equal content is there: what is there
    /// may be damaged, and its age would let a collection take it.
    pub(crate) async fn place_blob(&self, staged: &Staged) -> Result<(), Error> {
        let blob = self.store.blob_path(&staged.sha256);
        match &staged.body {
            Body::Held(bytes) => self.store.objects.put(&blob, bytes.clone().into()).await.map(drop),
            Body::Incoming(path) => self.store.objects.rename(path, &blob).await,
        }
        .map_err(|source| self.store.folder.error(source))
    }
}

/// Content being read.
struct Intake<R> {
    content: R,
    hasher: Sha256,
    size: u64,
    limit: u64,
}

impl<R: Read + Send + 'static> Intake<R> {
    /// Reads and hashes the next part, on a thread that may block. It is
    /// shorter than [`PART`] only at the end of the content.
    async fn read_part(mut self) -> Result<(Self, Bytes), Error> {
        blocking(move || {
            let mut part = Vec::new();
            (&mut self.content).take(PART).read_to_end(&mut part).map_err(Error::Content)?;
            self.hasher.update(&part);
            self.size += part.len() as u64;
            if self.size > self.limit {
                return Err(Error::TooLarge { limit: self.limit });
            }
            Ok((self, part.into()))
        })
        .await
    }
}

impl<R> Intake<R> {
    fn sha256(&self) -> Digest {
        Digest::from_bytes(self.hasher.clone().finalize().into())
    }
}

/// Runs blocking work where it holds nobody up.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(error) => Err(Error::Content(io::Error::other(error))),
        },
    }
}
