//! What happens from the start of a tool to its end.

use std::time::{Duration, Instant};

use env_contracts::{Code, Problem};
use glovebox_runtime::Stop;
use glovebox_runtime::job::{End, Frame, FrameSink, Limit, Timer};
use glovebox_supervisor::{DEAD_MAN, Ended, Exited, FrameError, Order, Report, Start, Watch, Why};

use crate::drive::Errand;
use crate::session::{Over, Session};

/// How often a supervisor is asked for a sign of life, and how many may stay
/// unanswered.
const BEAT: Duration = Duration::from_secs(5);
const BEATS_MISSED: u64 = 4;
/// How long what runs may take to end when it is asked to.
const GRACE: Duration = Duration::from_millis(500);
/// How long a supervisor may take to end it, beyond that.
const ENDING: Duration = Duration::from_secs(3);

const _: () = assert!(BEAT.as_secs() * BEATS_MISSED < DEAD_MAN.as_secs(), "whoever is heard is not given up first");

/// What happens from the start of the tool to its end.
pub(crate) struct Run<'a> {
    errand: &'a Errand,
    sink: &'a mut dyn FrameSink,
    stop: &'a Stop,
    said: u64,
    heard: Instant,
    /// How it ended, if its supervisor said so.
    pub(crate) exited: Option<Exited>,
    not_started: Option<i32>,
    pongs: u64,
}

impl<'a> Run<'a> {
    pub(crate) fn new(errand: &'a Errand, sink: &'a mut dyn FrameSink, stop: &'a Stop) -> Self {
        Self { errand, sink, stop, said: 0, heard: Instant::now(), exited: None, not_started: None, pongs: 0 }
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
        let orders = session.orders();
        let input = self.errand.stdin.clone();
        // Whoever does not read its input holds nobody up.
        let feeding = tokio::spawn(async move {
            let _ = orders.say(&Order::Start(start)).await
                && (input.is_empty() || orders.say(&Order::Stdin(&input)).await)
                && orders.say(&Order::StdinEnd).await;
        });
        let end = self.until_something(session).await;
        feeding.abort();
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
        self.heard = Instant::now();
        loop {
            let idle = limits.idle.map(|idle| idle.0.saturating_sub(self.heard.elapsed()));
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
                () = idle => return Some(End::TimedOut(Timer::Idle)),
                _ = beat.tick() => {
                    if asked - self.pongs >= BEATS_MISSED {
                        return Some(End::Lost("the container's supervisor does not answer any more".into()));
                    }
                    asked += 1;
                    orders.say_at_once(&Order::Ping(asked)).await;
                }
                heard = session.hear(|report| self.take(report)) => match heard {
                    Ok(()) => {}
                    Err(over) => return self.lost(session, over),
                },
            }
            if self.said > limits.output.unwrap_or_default().0 {
                return Some(End::LimitHit(Limit::Output));
            }
            if self.exited.is_some() || self.not_started.is_some() {
                return None;
            }
        }
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
            Report::Stdout(bytes) => self.output(bytes, Frame::Stdout),
            Report::Stderr(bytes) => self.output(bytes, Frame::Stderr),
            Report::Exited(exited) => self.exited = Some(exited),
            Report::NotStarted(errno) => self.not_started = Some(errno),
            Report::Pong(number) if number > self.pongs => self.pongs = number,
            _ => return Err(FrameError("it says what it was not asked")),
        }
        Ok(())
    }

    fn output<'b>(&mut self, bytes: &'b [u8], frame: impl Fn(&'b [u8]) -> Frame<'b>) {
        self.heard = Instant::now();
        let room = self.errand.limits.output.unwrap_or_default().0.saturating_sub(self.said);
        self.said += bytes.len() as u64;
        let most = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        if most > 0 {
            self.sink.frame(frame(&bytes[..most]));
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
