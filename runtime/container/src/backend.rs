//! The container backend: plans in, reports out.

use std::sync::Arc;
use std::time::Duration;

use env_contracts::{Clause, Code, Contract, Digest, Evidence, ManifestEntry, Problem};
use glovebox_runtime::job::{End, JobUsage};
use glovebox_runtime::{
    ArtifactBytes, Backend, Bound, BoxFuture, Cleared, Enforcement, Found, Ports, Prepared, Registered, RunReport,
    read_plain,
};

use crate::containers::Containers;
use crate::drive::{self, Errand};
use crate::enforce::enforce;
use crate::folders::{Folders, HOME};
use crate::image::{self, ImageRecord, MAX_RECORD};
use crate::streams::Streams;

/// Where a tool begins, if it has it.
const WORKSPACE: &str = "/workspace";
/// How long making a container, ending one step by step and bringing out what it
/// made may take together. Each step has its own, shorter time.
const PATIENCE: Duration = Duration::from_secs(300);
/// Where programs are looked for, unless the image says otherwise.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Executes images, each action in a container of its own.
pub struct ContainerBackend {
    containers: Arc<Containers>,
}

/// An image that is there.
struct Ready {
    record: ImageRecord,
    volumes: Vec<String>,
    evidence: Evidence,
}

impl ContainerBackend {
    /// With the containers of a state folder. Nothing is asked of the engine
    /// until an action needs it.
    pub fn new(containers: Arc<Containers>) -> Self {
        Self { containers }
    }

    /// What makes an image ready: its record is what was registered, and the
    /// engine has that image and the runtime.
    async fn ready(&self, registered: &Registered, contract: &Contract) -> Result<Ready, Problem> {
        let bytes = match &registered.bytes {
            ArtifactBytes::Embedded(bytes) => bytes.to_vec(),
            ArtifactBytes::Memory(bytes) => bytes.to_vec(),
            ArtifactBytes::File(path) => read_plain(path, MAX_RECORD as u64)
                .map_err(|error| Problem::new(Code::StateUnavailable, error.to_string()))?
                .into_bytes(),
        };
        if Digest::of(&bytes) != registered.digest {
            let message = format!("the record of `{}` is not what was registered", registered.name);
            return Err(Problem::new(Code::ImageInvalid, message).with_help("register the image again"));
        }
        let record = ImageRecord::from_bytes(&bytes)?;
        if contract.platform.image.as_ref() != Some(&record.image) {
            let message = format!("the contract of `{}` names another image than its record", registered.name);
            return Err(Problem::new(Code::ImageInvalid, message).with_help("register the image again"));
        }
        let there = self.containers.ready(&record.image, contract.platform.runtime.as_ref()).await?;
        let evidence =
            Evidence { subject: format!("image:{}", record.reference), sha256: record.image.clone(), size: None };
        Ok(Ready { record, volumes: there.volumes.into_iter().collect(), evidence })
    }

    fn errand(bound: Bound, ready: Ready) -> Result<Errand, Problem> {
        let Bound { plan, registered, files, .. } = bound;
        let ManifestEntry::Command { argv, stdin, env, .. } = registered.entry else {
            return Err(Problem::new(Code::BackendError, "an image is run as a command, and this tool is none"));
        };
        let ImageRecord { image, command, env: own, workdir, .. } = ready.record;
        let folders = Folders::of(files, &plan.contract)?;
        let has_workspace = plan.contract.filesystem.iter().any(|mount| mount.guest.as_str() == WORKSPACE);
        let argv = if argv.is_empty() { command } else { argv };
        if argv.is_empty() {
            return Err(Problem::new(Code::ImageCommand, "neither the tool nor its image says what to run")
                .with_help("write `entry.argv` in the manifest"));
        }
        let volumes = ready.volumes.into_iter().filter(|volume| folders.is_free(volume)).collect();
        Ok(Errand {
            action: plan.action_id.to_string(),
            image: image::id(&image),
            runtime: plan.contract.platform.runtime.as_ref().map(ToString::to_string),
            limits: plan.contract.limits.clone(),
            argv,
            env: environment(&own, env),
            cwd: if has_workspace { WORKSPACE.to_owned() } else { workdir },
            streams: Streams::of(stdin.bytes(&plan.arguments)),
            folders,
            volumes,
        })
    }
}

/// The environment of a tool: its image's, with what the manifest says in its
/// place, and a home in which it may write.
pub(crate) fn environment(image: &[String], own: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut all = std::collections::BTreeMap::from([("PATH".to_owned(), PATH.to_owned())]);
    all.extend(
        image.iter().filter_map(|line| line.split_once('=')).map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    // The image's home may be nobody's to write in.
    all.insert("HOME".to_owned(), HOME.to_owned());
    all.extend(own);
    all.into_iter().collect()
}

impl Backend for ContainerBackend {
    fn name(&self) -> &'static str {
        "container"
    }

    fn enforce(&self, clause: &Clause<'_>) -> Enforcement {
        enforce(clause)
    }

    fn takes(&self, entry: &ManifestEntry, contract: &Contract) -> bool {
        matches!(entry, ManifestEntry::Command { .. }) && contract.platform.image.is_some()
    }

    fn prepare<'a>(
        &'a self,
        registered: &'a Registered,
        contract: &'a Contract,
        _progress: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Result<Prepared, Problem>> {
        Box::pin(async move { Ok(Box::new(self.ready(registered, contract).await?) as Prepared) })
    }

    fn found(&self, prepared: &Prepared) -> Found {
        let evidence = prepared.downcast_ref::<Ready>().map(|ready| ready.evidence.clone());
        Found { drifted: None, evidence: evidence.into_iter().collect() }
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn run(&self, cleared: Cleared, ports: Ports) -> BoxFuture<'_, RunReport> {
        Box::pin(async move {
            let refused = |end| RunReport { end, usage: JobUsage::default(), notices: Vec::new() };
            let mut bound = cleared.into_bound();
            let prepared = std::mem::replace(&mut bound.prepared, Box::new(()));
            let Ok(ready) = prepared.downcast::<Ready>() else {
                return refused(End::HostFailed("the plan was prepared by another backend".into()));
            };
            let errand = match Self::errand(bound, *ready) {
                Ok(errand) => errand,
                Err(problem) => return refused(End::Refused(problem)),
            };
            let installation = match self.containers.installation() {
                Ok(installation) => installation,
                Err(problem) => return refused(End::Refused(problem)),
            };
            let Ports { mut frames, stop } = ports;
            Box::pin(drive::run(&self.containers, installation, errand, &mut *frames, &stop)).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_has_its_images_environment_and_a_home_it_may_write_in() {
        let image = ["PATH=/opt/bin".to_owned(), "HOME=/root".to_owned(), "LANG=C".to_owned(), "odd".to_owned()];
        let own = [("LANG".to_owned(), "de_DE".to_owned())];
        let expected = [("HOME", "/tmp"), ("LANG", "de_DE"), ("PATH", "/opt/bin")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(environment(&image, own), expected);
        assert_eq!(environment(&[], [])[1], ("PATH".to_owned(), PATH.to_owned()));
    }
}
