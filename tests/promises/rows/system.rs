//! What a program asks of the kernel, beyond files and time: components make no
//! system calls, so none of it is theirs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use glovebox_runtime::Stop;
use serde_json::{Value, json};

use super::{Row, row};
use crate::engine::{OPEN, PROGRAM, ROOTS, SETUID};
use crate::house::House;

const NO_CALLS: &str = "a component makes no system calls";
const NO_PROCESSES: &str = "a component starts no processes";

pub(super) const ROWS: &[Row] = &[
    row("a tool is nobody, with no capability and no new privilege, and its system calls are filtered", standing)
        .of_images(NO_CALLS),
    row("a setuid program of root's makes nobody root", setuid).of_images(NO_CALLS),
    row("mounts, namespaces, tracing, modules, keys and all else that reaches into the kernel is refused", attempts)
        .of_images(NO_CALLS),
    row("the process that watches a tool can't be read, traced or ended by it", init).of_images(NO_CALLS),
    row("a tool that takes from the process that watches it what it can evades no limit", cripple).of_images(NO_CALLS),
    row("a tool sees its own processes, and none of this host", processes).of_images(NO_PROCESSES),
    row("no more processes run than `limits.pids`", storm).of_images(NO_PROCESSES),
    row("what a tool leaves running ends with it", left_running).of_images(NO_PROCESSES),
    row("an image can't be written, nor what in it is others', nor the kernel's settings", image).of_images(NO_CALLS),
    row("what the kernel tells of the whole machine is masked", masked).of_images(NO_CALLS),
    row("there are the devices that programs need, and no other can be made", devices).of_images(NO_CALLS),
];

fn standing(house: &House) {
    let seen = house.command(&json!({ "do": "standing" })).run().succeeds();
    nobody(seen.data());
    // Neither are they who start it again with a name.
    let entry = format!("kind = \"command\", argv = [\"{PROGRAM}\", \"root\"], env = {{ USER = \"root\" }}");
    nobody(house.command(&json!({ "do": "standing" })).entry(&entry).run().succeeds().data());
}

fn nobody(standing: &Value) {
    let line = |key: &str| standing[key].as_str().unwrap_or_else(|| panic!("no `{key}`: {standing:#}"));
    for key in ["Uid", "Gid"] {
        assert_eq!(line(key), "65532 65532 65532 65532", "{standing:#}");
    }
    for key in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(line(key), "0000000000000000", "{key}: {standing:#}");
    }
    assert!(["", "65532"].contains(&line("Groups")), "its own group at the most: {standing:#}");
    assert_eq!((line("NoNewPrivs"), line("Seccomp")), ("1", "2"), "{standing:#}");
    let core = line("limits").lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert!(core.contains(" 0 "), "no memory is left on the disk: {core}");
}

fn setuid(house: &House) {
    let seen = house.command(&json!({ "do": "setuid", "program": SETUID })).run().succeeds();
    nobody(seen.data());
    // As the tool itself.
    let entry = format!("kind = \"command\", argv = [\"{SETUID}\"]");
    nobody(house.command(&json!({ "do": "standing" })).entry(&entry).run().succeeds().data());
}

