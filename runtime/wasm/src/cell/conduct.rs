//! The host's conduct of one execution in a cell: hand over the job, hear what
//! is said, keep the time, and end it. Nothing that a cell says is believed
//! beyond what can be checked.

use std::future::Future;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use env_contracts::Problem;
use glovebox_runtime::frames::{Last, Marks, NotAFrame, Reader};
use glovebox_runtime::job::{
    Descriptors, End, FrameSink, Job, JobLimits, JobReport, JobUsage, Timer, UngrantedImports,
};
use serde::Serialize;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep_until, timeout};

use super::channel::CLAIM_HEADER;
use super::held::{Cell, Template};
use super::pool::Cells;
use super::verdict;
use super::wire::{self, FDS_PER_MESSAGE};
use crate::component::Artefact;

/// How long after its time a cell may still report by itself; then the kernel
/// ends it. Also covers what comes before its own clock starts.
const GRACE: Duration = Duration::from_millis(250);
/// How long what a killed cell said before may take to be read.
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// What is read at once.
const CHUNK: usize = 64 << 10;
/// Log lines of the executor itself, which don't count as output.
const OWN_WORDS: u64 = 64 << 10;
/// Templates tried if each ends before it gives a cell.
const TRIES: usize = 3;

/// What a cell is for.
#[derive(Clone, Copy, Serialize)]
pub enum Errand<'a> {
    /// To execute a job.
    Job(&'a Job),
    /// To ask a tool for its manifest.
    Describe(&'a JobLimits),
    /// To try to break out in some way.
    Attempt(&'a str),
}

impl Errand<'_> {
    pub(super) fn limits(&self) -> JobLimits {
        match self {
            Self::Job(job) => job.limits.clone(),
            Self::Describe(limits) => (*limits).clone(),
            Self::Attempt(_) => super::ATTEMPT,
        }
    }
}

/// When what happened, from the claim on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timeline {
    /// Until the cell had its job.
    pub received: Duration,
    /// Until it was shut in for good.
    pub confined: Duration,
    /// Until the guest stood, as the cell says.
    pub instantiated: Duration,
    /// Until the host had the result.
    pub answered: Duration,
}

/// Why the host ended a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Killed {
    Interrupted,
    Expired(Timer),
    /// It broke the rules of the stream.
    NotAFrame(&'static str),
    Flooded,
    /// It closed its channel, which an end does by itself, and did not end.
    Mute,
}

impl Cells {
    /// Executes an errand in a cell of its own. However it ends, the cell is
    /// gone when this returns, or when its future is dropped.
    pub async fn run(
        &self,
        artefact: &Arc<Artefact>,
        imports: UngrantedImports,
        errand: Errand<'_>,
        fds: Descriptors,
        sink: Box<dyn FrameSink>,
        stop: impl Future<Output = ()>,
    ) -> (JobReport, Timeline) {
        let mut stop = pin!(stop);
        let cell = tokio::select! {
            biased;
            () = stop.as_mut() => return (without_cell(End::Interrupted), Timeline::default()),
            cell = self.cell(artefact, imports) => cell,
        };
        match cell {
            Ok((cell, template)) => {
                // The next ones are made when this one has done its work: it
                // should have the processors. Unless somebody else may come.
                if template.idle().is_empty() {
                    self.refill(&template);
                }
                let done = attend(cell, errand, fds, sink, stop).await;
                self.refill(&template);
                done
            }
            Err(problem) => (without_cell(End::Refused(problem)), Timeline::default()),
        }
    }

    async fn cell(
        &self,
        artefact: &Arc<Artefact>,
        imports: UngrantedImports,
    ) -> Result<(Cell, Arc<Template>), Problem> {
        let mut tries = 0;
        loop {
            let template = self.template(artefact, imports).await?;
            tries += 1;
            match self.claim(&template).await {
                // It was retired or died since: the next one will do as well.
                Err(_) if template.is_over() && tries < TRIES => {}
                claimed => return Ok((claimed?, template)),
            }
        }
    }
}

