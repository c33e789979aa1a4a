//! The one way in: every door hands its requests to the [`ActionService`].

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant as Mark};

use env_contracts::{
    ActionRequest, ByteSize, Ceiling, Code, Id, Name, Notice, Observation, Outcome, OutcomeKind, Principal, Problem,
    Source,
};
use glovebox_artifacts::ArtifactStore;
use glovebox_runtime::bind::{Binding, RunDir, bind};
use glovebox_runtime::job::{End, JobUsage, Timer};
use glovebox_runtime::{Admission, Authority, Backend, Bound, Clock, Ports, RunReport, Runtime, Stop};

use crate::collect::{self, Collection};
use crate::ids::IdSource;
use crate::observe::{self, Refusal, Story};
use crate::planning::{Asked, Planned, plan};
use crate::registry::{Registry, Tool};
use crate::result;
use crate::slots::Slots;
use crate::streams::Streams;
use crate::watch::Watch;

/// What an action may take longer than `limits.wall` before it is given up
/// from outside: the time that taking an instance down can take on a loaded
/// host. Beyond it the thread is stuck in a call of the kernel's.
const GRACE: Duration = Duration::from_secs(5);

/// Everything the service is made of.
pub struct Parts {
    /// Which capabilities there are.
    pub registry: Registry,
    /// What the operator allows at most.
    pub ceiling: Ceiling,
    /// What executes.
    pub runtime: Runtime,
    /// The right to let it.
    pub authority: Authority,
    /// Who gets room.
    pub admission: Admission,
    /// Where artifacts go.
    pub artifacts: ArtifactStore,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn IdSource>,
    /// The folder of run folders and locks.
    pub run_root: PathBuf,
    /// Folders of ours that no guest may see.
    pub protect: Vec<PathBuf>,
    /// The most bytes that one action may seal.
    pub max_sealed: ByteSize,
}

/// Takes requests, and gives Observations back.
pub struct ActionService {
    parts: Arc<Parts>,
}

/// A request as a door received it.
pub struct Submission {
    /// Who asks, as the channel knows it.
    pub principal: Principal,
    /// What is asked.
    pub request: ActionRequest,
    /// The arguments as bytes, where the door received bytes: they are parsed
    /// strictly here, once.
    pub received: Option<Vec<u8>>,
    /// The folder on the host that is the workspace.
    pub workspace: Option<PathBuf>,
    /// Files of the host that the door itself may name, opened, by name.
    /// Artifacts come by URI through the request.
    pub inputs: BTreeMap<Name, OwnedFd>,
}

impl ActionService {
    /// The service over these parts.
    pub fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    /// Which capabilities there are.
    pub fn registry(&self) -> &Registry {
        &self.parts.registry
    }

    /// The artifacts.
    pub fn artifacts(&self) -> &ArtifactStore {
        &self.parts.artifacts
    }

    /// Carries an action from its request to its Observation. Must be called
    /// within a tokio runtime of at least two threads.
    ///
    /// However the action ends, the answer is an Observation; dropping the
    /// future asks the action to stop.
    ///
    /// # Errors
    /// A [`Problem`] only where there is no capability to speak of: the
    /// request can't be read, or no such tool is registered.
    pub async fn run(
        &self,
        submission: Submission,
        watch: Arc<dyn Watch>,
        stop: &Stop,
    ) -> Result<Observation, Problem> {
        submission.request.validate().map_err(|error| Problem::of(&error))?;
        let tool = self.parts.registry.get(&submission.request.capability)?;
        let action_id =
            submission.request.action_id.clone().unwrap_or_else(|| self.parts.ids.next(self.parts.clock.now()));
        let mut story = Story::new(action_id.clone(), &tool, &submission.principal);
        let outcome = match self.drive(&mut story, &tool, action_id, submission, watch, stop).await {
            Ok(outcome) => outcome,
            Err(refusal) => refusal.0,
        };
        Ok(story.finish(outcome))
    }

