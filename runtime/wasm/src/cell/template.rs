//! A template: one component with its code mapped and its imports linked. It
//! never runs the guest; it makes cells that do, and tells how they ended.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use env_contracts::{Code, Problem};
use glovebox_jail::Filter;
use glovebox_runtime::job::UngrantedImports;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Dir, Mode, OFlags, open};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, getpid, pidfd_open, waitid};
use rustix::stdio::{stderr, stdin, stdout};

use super::wire::{self, Death, FromTemplate, ToTemplate};
use super::{inside, zygote};
use crate::component::{Artefact, Loaded};
use crate::execute::Executor;

/// Loads the component, shuts itself in, and serves the control socket.
pub(super) fn main(
    executor: &Executor,
    warm: Option<&Loaded>,
    artefact: Artefact,
    imports: UngrantedImports,
    control: &OwnedFd,
    zygote: Pid,
) -> ! {
    match prepare(executor, artefact, imports, control, zygote) {
        Ok((loaded, images)) => {
            if wire::send(control, &FromTemplate::Ready, &[]).is_ok() {
                let stock = Stock { executor, loaded: &loaded, warm, images: &images };
                serve(&stock, control);
            }
        }
        Err(mut problem) => {
            // A message has an end; a list of imports may not.
            problem.message.truncate(problem.message.floor_char_boundary(wire::MESSAGE_MAX));
            let _ = wire::send(control, &FromTemplate::Failed(problem), &[]);
        }
    }
    inside::end(0)
}

/// Everything that is done once for all cells of the component.
fn prepare(
    executor: &Executor,
    artefact: Artefact,
    imports: UngrantedImports,
    control: &OwnedFd,
    zygote: Pid,
) -> Result<(Arc<Loaded>, Vec<BorrowedFd<'static>>), Problem> {
    let jail = super::jail_problem;
    glovebox_jail::die_with_parent(zygote).map_err(jail)?;
    let loaded = executor.load(&artefact, imports).map_err(|error| Problem::of(&error))?;
    drop(artefact);
    let images = images(control).map_err(|error| {
        Problem::new(Code::BackendUnavailable, format!("cannot list this process's descriptors: {error}"))
    })?;
    glovebox_jail::give_up_privileges().map_err(jail)?;
    // A cell's channel takes the place of this descriptor.
    glovebox_jail::report_violations(inside::CHANNEL).map_err(jail)?;
    let own = [stdin(), stdout(), stderr(), control.as_fd()];
    glovebox_jail::keep_descriptors(&[&images[..], &own].concat()).map_err(jail)?;
    glovebox_jail::install(Filter::Template).map_err(jail)?;
    Ok((loaded, images))
}

/// What every cell is a copy of.
pub(super) struct Stock<'a> {
    pub(super) executor: &'a Executor,
    pub(super) loaded: &'a Loaded,
    pub(super) warm: Option<&'a Loaded>,
    pub(super) images: &'a [BorrowedFd<'static>],
}

/// Makes cells until nobody wants more.
fn serve(stock: &Stock<'_>, control: &OwnedFd) {
    let mut cells: Vec<(Pid, OwnedFd)> = Vec::new();
    let mut retired = false;
    while !retired || !cells.is_empty() {
        let mut watched: Vec<PollFd<'_>> = vec![PollFd::new(control, PollFlags::IN)];
        watched.extend(cells.iter().map(|(_, handle)| PollFd::new(handle, PollFlags::IN)));
        match poll(&mut watched, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        }
        let ready: Vec<bool> = watched.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut gone = ready[1..].iter();
        cells.retain(|(pid, handle)| match gone.next() {
            Some(true) => {
                let how = death(handle);
                // Who does not listen any more has no use for it.
                let _ = wire::send(control, &FromTemplate::Died { pid: pid.as_raw_nonzero().get(), how }, &[]);
                false
            }
            _ => true,
        });
        if ready[0] {
            match wire::receive(control) {
                Ok(Some((ToTemplate::Retire, _))) => retired = true,
                Ok(Some((ToTemplate::Cell { warm }, fds))) => match <[OwnedFd; 1]>::try_from(fds) {
                    Ok([channel]) => match make(stock, channel, warm) {
                        Ok(Some(cell)) => {
                            let born = FromTemplate::Born { pid: cell.0.as_raw_nonzero().get() };
                            if wire::send(control, &born, &[cell.1.as_fd()]).is_err() {
                                return;
                            }
                            cells.push(cell);
                        }
                        Ok(None) => {}
                        Err(error) => {
                            let _ = wire::send(control, &FromTemplate::Stillborn(error.to_string()), &[]);
                        }
                    },
                    Err(_) => return,
                },
                // The host is gone: cells end with their parent.
                Ok(None) | Err(_) => return,
            }
        }
    }
}

/// Forks one cell.
fn make(stock: &Stock<'_>, channel: OwnedFd, warm: bool) -> io::Result<Option<(Pid, OwnedFd)>> {
    let template = getpid();
    match zygote::fork()? {
        None => inside::live(stock, channel, template, warm),
        Some(pid) => Ok(Some((pid, pidfd_open(pid, PidfdFlags::empty())?))),
    }
}

fn death(handle: &OwnedFd) -> Death {
    match waitid(WaitId::PidFd(handle.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
        Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Death::Exited(code),
            (None, signal) => Death::Killed(signal.unwrap_or(0)),
        },
        _ => Death::Killed(0),
    }
}

/// What loading left open: the engine maps fresh memories from there.
fn images(control: &OwnedFd) -> io::Result<Vec<BorrowedFd<'static>>> {
    let folder = open("/proc/self/fd", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let ours = [0, 1, 2, control.as_raw_fd(), folder.as_raw_fd()];
    let mut images = Vec::new();
    for entry in Dir::new(folder)? {
        let number = entry?.file_name().to_str().ok().and_then(|name| name.parse().ok());
        images.extend(number.filter(|number| !ours.contains(number)).map(lasting));
    }
    Ok(images)
}

#[expect(unsafe_code, reason = "descriptors that belong to the engine")]
fn lasting(number: RawFd) -> BorrowedFd<'static> {
    // SAFETY: it is open, and the loaded component, which this process never
    // lets go of, keeps it so.
    unsafe { BorrowedFd::borrow_raw(number) }
}
