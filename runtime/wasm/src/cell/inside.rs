//! The life of a cell: made, idle, claimed, shut in for good, gone.

use std::future::pending;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::time::Duration;

use env_contracts::{Problem, Stdin};
use glovebox_jail::{Attempt, Filter, Folder, Limits, Prepared};
use glovebox_runtime::frames::Marks;
use glovebox_runtime::job::{End, Entry, FdIndex, Job, JobLimits, JobReport, JobUsage, Mount, UngrantedImports};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::Pid;
use rustix::stdio::{stderr, stdin, stdout};
use tokio::runtime::Runtime;

use super::channel::Channel;
use super::template::Stock;
use super::verdict::monotonic;
use super::wire::Claim;
use crate::backend::Deaf;
use crate::engine::Engine;
use crate::ticker::TICK;

/// Where a cell has its channel.
pub(super) const CHANNEL: RawFd = 0;
/// How a cell ends whose host does not listen.
pub(super) const UNHEARD: i32 = 3;
/// How a cell ends that could not do its work.
const BROKEN: i32 = 4;

/// What a cell needs beside the guest's memory: its stack, the engine's
/// tables, buffers for what passes between the guest and the host.
const OWN_MEMORY: u64 = 192 << 20;
/// Descriptors beside those of the job: handles of the guest, folders on the
/// way of a walk, the engine's own.
const OWN_DESCRIPTORS: u64 = 8 << 10;

/// Ends this process at once: nothing of the program that it was forked from
/// is cleaned up here.
#[expect(unsafe_code, reason = "_exit")]
pub(super) fn end(code: i32) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// Everything that a cell does. The engine and the component are copies of the
/// template's; the channel is its only way to anything else.
pub(super) fn live(stock: &Stock<'_>, channel: OwnedFd, template: Pid, warm: bool) -> ! {
    // Panics of the host's code are caught where they belong; here, nobody
    // could read what they print.
    std::panic::set_hook(Box::new(|_| {}));
    let lived = catch_unwind(AssertUnwindSafe(|| {
        let channel = settle(stock.images, channel, template)?;
        serve(stock, channel, warm)
    }));
    end(if matches!(lived, Ok(Ok(()))) { 0 } else { BROKEN });
}

