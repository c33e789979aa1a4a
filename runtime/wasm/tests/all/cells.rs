//! What happens to cells, and what is left when it has happened.

use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use env_contracts::Code;
use glovebox_runtime::job::{End, JobReport, Timer, UngrantedImports};
use glovebox_wasm::{Artefact, Cells, Errand, Helper};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{Act, Came, Ear, Heard, built, compile, hostile_artefact, told};

/// How long a process may take to be gone.
const GONE: Duration = Duration::from_secs(5);

/// These tests look for each other's processes: one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cells() -> Cells {
    Cells::new(Helper::new(env!("CARGO_BIN_EXE_wasm-helper"), vec![])).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Runs an act in a cell.
fn run(cells: &Cells, act: Act) -> Came {
    runtime().block_on(came(cells, act, pending()))
}

async fn came(cells: &Cells, act: Act, stop: impl Future<Output = ()>) -> Came {
    heard_by(Arc::default(), cells, act, stop).await
}

async fn heard_by(heard: Arc<Mutex<Heard>>, cells: &Cells, mut act: Act, stop: impl Future<Output = ()>) -> Came {
    let artefact = hostile_artefact();
    act.job.component = artefact.component().into();
    let ear = Box::new(Ear(Arc::clone(&heard)));
    let errand = Errand::Job(&act.job);
    let (report, _) = cells.run(artefact, UngrantedImports::Refuse, errand, act.fds, ear, stop).await;
    let heard = heard.lock().unwrap().clone();
    Came { end: report.end.clone(), report, heard }
}

/// Processes below this one, each with its parent, that run our helper.
fn processes() -> BTreeMap<i32, i32> {
    let mut found = BTreeMap::new();
    for entry in fs_err::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
        let own = std::process::id().to_string();
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains("__glovebox-zygote") && line.split('\0').any(|argument| argument == own) {
            found.insert(pid, parent.unwrap_or(0));
        }
    }
    found
}

/// The zygote, or what is so many forks below it.
fn at_depth(depth: usize) -> Option<i32> {
    let found = processes();
    let depth_of = |pid: i32| {
        let above = std::iter::successors(Some(pid), |pid| found.get(pid).copied());
        above.take_while(|pid| found.contains_key(pid)).count()
    };
    found.keys().copied().find(|pid| depth_of(*pid) == depth + 1)
}

