//! Progress on standard error, for what takes longer than a second.

use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use glovebox_plane::Watch;
use glovebox_runtime::job::Frame;

use crate::terminal::escaped_line;

/// Longer than this, and people want to see that something is going on.
const QUIET: Duration = Duration::from_secs(1);

/// How often the line on a terminal is drawn again.
const REDRAW: Duration = Duration::from_millis(500);

/// What stands for "nothing to say": something else is on the terminal.
pub(crate) const HUSH: &str = "\0";

/// A thread that draws. It says nothing about what is over within a second.
pub(crate) struct Progress {
    lines: Sender<String>,
    /// Without a thread to draw it nothing is drawn.
    thread: Option<JoinHandle<()>>,
}

/// The end of it that an action talks to.
pub(crate) struct Line(Sender<String>);

impl Progress {
    /// Starts the clock.
    pub(crate) fn start() -> Self {
        let (lines, received) = channel();
        let thread = std::thread::Builder::new().name("progress".into()).spawn(move || draw(&received));
        Self { lines, thread: thread.ok() }
    }

    /// Somebody to watch an action with.
    pub(crate) fn watch(&self) -> Line {
        Line(self.lines.clone())
    }

    /// Wipes the line and ends.
    pub(crate) fn end(self) {
        // An empty line says so: a stuck action may still hold its end.
        let _ = self.lines.send(String::new());
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }
}

impl Line {
    /// Says nothing until the next line: something else is on the terminal.
    pub(crate) fn hush(&self) {
        let _ = self.0.send(HUSH.to_owned());
    }
}

impl Watch for Line {
    fn phase(&self, line: &str) {
        let _ = self.0.send(line.to_owned());
    }

    fn frame(&self, frame: &Frame<'_>) {
        if let Frame::Progress { done, total, message } = frame {
            let of = total.map(|total| format!("/{total}")).unwrap_or_default();
            let _ = self.0.send(format!("{done}{of} {message} "));
        }
    }
}

fn draw(received: &Receiver<String>) {
    let terminal = std::io::stderr().is_terminal();
    let started = Instant::now();
    let (mut line, mut drawn) = (String::from("starting"), String::new());
    loop {
        let wait = QUIET.checked_sub(started.elapsed()).unwrap_or(REDRAW);
        match received.recv_timeout(wait) {
            Ok(next) if next.is_empty() => break,
            Ok(next) => line = next,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if line == HUSH || started.elapsed() < QUIET {
            continue;
        }
        let mut err = std::io::stderr().lock();
        if terminal {
            let _ = write!(err, "\r\x1b[K{} s  {}", started.elapsed().as_secs(), escaped_line(&line));
            drawn.clone_from(&line);
        } else if drawn != line {
            let _ = writeln!(err, "{} s  {}", started.elapsed().as_secs(), escaped_line(&line));
            drawn.clone_from(&line);
        }
        let _ = err.flush();
    }
    if terminal && !drawn.is_empty() {
        let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
    }
}
