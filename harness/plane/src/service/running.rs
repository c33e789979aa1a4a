//! The run itself.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant as Mark};

use env_contracts::{Code, Notice, Outcome, OutcomeKind, Problem};
use glovebox_runtime::job::{End, JobUsage, Timer};
use glovebox_runtime::{Bound, Permit, Ports, RunReport, Stop};

use super::binding::Ready;
use super::claiming::Room;
use super::execution::Execution;
use super::flight::Flight;
use super::{ActionService, standing};
use crate::arguments::Schema;
use crate::collect::{self, Collection};
use crate::machine::{Change, Then, after};
use crate::observe::{self, Refusal};
use crate::registry::Tool;
use crate::result;
use crate::streams::Streams;
use crate::watch::Watch;

/// A run that takes longer is written down while it lasts, so that others see
/// it and can stop it. Most are over by then, and are written down once.
const RECORD_AFTER: Duration = Duration::from_millis(100);

impl ActionService {
    /// Runs what was claimed, and takes in what came of it.
    pub(super) async fn run(
        &self,
        flight: &mut Flight,
        ready: Ready,
        mut room: Room,
        watch: &Arc<dyn Watch>,
        stop: &Stop,
    ) -> Result<Outcome, Refusal> {
        let parts = &self.parts;
        let Ready { planned, bound, run_dir, .. } = ready;
        let contract = &planned.plan.contract;
        let expect = flight.kept.request.expect.as_ref().map(result::expectation).transpose()?;
        let outputs = bound.files.outputs.as_ref().map(|dir| dir.as_fd().try_clone_to_owned()).transpose();
        let outputs = outputs.map_err(|error| {
            glovebox_runtime::io_problem("cannot keep the outputs folder", Code::BackendError, &error)
        })?;
        if let Some(inside) = &mut room.environment {
            Box::pin(self.begin_in(flight, &planned, inside)).await?;
        }
        let permit = parts.authority.permit(&bound.digest);
        let streams = Streams::new(&run_dir, contract.limits.output.unwrap_or_default().0);
        flight.live = Some(self.live.list(&flight.principal, flight.journal.id(), &streams));
        let wall = contract.limits.wall.unwrap_or_default().0;
        watch.phase("running");
        // A stop of its own: that of the caller may be others' too.
        let own = Stop::default();
        let ports = Ports { frames: streams.sink(watch.clone()), stop: own.clone() };
        let report = self.execute(flight, bound, permit, ports, wall, stop, &own).await?;

        let teardown = Mark::now();
        let tool = flight.tool()?.clone();
        flight.story.ran(&report.usage, &tool);
        flight.story.0.notices.extend(report.notices);
        let mut outcome = observe::outcome(&report.end, &tool);
        if matches!(report.end, End::Interrupted)
            && after(standing::run(Some(planned.plan.effects)), Change::Interrupt) == Then::Unknown
        {
            outcome = cut_off(&tool);
        }
        let collection = Collection {
            store: parts.artifacts.action(planned.plan.action_id.as_str()),
            plan: &planned.plan,
            now: parts.clock.now(),
            described: match &report.end {
                End::Returned { artifacts, .. } => artifacts,
                _ => &[],
            },
        };
        let story = &mut flight.story;
        let stdout = collect::streams(&collection, &streams, story, &mut outcome).await;
        if let Some(dir) = outputs {
            collect::outputs(&collection, dir, story, &mut outcome).await;
        }
        let expect: Option<&Schema> = expect.as_ref();
        result::judge(&tool, &report.end, stdout, expect, story, &mut outcome);
        if !contract.cleanup.scratch
            && let Some(run_dir) = Arc::into_inner(run_dir)
        {
            let kept = run_dir.keep(&parts.run_root.with_file_name("kept"))?;
            story.notice("scratch-kept", format!("scratch folders are kept in {}", kept.display()));
        }
        if let Some(inside) = &mut room.environment {
            Box::pin(self.leave(flight, &planned, inside)).await;
        }
        flight.story.0.times.teardown_us += micros(teardown.elapsed());
        drop(room);
        Ok(outcome)
    }

