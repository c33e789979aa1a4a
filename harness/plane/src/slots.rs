//! `limits.concurrency`: so many actions of a capability at one time, over
//! all processes that share a state folder.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use env_contracts::{CapabilityRef, Code, Problem};
use rustix::fs::{FlockOperation, Mode, OFlags};

/// The slots of all capabilities, as locks on files. The kernel gives a lock
/// back when its process ends, however it ends.
pub(crate) struct Slots {
    dir: PathBuf,
}

/// A slot, held.
pub(crate) struct Slot {
    _lock: Option<OwnedFd>,
}

impl Slots {
    pub(crate) fn new(run_root: &std::path::Path) -> Self {
        Self { dir: run_root.with_file_name("slots") }
    }

    /// Takes a free slot of the capability.
    ///
    /// # Errors
    /// `busy` if all are taken, `state-unavailable` if the folder can't be
    /// used.
    pub(crate) fn enter(&self, capability: &CapabilityRef, limit: Option<u32>) -> Result<Slot, Problem> {
        let Some(limit) = limit else {
            return Ok(Slot { _lock: None });
        };
        let failed =
            |error: std::io::Error| glovebox_runtime::io_problem("cannot take a slot", Code::StateUnavailable, &error);
        glovebox_runtime::private_dir(&self.dir).map_err(failed)?;
        for number in 0..limit {
            let path = self.dir.join(format!("{capability}.{number}"));
            let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
            let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(|errno| failed(errno.into()))?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // One that was cleaned away meanwhile is nobody's: the next
                // who looks makes another under its name.
                Ok(()) if rustix::fs::fstat(&file).map_err(|errno| failed(errno.into()))?.st_nlink == 0 => {}
                Ok(()) => return Ok(Slot { _lock: Some(file) }),
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(errno) => return Err(failed(errno.into())),
            }
        }
        let message = format!("{limit} actions of `{capability}` are running, which is its `limits.concurrency`");
        Err(Problem::new(Code::Busy, message).with_help("wait until one of them ends"))
    }
}
