//! Whose a container is, and the sweep of what dead processes left.
//!
//! Every container bears the id of this state folder and of the process that
//! asked for it. That process holds a lock for as long as it lives, which the
//! kernel takes back however it ends. So nothing of another installation's and
//! nothing of a living sibling's is ever touched, and nothing has to be written
//! down between the wish for a container and its being there.

use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bollard::query_parameters::ListContainersOptionsBuilder;
use env_contracts::{Code, Problem};
use glovebox_runtime::io_problem;
use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::engine::{Engine, QUICK, within};
use crate::ladder;

/// The label that says whose state folder a container belongs to.
const INSTALLATION: &str = "dev.glovebox.installation";
/// The label that says which process asked for it.
const PROCESS: &str = "dev.glovebox.process";
/// The label that says for which action.
const ACTION: &str = "dev.glovebox.action";

/// A state folder as containers know it, and this process in it.
#[derive(Debug)]
pub(crate) struct Installation {
    folder: PathBuf,
    id: String,
    process: String,
    _alive: OwnedFd,
    /// Containers of this process that could not be taken away.
    quarantined: Mutex<BTreeSet<String>>,
}

/// A container that could not be taken away.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Left {
    /// Its id.
    pub container: String,
    /// Why not.
    pub why: String,
}

/// What a sweep did.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Swept {
    /// The containers that were taken away.
    pub gone: Vec<String>,
    /// Those that could not be.
    pub left: Vec<Left>,
}

impl Installation {
    /// Opens the folder `containers` of a state folder, made if it is missing,
    /// and marks this process as alive.
    ///
    /// # Errors
    /// `state-unavailable`, `disk-full`.
    pub(crate) fn open(folder: &Path) -> Result<Self, Problem> {
        let failed = |error: std::io::Error| {
            io_problem(&format!("cannot use `{}`", folder.display()), Code::StateUnavailable, &error)
        };
        let processes = folder.join("processes");
        glovebox_runtime::private_dir(&processes).map_err(failed)?;
        let id = id(folder).map_err(failed)?;
        let process = uuid::Uuid::new_v4().simple().to_string();
        let alive = alive(&processes, &process).map_err(failed)?;
        Ok(Self { folder: folder.to_owned(), id, process, _alive: alive, quarantined: Mutex::default() })
    }

    /// Where things of containers are kept.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A folder for an action that is gone with its last holder, and swept
    /// where this process dies.
    pub(crate) fn scratch(&self, action: &str) -> std::io::Result<Scratch> {
        let path = self.folder.join("processes").join(format!("{}.{action}", self.process));
        glovebox_runtime::private_dir(&path)?;
        Ok(Scratch(path))
    }

    /// What a container of an action bears.
    pub(crate) fn labels(&self, action: &str) -> HashMap<String, String> {
        [(INSTALLATION, &*self.id), (PROCESS, &*self.process), (ACTION, action)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    /// The name of an action's container: one of a process that died is found by
    /// it as well.
    pub(crate) fn name(&self, action: &str) -> String {
        format!("glovebox-{}-{action}-{}", &self.id[..8], &self.process[..8])
    }

    /// A container of this process, by its id or name, could not be taken away:
    /// whoever sweeps tries again, though its process lives.
    pub(crate) fn quarantine(&self, container: &str) {
        self.quarantined().insert(container.to_owned());
    }

    fn quarantined(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.quarantined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes away what processes that are gone left behind, on the engine and on
    /// disk. `dry_run`: only tells.
    ///
    /// # Errors
    /// `backend-unavailable` where the engine does not answer.
    pub(crate) async fn sweep(&self, engine: &Engine, dry_run: bool) -> Result<Swept, Problem> {
        let client = engine.client().await?;
        let mine = format!("{INSTALLATION}={}", self.id);
        let filters = HashMap::from([("label".to_owned(), vec![mine])]);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let found = within("looking for containers", QUICK, client.list_containers(Some(options))).await?;
        let mut swept = Swept::default();
        for container in found {
            let labels = container.labels.unwrap_or_default();
            let (Some(id), Some(process)) = (container.id, labels.get(PROCESS)) else { continue };
            let mut names = container.names.unwrap_or_default();
            names.iter_mut().for_each(|name| *name = name.trim_start_matches('/').to_owned());
            names.push(id.clone());
            let ours = names.iter().any(|name| self.quarantined().contains(name));
            if self.lives(process) && !ours {
                continue;
            }
            if !dry_run && let Err(problem) = ladder::remove(client, &id).await {
                swept.left.push(Left { container: id, why: problem.message });
                continue;
            }
            if !dry_run {
                self.quarantined().retain(|left| !names.contains(left));
            }
            swept.gone.push(id);
        }
        if !dry_run {
            self.sweep_disk();
        }
        Ok(swept)
    }

    /// Whether a process of this installation lives. One that is not known never
    /// did, or is long gone.
    fn lives(&self, process: &str) -> bool {
        if process == self.process {
            return true;
        }
        // What is no name of ours may lead anywhere.
        if process.is_empty() || !process.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        let path = self.folder.join("processes").join(process);
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty());
        file.is_ok_and(|file| rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err())
    }

    /// Removes the marks and the folders of processes that are gone.
    fn sweep_disk(&self) {
        let Ok(entries) = fs_err::read_dir(self.folder.join("processes")) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let process = name.split('.').next().unwrap_or_default();
            if process.is_empty() || self.lives(process) {
                continue;
            }
            let path = entry.path();
            take_back(&path);
            let _ = if path.is_dir() { fs_err::remove_dir_all(&path) } else { fs_err::remove_file(&path) };
        }
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        let _ = fs_err::remove_file(self.folder.join("processes").join(&self.process));
    }
}

/// A folder that is removed with its holder.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes down, before they are made, which files of ours will stand for a
    /// moment in folders of the user's.
    pub(crate) fn beside(&self, files: &[PathBuf]) -> std::io::Result<()> {
        let mut list = fs_err::File::create(self.0.join(BESIDE))?;
        for file in files {
            // No path holds this byte.
            list.write_all(file.as_os_str().as_encoded_bytes())?;
            list.write_all(&[0])?;
        }
        Ok(())
    }
}