/// What of the attempts on a cell a container lets pass, and why that is so.
const LET: &[(&str, &str)] = &[
    ("list-root", "its root is the image"),
    ("read-own-memory-map", "a process may read of itself"),
    ("write-own-memory-file", "a process may write to itself"),
    ("write-outside", "outside is its home"),
    ("change-mode", "of its own files"),
    ("change-owner", "of its own files, to itself"),
    ("make-device", "asks for a pipe"),
    ("watch-files", "programs wait for files"),
    ("connect-tcp", "sockets are its own: there is no network"),
    ("listen-tcp", "as above"),
    ("send-udp", "as above"),
    ("connect-unix", "as above"),
    ("talk-to-kernel", "programs ask for their addresses"),
    ("make-socketpair", "programs talk to each other"),
    ("send-descriptor", "programs talk to each other"),
    ("receive-descriptor", "programs talk to each other"),
    ("signal-by-descriptor", "programs are told of bytes"),
    ("execute", "programs start programs"),
    ("fork", "programs start programs"),
    ("start-thread", "programs have threads"),
    ("map-executable", "interpreters compile"),
    ("make-executable", "interpreters compile"),
    ("make-executable-by-key", "interpreters compile"),
    ("share-memory", "programs share memory among themselves"),
    ("grow-memory-by-itself", "memory is limited by the control group"),
    ("memory-file", "counted as memory"),
    ("limit-parent", "has a row of its own"),
    ("signal-parent", "asks, and sends nothing: what is sent has a row of its own"),
    ("signal-thread-of-parent", "as above"),
    ("watch-parent", "waits for its end"),
    ("type-into-terminal", "there is no terminal"),
    ("replace-reporting", "signals are its own"),
    ("add-filter", "programs shut themselves in"),
    ("name-process", "of itself"),
];

/// Every attempt of `runtime/jail` is made, so a new one is made here too.
fn attempts(house: &House) {
    let seen = house.command(&json!({ "do": "attempts" })).run().succeeds();
    let all = seen.data().as_object().unwrap();
    assert!(all.len() > 50, "{seen:?}");
    let let_pass = |name: &str| LET.iter().any(|(own, _)| *own == name);
    // Foreign kinds of calls end a process without a word.
    let is_refused =
        |name: &str, said: &Value| said["refused"].is_string() || name.starts_with("call-") && said["done"].is_null();
    let passed: Vec<_> = all.iter().filter(|(name, said)| !is_refused(name, said) && !let_pass(name)).collect();
    assert!(passed.is_empty(), "{passed:?}");
    for (name, why) in LET {
        assert!(all.contains_key(*name) && why.len() > 4, "{name}");
    }
}

fn init(house: &House) {
    let seen = house.command(&json!({ "do": "reach-init" })).run().succeeds();
    assert_eq!((&seen.data()["reached"], &seen.data()["alive"]), (&json!([]), &json!(true)), "{seen:?}");
}

/// The kernel lets it, because both have the same user. What comes of it is
/// that its own container ends, which is no limit evaded.
fn cripple(house: &House) {
    for limit in ["files", "file size", "processes", "signals", "memory"] {
        let ended = |act: crate::act::Act<'_>, well: &str| {
            let seen = act.limit("wall = \"8s\"").run();
            let end = seen.outcome.to_string();
            assert!([well, "unknown(lost)"].contains(&end.as_str()), "{limit}: {seen:?}");
        };
        let told = json!({ "do": "cripple-init", "limits": [limit] });
        ended(house.command(&told).text().limit("cpu = \"500ms\""), "timed-out(cpu)");
        let told = json!({ "do": "cripple-init", "limits": [limit], "path": "/workspace/flood" });
        let act = house.command(&told).text().mount("workspace write").limit("storage = \"1MiB\"");
        ended(act.limit("memory = \"512MiB\""), "limit-hit(storage)");
        assert!(!house.workspace().join("flood").exists(), "{limit}");
    }
}

fn processes(house: &House) {
    let seen = house.command(&json!({ "do": "processes" })).run().succeeds();
    assert_eq!(seen.data()["all"], json!([1, seen.number("own")]), "{seen:?}");
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    assert_ne!(seen.data()["hostname"], json!(host), "{seen:?}");
}

fn storm(house: &House) {
    let seen = house.command(&json!({ "do": "storm" })).limit("pids = 20").run().succeeds();
    let started = seen.number("started");
    assert!(seen.data()["refused"].is_string() && (10..20).contains(&started), "{seen:?}");
}

