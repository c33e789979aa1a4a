//! Readying the artifact, and opening and hashing everything a plan names.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use env_contracts::{Code, Label, Name, Problem, Source};
use glovebox_runtime::Bound;
use glovebox_runtime::bind::{Binding, Files, Kept, RunDir, bind};

use super::ActionService;
use super::claiming::Room;
use super::flight::{Flight, Halt};
use super::submission;
use crate::collect;
use crate::observe::Refusal;
use crate::planning::Planned;
use crate::result;
use crate::watch::Watch;

/// A plan with everything it needs, and the folder that it lies in.
pub(super) struct Ready {
    pub(super) planned: Planned,
    pub(super) bound: Bound,
    pub(super) run_dir: Arc<RunDir>,
    /// How long binding took, in microseconds.
    pub(super) setup_us: u64,
}

/// The highest label of what an action is given, and the tenants it is of. An
/// artifact's label is at most the contract's, or binding refuses it; that one
/// is what can be said before anything is opened.
pub(super) fn labels(kept: &submission::Kept, planned: &Planned, tenant: &Name) -> (Label, Vec<Name>) {
    let contract = &planned.plan.contract;
    let artifacts = !kept.request.inputs.is_empty()
        || contract.filesystem.iter().any(|mount| matches!(mount.source, Source::Artifact(_)));
    let label = if artifacts { contract.data.label } else { Label::Public };
    (label, vec![tenant.clone()])
}

impl ActionService {
    /// Readies the artifact, opens and hashes everything the plan names.
    /// Without room, what an environment keeps is named and not opened.
    pub(super) async fn bind(
        &self,
        flight: &Flight,
        planned: Planned,
        room: Option<&Room>,
        watch: &dyn Watch,
    ) -> Result<Ready, Halt> {
        let parts = &self.parts;
        let setup = std::time::Instant::now();
        let run_dir = Arc::new(RunDir::new(&parts.run_root, planned.plan.action_id.as_str()));
        let backend = parts.runtime.backend(&planned.plan.backend);
        let backend = backend.ok_or_else(|| Problem::new(Code::BackendUnavailable, "the planned backend is gone"))?;
        let progress = |line: &str| watch.phase(line);
        let registered = &flight.tool()?.registered;
        let prepared = backend.prepare(registered, &planned.plan.contract, &progress).await?;

        let found = backend.found(&prepared);
        let (kept, other) = match planned.plan.contract.keeps() {
            false => (None, None),
            true => Box::pin(self.shared_folders(flight, &planned, room)).await?,
        };
        let mut files = self.open_files(flight, &planned, &run_dir, kept).await?;
        files.facts.drifted = found.drifted.or(other);
        files.evidence.extend(found.evidence);
        let mut registered = registered.clone();
        registered.entry = result::filled_entry(&registered.entry, planned.arguments.value());
        let bound = Bound::new(planned.plan.clone(), registered, prepared, files);
        let setup_us = super::running::micros(setup.elapsed());
        Ok(Ready { planned, bound, run_dir, setup_us })
    }

    /// Opens and hashes everything the plan names.
    pub(super) async fn open_files(
        &self,
        flight: &Flight,
        planned: &Planned,
        run_dir: &RunDir,
        environment: Option<Kept>,
    ) -> Result<Files, Halt> {
        let parts = &self.parts;
        let label = planned.plan.contract.data.label;
        let mut brought: Vec<(Name, OwnedFd)> = flight.kept.open_inputs()?.into_iter().collect();
        for (name, uri) in &flight.kept.request.inputs {
            brought.push((name.clone(), self.artifact(uri, label, run_dir).await?));
        }
        let mut artifacts = BTreeMap::new();
        for mount in &planned.plan.contract.filesystem {
            if let Source::Artifact(uri) = &mount.source {
                artifacts.insert(uri.clone(), self.artifact(uri, label, run_dir).await?);
            }
        }
        let files = bind(Binding {
            plan: &planned.plan,
            workspace: flight.kept.workspace.as_deref(),
            inputs: brought,
            artifacts,
            path_arguments: &planned.paths,
            run_dir,
            environment,
            protect: &parts.protect,
            max_sealed: parts.max_sealed.0,
        })?;
        Ok(files)
    }

    async fn artifact(&self, uri: &str, most: Label, run_dir: &RunDir) -> Result<OwnedFd, Refusal> {
        collect::open(&self.parts.artifacts, uri, most, run_dir).await
    }
}
