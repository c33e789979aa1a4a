//! What the doors cost over the plane: the real program behind HTTP and MCP,
//! against the same action at the service, by turns in the same run.
//!
//! Prints figures beside their budgets; it never fails because of a number.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement: it prints, starts processes, and should stop loudly"
)]

mod door;
mod floor;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::json;

use door::Served;
use floor::Floor;

/// How long one side is measured before it is the other's turn: what else the
/// machine does hits both alike.
const SLICE: Duration = Duration::from_millis(250);

/// Turns of each side.
const TURNS: usize = 12;

/// Connections of the throughput figure, and how long they ask.
const CONNECTIONS: usize = 8;
const BUSY: Duration = Duration::from_secs(3);

/// Readers of one session that get each event, and events.
const READERS: usize = 100;
const EVENTS: usize = 30;

/// Readers that wait for events which never come.
const IDLE: u64 = 500;

const ARGUMENTS: &str = r#"{"path":"a.txt"}"#;

fn main() {
    if let Some(code) = glovebox_wasm::maybe_enter_cell() {
        std::process::exit(if code == std::process::ExitCode::SUCCESS { 0 } else { 1 });
    }
    // `cargo test --benches` only wants to know that it links.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let docs = dir.path().join("docs");
    fs_err::create_dir(&docs).unwrap();
    fs_err::write(docs.join("a.txt"), "one two three\n").unwrap();
    let floor = Floor::new(&dir.path().join("floor"), &docs, "text.count", ARGUMENTS);
    let served = Served::start(dir.path());
    println!("{:<44} {:>11} {:>11} {:>12}", "one caller, p50", "plane", "door over it", "budget");
    http(&floor, &served);
    mcp(&floor, &served);
    println!("\n{:<44} {:>11} {:>12}", "", "measured", "budget");
    throughput(&served);
    idle(&served);
    readers(&served);
    page(&served);
}

fn request() -> String {
    format!(r#"{{"capability":"text.count","arguments":{ARGUMENTS},"workspace":"docs"}}"#)
}

/// The medians of two sides that take turns.
fn by_turns(mut one: impl FnMut() -> Duration, mut other: impl FnMut() -> Duration) -> (Duration, Duration) {
    let (mut ones, mut others) = (Vec::new(), Vec::new());
    let slice = |side: &mut dyn FnMut() -> Duration, all: &mut Vec<Duration>| {
        let begin = Instant::now();
        while begin.elapsed() < SLICE {
            all.push(side());
        }
    };
    // The first turn of each warms up.
    slice(&mut one, &mut Vec::new());
    slice(&mut other, &mut Vec::new());
    for _ in 0..TURNS {
        slice(&mut one, &mut ones);
        slice(&mut other, &mut others);
    }
    (percentile(&mut ones, 50), percentile(&mut others, 50))
}

fn percentile(all: &mut [Duration], percent: usize) -> Duration {
    all.sort_unstable();
    all[(all.len() * percent / 100).min(all.len() - 1)]
}

fn over(what: &str, (floor, door): (Duration, Duration), budget: &str) {
    let micros = |time: Duration| format!("{} us", time.as_micros());
    println!("{what:<44} {:>11} {:>11} {budget:>12}", micros(floor), micros(door.saturating_sub(floor)));
}

fn http(floor: &Floor, served: &Served) {
    let mut connection = served.connect();
    let body = request();
    let door = || {
        let begin = Instant::now();
        let view = connection.post("/v1/actions", &body);
        let took = begin.elapsed();
        assert_eq!(view["state"], "succeeded", "{view}");
        took
    };
    over("HTTP: submit to result, kept alive", by_turns(|| floor.once(), door), "500 us");
}

fn mcp(floor: &Floor, served: &Served) {
    let mut client = served.mcp();
    let params = json!({ "name": "text.count", "arguments": { "path": "a.txt" } });
    let door = || {
        let begin = Instant::now();
        let answer = client.ask("tools/call", &params);
        let took = begin.elapsed();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        took
    };
    over("MCP: a call on standard input and output", by_turns(|| floor.once(), door), "1000 us");
}

fn throughput(served: &Served) {
    let begin = Instant::now();
    let counted: usize = std::thread::scope(|scope| {
        let ask = || {
            let mut connection = served.connect();
            let body = request();
            let mut count = 0;
            while begin.elapsed() < BUSY {
                connection.post("/v1/actions", &body);
                count += 1;
            }
            count
        };
        let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    #[expect(clippy::cast_precision_loss, reason = "a figure to look at")]
    let each_second = counted as f64 / begin.elapsed().as_secs_f64();
    println!(
        "{:<44} {:>11} {:>12}",
        format!("HTTP: {CONNECTIONS} connections"),
        format!("{each_second:.0} /s"),
        ">= 2500 /s"
    );
}

/// A session with an open task, so that its streams go on.
fn task(served: &Served, session: &str) -> String {
    let goal = json!({ "session": session, "goal": "to be read" }).to_string();
    let task = served.connect().post("/v1/tasks", &goal);
    task["task"]["id"].as_str().unwrap().to_owned()
}

fn idle(served: &Served) {
    task(served, "idle");
    let before = served.resident();
    let held: Vec<_> = (0..IDLE).map(|_| served.connect().events("idle")).collect();
    let each = served.resident().saturating_sub(before) / IDLE;
    println!(
        "{:<44} {:>11} {:>12}",
        format!("memory of each of {IDLE} idle readers"),
        format!("{} KiB", each >> 10),
        "32 KiB"
    );
    drop(held);
}

fn readers(served: &Served) {
    let task = task(served, "read");
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            let (mut events, tell) = (served.connect().events("read"), tell.clone());
            scope.spawn(move || {
                for event in 0..EVENTS {
                    events.until("steered");
                    tell.send((event, Instant::now())).unwrap();
                }
            });
        }
        let mut connection = served.connect();
        let (mut all, mut posts) = (Vec::new(), Vec::new());
        for event in 0..EVENTS {
            let begin = Instant::now();
            let say = json!({ "kind": "steer", "text": format!("direction {event}") }).to_string();
            connection.post(&format!("/v1/tasks/{task}/say"), &say);
            posts.push(begin.elapsed());
            for _ in 0..READERS {
                let (of, at) = told.recv().unwrap();
                assert_eq!(of, event);
                all.push(at.saturating_duration_since(begin));
            }
        }
        let (p99, post) = (percentile(&mut all, 99), percentile(&mut posts, 50));
        let what = format!("request to {READERS} readers, p99 (answered in {} us)", post.as_micros());
        println!("{what:<44} {:>11} {:>12}", format!("{} us", p99.as_micros()), "20000 us");
    });
}

/// A page with everything it loads.
fn page(served: &Served) {
    let mut connection = served.connect();
    let origin = format!("origin: http://{}\r\ncontent-type: application/x-www-form-urlencoded\r\n", served.address);
    let (head, _) = connection.ask("POST", "/login", &origin, &format!("secret={}", served.code()));
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("cookie: {}\r\n", cookie.split(';').next().unwrap());
    let (_, page) = connection.ask("GET", "/", &cookie, "");
    let mut size = page.len();
    for part in page.split('"').filter(|part| part.starts_with("/assets/")) {
        size += connection.ask("GET", part, "", "").1.len();
    }
    println!("{:<44} {:>11} {:>12}", "the inbox with all it loads", format!("{} KiB", size >> 10), "100 KiB");
}
