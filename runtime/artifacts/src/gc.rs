//! Retention: which artifacts go, and what else goes with them.

use std::collections::{HashMap, HashSet};

use env_contracts::Digest;
use futures_util::TryStreamExt;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectMeta, ObjectStoreExt};
use serde::Serialize;

use crate::action::blocking;
use crate::error::Error;
use crate::record::ArtifactRecord;
use crate::store::{ArtifactStore, Filter};
use crate::uri::ArtifactUri;

/// A blob younger than this is never dropped, in milliseconds: another process
/// may have put it and not yet written the entry that names it, which no index
/// read before can show. That takes milliseconds; an hour also covers clocks
/// that disagree and a machine that slept.
pub const BLOB_GRACE_MS: u64 = 60 * 60 * 1000;

/// An unfinished file that nobody wrote to for this long, in milliseconds, was
/// left by a process that is gone: even a slow source moves within an hour.
pub const LEFTOVER_AGE_MS: u64 = 60 * 60 * 1000;

/// How many blobs are dropped under one lock: some milliseconds for those who
/// wait with a put.
const ROUND: usize = 256;

/// What may stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How old an artifact may become, in milliseconds.
    pub max_age_ms: Option<u64>,
    /// How many bytes of content may stay, equal content counted once. The
    /// oldest artifacts go first.
    pub max_bytes: Option<u64>,
    /// The time now, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}

/// What a collection did, or in a dry run would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GcReport {
    /// The artifacts that were dropped, oldest first.
    pub dropped: Vec<ArtifactRecord>,
    /// How many artifacts stay.
    pub kept: u64,
    /// How many bytes of content they have, equal content counted once.
    pub kept_bytes: u64,
    /// How many blobs went.
    pub blobs: u64,
    /// How many bytes they had.
    pub blob_bytes: u64,
    /// How many blobs that nothing names stay, because they are younger than
    /// [`BLOB_GRACE_MS`].
    pub fresh: u64,
    /// How many bytes they have.
    pub fresh_bytes: u64,
    /// How many unfinished files of killed processes went.
    pub leftovers: u64,
    /// How many bytes they had.
    pub leftover_bytes: u64,
    /// Entries that can't be read. While there are any, no blob goes, for
    /// nobody knows what they name; remove them by name or read them with the
    /// version that wrote them.
    pub unreadable: Vec<ArtifactUri>,
}

impl ArtifactStore {
    /// Drops what retention does not let stay, then the content that no
    /// artifact names any more, then what killed processes left. With
    /// `dry_run` it changes nothing and reports what would go.
    ///
    /// Safe while other processes store: they publish under a shared lock,
    /// this drops under an exclusive one, and never anything fresh.
    ///
    /// # Errors
    /// [`Error::Busy`] if others hold the lock for too long; those of the store.
    pub async fn gc(&self, retention: Retention, dry_run: bool) -> Result<GcReport, Error> {
        let listing = self.list(&Filter::default()).await?;
        let (dropped, kept) = retention.choose(listing.artifacts);
        let named: HashMap<&Digest, u64> = kept.iter().map(|record| (&record.sha256, record.size)).collect();
        if !dry_run {
            let uris: Vec<&ArtifactUri> = dropped.iter().map(|record| &record.uri).collect();
            self.drop_entries(&uris).await?;
        }
        let mut report = GcReport {
            kept: kept.len() as u64,
            kept_bytes: named.values().sum(),
            unreadable: listing.unreadable,
            dropped,
            ..GcReport::default()
        };
        if report.unreadable.is_empty() {
            let named: HashSet<&str> = named.keys().map(|sha256| sha256.as_str()).collect();
            let (old, fresh) = self.unnamed_blobs(&named, retention.now_ms).await?;
            let gone = if dry_run { old } else { self.drop_blobs(&old, retention.now_ms).await? };
            report.fresh = fresh.len() as u64;
            report.fresh_bytes = fresh.iter().map(|blob| blob.size).sum();
            report.blobs = gone.len() as u64;
            report.blob_bytes = gone.iter().map(|blob| blob.size).sum();
        }
        let (folder, before) = (self.folder.clone(), retention.now_ms.saturating_sub(LEFTOVER_AGE_MS));
        let leftovers = blocking(move || folder.sweep(before, dry_run)).await?;
        (report.leftovers, report.leftover_bytes) = (leftovers.files, leftovers.bytes);
        Ok(report)
    }

