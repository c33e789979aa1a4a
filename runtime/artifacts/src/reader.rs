//! Reading an artifact, checked on the way.

use bytes::Bytes;
use env_contracts::Digest;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use sha2::{Digest as _, Sha256};

use crate::error::Error;
use crate::folder::Folder;
use crate::record::ArtifactRecord;

/// An open artifact.
///
/// The last piece is handed out only once the whole content was found to be
/// what was recorded: damaged content never looks complete.
pub struct ArtifactReader {
    record: ArtifactRecord,
    content: BoxStream<'static, object_store::Result<Bytes>>,
    folder: Folder,
    hasher: Sha256,
    read: u64,
    held: Option<Bytes>,
    state: State,
}

enum State {
    Reading,
    Verified,
    Failed,
}

impl ArtifactReader {
    pub(crate) fn new(
        record: ArtifactRecord,
        content: BoxStream<'static, object_store::Result<Bytes>>,
        folder: Folder,
    ) -> Self {
        Self { record, content, folder, hasher: Sha256::new(), read: 0, held: None, state: State::Reading }
    }

    /// What the index knows of it.
    pub fn record(&self) -> &ArtifactRecord {
        &self.record
    }

    /// The next piece; `None` once everything was handed out and verified.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the content is not what was recorded; discard
    /// what was read before. Later calls say so again.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, Error> {
        match self.state {
            State::Reading => {}
            State::Verified => return Ok(self.held.take()),
            State::Failed => return Err(self.corrupt("it could not be read to its end")),
        }
        let result = self.advance().await;
        if result.is_err() {
            self.state = State::Failed;
        }
        result
    }

    /// All of it, if it has at most `limit` bytes.
    ///
    /// # Errors
    /// [`Error::TooLarge`], and those of [`ArtifactReader::next_chunk`].
    pub async fn into_bytes(mut self, limit: u64) -> Result<Vec<u8>, Error> {
        if self.record.size > limit {
            return Err(Error::TooLarge { limit });
        }
        let mut all = Vec::new();
        while let Some(chunk) = self.next_chunk().await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    async fn advance(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let chunk = match self.content.next().await {
                Some(chunk) => chunk.map_err(|source| self.folder.error(source))?,
                None => Bytes::new(),
            };
            // An empty piece ends it too: a file that shrinks while it is read
            // gives those for ever.
            if chunk.is_empty() {
                let found = Digest::from_bytes(std::mem::take(&mut self.hasher).finalize().into());
                if found != self.record.sha256 {
                    return Err(self.corrupt(&format!("its sha256 is {found} instead of {}", self.record.sha256)));
                }
                self.state = State::Verified;
                return Ok(self.held.take());
            }
            self.hasher.update(&chunk);
            self.read += chunk.len() as u64;
            if self.read > self.record.size {
                return Err(self.corrupt("it is longer than recorded"));
            }
            if let Some(ready) = self.held.replace(chunk) {
                return Ok(Some(ready));
            }
        }
    }

    fn corrupt(&self, why: &str) -> Error {
        Error::Corrupt { uri: self.record.uri.to_string(), why: why.to_owned() }
    }
}

impl std::fmt::Debug for ArtifactReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArtifactReader").field("record", &self.record).field("read", &self.read).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
