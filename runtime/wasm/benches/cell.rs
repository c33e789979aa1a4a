//! Cells against execution in this process and against `bwrap … true`, in the
//! same run.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints a table and may end with a panic")]

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use glovebox_runtime::job::{End, JobReport, UngrantedImports};
use glovebox_wasm::{Artefact, Cells, Engine, EngineConfig, Errand, Executor, Timeline};

mod common;

use common::{BARE, Case, Deaf, FOLDERS, Work, artefact, cache, helper, percentile};

/// Calls of each latency figure.
const CALLS: usize = 2_000;
/// Calls that come before, so that the component counts as one that is used
/// again and again.
const WARM_UP: usize = 100;
/// Between two calls, so that the next cell is idle before it is wanted:
/// latency, not throughput.
const PAUSE: Duration = Duration::from_millis(1);
/// How long each throughput figure is measured.
const SUSTAINED: Duration = Duration::from_secs(3);
/// Starts of a process, or of all of the second wall.
const STARTS: usize = 50;

fn main() {
    // `cargo test --benches` only wants to know that it links.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("{:<46} {:>10} {:>10} {:>10}   budget", "one call, from the request to the result", "p50", "p90", "p99");
    row("`true`", &mut started(&mut program("true")), "");
    let mut bwrap = program("bwrap");
    bwrap.args(["--unshare-all", "--ro-bind", "/", "/", "true"]);
    if bwrap.stdin(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        row("`bwrap --unshare-all … true`", &mut started(&mut bwrap), "");
    } else {
        println!("bwrap can't be started here; the Debian package bubblewrap brings it");
    }
    for case in [&BARE, &FOLDERS] {
        let side = Side::new(case);
        // As a task, like those of a server: it is woken on the thread that
        // hears from the cell.
        let measured = runtime.spawn(async move {
            side.latency(case.title).await;
            side.cold().await;
            side.throughput().await;
            side
        });
        let side = runtime.block_on(measured).unwrap();
        println!("{:<46} {}", "  private memory of an idle cell, each of four", idle_memory());
        drop(side);
    }
}

fn row(title: &str, times: &mut [Duration], budget: &str) {
    let at = |times: &mut [Duration], place| format!("{:.0} us", percentile(times, place).as_secs_f64() * 1e6);
    let (p50, p90, p99) = (at(times, 50), at(times, 90), at(times, 99));
    println!("{title:<46} {p50:>10} {p90:>10} {p99:>10}   {budget}");
}

#[expect(clippy::disallowed_methods, reason = "the peers are processes")]
fn program(name: &str) -> Command {
    Command::new(name)
}

/// A whole process, again and again.
fn started(command: &mut Command) -> Vec<Duration> {
    let once = |_| {
        let start = Instant::now();
        assert!(command.status().unwrap().success());
        start.elapsed()
    };
    (0..STARTS).map(once).collect()
}

struct Side {
    executor: Executor,
    artefact: Arc<Artefact>,
    cells: Cells,
    work: Work,
    _folder: tempfile::TempDir,
}

impl Side {
    fn new(case: &Case) -> Self {
        let engine = Engine::new(EngineConfig { slots: 4, ..EngineConfig::default() }).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let cache = Arc::new(cache(folder.path(), &engine));
        let artefact = artefact(case, &cache);
        let work = Work::new(case, artefact.component());
        let cells = Cells::new(helper()).unwrap().warmed_by(Arc::clone(&cache));
        Self { executor: Executor::new(engine).unwrap(), artefact: Arc::new(artefact), cells, work, _folder: folder }
    }

    async fn in_cell(&self, cells: &Cells) -> (JobReport, Timeline) {
        let errand = Errand::Job(&self.work.job);
        let (fds, sink) = (self.work.descriptors(), Box::new(Deaf));
        let never = std::future::pending();
        let (report, timeline) = cells.run(&self.artefact, UngrantedImports::Refuse, errand, fds, sink, never).await;
        assert!(matches!(report.end, End::Returned { .. }), "{report:?}");
        (report, timeline)
    }

