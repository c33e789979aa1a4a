//! Environments: folders that the actions of a task, a session or an agent find
//! as the one before left them.
//!
//! No process outlives an action; what is shared is data. An environment's record
//! lies beside its folders and is replaced as a whole, and so there is one truth
//! about which folders hold: a database would be a second one, to be reconciled
//! after each crash. Who is in an environment holds its lock, which the kernel
//! takes back with the process.
//!
//! Layout, for each tenant: `live/KEY/` with `environment.json`, `lock` and
//! `layers/N/`; `checkpoints/SHA256.json`; `snapshots/` with the content.

mod held;
mod record;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use env_contracts::{Code, Digest, Id, Problem};
use glovebox_runtime::{io_problem, private_dir, read_plain};
use glovebox_workspace::{Freed, Snapshots};
use serde::de::DeserializeOwned;

pub(crate) use held::Held;
pub use record::{Checkpoint, Environment, EnvironmentSchema, Shared};

/// How many environments one user may have: each may fill the disk up to its
/// limit.
const MOST: usize = 64;
/// How long whoever begins one waits for whoever ends the one before.
const MOMENT: std::time::Duration = std::time::Duration::from_millis(1);
/// The largest record that is read.
const MAX_RECORD: u64 = 64 << 10;
const RECORD: &str = "environment.json";

/// The environments of one tenant.
#[derive(Debug, Clone)]
pub(crate) struct Environments {
    folder: PathBuf,
}

impl Environments {
    /// Those below this folder, which is made when something is put there.
    pub(crate) fn new(root: &Path, tenant: &str) -> Self {
        Self { folder: root.join(tenant) }
    }

    fn live(&self) -> PathBuf {
        self.folder.join("live")
    }

    fn place(&self, shared: &Shared) -> PathBuf {
        self.live().join(shared.key().as_str())
    }

    /// The environment of these, if there is one.
    pub(crate) fn find(&self, shared: &Shared) -> Result<Option<Environment>, Problem> {
        read(&self.place(shared).join(RECORD))
    }

    /// All that there are, oldest first.
    pub(crate) fn all(&self) -> Result<Vec<Environment>, Problem> {
        let mut all: Vec<Environment> = Vec::new();
        for path in entries(&self.live())? {
            all.extend(read::<Environment>(&path.join(RECORD))?);
        }
        all.sort_by(|a, b| (a.begun_ms, &a.id).cmp(&(b.begun_ms, &b.id)));
        Ok(all)
    }

    /// Begins one. Somebody else may have done so meanwhile: then it is theirs.
    ///
    /// # Errors
    /// `limit-hit` where the user has too many.
    pub(crate) fn begin(&self, new: &Environment) -> Result<Environment, Problem> {
        let owner = &new.shared.owner;
        let count = self.all()?.iter().filter(|known| known.shared.owner.user == owner.user).count();
        if count >= MOST {
            let message = format!("`{}` has {count} environments, and may have {MOST}", owner.user);
            return Err(Problem::new(Code::LimitHit, message)
                .with_help("end some: `glovebox environment list`, `glovebox environment end ENVIRONMENT`"));
        }
        let place = self.place(&new.shared);
        let held = loop {
            private_dir(&place).map_err(|error| failed("make an environment", &error))?;
            match self.enter(&new.shared)? {
                Some(held) => break held,
                // Whoever else is just here has written the record, or ends it.
                None => match read(&place.join(RECORD))? {
                    Some(known) => return Ok(known),
                    None => std::thread::sleep(MOMENT),
                },
            }
        };
        if let Some(known) = held.known()? {
            return Ok(known);
        }
        held.start(new)?;
        Ok(new.clone())
    }

    /// Takes the lock of an environment's folder. `None`: somebody has it, or the
    /// folder is not there.
    pub(crate) fn enter(&self, shared: &Shared) -> Result<Option<Held>, Problem> {
        Held::take(&self.place(shared))
    }

    /// Whether an action, or somebody who restores or ends it, is in it.
    pub(crate) fn is_taken(&self, shared: &Shared) -> Result<bool, Problem> {
        Held::is_taken(&self.place(shared))
    }

    /// The content of snapshots.
    pub(crate) fn snapshots(&self) -> Result<Snapshots, Problem> {
        private_dir(&self.folder).map_err(|error| failed("make the folder of environments", &error))?;
        Snapshots::open(&self.folder.join("snapshots")).map_err(|error| problem(&error))
    }

    fn checkpoint_path(&self, id: &Digest) -> PathBuf {
        self.folder.join("checkpoints").join(format!("{id}.json"))
    }

    /// Writes down what a snapshot is of: the name of the checkpoint.
    pub(crate) fn keep(&self, checkpoint: &Checkpoint) -> Result<Digest, Problem> {
        let bytes = crate::json(checkpoint);
        let id = Digest::of(&bytes);
        write(&self.checkpoint_path(&id), &bytes)?;
        Ok(id)
    }

