//! Facts about the host, read where the kernel shows them to everybody.

use env_contracts::{ByteSize, Code, Problem};
use glovebox_jail::Layers;
use glovebox_runtime::io_problem;

use super::Line;
use crate::places::Places;

/// Less free space than this is worth a word: one action may write so much.
const LITTLE_SPACE: ByteSize = ByteSize::gib(1);

pub(super) fn facts() -> Vec<Line> {
    let mut lines = Vec::new();
    let name = rustix::system::uname();
    let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    lines.push(Line::ok(
        "system",
        format!("{} {} on {}", word(name.sysname()), word(name.release()), word(name.machine())),
    ));
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let info = rustix::system::sysinfo();
    let memory = ByteSize(info.totalram.saturating_mul(info.mem_unit.into()));
    lines.push(Line::ok("size", format!("{cpus} processors, {} MiB of memory", memory.0 >> 20)));
    lines.push(cgroup());
    lines.extend(layers());
    lines.push(namespaces());
    lines
}

fn read(path: &str) -> Option<String> {
    fs_err::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn cgroup() -> Line {
    match read("/sys/fs/cgroup/cgroup.controllers") {
        Some(controllers) => Line::ok("cgroup", format!("version 2, controllers: {controllers}")),
        None => Line::not_here("cgroup", "version 2 is not mounted; actions here don't need it"),
    }
}

/// What a process of ours is shut in with. Without it no component is compiled,
/// so nothing new can run.
fn layers() -> Vec<Line> {
    let layers = Layers::probe();
    let missing = layers.missing();
    let line = |layer: &str, there: String| {
        let missing = missing.iter().find(|missing| missing.layer == layer);
        Line::required(
            layer,
            missing.map_or(Ok(there), |missing| {
                Err(Problem::new(Code::IsolationUnavailable, missing.reason.clone()).with_help(missing.remedy))
            }),
        )
    };
    let abi = layers.landlock.unwrap_or_default();
    let scopes = if layers.scopes() { "signals, abstract sockets" } else { "not signals (the filter refuses them)" };
    vec![
        line("Landlock", format!("ABI {abi}: files, TCP, {scopes}")),
        line("seccomp", "filters system calls and reports forbidden ones".into()),
    ]
}

fn namespaces() -> Line {
    let most = read("/proc/sys/user/max_user_namespaces").and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let forbidden = read("/proc/sys/kernel/unprivileged_userns_clone").is_some_and(|text| text == "0");
    if most > 0 && !forbidden {
        Line::ok("user namespaces", format!("up to {most}"))
    } else {
        Line::not_here("user namespaces", "forbidden; actions here don't need them")
    }
}

/// Whether the state folder takes files, and how much room there is.
pub(super) fn state(places: &Places) -> Result<String, Problem> {
    places.make()?;
    let shown = places.state.display();
    let failed = |error: std::io::Error| {
        io_problem(&format!("cannot write in the state folder `{shown}`"), Code::StateUnavailable, &error)
    };
    tempfile::tempfile_in(&places.state).map_err(failed)?;
    let about = rustix::fs::statvfs(&places.state).map_err(|errno| failed(errno.into()))?;
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    if free < LITTLE_SPACE.0 {
        let message = format!("`{shown}` has {} MiB free; one action may write up to {LITTLE_SPACE}", free >> 20);
        // Little is not none: actions run until it is used up.
        return Ok(message);
    }
    Ok(format!("`{shown}`, {} MiB free", free >> 20))
}
