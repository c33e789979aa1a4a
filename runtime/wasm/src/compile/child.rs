//! The other side: a process that does one thing with a stranger's bytes,
//! shut in, and ends.

use std::error::Error;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::process::ExitCode;
use std::time::Duration;

use glovebox_jail::{
    Filter, JailError, Pid, die_with_parent, give_up_privileges, install, keep_descriptors, report_violations,
    restrict_files,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::CompileLimits;

/// The bytes are nothing that the task can be done with.
pub(super) const INVALID: u8 = 65;
/// The result could not be written.
pub(super) const FULL: u8 = 73;
/// The process could not be shut in, and so did nothing.
pub(super) const OPEN: u8 = 77;
/// What Rust ends with after a panic.
pub(super) const PANICKED: u8 = 101;
/// Anything else.
const FAILED: u8 = 70;
/// Descriptors: the three standard ones, and some for the runtime's own use.
const DESCRIPTORS: u64 = 32;

/// What is done with the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// A component becomes machine code.
    Compile,
    /// A core module becomes a component.
    Adapt,
}

impl Task {
    const ALL: [(Self, &'static str); 2] = [(Self::Compile, "compile"), (Self::Adapt, "adapt")];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(task, _)| *task == self).map_or("", |(_, name)| name)
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(task, _)| *task)
    }
}

/// The task, the limits, and who the parent is, as one argument.
pub(super) fn encode(task: Task, limits: &CompileLimits) -> String {
    let (seconds, parent) = (limits.cpu.as_secs().max(1), std::process::id());
    format!("{}:{}:{}:{}:{seconds}:{parent}", task.name(), limits.input, limits.output, limits.memory)
}

fn decode(text: &str) -> Option<(Task, CompileLimits, Pid)> {
    let (task, numbers) = text.split_once(':')?;
    let mut numbers = numbers.split(':').map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (input, output, memory, cpu) = (next()?, next()?, next()?, Duration::from_secs(next()?));
    let parent = Pid::from_raw(i32::try_from(next()?).ok()?)?;
    Some((Task::named(task)?, CompileLimits { input, output, memory, cpu, wall: cpu }, parent))
}

/// Compiles the component on standard input to standard output (or adapts the
/// module on it), shut in and within the limits that the argument gives.
/// Complaints go to standard error.
///
/// For a process that has one thread, and does nothing else before or after.
pub(crate) fn compile_child_main(about: Option<&str>) -> ExitCode {
    serve(about, &shut_in, &work)
}

fn work(task: Task, bytes: &[u8]) -> Result<Vec<u8>, String> {
    match task {
        Task::Compile => crate::engine::compiling()
            .and_then(|engine| engine.precompile_component(bytes))
            .map_err(|error| format!("{error:#}")),
        Task::Adapt => crate::inspect(bytes, u64::MAX)
            .and_then(|inspection| Ok(crate::adapt(bytes, &inspection)?.into_owned()))
            .map_err(|error| error.to_string()),
    }
}

/// A way to shut this process in.
type Walls = dyn Fn(Pid) -> Result<(), JailError>;
/// What is done behind them.
type Work = dyn Fn(Task, &[u8]) -> Result<Vec<u8>, String>;

fn serve(about: Option<&str>, walls: &Walls, work: &Work) -> ExitCode {
    let Some((task, limits, parent)) = about.and_then(decode) else {
        return fail(FAILED, "this is started by Glovebox itself, to compile a component");
    };
    if let Err(error) = confine(&limits) {
        return fail(FAILED, &format!("the limits can't be set: {error}"));
    }
    if let Err(error) = walls(parent) {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        return fail(OPEN, &format!("{error}{cause}"));
    }
    // Nothing of the stranger's has been read so far.
    let mut bytes = Vec::new();
    if let Err(error) = io::stdin().lock().take(limits.input + 1).read_to_end(&mut bytes) {
        return fail(FAILED, &format!("the component can't be read: {error}"));
    }
    if bytes.len() as u64 > limits.input {
        return fail(FAILED, "the component is too large");
    }
    let result = match work(task, &bytes) {
        Ok(result) => result,
        Err(error) => return fail(INVALID, &error),
    };
    let mut output = io::stdout().lock();
    match output.write_all(&result).and_then(|()| output.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(FULL, &error.to_string()),
    }
}

/// Bounds what the process may use. Too large an artefact ends it, so that the
/// parent can tell that from a full disk.
fn confine(limits: &CompileLimits) -> io::Result<()> {
    // Nobody may raise a hard limit that is lower: then that one stays.
    let set = |resource, current: u64, maximum: u64| {
        let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        setrlimit(resource, Rlimit { current: Some(current.min(most)), maximum: Some(maximum.min(most)) })
    };
    set(Resource::As, limits.memory, limits.memory)?;
    // A second signal, a second later, can't be handled.
    let cpu = limits.cpu.as_secs();
    set(Resource::Cpu, cpu, cpu + 1)?;
    set(Resource::Fsize, limits.output, limits.output)?;
    set(Resource::Nofile, DESCRIPTORS, DESCRIPTORS)?;
    Ok(())
}

/// Takes away what computing does not need, for good: every file, every
/// socket, every other process. What is left is three descriptors and threads.
fn shut_in(parent: Pid) -> Result<(), JailError> {
    leave_the_world(parent)?;
    report_violations(io::stderr().as_raw_fd())?;
    install(Filter::Compile)
}

fn leave_the_world(parent: Pid) -> Result<(), JailError> {
    die_with_parent(parent)?;
    give_up_privileges()?;
    let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
    keep_descriptors(&[input.as_fd(), output.as_fd(), errors.as_fd()])?;
    restrict_files(&[])
}

#[expect(clippy::print_stderr, reason = "the parent reads it")]
fn fail(code: u8, text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::from(code)
}

#[cfg(test)]
#[path = "child_tests.rs"]
mod tests;