fn eventually(what: &str, is: impl Fn() -> bool) {
    let until = Instant::now() + GONE;
    while !is() {
        assert!(Instant::now() < until, "{what}: {:?}", processes());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts a guest that prints a line and hangs, and does something to one of
/// the processes once it has been heard.
fn meanwhile(cells: &Cells, how: &str, limits: Act, then: impl Fn()) -> Came {
    let act = told(json!({ "do": "print-then-hang", "how": how }));
    let act = Act { job: glovebox_runtime::job::Job { limits: limits.job.limits, ..act.job }, ..act };
    let runtime = runtime();
    runtime.block_on(async {
        let heard = Arc::new(Mutex::new(Heard::default()));
        let done = heard_by(Arc::clone(&heard), cells, act, pending());
        tokio::pin!(done);
        while heard.lock().unwrap().stdout.is_empty() {
            let said = tokio::time::timeout(Duration::from_millis(20), done.as_mut()).await;
            assert!(said.is_err(), "{said:?}");
        }
        then();
        done.await
    })
}

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// A good one after a bad one.
fn still_usable(cells: &Cells) {
    let came = run(cells, told(json!({ "do": "nothing" })));
    assert_eq!(came.end, End::Exited { code: 0 }, "{came:?}");
}

fn plain() -> Act {
    told(json!({}))
}

#[test]
fn a_cell_that_is_killed_is_an_outcome() {
    let _alone = alone();
    let cells = cells();
    for (how, text) in [(Signal::KILL, "killed from outside"), (Signal::TERM, "signal 15")] {
        let came = meanwhile(&cells, "loop", plain(), || signal(at_depth(2).unwrap(), how));
        assert!(matches!(&came.end, End::HostFailed(why) if why.contains(text)), "{came:?}");
        assert_eq!(came.heard.out(), "ready\n");
        still_usable(&cells);
    }
}

#[test]
fn a_cell_that_crashes_broke_the_rules() {
    let _alone = alone();
    let cells = cells();
    for crash in [Signal::BUS, Signal::SEGV, Signal::TRAP] {
        let came = meanwhile(&cells, "sleep", plain(), || {
            let pid = at_depth(2).unwrap();
            signal(pid, crash);
            // The handlers of the engine and of Rust let the first one through
            // to its default, in the belief that it comes again by itself.
            std::thread::sleep(Duration::from_millis(50));
            let _ = kill_process(Pid::from_raw(pid).unwrap(), crash);
        });
        assert!(matches!(&came.end, End::Violation(why) if why.contains("crashed")), "{crash:?}: {came:?}");
        still_usable(&cells);
    }
}

#[test]
fn the_wall_limit_holds_for_a_cell_that_is_stuck() {
    let _alone = alone();
    let cells = cells();
    let second = || plain().limit(|limits| limits.wall = Duration::from_secs(1));
    let came = meanwhile(&cells, "loop", second(), || signal(at_depth(2).unwrap(), Signal::STOP));
    assert_eq!(came.end, End::TimedOut(Timer::Wall));
    assert_eq!(came.heard.out(), "ready\n");
    // What the kernel counted, since the cell can't say.
    assert!(came.report.usage.cpu > Duration::from_millis(1), "{came:?}");
    let silent = second().limit(|limits| limits.idle = Some(Duration::from_millis(600)));
    let came = meanwhile(&cells, "sleep", silent, || signal(at_depth(2).unwrap(), Signal::STOP));
    assert_eq!(came.end, End::TimedOut(Timer::Idle));
    still_usable(&cells);
}

#[test]
fn templates_and_zygotes_that_die_are_replaced() {
    let _alone = alone();
    let cells = cells();
    still_usable(&cells);
    for depth in [1, 0] {
        let came = meanwhile(&cells, "sleep", plain(), || signal(at_depth(depth).unwrap(), Signal::KILL));
        assert!(matches!(&came.end, End::HostFailed(_)), "{came:?}");
        still_usable(&cells);
    }
}

#[test]
fn nothing_is_left_of_a_run_that_nobody_waits_for() {
    let _alone = alone();
    let cells = cells();
    hostile_artefact();
    let runtime = runtime();
    runtime.block_on(async {
        let act = told(json!({ "do": "print-then-hang", "how": "sleep" }));
        let heard = Arc::new(Mutex::new(Heard::default()));
        let done = heard_by(Arc::clone(&heard), &cells, act, pending());
        tokio::pin!(done);
        while heard.lock().unwrap().stdout.is_empty() {
            assert!(tokio::time::timeout(Duration::from_millis(20), done.as_mut()).await.is_err());
        }
        assert!(at_depth(2).is_some());
    });
    // A component that was used once has no idle cells.
    eventually("cells are left", || at_depth(2).is_none());
    drop(cells);
    eventually("processes are left", || processes().is_empty());
}

#[test]
fn an_interrupt_keeps_what_was_said() {
    let _alone = alone();
    let cells = cells();
    let act = told(json!({ "do": "print-then-hang", "how": "sleep" }));
    hostile_artefact();
    let heard = Arc::new(Mutex::new(Heard::default()));
    let listening = Arc::clone(&heard);
    let stop = async move {
        while listening.lock().unwrap().stdout.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let came = runtime().block_on(heard_by(heard, &cells, act, stop));
    assert_eq!((came.end, came.heard.out()), (End::Interrupted, "ready\n".to_owned()));
}

#[test]
fn a_cell_holds_its_channel_its_folders_and_nothing_else() {
    let _alone = alone();
    if !rustix::process::geteuid().is_root() {
        // Nobody else may look into a process that is shut in.
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let secret = fs_err::File::open("/etc/hostname").unwrap();
    rustix::io::fcntl_setfd(secret.file(), rustix::io::FdFlags::empty()).unwrap();
    let cells = cells();
    hostile_artefact();
    let seen = Mutex::new((Vec::new(), String::new()));
    let act = told(json!({ "do": "print-then-hang", "how": "sleep" })).mount("/workspace", dir.path(), false);
    let heard = Arc::new(Mutex::new(Heard::default()));
    let listening = Arc::clone(&heard);
    let look = async {
        while listening.lock().unwrap().stdout.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let pid = at_depth(2).unwrap();
        let folder = fs_err::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let links = folder.flatten().map(|entry| fs_err::read_link(entry.path()).unwrap().display().to_string());
        let environment = fs_err::read_to_string(format!("/proc/{pid}/environ")).unwrap();
        *seen.lock().unwrap() = (links.collect(), environment);
    };
    runtime().block_on(heard_by(heard, &cells, act, look));
    let (links, environment) = seen.into_inner().unwrap();
    let folder = dir.path().display().to_string();
    let known = |link: &String| {
        link.starts_with("socket:") || link == "/dev/null" || *link == folder || link.ends_with(".cwasm")
    };
    let unknown: Vec<_> = links.iter().filter(|link| !known(link)).collect();
    assert!(unknown.is_empty(), "{links:?}");
    assert_eq!(links.iter().filter(|link| link.starts_with("socket:")).count(), 1, "{links:?}");
    assert_eq!(environment, "");
}

#[test]
fn more_descriptors_than_one_message_takes() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut act = told(json!({ "do": "read", "path": "/workspace/f599" })).mount("/workspace", dir.path(), false);
    for at in 0..600 {
        let (path, text) = (format!("f{at}"), format!("text {at}"));
        fs_err::write(dir.path().join(&path), "changed since").unwrap();
        act = act.seal("/workspace", &path, (0, at), text.as_bytes());
    }
    let came = run(&cells(), act);
    assert_eq!(came.json()["text"], "text 599", "{came:?}");
}

#[test]
fn long_arguments_and_results_pass() {
    let _alone = alone();
    let act = told(json!({ "do": "stdout", "bytes": 3_000_000, "pad": "x".repeat(2_000_000) }));
    let came = run(&cells(), act.limit(|limits| limits.output = 8 << 20));
    assert_eq!((came.end, came.heard.stdout.len()), (End::Exited { code: 0 }, 3_000_000));
}

#[test]
fn a_program_that_becomes_no_cell_is_an_error() {
    let _alone = alone();
    let artefact = hostile_artefact();
    for program in ["/bin/true", "/nonexistent", "/bin/cat"] {
        let cells = Cells::new(Helper::new(program, vec![])).unwrap();
        let act = plain();
        let run = cells.run(artefact, UngrantedImports::Refuse, Errand::Job(&act.job), vec![], deaf(), pending());
        let (JobReport { end, .. }, _) = runtime().block_on(run);
        assert!(
            matches!(&end, End::Refused(problem) if problem.code == Code::BackendUnavailable),
            "{program}: {end:?}"
        );
    }
}

#[test]
fn a_component_that_can_t_be_linked_is_refused_with_the_reason() {
    let _alone = alone();
    let cells = cells();
    let wat = wat::parse_bytes(&built("tests/guests/wat/imports-unknown.wat")).unwrap().into_owned();
    let artefact: Arc<Artefact> = Arc::new(compile(&wat).unwrap());
    let act = plain();
    let run = cells.run(&artefact, UngrantedImports::Refuse, Errand::Job(&act.job), vec![], deaf(), pending());
    let (report, _) = runtime().block_on(run);
    let End::Refused(problem) = report.end else { panic!("{report:?}") };
    assert_eq!(problem.code, Code::ComponentImports);
    assert!(problem.message.contains("example:unknown/thing"), "{problem}");
    still_usable(&cells);
}

fn deaf() -> Box<Ear> {
    Box::new(Ear(Arc::default()))
}
