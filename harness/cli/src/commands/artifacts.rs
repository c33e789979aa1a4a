//! `glovebox artifacts`: what actions made.

use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Write};
use std::path::Path;
use std::process::ExitCode;

use env_contracts::{ByteSize, Code, Problem};
use glovebox_artifacts::{ArtifactReader, ArtifactRecord, ArtifactStore, ArtifactUri, Filter, Listing};
use glovebox_runtime::io_problem;
use serde_json::json;

use super::printed;
use crate::args::ArtifactsCommand;
use crate::config::Config;
use crate::house;
use crate::places::Places;
use crate::print;
use crate::table::Table;
use crate::terminal::{escaped, escaped_line};

/// What is shown on a terminal at most; nobody reads more there.
const MAX_SHOWN: ByteSize = ByteSize::mib(1);

pub(crate) fn run(command: ArtifactsCommand, config: &Config) -> Result<ExitCode, Problem> {
    let places = Places::of(config);
    places.make()?;
    let store = house::artifacts(&places)?;
    let runtime = house::tokio_runtime()?;
    match command {
        ArtifactsCommand::List { action, json } => {
            let (listing, nothing) = runtime.block_on(list(&store, action))?;
            printed(if json { as_json(&listing) } else { as_text(&listing, &nothing) }, 0)
        }
        ArtifactsCommand::Get { uri, out } => {
            let uri: ArtifactUri = uri.parse().map_err(|error: glovebox_artifacts::Error| Problem::of(&error))?;
            runtime.block_on(async {
                let reader = store.get(&uri).await.map_err(|error| Problem::of(&error))?;
                match out {
                    Some(path) => to_file(reader, &path).await,
                    None => to_stdout(reader).await,
                }
            })
        }
    }
}

/// The beginning of an action's id that is enough to name it, in characters:
/// shorter ones name whatever was made within days.
const MIN_PREFIX: usize = 8;

/// What is kept, of an action if one is named, and what to say if that is
/// nothing.
async fn list(store: &ArtifactStore, action: Option<String>) -> Result<(Listing, String), Problem> {
    let of = async |filter: &Filter| store.list(filter).await.map_err(|error| Problem::of(&error));
    let Some(action) = action else {
        return Ok((of(&Filter::default()).await?, "nothing is kept here".to_owned()));
    };
    let named = Filter { action: Some(action.clone()), producer: None };
    let exact = of(&named).await?;
    if !exact.artifacts.is_empty() || !exact.unreadable.is_empty() {
        return Ok((exact, String::new()));
    }
    let all = of(&Filter::default()).await?;
    let begins = |uri: &ArtifactUri| action.len() >= MIN_PREFIX && uri.action().starts_with(&action);
    let uris = all.artifacts.iter().map(|record| &record.uri).chain(&all.unreadable);
    let actions: BTreeSet<&str> = uris.filter(|uri| begins(uri)).map(ArtifactUri::action).collect();
    if actions.len() > 1 {
        let some: Vec<&str> = actions.iter().copied().take(SHOWN_ACTIONS).collect();
        let message = format!("`{action}` begins the ids of {} actions", actions.len());
        return Err(Problem::new(Code::Usage, message).with_help(format!("write more of it: {}", some.join(", "))));
    }
    let others = all.artifacts.len();
    let artifacts: Vec<ArtifactRecord> = all.artifacts.into_iter().filter(|record| begins(&record.uri)).collect();
    let unreadable = all.unreadable.into_iter().filter(begins).collect();
    let nothing =
        format!("nothing of action {} is kept; of other actions, {others} artifacts are", escaped_line(&action));
    Ok((Listing { artifacts, unreadable }, nothing))
}

/// How many actions are named where one was not named well enough.
const SHOWN_ACTIONS: usize = 5;

fn as_json(listing: &Listing) -> std::io::Result<()> {
    print::json(&json!({ "artifacts": listing.artifacts, "unreadable": listing.unreadable }))
}

fn as_text(listing: &Listing, nothing: &str) -> std::io::Result<()> {
    let mut table = Table::default();
    for ArtifactRecord { uri, name, size, media_type, producer, .. } in &listing.artifacts {
        let size = format!("{size} bytes");
        table.row([&uri.to_string(), &escaped_line(name), &size, &escaped_line(media_type), &escaped_line(producer)]);
    }
    table.write(&mut anstream::stdout().lock(), "")?;
    let mut err = anstream::stderr().lock();
    for uri in &listing.unreadable {
        writeln!(err, "note: the entry of {uri} can't be read")?;
    }
    if listing.artifacts.is_empty() {
        writeln!(err, "{nothing}")?;
    }
    Ok(())
}

/// Writes beside the place and moves it there: what stands under the name is
/// whole and verified, and never replaces anything.
async fn to_file(mut reader: ArtifactReader, path: &Path) -> Result<ExitCode, Problem> {
    let failed =
        |error: &std::io::Error| io_problem(&format!("cannot write `{}`", path.display()), Code::FileUnreadable, error);
    let exists = || {
        Problem::new(Code::Usage, format!("`{}` exists, and nothing is overwritten", path.display()))
            .with_help("name another file with --out")
    };
    if path.symlink_metadata().is_ok() {
        return Err(exists());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
    while let Some(chunk) = reader.next_chunk().await.map_err(|error| Problem::of(&error))? {
        file.write_all(&chunk).map_err(|error| failed(&error))?;
    }
    file.as_file().sync_all().map_err(|error| failed(&error))?;
    match file.persist_noclobber(path) {
        Ok(_) => {}
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => return Err(exists()),
        Err(error) => return Err(failed(&error.error)),
    }
    let mut err = anstream::stderr().lock();
    let record = reader.record();
    let _ = writeln!(
        err,
        "wrote {} ({} bytes, sha256 {})",
        escaped_line(&path.display().to_string()),
        record.size,
        record.sha256
    );
    Ok(ExitCode::SUCCESS)
}

/// Writes to standard output: the bytes into a pipe, escaped text to a
/// terminal.
///
/// # Errors
/// Those of the store, and `usage` for what is not shown on a terminal.
pub(super) async fn to_stdout(reader: ArtifactReader) -> Result<ExitCode, Problem> {
    if std::io::stdout().is_terminal() { to_terminal(reader).await } else { to_pipe(reader).await }
}

/// Text, escaped; a terminal obeys bytes that are anything else.
async fn to_terminal(reader: ArtifactReader) -> Result<ExitCode, Problem> {
    let record = reader.record().clone();
    let refused = |why: String| {
        Problem::new(Code::Usage, format!("`{}` {why}, which is not shown on a terminal", record.uri))
            .with_help("write it to a file with --out FILE, or into a pipe")
    };
    if record.size > MAX_SHOWN.0 {
        return Err(refused(format!("has {} bytes", record.size)));
    }
    let bytes = reader.into_bytes(MAX_SHOWN.0).await.map_err(|error| Problem::of(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| refused("is not text".into()))?;
    let mut out = anstream::stdout().lock();
    printed(writeln!(out, "{}", escaped(&text).trim_end_matches('\n')), 0)
}

/// The bytes as they are. A damaged artifact ends in an error and short.
async fn to_pipe(mut reader: ArtifactReader) -> Result<ExitCode, Problem> {
    while let Some(chunk) = reader.next_chunk().await.map_err(|error| Problem::of(&error))? {
        let mut out = std::io::stdout().lock();
        if let Err(error) = out.write_all(&chunk) {
            return printed(Err(error), 0);
        }
    }
    printed(std::io::stdout().lock().flush(), 0)
}
