//! The standard streams. None of them is the host's.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::run::{Channel, Run};

/// The most that one read or write carries.
const CHUNK: usize = 64 << 10;

/// Standard output or error: bytes go to the sink as they come.
pub(crate) struct Speaker {
    run: Arc<Run>,
    channel: Channel,
}

impl Speaker {
    pub(crate) fn new(run: Arc<Run>, channel: Channel) -> Self {
        Self { run, channel }
    }
}

#[async_trait]
impl Pollable for Speaker {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for Speaker {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.run.output(self.channel, &bytes).map_err(|stop| StreamError::Trap(wasmtime::Error::new(stop)))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(CHUNK)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.write(bytes)
    }
}

/// Standard input: bytes that are all there from the start. Handles share
/// their place in it.
#[derive(Clone, Default)]
pub(crate) struct Listener {
    rest: Arc<Mutex<Bytes>>,
}

impl Listener {
    pub(crate) fn new(text: Bytes) -> Self {
        Self { rest: Arc::new(Mutex::new(text)) }
    }
}

#[async_trait]
impl Pollable for Listener {
    async fn ready(&mut self) {}
}

#[async_trait]
impl InputStream for Listener {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if size == 0 {
            return Ok(Bytes::new());
        }
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        if rest.is_empty() {
            return Err(StreamError::Closed);
        }
        let length = rest.len().min(size).min(CHUNK);
        Ok(rest.split_to(length))
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.read(size)
    }
}
