//! `glovebox:tool/host`: log lines and progress, as many as anyone can read.

use std::time::Instant;

use glovebox_runtime::job::Frame;

use crate::bindings::tool::glovebox::tool::host::{Host, Level};
use crate::state::State;

/// What is kept of one text. Longer ones are cut.
const TEXT_MAX: usize = 4 << 10;
/// How many come through at once.
const BURST: f64 = 200.0;
/// How many come through in a second after that.
const PER_SECOND: f64 = 50.0;

/// How many come through at all where every run has to be the same: what comes
/// through then can't depend on time.
const COUNTED: f64 = 1_000.0;

/// How much the tool says: a bucket that fills with time.
pub(crate) struct Chatter {
    credit: f64,
    refills: bool,
    last: Option<Instant>,
    dropped: u64,
}

impl Default for Chatter {
    fn default() -> Self {
        Self { credit: BURST, refills: true, last: None, dropped: 0 }
    }
}

impl Chatter {
    /// A bucket that never fills again.
    pub(crate) fn counted() -> Self {
        Self { credit: COUNTED, refills: false, ..Self::default() }
    }

    fn admit(&mut self) -> bool {
        let now = Instant::now();
        if let (true, Some(last)) = (self.refills, self.last) {
            let gained = now.duration_since(last).as_secs_f64() * PER_SECOND;
            self.credit = (self.credit + gained).min(BURST);
        }
        self.last = Some(now);
        if self.credit < 1.0 {
            self.dropped += 1;
            return false;
        }
        self.credit -= 1.0;
        true
    }

    /// One line about what did not come through, if anything.
    pub(crate) fn notice(&self) -> Option<String> {
        (self.dropped > 0)
            .then(|| format!("{} log lines and progress reports came too fast and were dropped", self.dropped))
    }
}

impl Host for State {
    fn log(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        if self.chatter.admit() {
            let level = match level {
                Level::Debug => "debug",
                Level::Info => "info",
                Level::Warn => "warn",
                Level::Error => "error",
            };
            self.run.log(level, cut(&message, TEXT_MAX)).map_err(wasmtime::Error::new)?;
        }
        Ok(())
    }

    fn progress(&mut self, done: u64, total: Option<u64>, message: String) -> wasmtime::Result<()> {
        if self.chatter.admit() {
            self.run.frame(Frame::Progress { done, total, message: cut(&message, TEXT_MAX) });
        }
        Ok(())
    }
}

/// The longest beginning of at most `most` bytes that ends with a whole character.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
