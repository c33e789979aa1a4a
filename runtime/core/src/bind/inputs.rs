//! The files that a request brings.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;

use env_contracts::{Code, Evidence, Mount, Name, Problem};

use super::seal::{Sealed, Sealer};
use super::{BoundMount, Files, RunDir};

/// Where inputs lie in the guest; the contract's mounts are checked to agree.
const PLACE: &str = "/inputs";

/// Inputs on their way into the guest's `/inputs`: one folder of ours, with
/// a sealed copy of each under its name.
pub(super) struct Inputs {
    brought: BTreeMap<Name, OwnedFd>,
    artifacts: BTreeMap<String, OwnedFd>,
    placed: Vec<(String, Sealed)>,
    mounted: bool,
}

impl Inputs {
    pub(super) fn new(brought: Vec<(Name, OwnedFd)>, artifacts: BTreeMap<String, OwnedFd>) -> Self {
        Self { brought: brought.into_iter().collect(), artifacts, placed: Vec::new(), mounted: false }
    }

    /// A mount asks for one input, or (`None`) for all that are brought.
    pub(super) fn want(
        &mut self,
        name: Option<&Name>,
        sealer: &mut Sealer<'_>,
        files: &mut Files,
    ) -> Result<(), Problem> {
        self.mounted = true;
        let wanted = match name {
            None => std::mem::take(&mut self.brought),
            Some(name) => {
                let fd = self.brought.remove(name).ok_or_else(|| {
                    Problem::new(
                        Code::ContractUnsatisfied,
                        format!("the tool needs input `{name}`, and the request brings none of that name"),
                    )
                    .with_help(format!("name it with --input {name}=FILE"))
                })?;
                BTreeMap::from([(name.clone(), fd)])
            }
        };
        for (name, fd) in wanted {
            let sealed = sealer.seal(&format!("input:{name}"), fd)?;
            files.facts.inputs.insert(name.clone(), sealed.sha256.clone());
            files.evidence.push(Evidence {
                subject: format!("input:{name}"),
                sha256: sealed.sha256.clone(),
                size: Some(sealed.size),
            });
            self.placed.push((name.to_string(), sealed));
        }
        Ok(())
    }

    /// A mount asks for an artifact.
    pub(super) fn want_artifact(
        &mut self,
        uri: &str,
        mount: &Mount,
        sealer: &mut Sealer<'_>,
        files: &mut Files,
    ) -> Result<(), Problem> {
        self.mounted = true;
        let fd = self.artifacts.remove(uri).ok_or_else(|| {
            Problem::new(Code::ArtifactUnknown, format!("`{}` shows `{uri}`, which is not kept here", mount.guest))
        })?;
        let sealed = sealer.seal(uri, fd)?;
        let name = mount.guest.as_str().trim_start_matches(PLACE).trim_start_matches('/').to_owned();
        files.evidence.push(Evidence {
            subject: uri.to_owned(),
            sha256: sealed.sha256.clone(),
            size: Some(sealed.size),
        });
        files.facts.paths.insert(mount.guest.to_string(), sealed.sha256.clone());
        self.placed.push((name, sealed));
        Ok(())
    }

    /// Lays the folder out, and refuses what was brought for nobody.
    pub(super) fn finish(self, run_dir: &RunDir, files: &mut Files) -> Result<(), Problem> {
        if let Some(name) = self.brought.keys().next() {
            let message = format!("input `{name}` is brought, but the tool's contract mounts no input of that name");
            return Err(Problem::new(Code::ContractUnsatisfied, message)
                .with_help("leave the input out, or let the contract mount it at /inputs"));
        }
        if !self.mounted {
            return Ok(());
        }
        let dir = run_dir.folder("inputs")?;
        for (name, sealed) in self.placed {
            let failed = |error: std::io::Error| {
                crate::io_problem(&format!("cannot place input `{name}`"), Code::StateUnavailable, &error)
            };
            let flags = rustix::fs::OFlags::WRONLY
                | rustix::fs::OFlags::CREATE
                | rustix::fs::OFlags::EXCL
                | rustix::fs::OFlags::CLOEXEC;
            let to =
                rustix::fs::openat(&dir, &name, flags, rustix::fs::Mode::RUSR).map_err(|errno| failed(errno.into()))?;
            std::io::copy(&mut File::from(sealed.content), &mut File::from(to)).map_err(failed)?;
        }
        files.mounts.push(BoundMount { guest: PLACE.to_owned(), dir, writable: false, kept: false, hide: Vec::new() });
        Ok(())
    }
}
