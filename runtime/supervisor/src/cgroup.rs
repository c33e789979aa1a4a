//! What the control group of this container says. Its files are the kernel's:
//! nothing in the container can write them. Both versions of them are read.

use glovebox_supervisor::Limits;

/// What a limit of version 1 has where there is none: any number as large.
const UNLIMITED: u64 = 1 << 62;

/// What was used so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    pub(crate) memory_peak: u64,
    pub(crate) oom_kills: u64,
    pub(crate) pids_refused: u64,
}

/// What the container is held to.
pub(crate) fn limits() -> Limits {
    let memory = number("memory/memory.limit_in_bytes").or_else(|| number("memory.max"));
    let pids = number("pids/pids.max").or_else(|| number("pids.max"));
    let version_1 = || {
        let quota = number("cpu/cpu.cfs_quota_us").or_else(|| number("cpu,cpuacct/cpu.cfs_quota_us"))?;
        let period = number("cpu/cpu.cfs_period_us").or_else(|| number("cpu,cpuacct/cpu.cfs_period_us"))?;
        (quota * 1000).checked_div(period)
    };
    let version_2 = || {
        let text = read("cpu.max")?;
        let (quota, period) = text.trim().split_once(' ')?;
        (quota.parse::<u64>().ok()? * 1000).checked_div(period.parse().ok()?)
    };
    Limits {
        memory: memory.filter(|bytes| *bytes < UNLIMITED),
        pids: pids.filter(|count| *count < UNLIMITED),
        cpu_millis: version_1().or_else(version_2),
        cpu_known: cpu_us().is_some(),
    }
}

/// What was used so far.
pub(crate) fn used() -> Used {
    let peak = number("memory/memory.max_usage_in_bytes").or_else(|| number("memory.peak"));
    let kills = field("memory/memory.oom_control", "oom_kill").or_else(|| field("memory.events", "oom_kill"));
    let refused = field("pids/pids.events", "max").or_else(|| field("pids.events", "max"));
    Used { memory_peak: peak.unwrap_or(0), oom_kills: kills.unwrap_or(0), pids_refused: refused.unwrap_or(0) }
}

/// Processor time of all in the container, in microseconds.
pub(crate) fn cpu_us() -> Option<u64> {
    number("cpuacct/cpuacct.usage")
        .or_else(|| number("cpu,cpuacct/cpuacct.usage"))
        .map(|nanos| nanos / 1000)
        .or_else(|| field("cpu.stat", "usage_usec"))
}

fn read(file: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "nobody is told: what can't be read is not known")]
    std::fs::read_to_string(format!("/sys/fs/cgroup/{file}")).ok()
}

/// A file that is one number. What is none (`max`, `-1`) is no limit.
fn number(file: &str) -> Option<u64> {
    read(file)?.trim().parse().ok()
}

/// A line of a file that is names with numbers.
fn field(file: &str, name: &str) -> Option<u64> {
    let text = read(file)?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}
