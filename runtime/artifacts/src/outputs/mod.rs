//! Collecting a guest's output folder into the store.
//!
//! This runs with the rights of the host over a tree that an enemy made, and
//! may still be changing. So the tree is walked to find out what is there, and
//! each file is opened again in one step that the kernel keeps beneath the
//! folder, follows no link and waits for nobody; what counts is what that
//! descriptor says.

mod notice;
mod open;
mod walk;

pub use notice::{Notice, NoticeKind};

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use env_contracts::Label;

use crate::action::{ActionArtifacts, blocking};
use crate::error::Error;
use crate::media;
use crate::record::{ArtifactMeta, ArtifactRecord};
use notice::Notices;

/// How much is collected from one folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectLimits {
    /// How many files.
    pub max_files: usize,
    /// How many bytes in all of them together.
    pub max_total_bytes: u64,
    /// How many bytes in each.
    pub max_file_bytes: u64,
    /// How many bytes in a path, relative to the folder.
    pub max_path_len: usize,
    /// How many folders deep; files directly in the folder are at depth 0.
    pub max_depth: usize,
}

impl CollectLimits {
    /// More files than this belong into one archive, for whoever reads the
    /// Observation as much as for the index.
    pub const FILES: usize = 1000;
    /// Far above what tools hand back, far below what fills a disk.
    pub const TOTAL_BYTES: u64 = 1024 * 1024 * 1024;
    /// A single file may be all there is.
    pub const FILE_BYTES: u64 = Self::TOTAL_BYTES;
    /// The longest guest path of a contract.
    pub const PATH_LEN: usize = 1024;
    /// Deeper than build trees get; each level holds a descriptor open.
    pub const DEPTH: usize = 32;
}

impl Default for CollectLimits {
    fn default() -> Self {
        Self {
            max_files: Self::FILES,
            max_total_bytes: Self::TOTAL_BYTES,
            max_file_bytes: Self::FILE_BYTES,
            max_path_len: Self::PATH_LEN,
            max_depth: Self::DEPTH,
        }
    }
}

/// What is the same for all outputs of an action.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputsMeta {
    /// What made them.
    pub producer: String,
    /// How confidential they are.
    pub label: Label,
    /// When they are collected, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// Until when retention must not drop them.
    pub keep_until_ms: Option<u64>,
    /// Media types that the guest claimed, by relative path. Untrusted; one
    /// that is none in form is ignored.
    pub media_types: BTreeMap<String, String>,
}

/// What came of a collection.
#[derive(Debug, Default)]
#[must_use = "an error or a notice in it may say that outputs are missing"]
pub struct Collected {
    /// What was stored, in the order of the paths.
    pub artifacts: Vec<ArtifactRecord>,
    /// What was left out or changed, and why; one notice for each reason.
    pub notices: Vec<Notice>,
    /// What ended the collection early. The artifacts above are stored all the
    /// same; other outputs are missing.
    pub error: Option<Error>,
}

impl ActionArtifacts {
    /// Stores the regular files below `dir` as artifacts, in the byte order of
    /// their paths. Whatever is no plain file of this folder alone, or exceeds
    /// a limit, is left out with a notice: nothing is followed, nothing waited
    /// for, nothing silent. Names become metadata and nothing else.
    ///
    /// A file that changes meanwhile is stored as it was read; size and sha256
    /// are those of what is stored.
    pub async fn collect_outputs(&self, dir: BorrowedFd<'_>, limits: CollectLimits, meta: &OutputsMeta) -> Collected {
        let mut collected = Collected::default();
        let mut notices = Notices::default();
        collected.error = self.collect(dir, limits, meta, &mut collected.artifacts, &mut notices).await.err();
        collected.notices = notices.into();
        collected
    }

    async fn collect(
        &self,
        dir: BorrowedFd<'_>,
        limits: CollectLimits,
        meta: &OutputsMeta,
        artifacts: &mut Vec<ArtifactRecord>,
        notices: &mut Notices,
    ) -> Result<(), Error> {
        let dir: Arc<OwnedFd> = Arc::new(dir.try_clone_to_owned().map_err(Error::Content)?);
        let root = Arc::clone(&dir);
        let (paths, seen) = blocking(move || walk::walk(&root, limits).map_err(Error::Content)).await?;
        notices.merge(seen);

        let mut left = limits.max_total_bytes;
        for path in paths {
            let (root, name) = (Arc::clone(&dir), path.clone());
            let file = match blocking(move || open::regular(&root, &name).map_err(Error::Content)).await? {
                Ok(file) => file,
                Err(kind) => {
                    notices.add(kind, &path);
                    continue;
                }
            };
            if let Some(record) = self.store_output(file, &path, limits.max_file_bytes, left, meta, notices).await? {
                left -= record.size;
                artifacts.push(record);
            }
        }
        Ok(())
    }

    async fn store_output(
        &self,
        file: File,
        path: &OsString,
        file_limit: u64,
        left: u64,
        meta: &OutputsMeta,
        notices: &mut Notices,
    ) -> Result<Option<ArtifactRecord>, Error> {
        let limit = file_limit.min(left);
        let size = length(&file)?;
        if size > limit {
            notices.add(if size > file_limit { NoticeKind::FileTooLarge } else { NoticeKind::TotalTooLarge }, path);
            return Ok(None);
        }
        let name = path.to_string_lossy().into_owned();
        if path.to_str().is_none() {
            notices.add(NoticeKind::NameNotUtf8, path);
        }
        let claimed = meta.media_types.get(&name).filter(|claim| media::is_media_type(claim)).cloned();
        let described = ArtifactMeta {
            name,
            producer: meta.producer.clone(),
            media_type: claimed,
            label: meta.label,
            created_ms: meta.created_ms,
            keep_until_ms: meta.keep_until_ms,
        };
        let content = file.try_clone().map_err(Error::Content)?.take(limit);
        let record = self.put(described, content, limit).await?;
        // Both descriptors share one position: what follows was not stored.
        if record.size == limit && (&file).read(&mut [0]).map_err(Error::Content)? > 0 {
            notices.add(NoticeKind::Grew, path);
        }
        Ok(Some(record))
    }
}

fn length(file: &File) -> Result<u64, Error> {
    file.metadata().map(|metadata| metadata.len()).map_err(Error::Content)
}

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;
