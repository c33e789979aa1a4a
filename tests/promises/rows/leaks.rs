//! Nothing stays behind: many actions, good and hostile, in one process.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use glovebox_runtime::Stop;
use serde_json::{Value, json};

use super::{Row, row};
use crate::act::Repeated;
use crate::guests::Guest;
use crate::house::{House, TOKIO};

/// Actions that are counted.
const ACTIONS: usize = 10_000;

/// Actions that are counted where each has a container of its own.
const IN_CONTAINERS: usize = 100;

/// Actions before that: pools, caches and the allocator are then as large as
/// they get.
const WARM_UP: usize = 1_000;

/// Actions at one time.
const AT_ONCE: usize = 4;

/// What the memory in use may differ by, in bytes: 2 KiB lost with each action
/// would be more. The allocator keeps some of what it was given back.
const RESIDENT: u64 = 20 << 20;

/// What the address space may differ by, in bytes: the allocator's arenas come
/// in steps of 64 MiB, 10 000 leaked mappings of a page or a stack in far more.
const MAPPED: u64 = 256 << 20;

/// Processes that a backend keeps ready for the next action, more or fewer of
/// them at one moment than at another.
const READY: usize = 16;

/// Descriptors of such a process at most.
const HELD: usize = 8;

/// How long threads and processes that end may take for it.
const SETTLE: Duration = Duration::from_secs(10);

pub(super) const ROWS: &[Row] = &[
    row("10 000 actions, good and hostile, leave no descriptor, thread, process, memory or file", nothing_is_left)
        .of_components("a container takes its time: a hundred, in the next row"),
    row("a hundred actions, good and hostile, leave no container, descriptor, thread, process or file", none_is_left)
        .of_images("ten thousand, in the row above"),
];

/// What an action may leave behind.
struct Facts {
    descriptors: usize,
    threads: usize,
    /// Processes below this one, at any depth, and what they hold.
    processes: usize,
    held: usize,
    resident: u64,
    mapped: u64,
    files: BTreeSet<PathBuf>,
}

impl Facts {
    fn now(house: &House) -> Self {
        let status = fs_err::read_to_string("/proc/self/status").unwrap();
        let kib = |key: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        let threads: Vec<_> = fs_err::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path()).collect();
        // A thread that has ended meanwhile had none.
        let descriptors = |pid: &u32| fs_err::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        let below = below(std::process::id());
        let mut files = BTreeSet::new();
        list(&house.path("state"), &mut files);
        Self {
            descriptors: own_descriptors(),
            processes: below.len(),
            held: below.iter().map(descriptors).sum(),
            threads: threads.len(),
            resident: kib("VmRSS:") << 10,
            mapped: kib("VmSize:") << 10,
            files,
        }
    }

    fn is_no_more_than(&self, before: &Self) -> bool {
        self.descriptors <= before.descriptors
            && self.threads <= before.threads
            && self.processes <= before.processes + READY
            && self.held <= before.held + READY * HELD
            && self.resident <= before.resident + RESIDENT
            && self.mapped <= before.mapped + MAPPED
            && self.files == before.files
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { descriptors, threads, processes, held, resident, mapped, files } = self;
        let files = files.len();
        write!(
            f,
            "{descriptors} descriptors, {threads} threads, {processes} processes with {held} descriptors, {resident} bytes resident, {mapped} \
             mapped, {files} files"
        )
    }
}

/// The descriptors of this process, without those that it keeps for the next
/// action, as many as were ever needed at once: of the store's file, to read
/// with, and of the locks of `limits.concurrency`.
fn own_descriptors() -> usize {
    let is_kept = |link: PathBuf| {
        link.file_name().is_some_and(|name| name.to_string_lossy().starts_with("store.db"))
            || link.parent().is_some_and(|folder| folder.ends_with("state/slots"))
    };
    let all = fs_err::read_dir("/proc/self/fd").unwrap().flatten();
    all.filter(|fd| !fs_err::read_link(fd.path()).is_ok_and(is_kept)).count()
}

/// All processes below one.
fn below(pid: u32) -> Vec<u32> {
    let tasks = fs_err::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lines = tasks.map(|task| fs_err::read_to_string(task.path().join("children")).unwrap_or_default());
    let children: Vec<u32> =
        lines.flat_map(|line| line.split_whitespace().flat_map(str::parse).collect::<Vec<_>>()).collect();
    children.iter().flat_map(|&child| std::iter::once(child).chain(below(child))).collect()
}

/// Every path below a folder. The locks of `limits.concurrency` are left out:
/// there is one for each place that was ever taken, and `gc` takes them away.
fn list(folder: &Path, into: &mut BTreeSet<PathBuf>) {
    for entry in fs_err::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.ends_with("state/slots") {
            continue;
        }
        if path.is_dir() {
            list(&path, into);
        }
        into.insert(path);
    }
}

fn nothing_is_left(house: &House) {
    house.file("a.txt", "one two\n");
    let acts = acts(house);
    repeat(house, &acts, WARM_UP, ACTIONS);
}