    async fn latency(&self, title: &str) {
        let loaded = self.executor.load(&self.artefact, UngrantedImports::Refuse).unwrap();
        let mut times = Vec::new();
        for _ in 0..CALLS {
            let start = Instant::now();
            let (fds, sink) = (self.work.descriptors(), Box::new(Deaf));
            self.executor.run(&loaded, &self.work.job, fds, sink, std::future::pending()).await;
            times.push(start.elapsed());
        }
        row(&format!("in process, {title}"), &mut times, "");

        // Cells that are there, and no more: what a component gets that is not
        // used all the time.
        let plain = Cells::new(helper()).unwrap();
        self.in_cells(&plain, &format!("in a warm cell, {title}"), "p50 <= 500 us").await;
        drop(plain);
        let steps = self.in_cells(&self.cells, &format!("in a hot cell, {title}"), "p50 <= 300 us").await;
        for (name, mut times) in steps {
            row(&format!("  {name}"), &mut times, "");
        }
    }

    /// One row for these cells; where the time went.
    async fn in_cells(&self, cells: &Cells, title: &str, budget: &str) -> BTreeMap<&'static str, Vec<Duration>> {
        for _ in 0..WARM_UP {
            self.in_cell(cells).await;
        }
        let (mut times, mut steps) = (Vec::new(), BTreeMap::<&str, Vec<Duration>>::new());
        for _ in 0..CALLS {
            tokio::time::sleep(PAUSE).await;
            let start = Instant::now();
            let (report, at) = self.in_cell(cells).await;
            let whole = start.elapsed();
            times.push(whole);
            let (taken, usage) = (whole.saturating_sub(at.answered), report.usage);
            let mut step = |name, time| steps.entry(name).or_default().push(time);
            step("1 a cell taken, the job handed over", taken + at.received);
            step("2 Landlock, limits, stricter filter", at.confined.saturating_sub(at.received));
            step("3 instantiated", at.instantiated.saturating_sub(at.confined));
            step("4 the call itself", usage.run);
            step("5 the result back", at.answered.saturating_sub(at.instantiated + usage.run));
        }
        row(title, &mut times, budget);
        steps
    }

    /// Everything from nothing: zygote, template, cell.
    async fn cold(&self) {
        let mut times = Vec::new();
        for _ in 0..STARTS {
            let cells = Cells::new(helper()).unwrap();
            let start = Instant::now();
            self.in_cell(&cells).await;
            times.push(start.elapsed());
        }
        row("  the first of all: zygote, template, cell", &mut times, "");
        let mut times = Vec::new();
        let cells = Cells::new(helper()).unwrap();
        self.in_cell(&cells).await;
        for _ in 0..STARTS {
            cells.retire();
            let start = Instant::now();
            self.in_cell(&cells).await;
            times.push(start.elapsed());
        }
        row("  a component without a template: template, cell", &mut times, "");
    }

    async fn throughput(&self) {
        for at_once in [1, 2, 4, 8] {
            let calls = AtomicU64::new(0);
            let start = Instant::now();
            let one = || async {
                while start.elapsed() < SUSTAINED {
                    self.in_cell(&self.cells).await;
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            };
            futures_util::future::join_all((0..at_once).map(|_| one())).await;
            let rate = calls.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
            println!("{:<46} {rate:>8.0}/s   >= 2 000/s", format!("  sustained with refill, {at_once} at once"));
        }
    }
}

/// Private memory of the processes that this one's helpers have made and that
/// wait for a claim, as the kernel counts it.
fn idle_memory() -> String {
    std::thread::sleep(Duration::from_millis(200));
    let mut parents = BTreeMap::new();
    for entry in fs_err::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse::<u32>().ok());
        parents.insert(pid, parent.unwrap_or(0));
    }
    // This process, its zygote, a template, a cell.
    let above = |pid: &u32| parents.get(pid).copied().unwrap_or(0);
    let cells = parents.keys().filter(|pid| above(&above(&above(pid))) == std::process::id());
    let private = |pid: &u32| -> Option<u64> {
        let text = fs_err::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let kib = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
        Some(text.lines().filter(|line| line.starts_with("Private_")).filter_map(kib).sum())
    };
    let found: Vec<u64> = cells.filter_map(private).collect();
    if found.is_empty() {
        return "can't be read here (root can)".into();
    }
    let mean = found.iter().sum::<u64>() / found.len() as u64;
    format!("{mean} KiB of {} cells   <= 512 KiB", found.len())
}
