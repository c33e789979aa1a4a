//! One action in one container, from its making to its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::Docker;
use env_contracts::{Code, Limits, Notice, Problem};
use glovebox_runtime::job::{End, FrameSink, JobUsage, Limit, ToolFailure};
use glovebox_runtime::{RunReport, Stop};
use tokio_util::task::TaskTracker;

use crate::containers::Containers;
use crate::folders::Folders;
use crate::ladder;
use crate::layout::Tree;
use crate::marks::Installation;
use crate::prepare::prepare;
use crate::recipe::Shape;
use crate::session::Session;
use crate::streams::Streams;
use crate::takeout::{Taken, take_out};
use crate::watch::Run;

/// How long a container may take to end after its last word.
const LAST: Duration = Duration::from_secs(10);

/// How long is waited for a container that is not needed after all.
const GONE: Duration = Duration::from_secs(45);

/// What is run.
pub(crate) struct Errand {
    pub(crate) action: String,
    pub(crate) image: String,
    pub(crate) runtime: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) argv: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: String,
    pub(crate) streams: Streams,
    pub(crate) folders: Folders,
    /// Folders that the image wants volumes for: in memory as well.
    pub(crate) volumes: Vec<String>,
}

impl Errand {
    /// Whether something of it is to come out of the container.
    fn leaves_something(&self) -> bool {
        self.folders.outputs.is_some() || self.folders.copied.iter().any(|copied| copied.writable)
    }
}

/// Removes its container whatever becomes of whoever holds it.
pub(crate) struct Sandbox {
    client: Docker,
    pub(crate) id: String,
    installation: Arc<Installation>,
    /// What whoever wants it to be gone waits for.
    tasks: TaskTracker,
    gone: bool,
}

impl Sandbox {
    pub(crate) fn new(client: Docker, id: String, installation: Arc<Installation>, tasks: TaskTracker) -> Self {
        Self { client, id, installation, tasks, gone: false }
    }

    pub(crate) async fn remove(mut self) -> Result<(), Problem> {
        self.gone = true;
        removed(&self.client, &self.id, &self.installation).await
    }
}

/// Removes a container. One that is still there afterwards is remembered.
pub(crate) async fn removed(client: &Docker, id: &str, installation: &Installation) -> Result<(), Problem> {
    ladder::remove(client, id).await.inspect_err(|_| installation.quarantine(id))
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if !self.gone && tokio::runtime::Handle::try_current().is_ok() {
            let (client, id, installation) = (self.client.clone(), self.id.clone(), self.installation.clone());
            self.tasks.spawn(async move { removed(&client, &id, &installation).await });
        }
    }
}

/// A container that is as it should be, with everything in place.
pub(crate) struct Prepared {
    pub(crate) sandbox: Sandbox,
    pub(crate) session: Session,
    /// What was copied in, for each folder that was.
    pub(crate) trees: Vec<Tree>,
    pub(crate) shape: Shape,
}

