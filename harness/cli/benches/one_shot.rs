//! The command as a whole process: how long one action takes from start to
//! end, and how much memory a flood of output takes.
//!
//! Prints figures against floors measured in the same run; it never fails
//! because of a number.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement: it prints, starts processes, and should stop loudly"
)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs of each command; the median of so many is steady to a few percent.
const RUNS: usize = 60;

/// How much the flood writes.
const FLOOD: u64 = 1 << 30;

const CEILING: &str = r#"
schema = "glovebox/ceiling/v1"
[install]
filesystem = [{ source = "workspace", access = "read" }]
[install.limits]
wall = "10m"
memory = "512MiB"
output = "4GiB"
storage = "256MiB"
inodes = 1000
"#;

const HOSTILE: &str = r#"
schema = "glovebox/tool/v1"
name = "hostile"
version = "1.0.0"
title = "A flood"
description = "Writes as much as it is told to."
entry = { kind = "command", result = "text" }
input = { type = "object" }
[contract]
schema = "glovebox/contract/v1"
limits = { wall = "5m", memory = "64MiB", output = "2GiB" }
"#;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("a.txt"), "hello world\n").unwrap();
    std::fs::write(at("ceiling.toml"), CEILING).unwrap();
    std::fs::write(at("hostile.toml"), HOSTILE).unwrap();
    let glovebox = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_glovebox"));
        command.arg("--state").arg(at("state")).args(args).current_dir(dir.path());
        command.env("GLOVEBOX_CEILING", at("ceiling.toml")).env("XDG_CONFIG_HOME", at("config"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let one = || glovebox(&["run", "text.count", "--arg", "path=a.txt", "--json"]);
    let floor = || {
        let mut command = Command::new("true");
        command.stdout(Stdio::null());
        command
    };
    // The first run compiles the component; every later one finds it.
    let cold = time(&mut one());

    println!("{:<44}{:>10}{:>10}{:>8}", "one whole process", "p50", "p90", "ratio");
    let base = row("`true`: what any process costs", None, floor);
    row("glovebox --version", Some(base), || glovebox(&["--version"]));
    row("glovebox run text.count, cached component", Some(base), one);
    println!("{:<44}{:>10}", "  the first run of it, compiling", millis(cold));

    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/dist/hostile.wasm");
    let status = glovebox(&["tool", "add", guest.to_str().unwrap(), "--manifest", "hostile.toml"]).status().unwrap();
    assert!(status.success());
    let quiet = peak(&mut glovebox(&["run", "hostile", "--args", r#"{"do":"nothing"}"#]));
    let flood = peak(&mut glovebox(&["run", "hostile", "--args", &format!(r#"{{"do":"stdout","bytes":{FLOOD}}}"#)]));
    println!();
    println!("{:<44}{:>10}{:>10}{:>8}", "peak memory of `run`", "", "MiB", "growth");
    println!("{:<44}{:>10}{:>10}", "no output", "", quiet >> 10);
    println!("{:<44}{:>10}{:>10}{:>8}", "1 GiB of output, kept as an artifact", "", flood >> 10, (flood - quiet) >> 10);
}

/// Times a command over and over; returns and prints its median.
fn row(name: &str, base: Option<Duration>, command: impl Fn() -> Command) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS).map(|_| time(&mut command())).collect();
    times.sort();
    let (p50, p90) = (times[RUNS / 2], times[RUNS * 9 / 10]);
    let ratio = base.map_or_else(String::new, |base| format!("{:.1}", p50.as_secs_f64() / base.as_secs_f64()));
    println!("{name:<44}{:>10}{:>10}{ratio:>8}", millis(p50), millis(p90));
    p50
}

fn time(command: &mut Command) -> Duration {
    let start = Instant::now();
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
    start.elapsed()
}

/// The most memory that a child held, in KiB, as the kernel counts it.
fn peak(command: &mut Command) -> u64 {
    let mut child = command.spawn().unwrap();
    // The high-water mark only grows: the last look before the end has it.
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        most = most.max(line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = child.wait().unwrap();
    assert!(ended.success(), "{command:?}: {ended}");
    most
}

fn millis(span: Duration) -> String {
    format!("{:.1} ms", span.as_secs_f64() * 1e3)
}