/// Sees one cell through its errand.
async fn attend(
    cell: Cell,
    errand: Errand<'_>,
    fds: Descriptors,
    mut sink: Box<dyn FrameSink>,
    stop: Pin<&mut impl Future<Output = ()>>,
) -> (JobReport, Timeline) {
    let began = verdict::Began::now();
    let failed = |error: io::Error| without_cell(End::HostFailed(format!("the cell can't be reached: {error}")));
    let Cell { channel, process } = cell;
    let channel = match UnixStream::from_std(channel) {
        Ok(channel) => channel,
        Err(error) => return (failed(error), Timeline::default()),
    };
    // A cell that died before it had all of it is judged by its death.
    if let Err(error) = hand_over(&channel, &errand, fds).await
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        return (failed(error), Timeline::default());
    }
    let limits = errand.limits();
    let mut reader = Reader::default();
    let mut ended = listen(&channel, &mut reader, &mut *sink, &limits, stop).await;
    // Before it is ended here: afterwards, nobody knows what it had done by itself.
    let death = match ended {
        Ended::Silent => process.fate.death().await,
        _ => None,
    };
    if matches!(ended, Ended::Silent) && death.is_none() {
        ended = Ended::Killed(Killed::Mute);
    }
    let outside = match ended {
        Ended::Killed(_) => verdict::outside(&process),
        _ => JobUsage::default(),
    };
    process.kill();
    if let Ended::Killed(why) = ended
        && matches!(why, Killed::Interrupted | Killed::Expired(_))
    {
        // What it said until then, and perhaps that it had ended already.
        let rest = drain(&channel, &mut reader, &mut *sink);
        if let Ok(Ok(Some(last))) = timeout(DRAIN_MAX, rest).await {
            ended = Ended::Said(last);
        }
    }
    let (marks, setup) = match &ended {
        Ended::Said(Last::Report(report, marks)) => (*marks, report.usage.setup),
        _ => (Marks::default(), Duration::ZERO),
    };
    let (timeline, total) = began.until_now(marks, setup);
    let report = match ended {
        Ended::Said(Last::Report(report, _)) => verdict::believe(*report, &errand, total),
        Ended::Said(Last::Violation(number)) => verdict::refused(number, total),
        Ended::Killed(why) => verdict::killed(why, JobUsage { run: total, ..outside }),
        Ended::Silent => verdict::died(death, total),
    };
    (report, timeline)
}

/// How the stream ended.
enum Ended {
    Said(Last),
    /// Without a last word.
    Silent,
    Killed(Killed),
}

