//! Binding: what a plan names is opened and hashed once, and the run sees
//! what was opened.
//!
//! Everything leaves here as descriptors: no later step follows a path again.
//! Inputs and path arguments that name regular files are copied while they
//! are hashed; the guest reads the copy. A workspace is bound by identity, its
//! content stays live.

mod folder;
mod inputs;
mod remove;
mod run_dir;
mod seal;

pub use remove::remove_tree;
pub use run_dir::{RunDir, expire, sweep};
pub use seal::{MAX_SEALED, sealed_copy};

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use env_contracts::{
    Access, BoundFacts, Code, EnvironmentIdentity, Evidence, Mount, Name, Plan, Problem, Source, WorkspaceIdentity,
};

use crate::{Hide, HideLists};
use folder::{Opened, Protected, open_beneath, open_folder};
use inputs::Inputs;

/// The hide lists of mounts.
static HIDDEN: HideLists<Hide> = HideLists::new();

/// What is to be bound.
pub struct Binding<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The workspace folder on the host, where the request has one.
    pub workspace: Option<&'a Path>,
    /// The inputs that the request brings, opened for reading.
    pub inputs: Vec<(Name, OwnedFd)>,
    /// The artifacts that the contract mounts, by URI, opened for reading.
    pub artifacts: BTreeMap<String, OwnedFd>,
    /// The arguments that name paths.
    pub path_arguments: &'a [PathArgument],
    /// The folder of this run: scratch, outputs and inputs are made in it.
    pub run_dir: &'a RunDir,
    /// The environment that keeps the contract's folders, where it keeps any.
    pub environment: Option<Kept>,
    /// Folders of ours that no guest may see, wherever they lie.
    pub protect: &'a [PathBuf],
    /// The most bytes that are copied to seal inputs and path arguments.
    pub max_sealed: u64,
}

/// What an environment keeps for the actions that share it.
#[derive(Debug)]
pub struct Kept {
    /// Which environment that is.
    pub identity: EnvironmentIdentity,
    /// Its folders, opened, by where the guest sees them.
    pub folders: BTreeMap<String, OwnedFd>,
}

/// An argument that names a path: `x-glovebox-path` in the schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathArgument {
    /// Where in the arguments it stands, as a JSON Pointer.
    pub pointer: String,
    /// The mount that it lies in.
    pub mount: String,
    /// The path: absolute in the guest, or relative to the mount.
    pub value: String,
}

/// What was opened.
#[derive(Debug)]
pub struct Files {
    /// The folders of the guest.
    pub mounts: Vec<BoundMount>,
    /// The files with fixed content.
    pub sealed: Vec<BoundFile>,
    /// The outputs folder, to be collected afterwards.
    pub outputs: Option<OwnedFd>,
    /// What binding found, for the digests.
    pub facts: BoundFacts,
    /// The same for a verifier.
    pub evidence: Vec<Evidence>,
}

/// An opened folder.
#[derive(Debug)]
pub struct BoundMount {
    /// Where the guest sees it.
    pub guest: String,
    /// The folder.
    pub dir: OwnedFd,
    /// Whether the guest may change it.
    pub writable: bool,
    /// Whether it is an environment's, for the next action to find.
    pub kept: bool,
    /// What does not exist in it for the guest.
    pub hide: Vec<String>,
}

/// A file with fixed content.
#[derive(Debug)]
pub struct BoundFile {
    /// The mount it lies in.
    pub mount: String,
    /// Where, relative to the mount.
    pub path: String,
    /// The same as the argument spells it.
    pub spelled: String,
    /// The device and inode that it was read from.
    pub identity: (u64, u64),
    /// The content.
    pub content: OwnedFd,
}

/// Opens and hashes everything that the plan names.
///
/// # Errors
/// `workspace-unavailable`, `path-outside-mounts`, `contract-unsatisfied`
/// where an input is missing or none is mounted, `limit-hit` where there is
/// more to seal than may be, and the host's own.
pub fn bind(binding: Binding<'_>) -> Result<Files, Problem> {
    let mut files = Files {
        mounts: Vec::new(),
        sealed: Vec::new(),
        outputs: None,
        facts: BoundFacts::default(),
        evidence: Vec::new(),
    };
    let mut sealer = seal::Sealer::new(binding.run_dir, binding.max_sealed);
    let mut inputs = Inputs::new(binding.inputs, binding.artifacts);
    let mut kept = BTreeMap::new();
    if let Some(environment) = binding.environment {
        files.facts.environment = Some(environment.identity);
        kept = environment.folders;
    }
    let protect = Protected::new(binding.protect);
    for mount in &binding.plan.contract.filesystem {
        match &mount.source {
            Source::Workspace => {
                let path = binding.workspace.ok_or_else(|| {
                    Problem::new(
                        Code::WorkspaceUnavailable,
                        format!("`{}` shows the workspace, and the request has none", mount.guest),
                    )
                })?;
                let opened = open_folder(path, &protect)?;
                files.facts.workspace = Some(WorkspaceIdentity {
                    path: opened.path.display().to_string(),
                    device: opened.identity.0,
                    inode: opened.identity.1,
                    born_ns: opened.born_ns,
                    access: mount.access,
                });
                files.push_folder(mount, opened, &protect);
            }
            Source::Host(path) => {
                let opened = open_folder(Path::new(path), &protect)?;
                files.facts.hosts.insert(mount.guest.clone(), opened.identity);
                files.push_folder(mount, opened, &protect);
            }
            Source::Scratch => match kept.remove(mount.guest.as_str()) {
                Some(dir) => files.push(mount, dir, Vec::new(), true),
                None => {
                    let dir = binding.run_dir.folder(&format!("scratch{}", files.mounts.len()))?;
                    files.push(mount, dir, Vec::new(), false);
                }
            },
            Source::Outputs => {
                files.outputs = Some(binding.run_dir.folder("outputs")?);
                files.push(mount, binding.run_dir.folder("outputs")?, Vec::new(), false);
            }
            Source::Input(name) => inputs.want(name.as_ref(), &mut sealer, &mut files)?,
            Source::Artifact(uri) => inputs.want_artifact(uri, mount, &mut sealer, &mut files)?,
        }
    }
    inputs.finish(binding.run_dir, &mut files)?;
    for argument in binding.path_arguments {
        seal_argument(argument, &mut sealer, &mut files)?;
    }
    Ok(files)
}

