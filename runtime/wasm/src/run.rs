//! What an execution shares with its streams: the sink, the limits on what it
//! says, and its clocks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use glovebox_runtime::job::{Frame, FrameSink, JobLimits, Limit, Timer};
use rustix::time::{ClockId, clock_gettime};

/// Why the host ends a guest. Travels through the engine as an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Stop {
    /// A limit that can't be survived.
    #[error("a limit was hit: {0:?}")]
    Limit(Limit),
    /// A clock ran out.
    #[error("out of time: {0:?}")]
    Time(Timer),
}

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    Out,
    Err,
}

/// The part of an execution that outlives a borrow of its store.
pub(crate) struct Run {
    voice: Mutex<Voice>,
    started: Instant,
    wall: Option<Instant>,
    idle: Option<Duration>,
    cpu: Option<Duration>,
    /// Processor time of the polls that are over, in nanoseconds.
    spent: AtomicU64,
    /// The thread's processor clock up to which `spent` counts.
    mark: AtomicU64,
    /// When the guest was instantiated, in nanoseconds from the start; 0 is
    /// not yet.
    entered: AtomicU64,
}

struct Voice {
    sink: Box<dyn FrameSink>,
    left: u64,
    last: Instant,
}

impl Run {
    pub(crate) fn new(sink: Box<dyn FrameSink>, limits: &JobLimits) -> Self {
        let started = Instant::now();
        Self {
            voice: Mutex::new(Voice { sink, left: limits.output, last: started }),
            started,
            // A deadline beyond what the clock can say is none.
            wall: started.checked_add(limits.wall),
            idle: limits.idle,
            cpu: limits.cpu,
            spent: AtomicU64::new(0),
            mark: AtomicU64::new(0),
            entered: AtomicU64::new(0),
        }
    }

    /// Hands output on. What goes beyond the limit is lost and ends the
    /// guest; what came before it is kept.
    pub(crate) fn output(&self, channel: Channel, bytes: &[u8]) -> Result<(), Stop> {
        // Nothing said is still silence.
        if bytes.is_empty() {
            return Ok(());
        }
        let mut voice = self.voice();
        self.heard(&mut voice);
        let room = usize::try_from(voice.left).unwrap_or(usize::MAX);
        let kept = &bytes[..bytes.len().min(room)];
        voice.left -= kept.len() as u64;
        if !kept.is_empty() {
            voice.sink.frame(match channel {
                Channel::Out => Frame::Stdout(kept),
                Channel::Err => Frame::Stderr(kept),
            });
        }
        if kept.len() < bytes.len() { Err(Stop::Limit(Limit::Output)) } else { Ok(()) }
    }

    /// Hands a log line on. It is output like any other, and counts as such.
    pub(crate) fn log(&self, level: &'static str, message: &str) -> Result<(), Stop> {
        let mut voice = self.voice();
        self.heard(&mut voice);
        match voice.left.checked_sub(message.len() as u64) {
            Some(left) => {
                voice.left = left;
                voice.sink.frame(Frame::Log { level, message });
                Ok(())
            }
            None => Err(Stop::Limit(Limit::Output)),
        }
    }

    /// Hands progress on, or a line of our own.
    pub(crate) fn frame(&self, frame: Frame<'_>) {
        let mut voice = self.voice();
        self.heard(&mut voice);
        voice.sink.frame(frame);
    }

    /// Which clock has run out, if any.
    pub(crate) fn expired(&self) -> Option<Timer> {
        let now = Instant::now();
        if self.wall.is_some_and(|wall| now >= wall) {
            return Some(Timer::Wall);
        }
        if self.cpu.is_some_and(|limit| self.cpu_now() >= limit) {
            return Some(Timer::Cpu);
        }
        let silence = self.idle.filter(|&idle| now.duration_since(self.voice().last) >= idle);
        silence.map(|_| Timer::Idle)
    }

    /// When a clock runs out next if nothing happens. Processor time does not
    /// pass while a guest waits.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let silence = self.idle.and_then(|idle| self.voice().last.checked_add(idle));
        match (self.wall, silence) {
            (Some(wall), Some(silence)) => Some(wall.min(silence)),
            (wall, silence) => wall.or(silence),
        }
    }

    /// A poll begins on this thread.
    pub(crate) fn resume(&self) {
        self.mark.store(thread_cpu(), Ordering::Relaxed);
    }

    /// The poll is over.
    pub(crate) fn pause(&self) {
        let now = thread_cpu();
        let spent = now.saturating_sub(self.mark.swap(now, Ordering::Relaxed));
        self.spent.fetch_add(spent, Ordering::Relaxed);
    }

    /// The guest is instantiated; the call begins.
    pub(crate) fn enter(&self) {
        let setup = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.entered.store(setup.max(1), Ordering::Relaxed);
    }

    /// Whether the guest was instantiated.
    pub(crate) fn has_entered(&self) -> bool {
        self.entered.load(Ordering::Relaxed) != 0
    }

    /// How long setting up took, and how long the call until now.
    pub(crate) fn times(&self) -> (Duration, Duration) {
        let all = self.started.elapsed();
        if !self.has_entered() {
            return (all, Duration::ZERO);
        }
        let setup = Duration::from_nanos(self.entered.load(Ordering::Relaxed));
        (setup, all.saturating_sub(setup))
    }

    /// Processor time of all polls that are over.
    pub(crate) fn cpu(&self) -> Duration {
        Duration::from_nanos(self.spent.load(Ordering::Relaxed))
    }

    fn cpu_now(&self) -> Duration {
        let present = thread_cpu().saturating_sub(self.mark.load(Ordering::Relaxed));
        self.cpu() + Duration::from_nanos(present)
    }

    fn heard(&self, voice: &mut Voice) {
        if self.idle.is_some() {
            voice.last = Instant::now();
        }
    }

    fn voice(&self) -> MutexGuard<'_, Voice> {
        // A sink that panicked ends the execution; what is reported after
        // that may still use it.
        self.voice.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The processor time of this thread, in nanoseconds.
fn thread_cpu() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use glovebox_runtime::job::{Frame, FrameSink, JobLimits};

    use super::*;

    struct Deaf;

    impl FrameSink for Deaf {
        fn frame(&mut self, _: Frame<'_>) {}
    }

    #[test]
    fn writing_nothing_is_silence() {
        let limits = JobLimits {
            wall: Duration::from_secs(60),
            idle: Some(Duration::from_secs(30)),
            cpu: None,
            memory: 0,
            output: 10,
            storage: 0,
            inodes: 0,
        };
        let run = Run::new(Box::new(Deaf), &limits);
        let before = run.voice().last;
        run.output(Channel::Out, b"").unwrap();
        assert_eq!(run.voice().last, before);
        run.output(Channel::Out, b"x").unwrap();
        assert!(run.voice().last > before);
    }
}