fn left_running(house: &House) {
    let began = std::time::Instant::now();
    let mark = house.path("").file_name().unwrap().to_string_lossy().into_owned();
    // A host sees what runs in its containers.
    let marked = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = all.map(|entry| fs_err::read(entry.path().join("cmdline")).unwrap_or_default());
        lines.filter(|line| line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())).count()
    };
    let told = json!({ "do": "leave-running", "count": 5, "mark": mark });
    let seen = house.command(&told).run().succeeds();
    assert_eq!(seen.number("left"), 5, "{seen:?}");
    assert!(began.elapsed().as_secs() < 30, "it was waited for");
    assert_eq!(marked(), 0, "what it started goes on");
    // They were there: who hangs with them is seen to have them.
    let (stop, seen_running) = (Stop::default(), AtomicUsize::new(0));
    let hang = json!({ "do": "leave-running", "count": 5, "mark": mark, "hang": true });
    std::thread::scope(|scope| {
        let act = house.command(&hang).stopped_by(&stop);
        let running = scope.spawn(|| act.submit().unwrap());
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while seen_running.load(Ordering::Relaxed) < 10 && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
            seen_running.fetch_max(marked(), Ordering::Relaxed);
        }
        stop.request();
        running.join().unwrap();
    });
    assert!(seen_running.into_inner() >= 10, "this row sees nothing");
    assert_eq!(marked(), 0, "what it started goes on");
}

fn image(house: &House) {
    let own = format!("{OPEN}/file");
    let new = format!("{OPEN}/new");
    let paths = [
        own.as_str(),
        new.as_str(),
        PROGRAM,
        SETUID,
        ROOTS,
        "/new",
        "/etc/hosts",
        "/etc/resolv.conf",
        "/etc/passwd",
        "/.glovebox-supervisor",
        "/dev/new",
        "/proc/sys/kernel/panic",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sysrq-trigger",
        "/sys/kernel/uevent_helper",
        "/sys/fs/cgroup/new",
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory.max",
        "/proc/1/oom_score_adj",
    ];
    let seen = house.command(&json!({ "do": "write", "paths": paths, "readable": [ROOTS] })).run().succeeds();
    assert_eq!((&seen.data()["written"], &seen.data()["read"]), (&json!([]), &json!({})), "{seen:?}");
    // What everybody may write is refused as a whole.
    for path in [&own, &new] {
        assert_eq!(seen.data()["refusals"][path.as_str()], "ReadOnlyFilesystem", "{seen:?}");
    }
    assert_eq!(seen.data()["refusals"][ROOTS], "PermissionDenied", "{seen:?}");
}

fn masked(house: &House) {
    let readable = [
        "/proc/kcore",
        "/proc/keys",
        "/proc/timer_list",
        "/proc/kmsg",
        "/dev/kmsg",
        "/proc/sched_debug",
        "/proc/vmallocinfo",
        "/proc/kpagecount",
        "/proc/slabinfo",
        "/sys/firmware/acpi/tables/DSDT",
        "/sys/kernel/debug/sched/debug",
        "/sys/kernel/security/lsm",
    ];
    let seen = house.command(&json!({ "do": "write", "readable": readable })).run().succeeds();
    assert_eq!(seen.data()["read"], json!({}), "{seen:?}");
}

fn devices(house: &House) {
    let seen = house.command(&json!({ "do": "devices" })).run().succeeds();
    let needed = ["full", "null", "ptmx", "random", "tty", "urandom", "zero"];
    let there = seen.data()["characters"].as_array().unwrap();
    assert!(there.iter().all(|name| needed.contains(&name.as_str().unwrap())), "{seen:?}");
    assert_eq!(seen.data()["blocks"], json!([]), "{seen:?}");
    let told = json!({ "do": "plant", "folder": "/tmp" });
    let seen = house.command(&told).mount("scratch").run().succeeds();
    assert_eq!((&seen.data()["planted"], seen.number("devices")), (&json!(true), 0), "{seen:?}");
}