/// Executes. What goes wrong is in the report.
pub(crate) async fn run(
    containers: &Arc<Containers>,
    installation: &Installation,
    mut errand: Errand,
    sink: &mut dyn FrameSink,
    stop: &Stop,
) -> RunReport {
    let began = Instant::now();
    let mut usage = JobUsage::default();
    errand.folders.private.extend(std::mem::take(&mut errand.volumes));
    let tasks = TaskTracker::new();
    let prepared = tokio::select! {
        prepared = Box::pin(prepare(containers, &mut errand, &tasks)) => prepared.map_err(End::Refused),
        // Nothing ran: that is known.
        () = stop.requested() => {
            Err(End::Refused(Problem::new(Code::Interrupted, "the action was interrupted before its tool was started")))
        }
    };
    let Prepared { sandbox, mut session, trees, shape } = match prepared {
        Ok(prepared) => prepared,
        Err(end) => {
            // What was made by then goes before anybody hears of it.
            tasks.close();
            let _ = tokio::time::timeout(GONE, tasks.wait()).await;
            return RunReport { end, usage, notices: Vec::new() };
        }
    };
    usage.setup = began.elapsed();
    let started = Instant::now();
    let streams = std::mem::take(&mut errand.streams);
    let mut run = Run::new(&errand, streams, sink, stop);
    let mut end = Box::pin(run.until_its_end(&mut session)).await;
    if let Some(exited) = run.exited {
        usage.cpu = Duration::from_micros(exited.cpu_us);
        usage.memory_peak = exited.memory_peak;
        usage.denied_storage = u64::from(exited.full.0) + u64::from(exited.full.1);
        usage.denied_memory = exited.oom_kills;
    }
    usage.run = started.elapsed();
    let (exited, started_at_all) = (run.exited, run.has_started());
    let taking_down = Instant::now();
    let (mut notices, mut reported) = (Vec::new(), None);
    if let Some(why) = containers.pool().distrusted() {
        let message = format!("no container is kept standing any more, and each one's end is waited for: {why}");
        notices.push(Notice::new("warm-stopped", message));
    }
    match exited {
        Some(exited) => {
            let own_end = is_its_own(&end);
            // Who wanted it stopped before gets what there is; who wants it now does
            // not wait for that.
            let stopped = stop.is_requested();
            let taken = tokio::select! {
                taken = Box::pin(take_out(installation, &errand, &trees, &mut session, own_end)) => taken,
                () = stop.requested(), if !stopped => {
                    end = End::Interrupted;
                    Taken::given_up()
                }
            };
            let Taken { notices: more, bytes, conflict, too_much, cut } = taken;
            notices.extend(more);
            usage.bytes_written = bytes;
            if is_its_own(&end) && !cut {
                reported = Some(exited.ended.exit_code());
            }
            if let Some(message) = conflict {
                end = End::Failed(ToolFailure { kind: "conflict".into(), message, retryable: true, details: None });
            }
            if too_much && is_its_own(&end) {
                end = End::LimitHit(Limit::Storage);
            }
        }
        None if started_at_all && errand.leaves_something() => {
            let message = "the container ended before what the tool had made came out";
            notices.push(Notice::new("outputs-lost", message));
        }
        None => {}
    }
    if containers.pool().is_open() {
        // Whoever waits for the result does not wait for the engine.
        containers.pool().finish(containers, shape, sandbox, session, reported);
    } else {
        let (other, left) = taken_down(sandbox, session, reported).await;
        if let Some(other) = other {
            end = End::Violation(other);
        }
        notices.extend(left.map(|problem| Notice::new(problem.code.as_str(), problem.message)));
    }
    usage.teardown = taking_down.elapsed();
    RunReport { end, usage, notices }
}

/// Lets a container end, and removes it. Whether it ended otherwise than it was
/// `reported`, and whether it is still there.
pub(crate) async fn taken_down(
    sandbox: Sandbox,
    mut session: Session,
    reported: Option<i32>,
) -> (Option<String>, Option<Problem>) {
    let other = match reported {
        Some(reported) => other_end(&sandbox, &mut session, reported).await,
        None => None,
    };
    // Nobody reads any more, and so nobody may be attached.
    drop(session);
    (other, sandbox.remove().await.err())
}

/// Whether the tool came to it by itself.
fn is_its_own(end: &End) -> bool {
    matches!(end, End::Exited { .. } | End::Trapped(_))
}

/// Lets the container end, and compares how it did with what was reported:
/// what forged a report could not end PID 1 with it. `Some`: they differ.
async fn other_end(sandbox: &Sandbox, session: &mut Session, reported: i32) -> Option<String> {
    session.hang_up();
    let ended = async {
        while session.hear(|_| Ok(())).await.is_ok() {}
        loop {
            let seen = sandbox.client.inspect_container(&sandbox.id, None).await.ok()?;
            let state = seen.state?;
            if state.running == Some(false) {
                return state.exit_code;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let code = tokio::time::timeout(LAST, ended).await;
    match code {
        Ok(Some(code)) if code == i64::from(reported) => None,
        Ok(Some(code)) => Some(format!("the container ended with {code}, its supervisor said {reported}")),
        // An engine that is slow or in trouble proves nothing; the container is
        // taken away all the same.
        Ok(None) | Err(_) => None,
    }
}
