//! What the host makes of a cell's end.

use std::time::Duration;

use env_contracts::Code;
use glovebox_runtime::frames::Marks;
use glovebox_runtime::job::{End, Entry, Job, JobReport, JobUsage, Limit, Timer};
use rustix::time::{ClockId, clock_gettime};

use super::conduct::{Errand, Killed, Timeline};
use super::held::Process;
use super::wire::Death;
use crate::outcome::{MESSAGE_MAX, RESULT_MAX, TRAP_MAX};

/// The longest name of a kind of failure; those of the interface have some
/// ten characters.
const KIND_MAX: usize = 64;

/// When the claim was sent, on the clock that cells read too.
pub(super) struct Began(u64);

impl Began {
    pub(super) fn now() -> Self {
        Self(monotonic())
    }

    /// The timeline with the cell's own marks, as far as they can be true, and
    /// the time from the claim until now.
    pub(super) fn until_now(&self, marks: Marks, setup: Duration) -> (Timeline, Duration) {
        let now = monotonic();
        let since = |mark: u64| Duration::from_nanos(mark.clamp(self.0, now) - self.0);
        let (total, confined) = (since(now), since(marks.confined));
        let instantiated = confined.saturating_add(setup).min(total);
        (Timeline { received: since(marks.received), confined, instantiated, answered: total }, total)
    }
}

/// Takes a cell's report as far as it can be true.
pub(super) fn believe(report: JobReport, errand: &Errand<'_>, total: Duration) -> JobReport {
    let limits = errand.limits();
    let JobReport { end, usage } = report;
    let run = usage.run.min(total);
    let teardown = usage.teardown.min(total - run);
    let usage = JobUsage {
        run,
        teardown,
        setup: total - run - teardown,
        // One thread can't use more than passed.
        cpu: usage.cpu.min(total),
        memory_peak: usage.memory_peak.min(limits.memory),
        ..usage
    };
    let end = if possible(&end, errand) {
        bounded(end)
    } else {
        End::Violation("it reported an end that it can't have".into())
    };
    JobReport { end, usage }
}

/// With texts no longer than the executor's own are.
fn bounded(end: End) -> End {
    let cut = |mut text: String, most: usize| {
        text.truncate(text.floor_char_boundary(most));
        text
    };
    match end {
        End::Trapped(text) => End::Trapped(cut(text, TRAP_MAX)),
        End::HostFailed(text) => End::HostFailed(cut(text, TRAP_MAX)),
        End::Refused(mut problem) => {
            problem.message = cut(problem.message, TRAP_MAX);
            problem.help = cut(problem.help, TRAP_MAX);
            End::Refused(problem)
        }
        End::Failed(mut failure) => {
            failure.kind = cut(failure.kind, KIND_MAX);
            failure.message = cut(failure.message, MESSAGE_MAX);
            failure.details = failure.details.filter(|details| details.len() <= RESULT_MAX);
            End::Failed(failure)
        }
        End::Returned { content, .. } if content.len() > RESULT_MAX => End::LimitHit(Limit::HostCall),
        other => other,
    }
}

/// Whether an execution of this kind can end like that.
fn possible(end: &End, errand: &Errand<'_>) -> bool {
    match end {
        End::Returned { .. } | End::Failed(_) => {
            !matches!(errand, Errand::Attempt(_) | Errand::Job(Job { entry: Entry::Command { .. }, .. }))
        }
        End::Exited { .. } => {
            matches!(errand, Errand::Attempt(_) | Errand::Job(Job { entry: Entry::Command { .. }, .. }))
        }
        End::TimedOut(_) | End::LimitHit(_) | End::Trapped(_) | End::HostFailed(_) => true,
        End::Refused(problem) => {
            matches!(problem.code, Code::ComponentExports | Code::ContractInvalid | Code::IsolationUnavailable)
        }
        // The host alone interrupts and finds violations; nothing of a cell is elsewhere.
        End::Interrupted | End::Violation(_) | End::Lost(_) => false,
    }
}

/// The kernel refused a system call.
pub(super) fn refused(number: u32, total: Duration) -> JobReport {
    let name = glovebox_jail::syscall_name(number);
    ended(End::Violation(format!("the system call `{name}` was refused by the second wall")), total)
}

/// The host ended it.
pub(super) fn killed(why: Killed, usage: JobUsage) -> JobReport {
    let end = match why {
        Killed::Interrupted => End::Interrupted,
        Killed::Expired(timer) => End::TimedOut(timer),
        Killed::NotAFrame(what) => End::Violation(format!("the cell did not keep to its protocol: {what}")),
        Killed::Mute => End::Violation("the cell closed its channel and went on".into()),
        Killed::Flooded => End::Violation("the cell said more than its limit lets it".into()),
    };
    JobReport { end, usage }
}

/// It ended without a last word.
pub(super) fn died(death: Option<Death>, total: Duration) -> JobReport {
    let end = match death {
        Some(Death::Killed(libc::SIGSYS) | Death::Exited(glovebox_jail::VIOLATION_EXIT)) => {
            End::Violation("a system call was refused by the second wall".into())
        }
        Some(Death::Killed(libc::SIGXCPU)) => End::TimedOut(Timer::Cpu),
        Some(Death::Killed(signal @ (libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGTRAP | libc::SIGFPE))) => {
            End::Violation(format!("the cell crashed with signal {signal}, which the engine never lets a guest do"))
        }
        Some(Death::Killed(libc::SIGABRT)) => {
            End::HostFailed("the cell gave up, most likely for want of memory beside the guest's".into())
        }
        Some(Death::Killed(libc::SIGKILL)) => {
            End::HostFailed("the cell was killed from outside: by a person, or by a host that is out of memory".into())
        }
        Some(Death::Killed(0)) => {
            End::HostFailed("the process that the cell was made by ended, and the cell with it".into())
        }
        Some(Death::Killed(signal)) => End::HostFailed(format!("the cell was ended by signal {signal}")),
        Some(Death::Exited(code)) => End::HostFailed(format!("the cell ended with code {code} and without a report")),
        None => End::HostFailed("the cell is gone and nothing says why".into()),
    };
    ended(end, total)
}

fn ended(end: End, total: Duration) -> JobReport {
    JobReport { end, usage: JobUsage { run: total, ..JobUsage::default() } }
}

/// What a cell that is about to be killed has used, as the kernel counts: its
/// processor time, and the most memory of the process, which is more than the
/// guest's.
pub(super) fn outside(process: &Process) -> JobUsage {
    let read = |name: &str| fs_err::read_to_string(format!("/proc/{}/{name}", process.pid)).unwrap_or_default();
    let nanos = read("schedstat").split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(0);
    let status = read("status");
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    JobUsage {
        cpu: Duration::from_nanos(nanos),
        memory_peak: peak.unwrap_or(0_u64).saturating_mul(1024),
        ..JobUsage::default()
    }
}

/// The clock that the host and its cells share, in nanoseconds.
pub(super) fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