/// The same with what ends in containers, of which none is there afterwards.
fn none_is_left(house: &House) {
    house.file("a.txt", "one two\n");
    let acts = acts_in_containers(house);
    repeat(house, &acts, acts.len() * 2, IN_CONTAINERS);
    let until = std::time::Instant::now() + SETTLE;
    loop {
        let left = TOKIO.block_on(crate::engine::containers_of(house.cache()));
        if left.is_empty() {
            break;
        }
        assert!(std::time::Instant::now() < until, "containers were left behind: {left:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn repeat(house: &House, acts: &[(&'static str, Repeated<'_>)], warm_up: usize, actions: usize) {
    run(acts, warm_up);
    let before = settled(house, |_| true);
    run(acts, actions);
    let after = settled(house, |facts| facts.is_no_more_than(&before));
    let new: Vec<_> = after.files.difference(&before.files).collect();
    assert!(after.is_no_more_than(&before), "before: {before}\nafter: {after}\nnew files: {new:?}");
    house.still_works();
}

/// The facts once they are as wished, or when time is up.
fn settled(house: &House, wished: impl Fn(&Facts) -> bool) -> Facts {
    let until = std::time::Instant::now() + SETTLE;
    // Threads of the pool end when they had nothing to do for a while.
    std::thread::sleep(crate::house::KEEP_ALIVE * 3);
    loop {
        let facts = Facts::now(house);
        if wished(&facts) || std::time::Instant::now() > until {
            return facts;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Fast ones, of every kind of end.
fn acts(house: &House) -> Vec<(&'static str, Repeated<'_>)> {
    let command = |told: Value| house.command(&told).mount("workspace read").mount("outputs").mount("scratch");
    vec![
        ("completed(0)", command(json!({ "do": "nothing" })).repeated()),
        ("completed", house.tool(&json!({ "do": "echo" })).repeated()),
        ("completed", house.builtin("text.count", &json!({ "path": "a.txt" })).repeated()),
        ("completed(0)", command(json!({ "do": "read" })).repeated()),
        ("completed(0)", command(json!({ "do": "write-file", "path": "/tmp/x", "bytes": 4096 })).repeated()),
        ("completed(7)", command(json!({ "do": "exit", "code": 7 })).repeated()),
        ("completed(trap)", command(json!({ "do": "unreachable" })).repeated()),
        ("completed(trap)", command(json!({ "do": "panic" })).repeated()),
        ("completed(result)", house.tool(&json!({ "do": "invalid-json" })).repeated()),
        ("completed(internal)", house.tool(&json!({ "do": "error" })).repeated()),
        ("limit-hit(memory)", command(json!({ "do": "nothing" })).limit("memory = \"512KiB\"").repeated()),
        ("limit-hit(output)", command(json!({ "do": "stdout" })).text().limit("output = \"1000B\"").repeated()),
        ("limit-hit(handles)", command(json!({ "do": "pollables" })).repeated()),
        ("limit-hit(stack)", house.act(&Guest::Wat("stack"), &json!({})).repeated()),
        ("timed-out(wall)", command(json!({ "do": "sleep" })).limit("wall = \"1ms\"").repeated()),
        ("schema-rejected", command(json!({})).bytes("{").repeated()),
        ("contract-unsatisfied", house.act(&Guest::Wat("imports-sockets"), &json!({})).repeated()),
        ("contract-unsatisfied", house.builtin("text.count", &json!({ "path": "../x" })).repeated()),
        ("", command(json!({ "do": "sleep" })).repeated()),
    ]
}

/// Every kind of end of a container.
fn acts_in_containers(house: &House) -> Vec<(&'static str, Repeated<'_>)> {
    let command = |told: Value| house.command(&told).mount("workspace write").mount("outputs").mount("scratch");
    vec![
        ("completed(0)", command(json!({ "do": "nothing" })).repeated()),
        ("completed(0)", command(json!({ "do": "write-file", "path": "/workspace/b.txt", "bytes": 4096 })).repeated()),
        ("completed(7)", command(json!({ "do": "exit", "code": 7 })).repeated()),
        ("completed(trap)", command(json!({ "do": "unreachable" })).repeated()),
        ("completed(0)", command(json!({ "do": "leave-running" })).repeated()),
        ("limit-hit(memory)", command(json!({ "do": "allocate" })).limit("memory = \"16MiB\"").repeated()),
        ("limit-hit(output)", command(json!({ "do": "stdout" })).text().limit("output = \"1000B\"").repeated()),
        ("timed-out(wall)", command(json!({ "do": "sleep" })).limit("wall = \"1ms\"").repeated()),
        ("timed-out(cpu)", command(json!({ "do": "loop" })).limit("cpu = \"1ms\"").repeated()),
        ("schema-rejected", command(json!({})).bytes("{").repeated()),
        ("", command(json!({ "do": "sleep" })).repeated()),
    ]
}

fn run(acts: &[(&'static str, Repeated<'_>)], actions: usize) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= actions {
                        break;
                    }
                    let (end, act) = &acts[at % acts.len()];
                    TOKIO.block_on(one(end, act));
                }
            });
        }
    });
}

async fn one(end: &str, act: &Repeated<'_>) {
    let stop = Stop::default();
    if end.is_empty() {
        // Given up by whoever waits for it.
        let gone = Box::pin(tokio::time::timeout(Duration::from_millis(2), act.run(&stop))).await;
        assert!(gone.is_err(), "{gone:?}");
        return;
    }
    let seen = act.run(&stop).await.unwrap();
    assert_eq!(seen.outcome.to_string(), end, "{:?}", seen.outcome);
}
