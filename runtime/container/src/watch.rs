//! What happens from the start of a tool to its end.

use std::time::Duration;

use env_contracts::{Code, Problem};
use glovebox_runtime::Stop;
use glovebox_runtime::job::{End, Frame, FrameSink, Limit, Timer};
use glovebox_supervisor::{DEAD_MAN, Ended, Exited, FrameError, Order, Report, Start, Watch, Why};

use crate::drive::Errand;
use crate::session::{Over, Session};
use crate::streams::{Quiet, Streams};

/// How often a supervisor is asked for a sign of life, and how many may stay
/// unanswered.
const BEAT: Duration = Duration::from_secs(5);
const BEATS_MISSED: u64 = 4;
/// How long what runs may take to end when it is asked to.
const GRACE: Duration = Duration::from_millis(500);
/// How long a supervisor may take to end it, beyond that.
const ENDING: Duration = Duration::from_secs(3);

const _: () = assert!(BEAT.as_secs() * BEATS_MISSED < DEAD_MAN.as_secs(), "whoever is heard is not given up first");

/// Where a tool said something.
#[derive(Clone, Copy)]
enum Stream {
    Out,
    Err,
}

/// What happens from the start of the tool to its end.
pub(crate) struct Run<'a> {
    errand: &'a Errand,
    sink: &'a mut dyn FrameSink,
    stop: &'a Stop,
    streams: Streams,
    said: u64,
    quiet: Quiet,
    /// How it ended, if its supervisor said so.
    pub(crate) exited: Option<Exited>,
    not_started: Option<i32>,
    pongs: u64,
}

impl<'a> Run<'a> {
    pub(crate) fn new(errand: &'a Errand, streams: Streams, sink: &'a mut dyn FrameSink, stop: &'a Stop) -> Self {
        let quiet = Quiet::default();
        Self { errand, sink, stop, streams, said: 0, quiet, exited: None, not_started: None, pongs: 0 }
    }

    /// Whether the tool began at all, as far as is known.
    pub(crate) fn has_started(&self) -> bool {
        self.not_started.is_none()
    }

    /// Starts the tool, and sees to it until nothing of it is left.
    pub(crate) async fn until_its_end(&mut self, session: &mut Session) -> End {
        let limits = &self.errand.limits;
        let watch = Watch {
            folders: self
                .errand
                .folders
                .private
                .iter()
                .chain(self.errand.folders.copied.iter().map(|copied| &copied.guest))
                .cloned()
                .collect(),
            storage: limits.storage.unwrap_or_default().0,
            inodes: limits.inodes.unwrap_or_default(),
            cpu_us: limits.cpu.map(|span| u64::try_from(span.0.as_micros()).unwrap_or(u64::MAX)),
        };
        let start =
            Start { argv: self.errand.argv.clone(), env: self.errand.env.clone(), cwd: self.errand.cwd.clone(), watch };
        let (orders, input, quiet) = (session.orders(), std::mem::take(&mut self.streams.input), self.quiet.clone());
        let memory = limits.memory.unwrap_or_default().0;
        // Whoever does not read its input holds nobody up.
        let feeding = tokio::spawn(async move {
            if orders.say(&Order::Start(start)).await {
                input.feed(&orders, &quiet, memory).await;
            }
        });
        let end = self.until_something(session).await;
        feeding.abort();
        // What it says from here on waits for nobody.
        self.streams.close();
        match end {
            Some(end) => {
                self.ask_to_end(session).await;
                // It had come to its own end before it was asked to.
                let own = self.exited.is_some_and(|exited| exited.why.is_none());
                if own && !matches!(end, End::LimitHit(_)) { self.own_end() } else { end }
            }
            None => self.own_end(),
        }
    }