impl Files {
    fn push(&mut self, mount: &Mount, dir: OwnedFd, hide: Vec<String>, kept: bool) {
        let writable = mount.access == Access::Write;
        self.mounts.push(BoundMount { guest: mount.guest.to_string(), dir, writable, kept, hide });
    }

    /// A folder of the user's: the contract's hide list, and folders of ours
    /// that lie in it.
    fn push_folder(&mut self, mount: &Mount, opened: Opened, protect: &Protected<'_>) {
        let mut hide: Vec<String> = mount.hidden().into_iter().map(Into::into).collect();
        // As it is spelled and where it leads: links on the way count too.
        for path in protect.spelled.iter().chain(&protect.settled) {
            let below = path.strip_prefix(&opened.path).ok().and_then(Path::to_str).filter(|path| !path.is_empty());
            let glob = below.map(|path| format!("/{}", globset::escape(path)));
            hide.extend(glob.filter(|glob| !hide.contains(glob)));
        }
        self.push(mount, opened.dir, hide, false);
    }
}

/// Seals a path argument that names a regular file in a folder with live
/// content. What names nothing, or a folder, is left to the tool.
fn seal_argument(argument: &PathArgument, sealer: &mut seal::Sealer<'_>, files: &mut Files) -> Result<(), Problem> {
    let outside = |why: &str| {
        let at = if argument.pointer.is_empty() { "/" } else { &argument.pointer };
        Problem::new(Code::PathOutsideMounts, format!("at `{at}`: `{}` {why}", argument.value.escape_debug()))
    };
    let relative = match argument.value.strip_prefix('/') {
        None => argument.value.as_str(),
        Some(_) => {
            let rest = argument
                .value
                .strip_prefix(argument.mount.as_str())
                .filter(|rest| rest.is_empty() || rest.starts_with('/'));
            let rest = rest.ok_or_else(|| outside(&format!("does not lie in `{}`", argument.mount)))?;
            rest.trim_start_matches('/')
        }
    };
    let Some(plain) = normalised(relative) else {
        return Err(outside("leads out of its folder"));
    };
    let mount =
        files.mounts.iter().find(|mount| mount.guest == argument.mount).ok_or_else(|| {
            outside(&format!("needs `{}`, which the effective contract does not mount", argument.mount))
        })?;
    let hide = HIDDEN.get(&mount.hide, Hide::new).map_err(|message| Problem::new(Code::ContractInvalid, message))?;
    // What is hidden is as if it were not there: no answer may tell that it is.
    if hide.hides(&plain) {
        return Ok(());
    }
    let Some(found) = open_beneath(mount.dir.as_fd(), relative, &outside)? else {
        return Ok(());
    };
    if hide.hides(&found.path) {
        return Ok(());
    }
    // A folder of our own making can't change behind the plan's back.
    let live = files.facts.workspace.is_some() || !files.facts.hosts.is_empty();
    let guest = format!("{}/{}", mount.guest, found.path);
    if !live {
        return Ok(());
    }
    let mount = mount.guest.clone();
    let names = relative.split('/').filter(|name| !matches!(*name, "" | "."));
    let spelled = names.collect::<Vec<_>>().join("/");
    // The same file under another name: the same bytes.
    if let Some(known) = files.sealed.iter().find(|known| known.mount == mount && known.path == found.path) {
        let content = known.content.try_clone();
        let content =
            content.map_err(|error| crate::io_problem("cannot keep a sealed file", Code::BackendError, &error))?;
        files.sealed.push(BoundFile { mount, path: found.path, spelled, identity: known.identity, content });
        return Ok(());
    }
    let sealed = sealer.seal(&guest, found.file)?;
    files.facts.paths.insert(guest.clone(), sealed.sha256.clone());
    files.evidence.push(Evidence { subject: guest, sha256: sealed.sha256, size: Some(sealed.size) });
    files.sealed.push(BoundFile {
        mount,
        path: found.path,
        spelled,
        identity: found.identity,
        content: sealed.content,
    });
    Ok(())
}

/// A relative path without `.` and `..`, as it reads; `None` if it leads above
/// its start, whatever exists on the way.
fn normalised(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
