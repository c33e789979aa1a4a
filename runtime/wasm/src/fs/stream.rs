//! Files as streams. Always ready: a local file never keeps anyone waiting,
//! and nothing here needs another thread.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use super::descriptor::File;
use super::error::FsError;
use super::file::READ_MAX;

/// The most that one write brings into host memory.
const WRITE_MAX: usize = 64 << 10;

pub(super) struct Input {
    file: Arc<File>,
    position: u64,
}

impl Input {
    pub(super) fn new(file: Arc<File>, position: u64) -> Self {
        Self { file, position }
    }
}

#[async_trait]
impl Pollable for Input {
    async fn ready(&mut self) {}
}

#[async_trait]
impl InputStream for Input {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if size == 0 {
            return Ok(Bytes::new());
        }
        let bytes = self.file.read_at(size.min(READ_MAX), self.position).map_err(FsError::into_stream)?;
        if bytes.is_empty() {
            return Err(StreamError::Closed);
        }
        self.position += bytes.len() as u64;
        Ok(bytes.into())
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.read(size)
    }
}

pub(super) struct Output {
    file: Arc<File>,
    /// Where the next byte goes; `None` is the end of the file.
    position: Option<u64>,
    failed: Option<FsError>,
    closed: bool,
}

impl Output {
    pub(super) fn new(file: Arc<File>, position: Option<u64>) -> Self {
        Self { file, position, failed: None, closed: false }
    }

    fn put(&mut self, mut bytes: &[u8]) -> Result<(), FsError> {
        while !bytes.is_empty() {
            let written = self.file.write_at(bytes, self.position)?;
            if let Some(position) = &mut self.position {
                *position += written as u64;
            }
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// An error is reported once; after it the stream is closed.
    fn healthy(&mut self) -> StreamResult<()> {
        if let Some(error) = self.failed.take() {
            self.closed = true;
            return Err(error.into_stream());
        }
        if self.closed { Err(StreamError::Closed) } else { Ok(()) }
    }
}

#[async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.healthy()?;
        // Writes report their failure with the next call, as the interface wants it.
        self.failed = self.put(&bytes).err();
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.healthy()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.healthy()?;
        Ok(WRITE_MAX)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.healthy()?;
        self.failed = self.put(&bytes).err();
        self.healthy()
    }
}
