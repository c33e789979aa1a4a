//! The other side: a process that compiles one component and ends.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit};

use super::CompileLimits;

/// The bytes are no component that can be compiled.
pub(super) const INVALID: u8 = 65;
/// The artefact could not be written.
pub(super) const FULL: u8 = 73;
/// What Rust ends with after a panic.
pub(super) const PANICKED: u8 = 101;
/// Anything else.
const FAILED: u8 = 70;
/// Descriptors: the three standard ones, and some for the runtime's own use.
const DESCRIPTORS: u64 = 32;

/// The limits, and who the parent is, as one argument.
pub(super) fn encode(limits: &CompileLimits) -> String {
    let (seconds, parent) = (limits.cpu.as_secs().max(1), std::process::id());
    format!("{}:{}:{}:{seconds}:{parent}", limits.input, limits.output, limits.memory)
}

fn decode(text: &str) -> Option<(CompileLimits, u64)> {
    let mut numbers = text.split(':').map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (input, output, memory, cpu) = (next()?, next()?, next()?, Duration::from_secs(next()?));
    Some((CompileLimits { input, output, memory, cpu, wall: cpu }, next()?))
}

/// Compiles the component on standard input to standard output, within the
/// limits that the argument gives. Complaints go to standard error.
pub(crate) fn compile_child_main(limits: Option<&str>) -> ExitCode {
    let limits = limits.and_then(decode);
    let Some((limits, parent)) = limits else {
        return fail(FAILED, "this is started by Glovebox itself, to compile a component");
    };
    if let Err(error) = confine(&limits, parent) {
        return fail(FAILED, &format!("the limits can't be set: {error}"));
    }
    let mut component = Vec::new();
    if let Err(error) = io::stdin().lock().take(limits.input + 1).read_to_end(&mut component) {
        return fail(FAILED, &format!("the component can't be read: {error}"));
    }
    if component.len() as u64 > limits.input {
        return fail(FAILED, "the component is too large");
    }
    let compiled = crate::engine::compiling().and_then(|engine| engine.precompile_component(&component));
    let artefact = match compiled {
        Ok(artefact) => artefact,
        Err(error) => return fail(INVALID, &format!("{error:#}")),
    };
    let mut output = io::stdout().lock();
    match output.write_all(&artefact).and_then(|()| output.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(FULL, &error.to_string()),
    }
}

/// Takes away what compiling does not need, for good.
fn confine(limits: &CompileLimits, parent: u64) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have ended before it was asked to take us along.
    let now = getppid().and_then(|pid| u64::try_from(pid.as_raw_nonzero().get()).ok());
    if now != Some(parent) {
        return Err(io::Error::other("the parent is gone"));
    }
    let set = |resource, most| {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit)
    };
    set(Resource::As, limits.memory)?;
    // A second signal, a second later, can't be handled.
    let cpu = limits.cpu.as_secs();
    setrlimit(Resource::Cpu, Rlimit { current: Some(cpu), maximum: Some(cpu + 1) })?;
    set(Resource::Fsize, limits.output)?;
    set(Resource::Core, 0)?;
    set(Resource::Nofile, DESCRIPTORS)?;
    Ok(())
}

#[expect(clippy::print_stderr, reason = "the parent reads it")]
fn fail(code: u8, text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::from(code)
}