/// The list of files beside those that are written: a name that no staged file
/// has, since those lie deeper.
const BESIDE: &str = "beside";

/// Removes what a process that is gone left beside files of the user's.
fn take_back(scratch: &Path) {
    use std::os::unix::ffi::OsStrExt as _;
    let Ok(list) = fs_err::read(scratch.join(BESIDE)) else { return };
    for path in list.split(|byte| *byte == 0) {
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        // Whatever else the list says, nothing but ours is removed.
        if path.file_name().is_some_and(|name| name.as_bytes().starts_with(OURS.as_bytes())) {
            let _ = fs_err::remove_file(path);
        }
    }
}

/// What the names of such files begin with.
pub(crate) const OURS: &str = ".glovebox-";

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs_err::remove_dir_all(&self.0);
    }
}

/// The id of a state folder: whoever is first gives it one.
fn id(folder: &Path) -> std::io::Result<String> {
    let path = folder.join("installation");
    for _ in 0..2 {
        match fs_err::read_to_string(&path) {
            Ok(id) if id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => return Ok(id),
            Ok(_) => return Err(std::io::Error::other(format!("`{}` holds no id", path.display()))),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
        let new = folder.join(format!("installation.{}", uuid::Uuid::new_v4().simple()));
        fs_err::write(&new, uuid::Uuid::new_v4().simple().to_string())?;
        // Not over the one of somebody who was faster.
        let linked = fs_err::hard_link(&new, &path);
        fs_err::remove_file(&new)?;
        match linked {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    fs_err::read_to_string(&path)
}

/// A file that is locked before it has its name: nobody finds it unlocked.
fn alive(folder: &Path, name: &str) -> std::io::Result<OwnedFd> {
    let new = folder.join(format!("{name}.new"));
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(&new, flags, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    fs_err::rename(&new, folder.join(name))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_for_as_long_as_it_holds_its_mark() {
        let folder = tempfile::tempdir().unwrap();
        let one = Installation::open(folder.path()).unwrap();
        let other = Installation::open(folder.path()).unwrap();
        assert_eq!(one.id, other.id);
        assert!(one.lives(&other.process) && other.lives(&one.process) && one.lives(&one.process));
        let processes = folder.path().join("processes");
        let (living, gone) = (other.process.clone(), processes.join("00ff"));
        let scratch = other.scratch("a1").unwrap();
        // As a kill leaves it: its mark, which nobody holds, and what lies there.
        fs_err::write(&gone, "").unwrap();
        fs_err::create_dir(processes.join("00ff.a2")).unwrap();
        // What it had written down that it makes, and what it had not.
        let [half, whole] = [".glovebox-1", "mine"].map(|name| folder.path().join(name));
        fs_err::write(&half, "half").unwrap();
        fs_err::write(&whole, "whole").unwrap();
        let dead = Scratch(processes.join("00ff.a2"));
        dead.beside(&[half.clone(), whole.clone(), folder.path().join("none/.glovebox-1")]).unwrap();
        std::mem::forget(dead);
        assert!(!one.lives("00ff") && !one.lives("0123") && !one.lives("../installation"));
        one.sweep_disk();
        assert!(!gone.exists() && !processes.join("00ff.a2").exists() && scratch.path().exists());
        assert!(!half.exists() && whole.exists());
        drop((other, scratch));
        assert!(!one.lives(&living) && one.lives(&one.process));
        assert_eq!(fs_err::read_dir(&processes).unwrap().count(), 1);
    }
}
