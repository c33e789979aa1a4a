//! `glovebox gc`: takes away what is too old or too much, and what crashes
//! left behind.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use env_contracts::{ByteSize, Code, Problem, Span, Wanted};
use glovebox_artifacts::{BLOB_GRACE_MS, GcReport, LEFTOVER_AGE_MS, Retention};
use glovebox_plane::Tended;
use glovebox_runtime::{Clock as _, SystemClock, bind, io_problem};
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

use super::printed;
use crate::args::GcArgs;
use crate::config::Config;
use crate::places::Places;
use crate::print;
use crate::terminal::escaped_line;
use crate::{backends, house};

pub(crate) fn run(args: &GcArgs, config: &Config) -> Result<ExitCode, Problem> {
    let places = Places::of(config);
    places.make()?;
    let swept = Swept {
        dry_run: args.dry_run,
        artifacts: artifacts(config, &places, args.dry_run)?,
        compiled: compiled(config, &places, args.dry_run)?,
        runs: bind::sweep(&places.runs(), args.dry_run)?,
        kept: bind::expire(&places.kept(), config.get::<Span>("artifacts.max_age").0, SystemClock.now(), args.dry_run)?,
        environments: environments(config, args.dry_run)?,
        leftovers: leftovers(config, &places, args.dry_run)?,
        containers: containers(config, &places, args.dry_run)?,
    };
    printed(if args.json { print::json(&swept) } else { swept.print() }, 0)
}

/// What went, or would go.
#[derive(Debug, Serialize)]
struct Swept {
    dry_run: bool,
    artifacts: GcReport,
    compiled: Vec<Dropped>,
    runs: Vec<PathBuf>,
    /// Scratch folders that a contract wanted kept, and that are old now.
    kept: Vec<PathBuf>,
    /// Environments that are over, and snapshots as old as artifacts may get.
    environments: Tended,
    leftovers: Vec<Dropped>,
    /// Containers of processes that are gone.
    containers: glovebox_container::Swept,
}

#[derive(Debug, Serialize)]
struct Dropped {
    /// The component's digest, or a path.
    name: String,
    bytes: u64,
}

fn artifacts(config: &Config, places: &Places, dry_run: bool) -> Result<GcReport, Problem> {
    let store = house::artifacts(places)?;
    let retention = Retention {
        max_age_ms: Some(millis(config.get::<Span>("artifacts.max_age").0)),
        max_bytes: Some(config.get::<ByteSize>("artifacts.max_size").0),
        now_ms: SystemClock.now().unix_millis,
    };
    let runtime = house::tokio_runtime()?;
    runtime.block_on(store.gc(retention, dry_run)).map_err(|error| Problem::of(&error))
}

/// Compiled components, those used longest ago first, until the rest fits.
fn compiled(config: &Config, places: &Places, dry_run: bool) -> Result<Vec<Dropped>, Problem> {
    let backend = backends::wasm(config, places, 1)?;
    let cache = backend.cache();
    let mut entries = cache.entries().map_err(|error| Problem::of(&error))?;
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.used));
    let most = config.get::<ByteSize>("cache.max_size").0;
    let mut kept = 0_u64;
    let mut dropped = Vec::new();
    for entry in entries {
        if kept.saturating_add(entry.size) <= most {
            kept += entry.size;
            continue;
        }
        // Whatever was used longer ago than this goes too: a small old entry
        // does not stay because a large new one was too much.
        kept = most;
        if !dry_run {
            cache.remove(&entry).map_err(|error| Problem::of(&error))?;
        }
        dropped.push(Dropped { name: entry.component, bytes: entry.size });
    }
    Ok(dropped)
}

fn environments(config: &Config, dry_run: bool) -> Result<Tended, Problem> {
    let before = SystemClock.now().unix_millis.saturating_sub(millis(config.get::<Span>("artifacts.max_age").0));
    let service = house::overseer(config)?;
    house::tokio_runtime()?.block_on(service.tend_environments(&house::tenant(), before, dry_run))
}

/// Containers of processes that are gone. An engine that does not answer keeps
/// nothing else from being cleaned.
fn containers(config: &Config, places: &Places, dry_run: bool) -> Result<glovebox_container::Swept, Problem> {
    let containers = backends::containers(config, places)?;
    let swept = house::tokio_runtime()?.block_on(containers.sweep(dry_run));
    Ok(swept.unwrap_or_else(|problem| {
        print::problem(&problem);
        glovebox_container::Swept::default()
    }))
}

