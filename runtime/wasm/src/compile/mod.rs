//! Compiling strangers' bytes, in a process that may be killed.
//!
//! Compilers are large, and time and memory that hostile input can make them
//! use count as nobody's bug. So the compiler runs in a child that gets one
//! component, returns one artefact, has no environment and hard limits, and
//! ends with its parent.

mod child;

pub(crate) use child::compile_child_main;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::cell::{COMPILER, Helper, INSIDE};
use crate::error::WasmError;

/// How often progress is reported.
const PROGRESS: Duration = Duration::from_millis(100);
/// What is read of the child's complaint.
const COMPLAINT_MAX: u64 = 4 << 10;

/// What compiling one component may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// The largest component, in bytes.
    pub input: u64,
    /// The largest artefact, in bytes.
    pub output: u64,
    /// Address space of the compiler, in bytes.
    pub memory: u64,
    /// Processor time, all threads together.
    pub cpu: Duration,
    /// Time on the wall.
    pub wall: Duration,
}

impl Default for CompileLimits {
    /// Room for an interpreter of some 30 MB on two slow cores.
    fn default() -> Self {
        Self {
            input: 64 << 20,
            output: 1 << 30,
            memory: 4 << 30,
            cpu: Duration::from_secs(600),
            wall: Duration::from_secs(300),
        }
    }
}

/// Starts compilers.
#[derive(Debug, Clone)]
pub struct Compiler {
    helper: Helper,
    limits: CompileLimits,
}

impl Compiler {
    /// Compilers that are started this way, within these limits.
    pub fn new(helper: Helper, limits: CompileLimits) -> Self {
        Self { helper, limits }
    }

    /// What compiling may use.
    pub fn limits(&self) -> &CompileLimits {
        &self.limits
    }

    /// Compiles `component` into `artefact`, an empty file. Blocks; `progress`
    /// is called some times a second with the time since the start.
    ///
    /// # Errors
    /// [`WasmError::TooLarge`], or [`WasmError::Compile`] with what the
    /// compiler said or what ended it, or [`WasmError::Cache`] when the
    /// artefact could not be written.
    pub fn compile(
        &self,
        component: &[u8],
        artefact: &fs_err::File,
        progress: &mut dyn FnMut(Duration),
    ) -> Result<(), WasmError> {
        let size = component.len() as u64;
        if size > self.limits.input {
            return Err(WasmError::TooLarge { size, limit: self.limits.input });
        }
        let start = |error: io::Error| WasmError::Compile(format!("the compiler can't be started: {error}"));
        let input = in_memory(component).map_err(start)?;
        let output = artefact.file().try_clone().map_err(start)?;
        let mut child = self.start(input, output).map_err(start)?;
        let status = self.wait(&mut child, progress)?;
        let mut complaint = String::new();
        if let Some(stderr) = child.0.stderr.take() {
            let mut bytes = Vec::new();
            // Whatever could be read is better than nothing.
            let _ = stderr.take(COMPLAINT_MAX).read_to_end(&mut bytes);
            complaint = String::from_utf8_lossy(&bytes).trim().to_owned();
        }
        self.judge(status, complaint, artefact)
    }

    #[expect(clippy::disallowed_methods, reason = "the compile child")]
    fn start(&self, input: File, output: File) -> io::Result<Killed> {
        Command::new(&self.helper.program)
            .args(&self.helper.arguments)
            .arg(COMPILER)
            .arg(child::encode(&self.limits))
            .env_clear()
            .env(INSIDE, "1")
            .current_dir("/")
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(output))
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map(Killed)
    }

    fn wait(&self, child: &mut Killed, progress: &mut dyn FnMut(Duration)) -> Result<ExitStatus, WasmError> {
        let lost = |error: io::Error| WasmError::Compile(format!("the compiler was lost: {error}"));
        let started = Instant::now();
        let pid = i32::try_from(child.0.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| lost(io::ErrorKind::InvalidData.into()))?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| lost(errno.into()))?;
        loop {
            if let Some(status) = child.0.try_wait().map_err(lost)? {
                return Ok(status);
            }
            let elapsed = started.elapsed();
            if elapsed >= self.limits.wall {
                return Err(WasmError::Compile(format!("the compiler took longer than {:?}", self.limits.wall)));
            }
            progress(elapsed);
            let wait = PROGRESS.min(self.limits.wall - elapsed);
            let wait = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
            // An error only means that the child is looked at again sooner.
            let _ = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&wait));
        }
    }

    fn judge(&self, status: ExitStatus, complaint: String, artefact: &fs_err::File) -> Result<(), WasmError> {
        if status.success() {
            return Ok(());
        }
        let said = |text: &str| if complaint.is_empty() { text.to_owned() } else { format!("{text}: {complaint}") };
        let reason = match (status.code().and_then(|code| u8::try_from(code).ok()), status.signal()) {
            (Some(child::FULL), _) => {
                let source = io::Error::new(io::ErrorKind::StorageFull, complaint);
                return Err(WasmError::Cache { path: artefact.path().to_owned(), source });
            }
            (Some(child::INVALID), _) => complaint,
            (Some(child::PANICKED), _) => said("the compiler panicked"),
            (Some(code), _) => said(&format!("the compiler ended with code {code}")),
            (None, Some(libc_signal::XCPU | libc_signal::KILL)) => {
                format!("the compiler was killed; it may use {:?} of processor time", self.limits.cpu)
            }
            (None, Some(libc_signal::XFSZ)) => format!("the artefact is larger than {} bytes", self.limits.output),
            (None, Some(libc_signal::ABRT)) => {
                said(&format!("the compiler ran out of memory; it may use {} bytes", self.limits.memory))
            }
            (None, signal) => said(&format!("the compiler crashed with signal {}", signal.unwrap_or(0))),
        };
        Err(WasmError::Compile(reason))
    }
}

/// Signal numbers, the same on every Linux that we run on.
mod libc_signal {
    pub(super) const ABRT: i32 = 6;
    pub(super) const KILL: i32 = 9;
    pub(super) const XCPU: i32 = 24;
    pub(super) const XFSZ: i32 = 25;
}

/// A child that does not outlive its owner's interest.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // Both do nothing to a child that has been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn in_memory(bytes: &[u8]) -> io::Result<File> {
    use std::io::Seek;
    let mut file = File::from(memfd_create("component", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}