    /// What a snapshot is of.
    ///
    /// # Errors
    /// `snapshot-unknown`; `snapshot-damaged` where it is not what its name says.
    pub(crate) fn checkpoint(&self, id: &Digest) -> Result<Checkpoint, Problem> {
        let text = match read_plain(&self.checkpoint_path(id), MAX_RECORD) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Problem::new(Code::SnapshotUnknown, format!("there is no snapshot `{}`", id.short())));
            }
            Err(error) => return Err(failed("read a snapshot", &error)),
        };
        let damaged = || Problem::new(Code::SnapshotDamaged, format!("snapshot `{}` is damaged", id.short()));
        if Digest::of(text.as_bytes()) != *id {
            return Err(damaged());
        }
        serde_json::from_str(&text).map_err(|_| damaged())
    }

    /// Every snapshot that can be read, oldest first.
    pub(crate) fn checkpoints(&self) -> Result<Vec<(Digest, Checkpoint)>, Problem> {
        let mut all = Vec::new();
        for path in entries(&self.folder.join("checkpoints"))? {
            let name = path.file_stem().and_then(OsStr::to_str).and_then(|name| name.parse::<Digest>().ok());
            let Some(id) = name else { continue };
            match self.checkpoint(&id) {
                Ok(checkpoint) => all.push((id, checkpoint)),
                // It went meanwhile, or whoever wants it hears what it is.
                Err(problem) if matches!(problem.code, Code::SnapshotUnknown | Code::SnapshotDamaged) => {}
                Err(problem) => return Err(problem),
            }
        }
        all.sort_by(|(a_id, a), (b_id, b)| (a.at_ms, a_id).cmp(&(b.at_ms, b_id)));
        Ok(all)
    }

    /// Takes away snapshots that were taken before a moment and are of no
    /// environment that is there, and the content that only those had.
    pub(crate) fn clean(&self, before_ms: u64, dry_run: bool) -> Result<Freed, Problem> {
        if !self.folder.join("checkpoints").exists() {
            return Ok(Freed::default());
        }
        let there: BTreeSet<Id> = self.all()?.into_iter().map(|known| known.id).collect();
        let mut keep = BTreeSet::new();
        for (id, checkpoint) in self.checkpoints()? {
            if there.contains(&checkpoint.environment) || checkpoint.at_ms >= before_ms {
                keep.insert(checkpoint.tree);
            } else if !dry_run {
                let path = self.checkpoint_path(&id);
                fs_err::remove_file(path).map_err(|error| failed("remove a snapshot", &error))?;
            }
        }
        self.snapshots()?.retain(&keep, dry_run).map_err(|error| problem(&error))
    }
}

/// Reads a record of ours; `None`: there is none.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Problem> {
    let text = match read_plain(path, MAX_RECORD) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(failed("read an environment", &error)),
    };
    serde_json::from_str(&text).map(Some).map_err(|error| {
        Problem::new(Code::StateUnavailable, format!("`{}`: {error}", path.display()))
            .with_help("take its folder away: the next action begins an environment anew")
    })
}

/// Writes a file of ours in the place of the one before, on the disk when this
/// returns.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Problem> {
    let failed = |error: &std::io::Error| failed("write an environment", error);
    let folder = path.parent().unwrap_or(path);
    private_dir(folder).map_err(|error| failed(&error))?;
    let mut new = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
    new.write_all(bytes).and_then(|()| new.as_file().sync_all()).map_err(|error| failed(&error))?;
    new.persist(path).map_err(|error| failed(&error.error))?;
    Ok(())
}

/// What lies in a folder; nothing where there is none.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    match fs_err::read_dir(folder) {
        Ok(entries) => Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed("look for environments", &error)),
    }
}

fn failed(what: &str, error: &std::io::Error) -> Problem {
    io_problem(&format!("cannot {what}"), Code::StateUnavailable, error)
}

/// What is in the way of a snapshot, as a door tells it.
pub(crate) fn problem(error: &glovebox_workspace::Error) -> Problem {
    use glovebox_workspace::Error;
    let message = error.to_string();
    match error {
        Error::TooMuch { .. } => Problem::new(Code::LimitHit, format!("the environment can't be kept: {message}"))
            .with_help("let the tool keep less, or raise `limits.storage` and `limits.inodes`"),
        Error::Special { .. } => Problem::new(Code::BackendError, message),
        Error::Changed { .. } => Problem::new(Code::Busy, message),
        Error::Unknown(_) => Problem::new(Code::SnapshotDamaged, message),
        Error::Damaged(_) => Problem::new(Code::SnapshotDamaged, message),
        Error::Io { what, source } => failed(what, source),
    }
}
