//! What is run, and what of it is watched.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use glovebox_supervisor::{Ended, PIECE_MAX, Report, Start, Watch, Why};

use crate::cgroup::{self, Used};
use crate::sys::{self, Fds};
use crate::wire::Wire;

/// The streams of a child.
#[derive(Clone, Copy)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// Where its streams stand among the descriptors that are waited for.
pub(crate) struct Said {
    input: Option<usize>,
    output: Option<usize>,
    error: Option<usize>,
}

/// What was started.
pub(crate) struct Child {
    pid: i32,
    input: Option<ChildStdin>,
    /// What it has not taken yet of its input.
    waiting: VecDeque<u8>,
    input_over: bool,
    output: Option<ChildStdout>,
    error: Option<ChildStderr>,
    ended: Option<Ended>,
    ending: Option<(Why, Instant)>,
    watch: Watch,
    cpu_before: u64,
    filled_before: (u64, u64),
    /// What the container had used before.
    pub(crate) before: Used,
}

impl Child {
    /// Starts it. What goes wrong is the kernel's error number.
    #[expect(clippy::disallowed_methods, reason = "starting the tool is what this program is for")]
    pub(crate) fn start(start: &Start) -> Result<Self, i32> {
        let [program, arguments @ ..] = &start.argv[..] else { return Err(libc::EINVAL) };
        // Before it can do anything.
        let (before, cpu_before, filled_before) = (cgroup::used(), cpu_us(), filled(&start.watch));
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(start.env.iter().map(|(name, value)| (name, value)));
        command.current_dir(&start.cwd).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[expect(unsafe_code, reason = "a child has to undo what PID 1 set up for itself")]
        // SAFETY: it makes async-signal-safe calls and allocates nothing.
        unsafe {
            command.pre_exec(sys::become_tool);
        }
        let mut child = command.spawn().map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?;
        let (input, output, error) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let fds = [input.as_ref().map(AsFd::as_fd), output.as_ref().map(AsFd::as_fd), error.as_ref().map(AsFd::as_fd)];
        for fd in fds.into_iter().flatten() {
            let flags = rustix::fs::fcntl_getfl(fd).map_err(rustix::io::Errno::raw_os_error)?;
            rustix::fs::fcntl_setfl(fd, flags | rustix::fs::OFlags::NONBLOCK)
                .map_err(rustix::io::Errno::raw_os_error)?;
        }
        Ok(Self {
            pid: i32::try_from(child.id()).unwrap_or(-1),
            input,
            waiting: VecDeque::new(),
            input_over: false,
            output,
            error,
            ended: None,
            ending: None,
            watch: start.watch.clone(),
            cpu_before,
            filled_before,
            before,
        })
    }

    /// Bytes for its standard input.
    pub(crate) fn input(&mut self, bytes: &[u8]) {
        if self.input.is_some() {
            self.waiting.extend(bytes);
        }
    }

    /// No more of them.
    pub(crate) fn input_ends(&mut self) {
        self.input_over = true;
        if self.waiting.is_empty() {
            self.input = None;
        }
    }

    /// Asks all to end, and kills what is left after a while.
    pub(crate) fn end(&mut self, why: Why, grace: Duration) {
        if self.ending.is_none() {
            self.ending = Some((why, Instant::now() + grace));
            sys::ask_all();
        }
    }

    /// Adds its streams to what is waited for; its output only where there is
    /// room for it.
    pub(crate) fn poll(&self, fds: &mut Fds, room: bool) -> Said {
        Said {
            input: self.input.as_ref().map(|input| fds.add(input, false, !self.waiting.is_empty())),
            output: self.output.as_ref().map(|output| fds.add(output, room, false)),
            error: self.error.as_ref().map(|error| fds.add(error, room, false)),
        }
    }

