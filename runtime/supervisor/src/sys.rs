//! What the kernel is asked for.
#![expect(unsafe_code, reason = "no safe library offers these calls to PID 1")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use glovebox_supervisor::{Ended, Place};

/// What says that something runs already.
pub(crate) const BUSY: i32 = libc::EBUSY;

/// Keeps others of this user out of this process, and its memory off the disk.
pub(crate) fn shut_in() -> io::Result<()> {
    // SAFETY: takes numbers alone.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) })?;
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads one structure that lives until it returns.
    check(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) }).map(drop)
}

/// A descriptor that tells when a child ends, or somebody wants the end.
pub(crate) fn hear_children() -> io::Result<OwnedFd> {
    let set = signals(&[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT]);
    // SAFETY: the set lives until both return; the descriptor is new and ours.
    unsafe {
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))?;
        let fd = check(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// A descriptor that can be read once in so long.
pub(crate) fn ticks(each: Duration) -> io::Result<OwnedFd> {
    use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
    let each = Timespec { tv_sec: each.as_secs().cast_signed(), tv_nsec: each.subsec_nanos().into() };
    let ticks =
        rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
    let timer = Itimerspec { it_interval: each, it_value: each };
    rustix::time::timerfd_settime(&ticks, TimerfdTimerFlags::empty(), &timer)?;
    Ok(ticks)
}

/// What a child undoes before it becomes another program, and its own session.
/// Called between fork and exec: it allocates nothing.
pub(crate) fn become_tool() -> io::Result<()> {
    let none = signals(&[]);
    // SAFETY: async-signal-safe calls on values that live until they return.
    unsafe {
        check(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()))?;
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        check(libc::setsid()).map(drop)
    }
}

fn signals(numbers: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: an all-zero set is a valid one, and is emptied before it is filled.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for number in numbers {
            libc::sigaddset(&raw mut set, *number);
        }
        set
    }
}

/// Takes what a descriptor tells; that it told is enough.
pub(crate) fn drain(fd: &OwnedFd) {
    let mut bytes = [0; 1024];
    while rustix::io::read(fd, &mut bytes).is_ok_and(|count| count > 0) {}
}

/// Ends every process but this one: those that left their session or their
/// parent too.
pub(crate) fn kill_all() {
    signal_all(libc::SIGKILL);
}

/// Asks every process but this one to end.
pub(crate) fn ask_all() {
    signal_all(libc::SIGTERM);
}

fn signal_all(signal: libc::c_int) {
    // SAFETY: takes numbers alone. For PID 1, all are those of its container.
    unsafe { libc::kill(-1, signal) };
}

/// Collects every process that ended. Whether none is left.
pub(crate) fn reap(mut each: impl FnMut(i32, Ended)) -> bool {
    loop {
        let mut status = 0;
        // SAFETY: writes one number that lives until it returns.
        match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
            0 => return false,
            pid if pid > 0 => each(pid, end_of(status)),
            _ => match io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => {}
                _ => return true,
            },
        }
    }
}

fn end_of(status: libc::c_int) -> Ended {
    match libc::WIFSIGNALED(status) {
        true => Ended::Signal(libc::WTERMSIG(status)),
        false => Ended::Code(libc::WEXITSTATUS(status)),
    }
}

/// Processor time of all that was started and collected, in microseconds.
pub(crate) fn children_cpu_us() -> u64 {
    // SAFETY: an all-zero structure is a valid one, and lives until it is filled.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let us = |time: libc::timeval| u64::try_from(time.tv_sec * 1_000_000 + time.tv_usec).unwrap_or(0);
    us(usage.ru_utime) + us(usage.ru_stime)
}

/// The user and group of this process.
pub(crate) fn identity() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// Whether this process can gain nothing and has no capability; whether its
/// calls are filtered.
pub(crate) fn confined() -> (bool, bool) {
    #[expect(clippy::disallowed_methods, reason = "nobody is told: what can't be read is not so")]
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim).unwrap_or_default().to_owned()
    };
    let none = |name: &str| u64::from_str_radix(&field(name), 16) == Ok(0);
    let bounded = none("CapEff") && none("CapPrm") && none("CapBnd") && none("CapAmb");
    (bounded && field("NoNewPrivs") == "1", field("Seccomp") == "2")
}

/// What lies at a path.
pub(crate) fn place(path: &str) -> Option<Place> {
    let meta = std::fs::metadata(path).ok()?;
    Some(Place { identity: (meta.dev(), meta.ino()), uid: meta.uid() })
}

/// Bytes and entries that are used in a folder's file system, and how many may
/// be.
pub(crate) struct Fill {
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    pub(crate) full: (bool, bool),
}

/// How full a folder is.
pub(crate) fn fill(folder: &str) -> Option<Fill> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(Fill {
        bytes: stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(stat.f_frsize),
        // The folder itself is one.
        entries: stat.f_files.saturating_sub(stat.f_ffree).saturating_sub(1),
        full: (stat.f_blocks > 0 && stat.f_bfree == 0, stat.f_files > 0 && stat.f_ffree == 0),
    })
}

/// Says why nothing goes on, where no frames can be said.
pub(crate) fn say(why: &str) -> io::Result<()> {
    use std::io::Write as _;
    writeln!(io::stderr(), "glovebox-supervisor: {why}")
}

/// Descriptors that are waited for.
#[derive(Default)]
pub(crate) struct Fds(Vec<libc::pollfd>);

impl Fds {
    /// Adds one; with neither wish, only its end is told.
    pub(crate) fn add(&mut self, fd: &impl AsFd, read: bool, write: bool) -> usize {
        let events = if read { libc::POLLIN } else { 0 } | if write { libc::POLLOUT } else { 0 };
        // Where nothing is wished, an end would be told over and over.
        let raw: RawFd = if events == 0 { -1 } else { fd.as_fd().as_raw_fd() };
        self.0.push(libc::pollfd { fd: raw, events, revents: 0 });
        self.0.len() - 1
    }

    /// Waits for any of them.
    pub(crate) fn wait(&mut self, longest: Duration) -> io::Result<()> {
        let count = libc::nfds_t::try_from(self.0.len()).unwrap_or(0);
        let millis = libc::c_int::try_from(longest.as_millis()).unwrap_or(libc::c_int::MAX);
        // SAFETY: as many structures as it is told, which live until it returns.
        match check(unsafe { libc::poll(self.0.as_mut_ptr(), count, millis) }) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether something can be done with it, its end included.
    pub(crate) fn ready(&self, index: usize) -> bool {
        self.0[index].revents != 0
    }
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