    /// Waits for the execution, which has a thread of its own where a call of
    /// the kernel's can hold it: so it still ends in time for the caller.
    #[expect(clippy::too_many_arguments, reason = "what a run needs, from one caller")]
    async fn execute(
        &self,
        flight: &mut Flight,
        bound: Bound,
        permit: Permit,
        ports: Ports,
        wall: Duration,
        stop: &Stop,
        own: &Stop,
    ) -> Result<RunReport, Refusal> {
        let parts = self.parts.clone();
        // Whoever drops this future wants no result any more.
        let _unwatched = StopOnDrop(own.clone());
        let backend = parts.runtime.backend(&bound.plan.backend);
        let here = backend.is_some_and(|backend| backend.never_blocks());
        // Beyond it the thread is stuck in a call of the kernel's.
        let most = wall + backend.map_or(Duration::ZERO, |backend| backend.patience());
        let mut run = Execution::begin(async move { parts.runtime.run(bound, permit, ports).await }, here);
        let deadline = tokio::time::sleep(most);
        tokio::pin!(deadline);
        let mut asked = std::pin::pin!(stop.requested());
        let mut noticed = std::pin::pin!(tokio::time::sleep(RECORD_AFTER));
        let mut changes = None;
        // Whoever wants it stopped may let it go on for a while.
        let grace = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(grace);
        let (mut stopping, mut recorded, mut graced) = (false, false, false);
        loop {
            tokio::select! {
                biased;
                done = &mut run => return Ok(done?),
                () = &mut asked, if !stopping => {
                    stopping = true;
                    own.request();
                }
                // Later than the other by far, and setting a clock wakes a thread.
                () = &mut deadline, if recorded => return Ok(left_behind(most)),
                () = &mut noticed, if !recorded => {
                    recorded = true;
                    changes = self.seen(flight).await;
                    // Somebody may have wanted it stopped before we listened.
                    if let Some(left) = self.to_stop(flight) {
                        grace.as_mut().reset(tokio::time::Instant::now() + left);
                        graced = true;
                    }
                }
                () = changed(&mut changes), if changes.is_some() && !stopping => {
                    if let Some(left) = self.to_stop(flight) {
                        grace.as_mut().reset(tokio::time::Instant::now() + left);
                        graced = true;
                    }
                }
                () = &mut grace, if graced && !stopping => {
                    stopping = true;
                    own.request();
                }
            }
        }
    }
}

/// The end of a run that could change something outside and was cut off in the
/// middle: nobody says that it did not happen, or was taken back.
fn cut_off(tool: &Tool) -> Outcome {
    let message = "the action was interrupted while it ran, and whether it took effect is not known";
    let problem = Problem::new(Code::Unknown, message);
    let problem = match &tool.manifest.verify {
        Some(verify) => problem.with_help(format!("run `{verify}` to find out, before it is done again")),
        None => problem.with_help("look whether it took effect, before it is done again"),
    };
    Outcome::failed(OutcomeKind::Unknown, problem).which("interrupted")
}

/// The next commit of anybody.
async fn changed(changes: &mut Option<tokio::sync::watch::Receiver<u64>>) {
    match changes {
        Some(receiver) => {
            if receiver.changed().await.is_err() {
                *changes = None;
            }
        }
        None => std::future::pending().await,
    }
}

/// The report of an execution that does not answer. What it said and made
/// until now still counts.
fn left_behind(after: Duration) -> RunReport {
    RunReport {
        end: End::TimedOut(Timer::Wall),
        usage: JobUsage { run: after, ..JobUsage::default() },
        notices: vec![Notice::new("thread-left", "the execution does not answer; its thread is left behind")],
    }
}

/// Waits for a step before the run, unless the action is no longer wanted.
pub(super) async fn unless_stopped<T>(stop: &Stop, phase: &str, step: impl Future<Output = T>) -> Result<T, Refusal> {
    tokio::select! {
        biased;
        () = stop.requested() => Err(interrupted(phase)),
        done = step => Ok(done),
    }
}

/// The end of an action that was no longer wanted before it ran.
pub(super) fn interrupted(phase: &str) -> Refusal {
    let problem = Problem::new(Code::Interrupted, "the action was interrupted before it ran");
    Refusal::new(OutcomeKind::Interrupted, problem).which(phase)
}

/// Asks a run to stop when whoever waits for it is gone.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.request();
    }
}

pub(super) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
