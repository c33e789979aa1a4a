//! Compiling strangers' bytes, in a process that may be killed.
//!
//! Compilers are large, and time and memory that hostile input can make them
//! use count as nobody's bug; and what makes them write where they should not
//! is somebody's. So the compiler runs in a child that gets one component,
//! returns one artefact, has no environment and hard limits, and ends with its
//! parent. Before it reads a byte it gives up every privilege, file, socket and
//! other process; where the kernel can't take those away, nothing is compiled.
//! What makes a component of a preview 1 module works in such a child, too.

mod child;

pub(crate) use child::compile_child_main;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use env_contracts::Code;
use glovebox_jail::{Layers, VIOLATION_EXIT, VIOLATION_FRAME, syscall_name, violation};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::cell::{COMPILER, Helper, INSIDE};
use crate::error::WasmError;
use crate::inspect::{Inspection, Kind};
use child::Task;

/// How often progress is reported.
const PROGRESS: Duration = Duration::from_millis(100);
/// How many threads the compiler starts, as its thread pool is told.
const THREADS: &str = "RAYON_NUM_THREADS";
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
    /// artefact could not be written, or [`WasmError::Jail`] where this host
    /// can't shut a compiler in.
    pub fn compile(
        &self,
        component: &[u8],
        artefact: &fs_err::File,
        progress: &mut dyn FnMut(Duration),
    ) -> Result<(), WasmError> {
        let output = artefact.file().try_clone().map_err(not_started)?;
        self.work(Task::Compile, &self.limits, component, output, progress).map_err(|failure| match failure {
            Failure::Full(complaint) => {
                let source = io::Error::new(io::ErrorKind::StorageFull, complaint);
                WasmError::Cache { path: artefact.path().to_owned(), source }
            }
            Failure::Invalid(complaint) => WasmError::Compile(complaint),
            Failure::Other(error) => error,
        })
    }

    /// The component that a file holds: itself, or what [`adapt`](crate::adapt)
    /// makes of a module, in a child like the compiler's. Blocks.
    ///
    /// # Errors
    /// [`WasmError::Invalid`] says what keeps a module from being adapted, and
    /// the others of [`compile`](Self::compile).
    pub fn adapt<'b>(&self, bytes: &'b [u8], inspection: &Inspection) -> Result<Cow<'b, [u8]>, WasmError> {
        if inspection.kind == Kind::Component {
            return Ok(Cow::Borrowed(bytes));
        }
        let output = File::from(memfd_create("component", MemfdFlags::CLOEXEC).map_err(not_started)?);
        // The result comes into this process's memory, and has to pass the
        // limit on components anyway.
        let limits = CompileLimits { output: self.limits.input, ..self.limits };
        let given = output.try_clone().map_err(not_started)?;
        self.work(Task::Adapt, &limits, bytes, given, &mut |_| {}).map_err(|failure| match failure {
            Failure::Full(complaint) => WasmError::Compile(complaint),
            Failure::Invalid(complaint) => WasmError::Invalid(complaint),
            Failure::Other(error) => error,
        })?;
        let lost = |error: io::Error| WasmError::Compile(format!("the adapted module can't be read: {error}"));
        let (mut output, mut component) = (output, Vec::new());
        output.rewind().map_err(lost)?;
        output.take(limits.output).read_to_end(&mut component).map_err(lost)?;
        Ok(Cow::Owned(component))
    }

    fn work(
        &self,
        task: Task,
        limits: &CompileLimits,
        bytes: &[u8],
        output: File,
        progress: &mut dyn FnMut(Duration),
    ) -> Result<(), Failure> {
        let size = bytes.len() as u64;
        if size > limits.input {
            return Err(Failure::Other(WasmError::TooLarge { size, limit: limits.input }));
        }
        walls(Layers::probe())?;
        let input = in_memory(bytes).map_err(not_started)?;
        let mut child = self.start(task, limits, input, output).map_err(not_started)?;
        let status = self.wait(&mut child, progress)?;
        let mut complaint = Vec::new();
        if let Some(stderr) = child.0.stderr.take() {
            // Whatever could be read is better than nothing.
            let _ = stderr.take(COMPLAINT_MAX).read_to_end(&mut complaint);
        }
        judge(status, &complaint, limits)
    }

    #[expect(clippy::disallowed_methods, reason = "the compile child")]
    fn start(&self, task: Task, limits: &CompileLimits, input: File, output: File) -> io::Result<Killed> {
        // The child can't read how many processors it may use.
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Command::new(&self.helper.program)
            .arg0(INSIDE)
            .args(&self.helper.arguments)
            .arg(COMPILER)
            .arg(child::encode(task, limits))
            .env_clear()
            .env(THREADS, threads.to_string())
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
}

