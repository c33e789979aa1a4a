//! What a guest says while it runs: into bounded captures.

use std::fs::File;
use std::io::BufWriter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use glovebox_capture::{Capture, CaptureLimits, Captured};
use glovebox_runtime::bind::RunDir;
use glovebox_runtime::job::{Frame, FrameSink};

use crate::watch::Watch;

/// What of each stream stays in the Observation, in bytes: enough for a model
/// to see how it began and how it ended, small enough for every context.
const KEPT: usize = 64 << 10;

/// A file that a stream is spilled to.
pub(crate) type SpillFile = BufWriter<File>;

/// The captures of one run, shared between the sink and whoever reads them
/// afterwards.
#[derive(Clone)]
pub(crate) struct Streams(Arc<Mutex<Both>>);

struct Both {
    stdout: Option<Capture<SpillFile>>,
    stderr: Option<Capture<SpillFile>>,
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
            Some(Capture::new(CaptureLimits::split(KEPT, spill), Some(Box::new(open))))
        };
        Self(Arc::new(Mutex::new(Both { stdout: capture(), stderr: capture() })))
    }

    /// A sink into these captures that also tells who watches.
    pub(crate) fn sink(&self, watch: Arc<dyn Watch>) -> Box<dyn FrameSink> {
        Box::new(Sink { streams: self.clone(), watch })
    }

    /// The finished captures: standard output and standard error.
    pub(crate) fn finish(&self) -> Option<(Captured<SpillFile>, Captured<SpillFile>)> {
        let mut both = self.lock();
        Some((both.stdout.take()?.finish(), both.stderr.take()?.finish()))
    }

    fn lock(&self) -> MutexGuard<'_, Both> {
        // A capture is whole after every write: a panic elsewhere leaves it so.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
                Frame::Stdout(bytes) => {
                    if let Some(capture) = &mut both.stdout {
                        capture.write(bytes);
                    }
                }
                Frame::Stderr(bytes) => {
                    if let Some(capture) = &mut both.stderr {
                        capture.write(bytes);
                    }
                }
                // A tool's log is its standard error, one line each.
                Frame::Log { level, message } => {
                    if let Some(capture) = &mut both.stderr {
                        for line in message.lines() {
                            capture.write(format!("[{level}] {line}\n").as_bytes());
                        }
                    }
                }
                Frame::Progress { .. } => {}
            }
        }
        self.watch.frame(&frame);
    }
}
