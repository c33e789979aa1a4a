//! What an action left behind: its streams and its outputs.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};

use env_contracts::{Artifact, AuditLevel, Code, Outcome, OutcomeKind, Plan, Problem};
use glovebox_artifacts::{ActionArtifacts, ArtifactMeta, ArtifactStore, CollectLimits, Collected, Error, OutputsMeta};
use glovebox_capture::Captured;
use glovebox_runtime::Instant;
use glovebox_runtime::bind::RunDir;
use glovebox_runtime::job::DescribedArtifact;

use crate::observe::{self, Refusal, Story};
use crate::result::Stdout;
use crate::streams::{SpillFile, Streams};

/// What is common to everything that is collected from one action.
pub(crate) struct Collection<'a> {
    /// One place for all artifacts of the action, so that their numbers don't
    /// meet; or why there is none.
    pub(crate) store: Result<ActionArtifacts, Error>,
    pub(crate) plan: &'a Plan,
    pub(crate) now: Instant,
    pub(crate) described: &'a [DescribedArtifact],
}

/// Puts the streams into the Observation, whole ones into artifacts where
/// something had to be left out or the contract wants them kept. Returns
/// standard output for whoever reads a result out of it.
pub(crate) async fn streams(collection: &Collection<'_>, streams: &Streams, story: &mut Story) -> Stdout {
    let Some((mut stdout, mut stderr)) = streams.finish() else {
        return Stdout::default();
    };
    story.0.usage.bytes_output = stdout.total + stderr.total;
    let result = Stdout::of(&mut stdout);
    let kept = store_stream(collection, "stdout", &mut stdout, story).await;
    story.0.output.stdout = observe::stream(&stdout, kept.as_ref());
    story.0.artifacts.extend(kept);
    let kept = store_stream(collection, "stderr", &mut stderr, story).await;
    story.0.output.stderr = observe::stream(&stderr, kept.as_ref());
    story.0.artifacts.extend(kept);
    result
}

async fn store_stream(
    collection: &Collection<'_>,
    name: &str,
    captured: &mut Captured<SpillFile>,
    story: &mut Story,
) -> Option<Artifact> {
    let always = collection.plan.contract.audit.level == AuditLevel::Output && captured.total > 0;
    let spilled = captured.spilled.as_mut();
    if let Some(error) = spilled.as_ref().and_then(|spilled| spilled.error.as_ref()) {
        story.notice("output-lost", format!("{name} could not be kept whole: {error}"));
    }
    let content: Box<dyn std::io::Read + Send> = match spilled {
        Some(spilled) => {
            if !spilled.complete && spilled.error.is_none() {
                story.notice("output-cut", format!("the artifact of {name} holds the first {} bytes", spilled.bytes));
            }
            let mut file = spilled.writer.take()?.into_inner().ok()?;
            file.seek(SeekFrom::Start(0)).ok()?;
            Box::new(file)
        }
        None if always => Box::new(std::io::Cursor::new([captured.head.as_slice(), captured.tail.as_slice()].concat())),
        None => return None,
    };
    let mut meta = meta(collection, name);
    meta.media_type = Some("text/plain".into());
    let stored = match &collection.store {
        Ok(store) => store.put(meta, content, u64::MAX).await.map_err(|error| Problem::of(&error)),
        Err(error) => Err(Problem::of(error)),
    };
    stored
        .map_err(|problem| story.notice("output-lost", format!("{name} could not be kept whole: {problem}")))
        .ok()
        .map(|record| record.reference())
}

/// Stores the files of the outputs folder. What is left out is a notice; a
/// store that fails makes a success partial, since outputs are missing.
pub(crate) async fn outputs(collection: &Collection<'_>, dir: OwnedFd, story: &mut Story, outcome: &mut Outcome) {
    let strip = |path: &str| path.strip_prefix("/outputs/").unwrap_or(path).to_owned();
    let meta = OutputsMeta {
        producer: collection.plan.capability.to_string(),
        label: collection.plan.contract.data.label,
        created_ms: collection.now.unix_millis,
        keep_until_ms: keep_until(collection),
        media_types: collection
            .described
            .iter()
            .filter_map(|file| Some((strip(&file.path), file.media_type.clone()?)))
            .collect(),
    };
    let (collected, lost) = match &collection.store {
        Ok(store) => {
            let mut collected = store.collect_outputs(dir.as_fd(), CollectLimits::default(), &meta).await;
            let lost = collected.error.take().map(|error| Problem::of(&error));
            (collected, lost)
        }
        Err(error) => (Collected::default(), Some(Problem::of(error))),
    };
    story.0.artifacts.extend(collected.artifacts.iter().map(glovebox_artifacts::ArtifactRecord::reference));
    for notice in collected.notices {
        story.notice("output-skipped", notice.to_string());
    }
    if let Some(problem) = lost {
        story.notice("output-lost", format!("outputs are missing: {}", problem.message));
        if outcome.code.is_none() {
            let message = format!("the tool succeeded, but its outputs could not be kept: {}", problem.message);
            *outcome =
                Outcome::failed(OutcomeKind::Partial, Problem::new(Code::Partial, message).with_help(problem.help));
        }
    }
}

/// Opens an artifact's verified content for binding.
pub(crate) async fn open(artifacts: &ArtifactStore, uri: &str, run_dir: &RunDir) -> Result<OwnedFd, Refusal> {
    let problem = |error: &Error| Refusal::from(Problem::of(error));
    let uri = uri.parse().map_err(|error: Error| problem(&error))?;
    let mut reader = artifacts.get(&uri).await.map_err(|error| problem(&error))?;
    let mut file = File::from(run_dir.unnamed_file()?);
    while let Some(chunk) = reader.next_chunk().await.map_err(|error| problem(&error))? {
        let written = file.write_all(&chunk);
        written.map_err(|error| {
            Refusal::from(glovebox_runtime::io_problem("cannot copy the artifact", Code::StateUnavailable, &error))
        })?;
    }
    let rewound = file.seek(SeekFrom::Start(0));
    rewound.map_err(|error| {
        Refusal::from(glovebox_runtime::io_problem("cannot copy the artifact", Code::StateUnavailable, &error))
    })?;
    Ok(file.into())
}

fn meta(collection: &Collection<'_>, name: &str) -> ArtifactMeta {
    let mut meta = ArtifactMeta::new(name, collection.plan.capability.to_string(), collection.now.unix_millis);
    meta.label = collection.plan.contract.data.label;
    meta.keep_until_ms = keep_until(collection);
    meta
}

fn keep_until(collection: &Collection<'_>) -> Option<u64> {
    let retain = collection.plan.contract.audit.retain?;
    Some(collection.now.unix_millis.saturating_add(u64::try_from(retain.0.as_millis()).unwrap_or(u64::MAX)))
}