/// Half-written files of processes that are gone: nobody wrote to them for
/// longer than any of them could take.
fn leftovers(config: &Config, places: &Places, dry_run: bool) -> Result<Vec<Dropped>, Problem> {
    let age = Duration::from_millis(LEFTOVER_AGE_MS) + config.get::<Span>("compile.wall").0;
    let before = SystemClock.now().unix_millis.saturating_sub(millis(age));
    let mut candidates = Vec::new();
    for path in entries(&places.compiled())? {
        if matches!(path.extension().and_then(|ext| ext.to_str()), Some("new" | "lock")) {
            candidates.push(path);
        }
    }
    for folder in entries(&places.tools())? {
        // What the registry has not moved to its place yet begins with a dot.
        let staged = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        candidates.extend(entries(&folder)?.into_iter().filter(staged));
    }
    let mut dropped = slots(places, dry_run)?;
    for path in candidates {
        let Ok(about) = path.symlink_metadata() else { continue };
        let modified = about.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        if modified.is_none_or(|modified| millis(modified) >= before) {
            continue;
        }
        let bytes = size(&path);
        if !dry_run {
            let removed = if about.is_dir() { fs_err::remove_dir_all(&path) } else { fs_err::remove_file(&path) };
            removed
                .map_err(|error| io_problem("cannot remove what was left behind", Code::StateUnavailable, &error))?;
        }
        let name = path.strip_prefix(&places.state).unwrap_or(&path).display().to_string();
        dropped.push(Dropped { name, bytes });
    }
    Ok(dropped)
}

/// The slot files of tools that are not registered any more.
fn slots(places: &Places, dry_run: bool) -> Result<Vec<Dropped>, Problem> {
    let registry = house::registry(places);
    let mut dropped = Vec::new();
    for path in entries(&places.slots())? {
        // NAME@VERSION.N
        let stem = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<Wanted>().ok());
        let gone =
            stem.is_some_and(|wanted| registry.get(&wanted).is_err_and(|problem| problem.code == Code::ToolUnknown));
        let free = || {
            let file = fs_err::File::open(&path).ok();
            file.is_some_and(|file| flock(file.file(), FlockOperation::NonBlockingLockExclusive).is_ok())
        };
        if !gone || !free() {
            continue;
        }
        if !dry_run {
            fs_err::remove_file(&path)
                .map_err(|error| io_problem("cannot remove a slot", Code::StateUnavailable, &error))?;
        }
        dropped
            .push(Dropped { name: path.strip_prefix(&places.state).unwrap_or(&path).display().to_string(), bytes: 0 });
    }
    Ok(dropped)
}

/// What is in a folder; nothing if it is missing or none.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    use std::io::ErrorKind;
    match fs_err::read_dir(folder) {
        Ok(entries) => Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(io_problem("cannot look for what was left behind", Code::StateUnavailable, &error)),
    }
}

fn size(path: &Path) -> u64 {
    match path.symlink_metadata() {
        Ok(about) if about.is_dir() => entries(path).unwrap_or_default().iter().map(|path| size(path)).sum(),
        Ok(about) => about.len(),
        Err(_) => 0,
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl Swept {
    fn print(&self) -> std::io::Result<()> {
        let verb = if self.dry_run { "would go" } else { "gone" };
        let mut out = anstream::stdout().lock();
        let artifacts = &self.artifacts;
        for record in &artifacts.dropped {
            writeln!(out, "{verb}  {}  {}  {} bytes", record.uri, escaped_line(&record.name), record.size)?;
        }
        for entry in &self.compiled {
            writeln!(out, "{verb}  compiled component {}  {} bytes", entry.name, entry.bytes)?;
        }
        for run in self.runs.iter().chain(&self.kept) {
            writeln!(out, "{verb}  {}", escaped_line(&run.display().to_string()))?;
        }
        for file in &self.leftovers {
            writeln!(out, "{verb}  {}  {} bytes", escaped_line(&file.name), file.bytes)?;
        }
        for environment in &self.environments.ended {
            writeln!(out, "{verb}  environment {environment}")?;
        }
        if self.environments.snapshots > 0 {
            let Tended { snapshots, bytes, .. } = self.environments;
            writeln!(out, "{verb}  {snapshots} snapshots of environments that ended  {bytes} bytes")?;
        }
        for container in &self.containers.gone {
            writeln!(out, "{verb}  container {container}")?;
        }
        for left in &self.containers.left {
            writeln!(out, "note: container {}: {}", left.container, escaped_line(&left.why))?;
        }
        let compiled: u64 = self.compiled.iter().map(|entry| entry.bytes).sum();
        let left: u64 = self.leftovers.iter().map(|file| file.bytes).sum::<u64>() + artifacts.leftover_bytes;
        writeln!(
            out,
            "{verb}: {} artifacts ({} bytes of content), {} compiled components ({compiled} bytes), {} run folders, {} unfinished files ({left} bytes)",
            artifacts.dropped.len(),
            artifacts.blob_bytes,
            self.compiled.len(),
            self.runs.len(),
            self.leftovers.len() as u64 + artifacts.leftovers,
        )?;
        writeln!(out, "artifacts that stay: {} ({} bytes)", artifacts.kept, artifacts.kept_bytes)?;
        if artifacts.fresh > 0 {
            writeln!(
                out,
                "content that nothing names and that stays for now: {} blobs ({} bytes); it goes once it is older than {}",
                artifacts.fresh,
                artifacts.fresh_bytes,
                Span(Duration::from_millis(BLOB_GRACE_MS))
            )?;
        }
        for uri in &artifacts.unreadable {
            writeln!(out, "note: the entry of {uri} can't be read; while it is there, no content goes")?;
        }
        Ok(())
    }
}