    /// Until the tool ends by itself (`None`), or has to be ended, and why.
    async fn until_something(&mut self, session: &mut Session) -> Option<End> {
        let limits = &self.errand.limits;
        let wall = tokio::time::sleep(limits.wall.unwrap_or_default().0);
        tokio::pin!(wall);
        let mut beat = tokio::time::interval_at(tokio::time::Instant::now() + BEAT, BEAT);
        let (orders, mut asked) = (session.orders(), 0);
        let stop = self.stop.clone();
        self.quiet.stir();
        // What was asked while nobody took what came before the answer.
        let mut deaf = 0;
        loop {
            // The silence of one that is not listened to is not its own.
            let idle = limits.idle.filter(|_| !self.streams.holds());
            let idle = idle.map(|idle| idle.0.saturating_sub(self.quiet.lasted()));
            let idle = async {
                match idle {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // The clocks come first: a tool that goes on talking must not
                // keep them from being looked at.
                biased;
                () = stop.requested() => return Some(End::Interrupted),
                () = &mut wall => return Some(End::TimedOut(Timer::Wall)),
                // It may have been told something since.
                () = idle => if limits.idle.is_some_and(|idle| self.quiet.lasted() >= idle.0) {
                    return Some(End::TimedOut(Timer::Idle));
                },
                _ = beat.tick() => {
                    if asked - self.pongs.max(deaf) >= BEATS_MISSED {
                        return Some(End::Lost("the container's supervisor does not answer any more".into()));
                    }
                    asked += 1;
                    orders.say_at_once(&Order::Ping(asked)).await;
                    if self.streams.holds() {
                        deaf = asked;
                    }
                }
                heard = self.next(session) => match heard {
                    Ok(()) => {}
                    Err(over) => return self.lost(session, over),
                },
            }
            // All that it said is passed on first.
            if self.streams.holds() {
                continue;
            }
            if self.said > limits.output.unwrap_or_default().0 {
                return Some(End::LimitHit(Limit::Output));
            }
            if self.exited.is_some() || self.not_started.is_some() {
                return None;
            }
        }
    }

    /// Passes on what was said; where all is, hears more. So who takes nothing
    /// is waited for, and in the end the tool is.
    async fn next(&mut self, session: &mut Session) -> Result<(), Over> {
        if !self.streams.holds() {
            return session.hear(|report| self.take(report)).await;
        }
        self.streams.pass_on().await;
        self.quiet.stir();
        Ok(())
    }

    /// The conversation ended before the tool did.
    fn lost(&self, session: &Session, over: Over) -> Option<End> {
        Some(match over {
            Over::Broken(error) => {
                End::Violation(format!("what came out of the container is not its supervisor's: {error}"))
            }
            Over::Ended => {
                let said = session.beside();
                let said = if said.is_empty() { String::new() } else { format!(": {said}") };
                End::Lost(format!("the container ended under the tool{said}"))
            }
        })
    }

    fn take(&mut self, report: Report<'_>) -> Result<(), FrameError> {
        if self.exited.is_some() {
            return Err(FrameError("it goes on after the end"));
        }
        match report {
            Report::Stdout(bytes) => self.output(bytes, Stream::Out),
            Report::Stderr(bytes) => self.output(bytes, Stream::Err),
            Report::Exited(exited) => self.exited = Some(exited),
            Report::NotStarted(errno) => self.not_started = Some(errno),
            Report::Pong(number) if number > self.pongs => self.pongs = number,
            _ => return Err(FrameError("it says what it was not asked")),
        }
        Ok(())
    }

    fn output(&mut self, bytes: &[u8], stream: Stream) {
        self.quiet.stir();
        let room = self.errand.limits.output.unwrap_or_default().0.saturating_sub(self.said);
        self.said += bytes.len() as u64;
        let most = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        match stream {
            _ if most == 0 => {}
            Stream::Out if self.streams.hold(&bytes[..most]) => {}
            Stream::Out => self.sink.frame(Frame::Stdout(&bytes[..most])),
            Stream::Err => self.sink.frame(Frame::Stderr(&bytes[..most])),
        }
    }

    /// Asks the supervisor to end what runs, and goes on hearing what it says.
    async fn ask_to_end(&mut self, session: &mut Session) {
        let grace = u32::try_from(GRACE.as_millis()).unwrap_or(0);
        let orders = session.orders();
        let ending = async {
            if !orders.say_at_once(&Order::End(grace)).await {
                return;
            }
            while self.exited.is_none() && self.not_started.is_none() {
                if session.hear(|report| self.take(report)).await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(GRACE + ENDING, ending).await;
    }

    /// What the tool's own end means.
    fn own_end(&self) -> End {
        let Some(exited) = self.exited else {
            let error = std::io::Error::from_raw_os_error(self.not_started.unwrap_or_default());
            let program = self.errand.argv.first().map(String::as_str).unwrap_or_default().escape_debug().to_string();
            let message = format!("`{program}` can't be started in the image: {error}");
            return End::Refused(Problem::new(Code::ImageCommand, message));
        };
        let failed = exited.ended != Ended::Code(0);
        match exited.why {
            Some(Why::Storage) => return End::LimitHit(Limit::Storage),
            Some(Why::Inodes) => return End::LimitHit(Limit::Inodes),
            Some(Why::Cpu) => return End::TimedOut(Timer::Cpu),
            Some(Why::Ordered) | None => {}
        }
        // Whoever fails after something was refused is taken to have failed
        // because of it.
        if failed && exited.oom_kills > 0 {
            return End::LimitHit(Limit::Memory);
        }
        if failed && exited.full.0 {
            return End::LimitHit(Limit::Storage);
        }
        if failed && exited.full.1 {
            return End::LimitHit(Limit::Inodes);
        }
        match exited.ended {
            Ended::Code(code) => End::Exited { code: u32::try_from(code).unwrap_or(u32::MAX) },
            Ended::Signal(signal) => End::Trapped(format!("ended by signal {signal}")),
        }
    }
}