    /// Passes on what it said.
    pub(crate) fn hear(&mut self, fds: &Fds, said: &Said, wire: &mut Wire) {
        let mut piece = vec![0; PIECE_MAX];
        let ready = |index: Option<usize>| index.is_some_and(|index| fds.ready(index));
        if ready(said.output) {
            let read = self.output.as_mut().map(|output| output.read(&mut piece));
            if passed(read, &piece, Stream::Out, wire) {
                self.output = None;
            }
        }
        if ready(said.error) {
            let read = self.error.as_mut().map(|error| error.read(&mut piece));
            if passed(read, &piece, Stream::Err, wire) {
                self.error = None;
            }
        }
    }

    /// Gives it what it takes of its input.
    pub(crate) fn feed(&mut self, fds: &Fds, said: &Said) {
        if !said.input.is_some_and(|index| fds.ready(index)) {
            return;
        }
        let Some(input) = &mut self.input else { return };
        match input.write(self.waiting.as_slices().0) {
            Ok(count) => drop(self.waiting.drain(..count)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            // It does not want more.
            Err(_) => {
                self.waiting.clear();
                self.input = None;
                return;
            }
        }
        if self.waiting.is_empty() && self.input_over {
            self.input = None;
        }
    }

    /// A process ended: this one, or one that it left behind.
    pub(crate) fn ended(&mut self, pid: i32, ended: Ended) {
        if pid == self.pid && self.ended.is_none() {
            self.ended = Some(ended);
        }
    }

    /// Holds it against what it may use.
    pub(crate) fn check(&mut self) {
        if self.ended.is_none()
            && self.ending.is_none()
            && let Some(why) = self.beyond()
        {
            self.end(why, Duration::ZERO);
        }
    }

    fn beyond(&self) -> Option<Why> {
        if self.watch.cpu_us.is_some_and(|most| self.cpu_us() > most) {
            return Some(Why::Cpu);
        }
        let (bytes, entries) = filled(&self.watch);
        if bytes.saturating_sub(self.filled_before.0) > self.watch.storage {
            return Some(Why::Storage);
        }
        (entries.saturating_sub(self.filled_before.1) > self.watch.inodes).then_some(Why::Inodes)
    }

    /// Whether one of its folders takes nothing more: bytes, entries.
    pub(crate) fn full(&self) -> (bool, bool) {
        let all = self.watch.folders.iter().filter_map(|folder| sys::fill(folder));
        all.fold((false, false), |full, fill| (full.0 || fill.full.0, full.1 || fill.full.1))
    }

    /// Whether nothing that it started may go on.
    pub(crate) fn over(&self) -> bool {
        self.ended.is_some() || self.ending.is_some_and(|(_, end)| Instant::now() >= end)
    }

    /// Whether all that was said was read.
    pub(crate) fn silent(&self) -> bool {
        self.output.is_none() && self.error.is_none()
    }

    /// How it ended, and why if it did not by itself.
    pub(crate) fn result(&self) -> Option<(Ended, Option<Why>)> {
        // What it filled just before its end counts as well.
        let late = || self.beyond();
        self.ended.map(|ended| (ended, self.ending.map(|(why, _)| why).or_else(late)))
    }

    /// The processor time that it used.
    pub(crate) fn cpu_us(&self) -> u64 {
        cpu_us().saturating_sub(self.cpu_before)
    }
}

/// Bytes and entries in all folders together.
fn filled(watch: &Watch) -> (u64, u64) {
    let all = watch.folders.iter().filter_map(|folder| sys::fill(folder));
    all.fold((0, 0), |(bytes, entries), fill| (bytes + fill.bytes, entries + fill.entries))
}

fn cpu_us() -> u64 {
    cgroup::cpu_us().unwrap_or_else(sys::children_cpu_us)
}

/// Passes on what was read. Whether that was all.
fn passed(read: Option<std::io::Result<usize>>, piece: &[u8], stream: Stream, wire: &mut Wire) -> bool {
    match read {
        Some(Ok(0)) | None => true,
        Some(Ok(count)) => {
            wire.say(&match stream {
                Stream::Out => Report::Stdout(&piece[..count]),
                Stream::Err => Report::Stderr(&piece[..count]),
            });
            false
        }
        Some(Err(error)) => !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted),
    }
}