/// Why a child did not do its work.
enum Failure {
    /// The result could not be written.
    Full(String),
    /// The bytes are at fault.
    Invalid(String),
    /// Anything else.
    Other(WasmError),
}

impl From<WasmError> for Failure {
    fn from(error: WasmError) -> Self {
        Self::Other(error)
    }
}

fn not_started(error: impl Into<io::Error>) -> WasmError {
    WasmError::Compile(format!("the compiler can't be started: {}", error.into()))
}

/// Refuses where the child could not be shut in.
pub(crate) fn walls(layers: Layers) -> Result<(), WasmError> {
    match layers.missing().into_iter().next() {
        None => Ok(()),
        Some(missing) => Err(WasmError::Jail {
            reason: format!("{}: {}", missing.layer, missing.reason),
            remedy: missing.remedy.into(),
        }),
    }
}

/// What the way the child ended means.
fn judge(status: ExitStatus, complaint: &[u8], limits: &CompileLimits) -> Result<(), Failure> {
    if status.success() {
        return Ok(());
    }
    let forbidden = |call: &str| format!("the compiler was ended: it tried what is forbidden to it ({call})");
    if status.code() == Some(VIOLATION_EXIT) {
        // Other words may stand before the frame.
        let frame = complaint.len().checked_sub(VIOLATION_FRAME).and_then(|start| violation(&complaint[start..]));
        let call = frame.map_or_else(|| "unknown".into(), syscall_name);
        return Err(WasmError::Compile(forbidden(&call)).into());
    }
    let complaint = String::from_utf8_lossy(complaint).trim().to_owned();
    let said = |text: &str| if complaint.is_empty() { text.to_owned() } else { format!("{text}: {complaint}") };
    let reason = match (status.code().and_then(|code| u8::try_from(code).ok()), status.signal()) {
        (Some(child::FULL), _) => return Err(Failure::Full(complaint)),
        (Some(child::INVALID), _) => return Err(Failure::Invalid(complaint)),
        (Some(child::OPEN), _) => {
            return Err(
                WasmError::Jail { reason: complaint, remedy: Code::IsolationUnavailable.remedy().into() }.into()
            );
        }
        (Some(child::PANICKED), _) => said("the compiler panicked"),
        (Some(code), _) => said(&format!("the compiler ended with code {code}")),
        (None, Some(libc_signal::XCPU | libc_signal::KILL)) => {
            format!("the compiler was killed; it may use {:?} of processor time", limits.cpu)
        }
        (None, Some(libc_signal::XFSZ)) => format!("the artefact is larger than {} bytes", limits.output),
        (None, Some(libc_signal::SYS)) => forbidden("a system call in the form of another processor, or hidden"),
        (None, Some(libc_signal::ABRT)) => {
            said(&format!("the compiler ran out of memory; it may use {} bytes", limits.memory))
        }
        (None, signal) => said(&format!("the compiler crashed with signal {}", signal.unwrap_or(0))),
    };
    Err(WasmError::Compile(reason).into())
}

/// Signal numbers, the same on every Linux that we run on.
mod libc_signal {
    pub(super) const ABRT: i32 = 6;
    pub(super) const KILL: i32 = 9;
    pub(super) const XCPU: i32 = 24;
    pub(super) const XFSZ: i32 = 25;
    pub(super) const SYS: i32 = 31;
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

#[cfg(test)]
mod tests {
    use env_contracts::Diagnose;

    use super::*;

    #[test]
    fn nothing_is_compiled_where_a_wall_is_missing() {
        for (landlock, seccomp, says) in
            [(None, true, "Landlock"), (Some(3), true, "ABI 3"), (Some(7), false, "seccomp")]
        {
            let error = walls(Layers { landlock, seccomp }).unwrap_err();
            assert_eq!(error.code(), Code::IsolationUnavailable);
            assert!(error.to_string().contains(says), "{error}");
            assert!(error.help().contains("kernel"), "{}", error.help());
        }
        walls(Layers { landlock: Some(4), seccomp: true }).unwrap();
    }
}