    /// Takes entries out of the index, durably.
    pub(crate) async fn drop_entries(&self, uris: &[&ArtifactUri]) -> Result<(), Error> {
        for round in uris.chunks(ROUND) {
            let _alone = self.folder.lock(false).await?;
            for uri in round {
                self.delete(&self.entry_path(uri)).await?;
            }
            let (folder, actions) = (self.folder.clone(), round.iter().map(|uri| uri.action().to_owned()).collect());
            blocking(move || folder.settle_index(&actions)).await?;
        }
        Ok(())
    }

    /// The blobs that nothing names: those that are old enough to go, and the
    /// fresh ones.
    async fn unnamed_blobs(
        &self,
        named: &HashSet<&str>,
        now_ms: u64,
    ) -> Result<(Vec<ObjectMeta>, Vec<ObjectMeta>), Error> {
        let mut blobs: Vec<ObjectMeta> = self
            .objects
            .list(Some(&self.path(["blobs"])))
            .try_collect()
            .await
            .map_err(|source| self.folder.error(source))?;
        blobs.retain(|blob| blob.location.filename().is_some_and(|name| !named.contains(name)));
        Ok(blobs.into_iter().partition(|blob| is_old(blob, now_ms)))
    }

    /// Looks again at each blob once nobody can publish: one that was put anew
    /// since is fresh now, and stays.
    async fn drop_blobs(&self, unnamed: &[ObjectMeta], now_ms: u64) -> Result<Vec<ObjectMeta>, Error> {
        let mut gone = Vec::new();
        for round in unnamed.chunks(ROUND) {
            let _alone = self.folder.lock(false).await?;
            for blob in round {
                match self.objects.head(&blob.location).await {
                    Ok(seen) if is_old(&seen, now_ms) => {
                        self.delete(&blob.location).await?;
                        gone.push(seen);
                    }
                    Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(source) => return Err(self.folder.error(source)),
                }
            }
        }
        Ok(gone)
    }

    /// Deletes what another collection may have deleted already.
    async fn delete(&self, path: &ObjectPath) -> Result<(), Error> {
        match self.objects.delete(path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(self.folder.error(source)),
        }
    }
}

impl Retention {
    /// Divides artifacts, which come oldest first, into those that go and
    /// those that stay.
    fn choose(&self, artifacts: Vec<ArtifactRecord>) -> (Vec<ArtifactRecord>, Vec<ArtifactRecord>) {
        let held = |record: &ArtifactRecord| record.keep_until_ms.is_some_and(|until| until > self.now_ms);
        let aged = |record: &ArtifactRecord| {
            self.max_age_ms.is_some_and(|age| self.now_ms.saturating_sub(record.created_ms) > age)
        };
        let (mut dropped, kept): (Vec<_>, Vec<_>) =
            artifacts.into_iter().partition(|record| aged(record) && !held(record));

        let mut names: HashMap<Digest, u64> = HashMap::new();
        let mut bytes = 0;
        for record in &kept {
            let count = names.entry(record.sha256.clone()).or_default();
            bytes += if *count == 0 { record.size } else { 0 };
            *count += 1;
        }
        let mut over = |record: &ArtifactRecord| {
            if self.max_bytes.is_none_or(|max| bytes <= max) || held(record) {
                return false;
            }
            // Its bytes are free once nothing else names them.
            if let Some(count) = names.get_mut(&record.sha256) {
                *count -= 1;
                bytes -= if *count == 0 { record.size } else { 0 };
            }
            true
        };
        let (surplus, kept): (Vec<_>, Vec<_>) = kept.into_iter().partition(|record| over(record));
        dropped.extend(surplus);
        (dropped, kept)
    }
}

fn is_old(blob: &ObjectMeta, now_ms: u64) -> bool {
    let modified = u64::try_from(blob.last_modified.timestamp_millis()).unwrap_or(0);
    now_ms.saturating_sub(modified) > BLOB_GRACE_MS
}

#[cfg(test)]
#[path = "gc_tests.rs"]
mod tests;
