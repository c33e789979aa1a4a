//! The store of one tenant: opening, reading, listing, removing.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use env_contracts::Digest;
use futures_util::{StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::action::ActionArtifacts;
use crate::error::Error;
use crate::folder::Folder;
use crate::reader::ArtifactReader;
use crate::record::ArtifactRecord;
use crate::uri::{ArtifactUri, checked_id};

/// How many bytes an index entry has at most; names are the only part that can
/// grow, and collection bounds them. More is damage and not worth reading.
const MAX_ENTRY: u64 = 64 * 1024;

/// How many index entries are read at once: enough to hide the way to a file
/// or a remote store, few enough to leave descriptors to others.
const READ_AHEAD: usize = 16;

/// The artifacts of one tenant.
///
/// Two tenants share nothing, not even equal bytes: who stores something can't
/// learn whether somebody else has it. Cloning is cheap. Methods need a tokio
/// runtime with its timer.
///
/// Layout below the root: `TENANT/blobs/AB/ABCDEF…` (content, by sha256),
/// `TENANT/index/ACTION/N.json` (one entry an artifact), `TENANT/incoming/`
/// (being written), `TENANT/lock`.
#[derive(Debug, Clone)]
pub struct ArtifactStore {
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) folder: Folder,
    tenant: Arc<str>,
}

/// Which artifacts are listed; an absent field matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those of this action.
    pub action: Option<String>,
    /// Only those made by this.
    pub producer: Option<String>,
}

/// What a store holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The artifacts, oldest first; equal times by action and number.
    pub artifacts: Vec<ArtifactRecord>,
    /// Entries that can't be read: damaged, or of a newer version.
    pub unreadable: Vec<ArtifactUri>,
}

impl ArtifactStore {
    /// Opens the store of `tenant` in the folder `root`, which is made, for
    /// its owner alone, if it is missing.
    ///
    /// # Errors
    /// [`Error::BadId`] for a tenant that is no identifier; [`Error::Full`]
    /// and [`Error::Unavailable`] as the file system says.
    pub fn open(root: &Path, tenant: &str) -> Result<Self, Error> {
        let tenant = checked_id(tenant)?;
        let folder = Folder::create(root, &tenant)?;
        let objects = LocalFileSystem::new_with_prefix(root).map_err(|source| folder.error(source))?;
        // Content and folder entries reach the disk before a write returns.
        Ok(Self { objects: Arc::new(objects.with_fsync(true)), folder, tenant: tenant.into() })
    }

    /// The place where one action stores. Open it once for an action and keep
    /// it: it numbers the artifacts, and a number it gave is never given again
    /// while it lives, even when retention drops what bore it.
    ///
    /// # Errors
    /// [`Error::BadId`]. The store is looked at when something is stored.
    pub fn action(&self, action: &str) -> Result<ActionArtifacts, Error> {
        Ok(ActionArtifacts::new(self.clone(), checked_id(action)?))
    }

    /// The record of one artifact.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Corrupt`] for a damaged entry, and those
    /// of the store.
    pub async fn record(&self, uri: &ArtifactUri) -> Result<ArtifactRecord, Error> {
        let found = match self.objects.get(&self.entry_path(uri)).await {
            Err(object_store::Error::NotFound { .. }) => {
                return Err(Error::Unknown(uri.to_string()));
            }
            other => other.map_err(|source| self.folder.error(source))?,
        };
        let unreadable = |why: &str| Error::Corrupt { uri: uri.to_string(), why: why.to_owned() };
        if found.meta.size > MAX_ENTRY {
            return Err(unreadable("its index entry is too large"));
        }
        let bytes = found.bytes().await.map_err(|source| self.folder.error(source))?;
        ArtifactRecord::from_entry(uri, &bytes).ok_or_else(|| unreadable("its index entry can't be read"))
    }

    /// Opens one artifact for reading. What comes out is checked against the
    /// recorded sha256 on the way.
    ///
    /// # Errors
    /// As [`ArtifactStore::record`]; [`Error::Corrupt`] also where the content
    /// is missing or has another length than recorded.
    pub async fn get(&self, uri: &ArtifactUri) -> Result<ArtifactReader, Error> {
        let record = self.record(uri).await?;
        let corrupt = |why: String| Error::Corrupt { uri: uri.to_string(), why };
        match self.objects.get(&self.blob_path(&record.sha256)).await {
            Ok(found) if found.meta.size != record.size => {
                Err(corrupt(format!("it has {} bytes instead of {}", found.meta.size, record.size)))
            }
            Ok(found) => Ok(ArtifactReader::new(record, found.into_stream(), self.folder.clone())),
            Err(object_store::Error::NotFound { .. }) => Err(corrupt("its content is missing".into())),
            Err(source) => Err(self.folder.error(source)),
        }
    }