/// What is the same for all claims, done before there is one.
fn settle(images: &[BorrowedFd<'static>], channel: OwnedFd, template: Pid) -> io::Result<Channel> {
    glovebox_jail::die_with_parent(template).map_err(io::Error::other)?;
    rustix::stdio::dup2_stdin(&channel)?;
    drop(channel);
    glovebox_jail::keep_descriptors(&[images, &[stdin(), stdout(), stderr()]].concat()).map_err(io::Error::other)?;
    Ok(Channel(stdin()))
}

fn serve(stock: &Stock<'_>, channel: Channel, warm: bool) -> io::Result<()> {
    let Stock { executor, loaded, .. } = stock;
    // After the fork, so that nothing of it is shared between cells. No IO
    // driver: files are read where they stand, and nothing else is open.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let filter = glovebox_jail::prepare(Filter::Cell).map_err(io::Error::other)?;
    if warm {
        warm_up(stock, &runtime);
    }
    let mut fds = Vec::new();
    let Some(claim) = channel.claim(&mut fds)? else { return Ok(()) };
    let received = monotonic();
    let folders = folders(&claim, &fds);
    let done = confine(&claim, &folders, fds.len(), &filter);
    drop(folders);
    let marks = Marks { received, confined: monotonic() };
    let report = match done {
        Err(problem) => ended(End::Refused(problem)),
        Ok(()) => match &claim {
            Claim::Job(job) => runtime.block_on(executor.run(loaded, job, fds, Box::new(channel), pending())),
            Claim::Describe(limits) => runtime.block_on(executor.describe(loaded, limits)),
            Claim::Attempt(name) => attempt(name),
        },
    };
    channel.report(&report, marks)
}

/// Runs our own component, so that what the engine touches is in memory and
/// this process's own. A stranger's would not do: nothing but the filter is
/// shut yet. Of the stranger's, the code is read in.
fn warm_up(stock: &Stock<'_>, runtime: &Runtime) {
    stock.loaded.read_in();
    let Some(component) = stock.warm else { return };
    let mount = Mount { guest: "/".into(), dir: FdIndex(0), writable: false, counted: false, hide: Vec::new() };
    let job = Job {
        action: String::new(),
        component: component.component().to_owned(),
        entry: Entry::Command { argv: Vec::new(), stdin: Stdin::None, env: Vec::new() },
        args: String::new(),
        mounts: vec![mount],
        sealed: Vec::new(),
        limits: JobLimits { memory: 4 << 20, output: 1 << 10, ..super::ATTEMPT },
        imports: UngrantedImports::Refuse,
        deterministic: None,
    };
    let (Ok(claim), Ok(root)) = (serde_json::to_vec(&Claim::Job(job)), root()) else { return };
    if let Ok(Claim::Job(job)) = serde_json::from_slice(&claim) {
        let report = runtime.block_on(stock.executor.run(component, &job, vec![root], Box::new(Deaf), pending()));
        let _ = serde_json::to_vec(&report);
    }
}

/// A folder that is there on every host, to be looked at and closed again.
fn root() -> io::Result<OwnedFd> {
    Ok(openat(CWD, "/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Shuts off everything but the job's folders and takes the means to undo it.
fn confine(claim: &Claim, folders: &[Folder<'_>], descriptors: usize, filter: &Prepared) -> Result<(), Problem> {
    let limits = limits(claim);
    let jail = super::jail_problem;
    glovebox_jail::restrict_files(folders).map_err(jail)?;
    start_ticking();
    glovebox_jail::limit(&Limits {
        data: limits.memory.saturating_add(OWN_MEMORY),
        // The engine's clock comes first; the kernel's is for code that has
        // left the engine.
        cpu: Some(limits.cpu.unwrap_or(limits.wall).saturating_add(Duration::from_secs(1))),
        // What already lies in a granted folder may be larger than what the job
        // may add to it.
        file_size: u64::MAX,
        descriptors: OWN_DESCRIPTORS + descriptors as u64,
    })
    .map_err(jail)?;
    filter.install().map_err(jail)
}

fn limits(claim: &Claim) -> JobLimits {
    match claim {
        Claim::Job(Job { limits, .. }) | Claim::Describe(limits) => limits.clone(),
        Claim::Attempt(_) => super::ATTEMPT,
    }
}

/// The folders of a job, as the kernel is to allow them. A missing descriptor
/// is found by the executor.
fn folders<'a>(claim: &Claim, fds: &'a [OwnedFd]) -> Vec<Folder<'a>> {
    let Claim::Job(job) = claim else { return Vec::new() };
    let folder = |mount: &Mount| {
        let dir: BorrowedFd<'a> = fds.get(mount.dir.0 as usize)?.as_fd();
        Some(Folder { dir, writable: mount.writable })
    };
    job.mounts.iter().filter_map(folder).collect()
}

/// Does what must not work, and reports how the kernel answered: 0 if it let
/// it happen, else the error number. A filtered call ends the cell by itself.
fn attempt(name: &str) -> JobReport {
    let Some(attempt) = Attempt::all().iter().find(|attempt| attempt.name() == name) else {
        return ended(End::HostFailed(format!("no attempt is called `{name}`")));
    };
    let code = match attempt.make() {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().and_then(|code| u32::try_from(code).ok()).unwrap_or(u32::MAX),
    };
    ended(End::Exited { code })
}

fn ended(end: End) -> JobReport {
    JobReport { end, usage: JobUsage::default() }
}

/// The engine whose clock the timer signal advances.
static TICKING: OnceLock<Engine> = OnceLock::new();

/// Makes the timer signal advance this engine's clock. A thread that did it
/// would not survive the forks.
#[expect(unsafe_code, reason = "a signal handler")]
pub(super) fn tick(engine: &Engine) {
    extern "C" fn on_alarm(_signal: libc::c_int) {
        // One atomic addition: allowed wherever the signal arrives.
        if let Some(engine) = TICKING.get() {
            engine.tick();
        }
    }
    let _ = TICKING.set(engine.clone());
    // SAFETY: the handler only does what a handler may; the structure is
    // plain data for which zero is a valid value.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_alarm as *const () as usize;
        // On the engine's own stack: guests have small ones.
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut());
    }
}

/// Starts the timer. Timers are not inherited, so each cell has its own.
#[expect(unsafe_code, reason = "no safe library starts interval timers")]
fn start_ticking() {
    let every = libc::timeval { tv_sec: 0, tv_usec: TICK.subsec_micros().cast_signed().into() };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: reads one structure; a null pointer asks for no old value.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()) };
}