    async fn drive(
        &self,
        story: &mut Story,
        tool: &Tool,
        action_id: Id,
        submission: Submission,
        watch: Arc<dyn Watch>,
        stop: &Stop,
    ) -> Result<Outcome, Refusal> {
        let parts = &self.parts;
        let Submission { principal, request, received, workspace, inputs } = submission;
        let asked = Asked { tool, request: &request, received: received.as_deref(), principal: &principal, action_id };
        let backends = parts.runtime.backends().iter().map(|backend| &**backend as &dyn Backend);
        let planned = plan(asked, &parts.ceiling, backends)?;
        story.narrowed(&tool.manifest.contract, &planned.plan.contract);
        story.planned(planned.plan.effects, &planned.plan.backend, planned.enforcement.clone());
        let expect = request.expect.as_ref().map(result::expectation).transpose()?;

        let queued = Mark::now();
        let contract = &planned.plan.contract;
        let memory = contract.limits.memory.unwrap_or_default();
        let _slot = Slots::new(&parts.run_root).enter(&planned.plan.capability, contract.limits.concurrency)?;
        let room = parts.admission.enter(principal.tenant.as_str(), memory);
        let _room = unless_stopped(stop, "queue", room).await??;
        story.0.times.queued_us = micros(queued.elapsed());

        let setup = Mark::now();
        let run_dir = Arc::new(RunDir::create(&parts.run_root, planned.plan.action_id.as_str())?);
        let binding = self.bind(tool, &planned, &request, workspace, inputs, &run_dir, &*watch);
        let mut bound = unless_stopped(stop, "setup", binding).await??;
        story.bound(&bound.intent, &bound.digest, std::mem::take(&mut bound.files.evidence));
        story.sealed(&bound.facts);
        let outputs = bound.files.outputs.as_ref().map(|dir| dir.as_fd().try_clone_to_owned()).transpose();
        let outputs = outputs.map_err(|error| {
            glovebox_runtime::io_problem("cannot keep the outputs folder", Code::BackendError, &error)
        })?;
        story.0.times.setup_us = micros(setup.elapsed());

        // The decision is the contract's and the ceiling's: what got here
        // lies inside both.
        let permit = parts.authority.permit(&bound.digest);
        let streams = Streams::new(&run_dir, contract.limits.output.unwrap_or_default().0);
        let wall = contract.limits.wall.unwrap_or_default().0;
        watch.phase("running");
        let ports = Ports { frames: streams.sink(watch.clone()), stop: stop.clone() };
        let report = self.execute(bound, permit, ports, wall, stop).await?;

        let teardown = Mark::now();
        story.ran(&report.usage, tool);
        story.0.notices.extend(report.notices);
        let mut outcome = observe::outcome(&report.end, tool);
        let collection = Collection {
            store: parts.artifacts.action(planned.plan.action_id.as_str()).await,
            plan: &planned.plan,
            now: parts.clock.now(),
            described: match &report.end {
                End::Returned { artifacts, .. } => artifacts,
                _ => &[],
            },
        };
        let result = collect::streams(&collection, &streams, story, &mut outcome).await;
        if let Some(dir) = outputs {
            collect::outputs(&collection, dir, story, &mut outcome).await;
        }
        result::judge(tool, &report.end, result, expect.as_ref(), story, &mut outcome);
        if !contract.cleanup.scratch
            && let Some(run_dir) = Arc::into_inner(run_dir)
        {
            let kept = run_dir.keep(&parts.run_root.with_file_name("kept"))?;
            story.notice("scratch-kept", format!("scratch folders are kept in {}", kept.display()));
        }
        story.0.times.teardown_us += micros(teardown.elapsed());
        Ok(outcome)
    }

    /// Readies the artifact, opens and hashes everything the plan names.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a different thing, and a struct for one caller would only rename them"
    )]
    async fn bind(
        &self,
        tool: &Tool,
        planned: &Planned,
        request: &ActionRequest,
        workspace: Option<PathBuf>,
        inputs: BTreeMap<Name, OwnedFd>,
        run_dir: &Arc<RunDir>,
        watch: &dyn Watch,
    ) -> Result<Bound, Refusal> {
        let parts = &self.parts;
        let backend = parts.runtime.backend(&planned.plan.backend);
        let backend = backend.ok_or_else(|| Problem::new(Code::BackendUnavailable, "the planned backend is gone"))?;
        let progress = |line: &str| watch.phase(line);
        let prepared = backend.prepare(&tool.registered, &planned.plan.contract, &progress).await?;

        let mut brought: Vec<(Name, OwnedFd)> = inputs.into_iter().collect();
        for (name, uri) in &request.inputs {
            brought.push((
                name.clone(),
                collect::open(&parts.artifacts, uri, planned.plan.contract.data.label, run_dir).await?,
            ));
        }
        let mut artifacts = BTreeMap::new();
        for mount in &planned.plan.contract.filesystem {
            if let Source::Artifact(uri) = &mount.source {
                artifacts.insert(
                    uri.clone(),
                    collect::open(&parts.artifacts, uri, planned.plan.contract.data.label, run_dir).await?,
                );
            }
        }
        let files = bind(Binding {
            plan: &planned.plan,
            workspace: workspace.as_deref(),
            inputs: brought,
            artifacts,
            path_arguments: &planned.paths,
            run_dir,
            protect: &parts.protect,
            max_sealed: parts.max_sealed.0,
        })?;
        let mut registered = tool.registered.clone();
        registered.entry = result::filled_entry(&registered.entry, planned.arguments.value());
        Ok(Bound::new(planned.plan.clone(), registered, prepared, files))
    }

    /// Runs on a thread of the runtime and waits here, so that an execution
    /// which is stuck in a call of the kernel's still ends in time for the
    /// caller.
    async fn execute(
        &self,
        bound: Bound,
        permit: glovebox_runtime::Permit,
        ports: Ports,
        wall: Duration,
        stop: &Stop,
    ) -> Result<RunReport, Refusal> {
        let parts = self.parts.clone();
        let mut unwatched = StopOnDrop(Some(stop.clone()));
        let run = tokio::spawn(async move { parts.runtime.run(bound, permit, ports).await });
        match tokio::time::timeout(wall + GRACE, run).await {
            Ok(Ok(report)) => {
                // It ended by itself: others may still use the same `stop`.
                unwatched.0 = None;
                Ok(report?)
            }
            Ok(Err(error)) => Err(Problem::new(Code::BackendError, format!("the execution panicked: {error}")).into()),
            // What it said and made until now still counts.
            Err(_) => Ok(RunReport {
                end: End::TimedOut(Timer::Wall),
                usage: JobUsage { run: wall + GRACE, ..JobUsage::default() },
                notices: vec![Notice::new("thread-left", "the execution does not answer; its thread is left behind")],
            }),
        }
    }
}

/// Waits for a step before the run, unless the action is no longer wanted.
async fn unless_stopped<T>(stop: &Stop, phase: &str, step: impl Future<Output = T>) -> Result<T, Refusal> {
    tokio::select! {
        biased;
        () = stop.requested() => {
            let problem = Problem::new(Code::Interrupted, "the action was interrupted before it ran");
            Err(Refusal::new(OutcomeKind::Interrupted, problem).which(phase))
        }
        done = step => Ok(done),
    }
}

/// Asks a run to stop when whoever waits for it is gone.
struct StopOnDrop(Option<Stop>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(stop) = &self.0 {
            stop.request();
        }
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