/// Sends the claim with its descriptors, which are the cell's from then on.
async fn hand_over(channel: &UnixStream, errand: &Errand<'_>, fds: Descriptors) -> io::Result<()> {
    let mut bytes = vec![0; CLAIM_HEADER];
    serde_json::to_writer(&mut bytes, errand)?;
    let number = |length: usize| u32::try_from(length).map(u32::to_le_bytes).map_err(io::Error::other);
    let length = number(bytes.len() - CLAIM_HEADER)?;
    bytes[..4].copy_from_slice(&length);
    bytes[4..CLAIM_HEADER].copy_from_slice(&number(fds.len())?);
    let mut rest = &bytes[..];
    let mut chunks = fds.chunks(FDS_PER_MESSAGE).peekable();
    while !rest.is_empty() {
        // While more descriptors follow, a byte goes with each load of them.
        let borrowed: Vec<_> = chunks.peek().map(|chunk| chunk.iter().map(AsFd::as_fd).collect()).unwrap_or_default();
        let more = chunks.len() > 1;
        let part = if more { &rest[..1] } else { rest };
        match channel.try_io(Interest::WRITABLE, || wire::send_part(channel, &[IoSlice::new(part)], &borrowed)) {
            Ok(sent) => {
                rest = &rest[sent..];
                chunks.next();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => channel.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Hears the cell out, until it has ended or must be.
async fn listen(
    channel: &UnixStream,
    reader: &mut Reader,
    sink: &mut dyn FrameSink,
    limits: &JobLimits,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Ended {
    let began = Instant::now();
    let wall = began.checked_add(limits.wall.saturating_add(GRACE));
    let silence = |heard: Instant| limits.idle.and_then(|idle| heard.checked_add(idle.saturating_add(GRACE)));
    let next = |heard| match (wall, silence(heard)) {
        (Some(wall), Some(silence)) if silence < wall => Some((silence, Timer::Idle)),
        (Some(wall), _) => Some((wall, Timer::Wall)),
        (None, silence) => silence.map(|silence| (silence, Timer::Idle)),
    };
    let mut until = next(began);
    let mut bytes = vec![0; CHUNK];
    // A clock that can't say when is none; the action's own wall still holds.
    let mut alarm = pin!(sleep_until(until.map_or(began + Duration::from_secs(u32::MAX.into()), |(when, _)| when)));
    loop {
        tokio::select! {
            biased;
            () = stop.as_mut() => return Ended::Killed(Killed::Interrupted),
            ready = channel.readable() => if ready.is_err() {
                return Ended::Silent;
            },
            () = alarm.as_mut() => return Ended::Killed(Killed::Expired(until.map_or(Timer::Wall, |(_, timer)| timer))),
        }
        // Whoever floods the stream is still stopped in time.
        if until.is_some_and(|(when, _)| Instant::now() >= when) {
            return Ended::Killed(Killed::Expired(until.map_or(Timer::Wall, |(_, timer)| timer)));
        }
        match channel.try_io(Interest::READABLE, || read(channel, &mut bytes, reader, sink)) {
            Ok(Heard::Last(last)) => return Ended::Said(last),
            Ok(Heard::Bytes) => {}
            Ok(Heard::NotAFrame(NotAFrame(what))) => return Ended::Killed(Killed::NotAFrame(what)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Ok(Heard::End) | Err(_) => return Ended::Silent,
        }
        if reader.said() > limits.output.saturating_add(OWN_WORDS) {
            return Ended::Killed(Killed::Flooded);
        }
        if limits.idle.is_some() {
            until = next(Instant::now());
            if let Some((when, _)) = until {
                alarm.as_mut().reset(when);
            }
        }
    }
}

enum Heard {
    Bytes,
    Last(Last),
    End,
    NotAFrame(NotAFrame),
}

/// Reads once. No descriptors are taken: what a cell sends along is dropped by
/// the kernel.
fn read(channel: impl AsFd, bytes: &mut [u8], reader: &mut Reader, sink: &mut dyn FrameSink) -> io::Result<Heard> {
    let count = rustix::io::retry_on_intr(|| rustix::io::read(channel.as_fd(), &mut *bytes))?;
    if count == 0 {
        return Ok(Heard::End);
    }
    Ok(match reader.push(&bytes[..count], sink) {
        Ok(Some(last)) => Heard::Last(last),
        Ok(None) => Heard::Bytes,
        Err(error) => Heard::NotAFrame(error),
    })
}

/// What is still in the stream of a cell that has been ended.
async fn drain(channel: &UnixStream, reader: &mut Reader, sink: &mut dyn FrameSink) -> io::Result<Option<Last>> {
    let mut bytes = vec![0; CHUNK];
    loop {
        channel.readable().await?;
        match channel.try_io(Interest::READABLE, || read(channel, &mut bytes, reader, sink)) {
            Ok(Heard::Bytes) => {}
            Ok(Heard::Last(last)) => return Ok(Some(last)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            _ => return Ok(None),
        }
    }
}

fn without_cell(end: End) -> JobReport {
    JobReport { end, usage: JobUsage::default() }
}

#[cfg(test)]
#[path = "conduct_tests.rs"]
mod tests;