    /// At most `max` bytes of an artifact from `offset` on; none behind its end.
    ///
    /// A part can't be checked against the sha256 of the whole: only the length
    /// is. Whoever needs to be sure reads all of it, with [`ArtifactStore::get`].
    ///
    /// # Errors
    /// As [`ArtifactStore::get`].
    pub async fn range(&self, uri: &ArtifactUri, offset: u64, max: usize) -> Result<Bytes, Error> {
        let record = self.record(uri).await?;
        let end = offset.saturating_add(max as u64).min(record.size);
        if offset >= end {
            return Ok(Bytes::new());
        }
        let corrupt = |why: String| Error::Corrupt { uri: uri.to_string(), why };
        let options = GetOptions { range: Some(GetRange::Bounded(offset..end)), ..GetOptions::default() };
        match self.objects.get_opts(&self.blob_path(&record.sha256), options).await {
            Ok(found) if found.meta.size != record.size => {
                Err(corrupt(format!("it has {} bytes instead of {}", found.meta.size, record.size)))
            }
            Ok(found) => found.bytes().await.map_err(|source| self.folder.error(source)),
            Err(object_store::Error::NotFound { .. }) => Err(corrupt("its content is missing".into())),
            Err(source) => Err(self.folder.error(source)),
        }
    }

    /// Lists what is kept. Entries that can't be read are named, not hidden.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn list(&self, filter: &Filter) -> Result<Listing, Error> {
        let mut under = self.path(["index"]);
        if let Some(action) = &filter.action {
            under = under.join(checked_id(action)?);
        }
        let found: Vec<ObjectMeta> =
            self.objects.list(Some(&under)).try_collect().await.map_err(|source| self.folder.error(source))?;
        let uris: Vec<ArtifactUri> = found.iter().filter_map(|meta| uri_of_entry(&meta.location)).collect();
        let mut records = futures_util::stream::iter(uris)
            .map(|uri| async move { (self.record(&uri).await, uri) })
            .buffered(READ_AHEAD);

        let mut listing = Listing::default();
        while let Some((record, uri)) = records.next().await {
            match record {
                Ok(record) if filter.producer.as_ref().is_none_or(|producer| record.producer == *producer) => {
                    listing.artifacts.push(record);
                }
                // Another process may have removed it since.
                Ok(_) | Err(Error::Unknown(_)) => {}
                Err(Error::Corrupt { .. }) => listing.unreadable.push(uri),
                Err(other) => return Err(other),
            }
        }
        listing.artifacts.sort_by(|a, b| (a.created_ms, &a.uri).cmp(&(b.created_ms, &b.uri)));
        listing.unreadable.sort();
        Ok(listing)
    }

    /// Takes one artifact out of the index: nobody can ask for it any more.
    /// Its bytes go with the next [`gc`](ArtifactStore::gc) after the grace
    /// period, unless another artifact has the same.
    ///
    /// # Errors
    /// [`Error::Unknown`], and those of the store.
    pub async fn remove(&self, uri: &ArtifactUri) -> Result<(), Error> {
        match self.objects.head(&self.entry_path(uri)).await {
            Ok(_) => self.drop_entries(&[uri]).await,
            Err(object_store::Error::NotFound { .. }) => Err(Error::Unknown(uri.to_string())),
            Err(source) => Err(self.folder.error(source)),
        }
    }

    /// The first number that no entry of the action bears.
    pub(crate) async fn next_number(&self, action: &str) -> Result<u64, Error> {
        let under = self.path(["index", action]);
        let found = self.objects.list_with_delimiter(Some(&under)).await.map_err(|source| self.folder.error(source))?;
        let taken: BTreeSet<u64> =
            found.objects.iter().filter_map(|meta| uri_of_entry(&meta.location)).map(|uri| uri.number()).collect();
        Ok(taken.last().map_or(1, |last| last.saturating_add(1)))
    }

    /// The place of some content.
    pub(crate) fn blob_path(&self, sha256: &Digest) -> ObjectPath {
        let hex = sha256.as_str();
        self.path(["blobs", &hex[..2], hex])
    }

    /// The place of an index entry.
    pub(crate) fn entry_path(&self, uri: &ArtifactUri) -> ObjectPath {
        self.path(["index", uri.action(), &format!("{}.json", uri.number())])
    }

    /// A place below the tenant's own.
    pub(crate) fn path<const N: usize>(&self, parts: [&str; N]) -> ObjectPath {
        std::iter::once(&*self.tenant).chain(parts).collect()
    }
}

/// The artifact whose index entry stands there.
fn uri_of_entry(path: &ObjectPath) -> Option<ArtifactUri> {
    let text = path.as_ref().strip_suffix(".json")?;
    let (_, name) = text.split_once("/index/")?;
    format!("artifact/{name}").parse().ok()
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
