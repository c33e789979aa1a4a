//! Containers, new and standing, beside what the engine's own client needs for
//! the same, in the same run.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints a table and may end with a panic")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[path = "../tests/all/ground.rs"]
#[expect(dead_code, reason = "tests ask more of it")]
mod ground;
#[path = "../tests/all/tar.rs"]
mod tar;

use ground::{Ground, until};

/// Rounds of what takes long; each round does every variant once, so that a busy
/// moment is everybody's.
const ROUNDS: usize = 30;
/// Rounds of what takes milliseconds.
const WARM_ROUNDS: usize = 100;
/// Actions at one time.
const AT_ONCE: usize = 50;
/// What is said, and what is carried in and out.
const FLOOD: u64 = 1 << 30;
const FILE: u64 = 2 << 30;

const SMALL: &str =
    "[limits]\nwall = \"60s\"\nmemory = \"256MiB\"\npids = 40\noutput = \"1MiB\"\nstorage = \"8MiB\"\ninodes = 200\n";

fn main() {
    // `cargo test --benches` only wants to know that it links.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("{:<52} {:>10} {:>10} {:>10}   budget", "", "p50", "p90", "p99");
    // Only some of them, where they are named.
    let named: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let benches: [Named; 5] = [("cold", cold), ("warm", warm), ("many", many), ("flood", flood), ("files", files)];
    for (name, bench) in benches {
        if named.is_empty() || named.iter().any(|wanted| wanted == name) {
            runtime.block_on(bench());
        }
    }
}

/// One of them, by its name.
type Named = (&'static str, fn() -> Bench);
type Bench = std::pin::Pin<Box<dyn Future<Output = ()>>>;

/// A new container for each command, and the same by the engine's client.
fn cold() -> Bench {
    Box::pin(async {
        let ground = Ground::new().await;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let start = Instant::now();
            ground.act("true").contract(SMALL).done().await;
            ours.push(start.elapsed());
            theirs.push(timed(&[
                "run",
                "--rm",
                "--network=none",
                "--ipc=none",
                "--read-only",
                "--user=65532:65532",
                "--cap-drop=ALL",
                "--security-opt=no-new-privileges",
                "--log-driver=none",
                "--memory=256m",
                "--memory-swap=256m",
                "--pids-limit=41",
                "--tmpfs=/tmp:size=8m",
                "--tmpfs=/dev/shm:size=8m",
                IMAGE,
                "sh",
                "-c",
                "true",
            ]));
        }
        let (floor, p50) = (percentile(&mut theirs, 50), percentile(&mut ours, 50));
        row("`docker run` with the same flags", &mut theirs, "");
        row("a new container, `sh -c true`", &mut ours, &format!("{:.2} x, <= 1.15 x", ratio(p50, floor)));
    })
}

/// The tests' image.
const IMAGE: &str = "glovebox-test/busybox:1";

