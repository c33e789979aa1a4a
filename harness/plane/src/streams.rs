//! What a guest says while it runs: into bounded captures.

use std::fs::File;
use std::io::BufWriter;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use glovebox_capture::{Capture, CaptureLimits, Captured, Piece};
use glovebox_runtime::bind::RunDir;
use glovebox_runtime::job::{Frame, FrameSink};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::watch::Watch;

/// What of each stream stays in the Observation, in bytes: enough for a model
/// to see how it began and how it ended, small enough for every context.
const KEPT: usize = 64 << 10;

/// A file that a stream is spilled to.
pub(crate) type SpillFile = BufWriter<File>;

/// One of the streams of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error, the tool's log.
    Stderr,
}

/// The captures of one run, shared between the sink and whoever reads them
/// meanwhile and afterwards.
#[derive(Clone)]
pub(crate) struct Streams(Arc<Shared>);

struct Shared {
    both: Mutex<Both>,
    /// Ticks when something was said. There is none until somebody listens, so
    /// that a run which nobody follows pays for a look at an atomic.
    moved: OnceLock<watch::Sender<u64>>,
}

struct Both {
    stdout: Stream,
    stderr: Stream,
}

/// A stream while it is captured, and then how long it was.
enum Stream {
    Open(Capture<SpillFile>),
    Finished(u64),
}

impl Stream {
    fn write(&mut self, bytes: &[u8]) {
        if let Self::Open(capture) = self {
            capture.write(bytes);
        }
    }

    fn finish(&mut self) -> Option<Captured<SpillFile>> {
        let total = self.total();
        match std::mem::replace(self, Self::Finished(total)) {
            Self::Open(capture) => Some(capture.finish()),
            Self::Finished(_) => None,
        }
    }

    fn total(&self) -> u64 {
        match self {
            Self::Open(capture) => capture.total(),
            Self::Finished(total) => *total,
        }
    }
}

impl Streams {
    /// Captures that spill up to `spill` bytes each into the run's folder.
    pub(crate) fn new(run_dir: &Arc<RunDir>, spill: u64) -> Self {
        let capture = || {
            let run_dir = run_dir.clone();
            let open = move || {
                let fd = run_dir.unnamed_file().map_err(|problem| std::io::Error::other(problem.message))?;
                Ok(BufWriter::with_capacity(256 << 10, File::from(fd)))
            };
            Stream::Open(Capture::new(CaptureLimits::split(KEPT, spill), Some(Box::new(open))))
        };
        let both = Both { stdout: capture(), stderr: capture() };
        Self(Arc::new(Shared { both: Mutex::new(both), moved: OnceLock::new() }))
    }

    /// A sink into these captures that also tells who watches.
    pub(crate) fn sink(&self, watch: Arc<dyn Watch>) -> Box<dyn FrameSink> {
        Box::new(Sink { streams: self.clone(), watch })
    }

    /// The finished captures: standard output and standard error.
    pub(crate) fn finish(&self) -> Option<(Captured<SpillFile>, Captured<SpillFile>)> {
        let mut both = self.lock();
        Some((both.stdout.finish()?, both.stderr.finish()?))
    }

    /// At most `max` bytes of a stream from `offset` on, and how long it is by
    /// now. No bytes where the captures are finished: they are on their way to
    /// the Observation.
    pub(crate) fn read(&self, stream: OutputStream, offset: u64, max: usize) -> (Option<Piece>, u64) {
        let mut both = self.lock();
        let stream = match stream {
            OutputStream::Stdout => &mut both.stdout,
            OutputStream::Stderr => &mut both.stderr,
        };
        let piece = match stream {
            Stream::Open(capture) => Some(capture.read_at(offset, max)),
            Stream::Finished(_) => None,
        };
        (piece, stream.total())
    }

    /// Ticks from now on when something was said.
    pub(crate) fn moved(&self) -> watch::Receiver<u64> {
        self.0.moved.get_or_init(|| watch::Sender::new(0)).subscribe()
    }

    /// Tells whoever listens.
    pub(crate) fn tell(&self) {
        if let Some(moved) = self.0.moved.get() {
            moved.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Both> {
        // A capture is whole after every write: a panic elsewhere leaves it so.
        self.0.both.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Sink {
    streams: Streams,
    watch: Arc<dyn Watch>,
}

impl FrameSink for Sink {
    fn frame(&mut self, frame: Frame<'_>) {
        {
            let mut both = self.streams.lock();
            match frame {
                Frame::Stdout(bytes) => both.stdout.write(bytes),
                Frame::Stderr(bytes) => both.stderr.write(bytes),
                // A tool's log is its standard error, one line each.
                Frame::Log { level, message } => {
                    for line in message.lines() {
                        both.stderr.write(format!("[{level}] {line}\n").as_bytes());
                    }
                }
                Frame::Progress { .. } => {}
            }
        }
        self.streams.tell();
        self.watch.frame(&frame);
    }
}
