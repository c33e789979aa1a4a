//! The zygote: this program again, with the engine made and nothing loaded.
//! It forks templates and does nothing else. It has one thread, so that a fork
//! of it is whole.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use env_contracts::Problem;
use glovebox_runtime::job::UngrantedImports;
use rustix::process::{Pid, WaitOptions, getpid, wait};
use rustix::stdio::{stderr, stdin, stdout};

use super::wire::{self, FromZygote, ToZygote};
use super::{inside, template};
use crate::component::Artefact;
use crate::engine::{Engine, EngineConfig};
use crate::execute::Executor;

/// Serves the control socket on standard input until it is closed.
pub(super) fn main(parent: Option<i32>) -> ExitCode {
    let Some(parent) = parent.and_then(Pid::from_raw) else { return ExitCode::FAILURE };
    let Ok(control) = take_stdin() else { return ExitCode::FAILURE };
    // Whatever else the host left open is not for what is made here.
    if glovebox_jail::keep_descriptors(&[stdin(), stdout(), stderr(), control.as_fd()]).is_err() {
        return ExitCode::FAILURE;
    }
    let executor = glovebox_jail::die_with_parent(parent)
        .map_err(super::jail_problem)
        .and_then(|()| Engine::new(EngineConfig::cell()).and_then(Executor::new).map_err(|error| Problem::of(&error)));
    let executor = match executor {
        Ok(executor) => executor,
        Err(problem) => {
            let _ = wire::send(&control, &FromZygote::Failed(problem), &[]);
            return ExitCode::FAILURE;
        }
    };
    inside::tick(executor.engine());
    executor.know_hidden();
    if wire::send(&control, &FromZygote::Ready, &[]).is_err() {
        return ExitCode::FAILURE;
    }
    let mut warm = None;
    while let Ok(Some((message, fds))) = wire::receive(&control) {
        let (component, imports) = match message {
            ToZygote::Template { component, imports } => (component, imports),
            ToZygote::Warm { component } => {
                let loaded = fds.into_iter().next().map(|file| verified(file, component));
                // Without it cells are slower, and nothing else.
                warm = loaded.and_then(|artefact| executor.load(&artefact, UngrantedImports::Refuse).ok());
                continue;
            }
        };
        // Templates that ended meanwhile.
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let Ok([file, own]) = <[OwnedFd; 2]>::try_from(fds) else { return ExitCode::FAILURE };
        let zygote = getpid();
        // A fork that fails closes the template's control socket: the host sees that.
        if let Ok(None) = fork() {
            drop(control);
            template::main(&executor, warm.as_deref(), verified(file, component), imports, &own, zygote);
        }
    }
    // The host is gone, or wants no more templates: those that are left end
    // when their cells have, and would be killed if this process ended first.
    while let Ok(Some(_)) = wait(WaitOptions::empty()) {}
    ExitCode::SUCCESS
}

/// The descriptor on standard input, which is nothing from then on: cells have
/// their channel in its place.
fn take_stdin() -> io::Result<OwnedFd> {
    let taken = io::stdin().as_fd().try_clone_to_owned()?;
    let nothing = fs_err::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(nothing.file())?;
    Ok(taken)
}

#[expect(unsafe_code, reason = "loading machine code")]
fn verified(file: OwnedFd, component: String) -> Artefact {
    // SAFETY: the host sends descriptors of its own compile cache only, whose
    // content it verified on this very descriptor.
    unsafe { Artefact::from_verified(file, component) }
}

/// Makes a process that is a copy of this one; `None` in the copy.
#[expect(unsafe_code, reason = "fork")]
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: this process has one thread, so the copy has no lock that
    // another thread holds.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}
