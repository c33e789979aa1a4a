//! What an action left behind: its streams and its outputs.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};

use env_contracts::{Artifact, AuditLevel, Code, Label, Outcome, OutcomeKind, Plan, Problem};
use glovebox_artifacts::{ActionArtifacts, ArtifactMeta, ArtifactStore, CollectLimits, Collected, Error, OutputsMeta};
use glovebox_capture::Captured;
use glovebox_runtime::Instant;
use glovebox_runtime::bind::RunDir;
use glovebox_runtime::job::DescribedArtifact;

use crate::observe::{self, Refusal, Story};
use crate::result::Stdout;
use crate::streams::{SpillFile, Streams};

/// The longest description of an artifact, in characters: it is for a list.
const MAX_DESCRIPTION: usize = 500;

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
///
/// Output that could not be kept whole makes a success partial.
pub(crate) async fn streams(
    collection: &Collection<'_>,
    streams: &Streams,
    story: &mut Story,
    outcome: &mut Outcome,
) -> Stdout {
    let Some((mut stdout, mut stderr)) = streams.finish() else {
        return Stdout::default();
    };
    story.0.usage.bytes_output = stdout.total + stderr.total;
    let result = Stdout::of(&mut stdout);
    let (kept, lost) = store_stream(collection, "stdout", &mut stdout, story).await;
    story.0.output.stdout = observe::stream(&stdout, kept.as_ref());
    story.0.artifacts.extend(kept);
    let (kept, lost_too) = store_stream(collection, "stderr", &mut stderr, story).await;
    story.0.output.stderr = observe::stream(&stderr, kept.as_ref());
    story.0.artifacts.extend(kept);
    for lost in lost.into_iter().chain(lost_too) {
        story.notice("output-lost", lost.message.clone());
        incomplete(outcome, lost);
    }
    result
}

/// What of the tool's work could not be kept makes a success partial.
fn incomplete(outcome: &mut Outcome, lost: Problem) {
    if outcome.code.is_none() {
        let message = format!("the tool succeeded, but not all of what it said and made is here: {}", lost.message);
        *outcome = Outcome::failed(OutcomeKind::Partial, Problem::new(Code::Partial, message).with_help(lost.help));
    }
}

/// The artifact of a whole stream, where one is wanted; and what kept it from
/// being whole, where something did.
async fn store_stream(
    collection: &Collection<'_>,
    name: &str,
    captured: &mut Captured<SpillFile>,
    story: &mut Story,
) -> (Option<Artifact>, Option<Problem>) {
    let always = collection.plan.contract.audit.level == AuditLevel::Output && captured.total > 0;
    let lost = |problem: Problem| {
        let message = format!("{name} could not be kept whole: {}", problem.message);
        Problem { message, ..problem }
    };
    let mut cut_short = None;
    let content: Box<dyn std::io::Read + Send> = match captured.spilled.take() {
        Some(mut spilled) => {
            cut_short = spilled
                .error
                .take()
                .map(|error| lost(glovebox_runtime::io_problem("cannot spill", Code::StateUnavailable, &error)));
            if !spilled.complete && cut_short.is_none() {
                story.notice("output-cut", format!("the artifact of {name} holds the first {} bytes", spilled.bytes));
            }
            let file = spilled.writer.map(|writer| writer.into_parts().0);
            let Some(mut file) = file.filter(|_| spilled.bytes > 0) else { return (None, cut_short) };
            if let Err(error) = file.seek(SeekFrom::Start(0)) {
                return (
                    None,
                    Some(lost(glovebox_runtime::io_problem("cannot read it again", Code::StateUnavailable, &error))),
                );
            }
            Box::new(file)
        }
        None if always => Box::new(std::io::Cursor::new([captured.head.as_slice(), captured.tail.as_slice()].concat())),
        None => return (None, None),
    };
    let mut meta = meta(collection, name);
    meta.media_type = Some("text/plain".into());
    let stored = match &collection.store {
        Ok(store) => store.put(meta, content, u64::MAX).await.map_err(|error| Problem::of(&error)),
        Err(error) => Err(Problem::of(error)),
    };
    match stored {
        Ok(record) => (Some(record.reference()), cut_short),
        Err(problem) => (None, cut_short.or(Some(lost(problem)))),
    }
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
    let described = |name: &str| {
        let found = collection.described.iter().find(|file| strip(&file.path) == name)?;
        found.description.as_ref().map(|text| text.chars().take(MAX_DESCRIPTION).collect())
    };
    story.0.artifacts.extend(collected.artifacts.iter().map(|record| {
        let artifact = record.reference();
        Artifact { description: described(&artifact.name), ..artifact }
    }));
    for notice in collected.notices {
        story.notice("output-skipped", notice.to_string());
    }
    if let Some(problem) = lost {
        story.notice("output-lost", format!("outputs are missing: {}", problem.message));
        incomplete(outcome, problem);
    }
}

/// Opens an artifact's verified content for binding.
///
/// # Errors
/// `contract-unsatisfied` if its label is above what the contract may see:
/// what is made from it would carry too low a label.
pub(crate) async fn open(
    artifacts: &ArtifactStore,
    uri: &str,
    most: Label,
    run_dir: &RunDir,
) -> Result<OwnedFd, Refusal> {
    let problem = |error: &Error| Refusal::from(Problem::of(error));
    let uri = uri.parse().map_err(|error: Error| problem(&error))?;
    let mut reader = artifacts.get(&uri).await.map_err(|error| problem(&error))?;
    let label = reader.record().label;
    if label > most {
        let message =
            format!("`{uri}` is labelled {label:?}, and `data.label` of the contract is {most:?}").to_lowercase();
        let problem = Problem::new(Code::ContractUnsatisfied, message)
            .with_help("use a tool whose contract and ceiling take data of that label");
        return Err(Refusal::new(OutcomeKind::ContractUnsatisfied, problem).which("data.label"));
    }
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