/// Containers that stand, and `docker exec` into one that does.
fn warm() -> Bench {
    Box::pin(async {
        let ground = Ground::warm(4).await;
        let standing = "glovebox-bench";
        timed(&["run", "--detach", "--rm", "--name", standing, "--network=none", IMAGE, "sleep", "600"]);
        ground.act("true").contract(SMALL).done().await;
        let (mut ours, mut whole, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..WARM_ROUNDS {
            // Latency, not how fast containers are made.
            until("some wait", async || ground.containers().await.len() >= 2).await;
            tokio::time::sleep(Duration::from_millis(400)).await;
            let start = Instant::now();
            let came = ground.act("true").contract(SMALL).done().await;
            whole.push(start.elapsed());
            ours.push(came.usage.setup + came.usage.run);
            theirs.push(timed(&["exec", standing, "sh", "-c", "true"]));
        }
        timed(&["kill", standing]);
        row("`docker exec` into one that stands", &mut theirs, "");
        row("one that stands, `sh -c true`: taken to ended", &mut ours, "<= 3 ms (p50)");
        row("  with binding and all that comes before", &mut whole, "");
        ground.containers.drain().await;
    })
}

/// Many at one time.
fn many() -> Bench {
    Box::pin(async {
        let ground = Ground::warm(8).await;
        ground.act("true").contract(SMALL).done().await;
        let ground = &ground;
        let acts = (0..AT_ONCE).map(|_| {
            Box::pin(async move {
                let start = Instant::now();
                ground.act("true").contract(SMALL).done().await;
                start.elapsed()
            })
        });
        let mut times = futures_util::future::join_all(acts).await;
        let (p50, p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
        row(&format!("{AT_ONCE} at one time"), &mut times, &format!("p99 {:.1} x p50, <= 5 x", ratio(p99, p50)));
        ground.containers.drain().await;
    })
}

/// A tool that does not stop talking.
fn flood() -> Bench {
    Box::pin(async {
        let ground = Ground::new().await;
        let limits = SMALL.replace("output = \"1MiB\"", "output = \"2GiB\"");
        let script = format!("head -c {FLOOD} /dev/zero");
        let mut act = ground.act(&script).contract(&limits);
        act.keeps = false;
        let heard = act.heard.clone();
        let (grown, took) = growth(Box::pin(async { drop(act.done().await) })).await;
        assert_eq!(heard.lock().unwrap().count, FLOOD);
        println!("{:<52} {:>10} {:>21}   <= 32 MiB", "1 GiB of output: memory grown, speed", grown, speed(FLOOD, took));
    })
}

/// A large file in and out.
fn files() -> Bench {
    Box::pin(async {
        let ground = Ground::new().await;
        let file = ground.folder.path().join("large");
        fs_err::File::create(&file).unwrap().set_len(FILE).unwrap();
        let limits = SMALL
            .replace("memory = \"256MiB\"", "memory = \"4GiB\"")
            .replace("storage = \"8MiB\"", "storage = \"3GiB\"");
        let act = ground.act("cat /inputs/a > /outputs/b").contract(&limits).input("a", &file).outputs();
        let (grown, took) = growth(Box::pin(async {
            let came = act.done().await;
            assert_eq!(fs_err::metadata(came.outputs.join("b")).unwrap().len(), FILE);
        }))
        .await;
        println!("{:<52} {:>10} {:>21}   <= 64 MiB", "2 GiB in and out: memory grown, speed", grown, speed(FILE, took));
    })
}

/// How much more memory this process held at once while something was done, and
/// how long that took.
async fn growth(done: impl Future<Output = ()>) -> (String, Duration) {
    let held = |name: &str| -> u64 {
        let status = fs_err::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
    };
    let before = held("VmRSS:");
    // The most so far is forgotten.
    fs_err::write("/proc/self/clear_refs", "5").unwrap();
    let start = Instant::now();
    done.await;
    let took = start.elapsed();
    (format!("{} MiB", held("VmHWM:").saturating_sub(before) >> 10), took)
}

fn speed(bytes: u64, took: Duration) -> String {
    format!("{:.0} MiB/s", bytes as f64 / took.as_secs_f64() / f64::from(1 << 20))
}

/// The engine's client, as a process.
#[expect(clippy::disallowed_methods, reason = "the peer is a process")]
fn timed(args: &[&str]) -> Duration {
    let start = Instant::now();
    let status = Command::new("docker").args(args).stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{args:?}");
    start.elapsed()
}

fn row(title: &str, times: &mut [Duration], budget: &str) {
    let at = |times: &mut [Duration], place| format!("{:.2} ms", percentile(times, place).as_secs_f64() * 1e3);
    let (p50, p90, p99) = (at(times, 50), at(times, 90), at(times, 99));
    println!("{title:<52} {p50:>10} {p90:>10} {p99:>10}   {budget}");
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

/// The time below which so many of a hundred lie: 50 is the median.
fn percentile(times: &mut [Duration], place: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * place / 100]
}
