//! What a process may use at most, as the last line behind finer limits.

use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::{JailError, Result};

/// What the kernel lets this process use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Writable private memory, in bytes. Address space is no measure: an
    /// engine reserves gigabytes that it never touches.
    pub data: u64,
    /// Processor time; counted in whole seconds, rounded up.
    pub cpu: Option<Duration>,
    /// The size to which a file may grow, in bytes. A write beyond it fails;
    /// it does not end the process.
    pub file_size: u64,
    /// Open descriptors.
    pub descriptors: u64,
}

/// Sets the limits, and forbids what no such process needs: children, memory
/// images, locked memory, message queues.
///
/// Where a lower limit is in force already, it stays.
///
/// # Errors
/// Those of the kernel.
pub fn limit(limits: &Limits) -> Result<()> {
    // The signal's default is to end the process; ignored, the write fails
    // with an error that the guest can be told.
    // SAFETY: ignoring a signal installs no code.
    let before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    if before == libc::SIG_ERR {
        return Err(JailError::System { what: "ignore a signal", source: io::Error::last_os_error() });
    }
    set(Resource::Data, limits.data, limits.data)?;
    if let Some(cpu) = limits.cpu {
        let seconds = cpu.as_secs().saturating_add(u64::from(cpu.subsec_nanos() > 0)).max(1);
        // The first signal may be handled; a second later comes one that can't.
        set(Resource::Cpu, seconds, seconds.saturating_add(1))?;
    }
    set(Resource::Fsize, limits.file_size, limits.file_size)?;
    set(Resource::Nofile, limits.descriptors, limits.descriptors)?;
    for none in [Resource::Nproc, Resource::Core, Resource::Memlock, Resource::Msgqueue] {
        set(none, 0, 0)?;
    }
    Ok(())
}

/// Nobody may raise a hard limit that is lower: then that one stays.
fn set(resource: Resource, current: u64, maximum: u64) -> Result<()> {
    let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    setrlimit(resource, Rlimit { current: Some(current.min(most)), maximum: Some(maximum.min(most)) })
        .map_err(JailError::system("set a resource limit"))
}
