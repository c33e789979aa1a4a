//! What the plane costs without the run, against a bare SQLite transaction
//! with the same rows in the same run.
//!
//! The backend does nothing: what is measured is everything around it, from
//! the request's bytes to the Observation.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints a table and may end with a panic")]

#[path = "../../../store/benches/store/bare.rs"]
mod bare;
#[path = "../../../store/benches/store/fill.rs"]
mod fill;
mod house;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bare::Bare;
use env_contracts::BoundFacts;
use glovebox_plane::planning::{Asked, plan};
use glovebox_policy::{Facts, LabelFacts, Policy, PolicySet, TaskFacts, ToolFacts};
use glovebox_runtime::{Backend, default_ceiling};
use house::{House, Nothing, principal, registry};

/// How long one side is measured before it is the other's turn: what else the
/// machine does hits both alike.
const SLICE: Duration = Duration::from_millis(250);
/// Turns of each side.
const TURNS: usize = 12;
/// Callers of the throughput figures.
const CALLERS: usize = 64;
/// Actions of one session, so that there are several logs.
const IN_SESSION: usize = 100;

fn main() {
    // `cargo test --benches` only wants to know that it links.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    own_work();
    println!(
        "\n{:<34} {:>11} {:>11} {:>7} {:>8} {:>11}",
        "durable, one caller", "bare p50", "ours p50", "ratio", "budget", "ours p99"
    );
    one_caller("effect none: one commit", "bench.none", "1.25");
    one_caller("claimed first: two commits", "bench.writes", "2.25");
    println!("\n{:<34} {:>11} {:>8}", "durable, 64 callers", "actions/s", "budget");
    many_callers("effect none: one commit", "bench.none");
    many_callers("claimed first: two commits", "bench.writes");
    if std::env::args().any(|argument| argument == "--large") {
        large();
    }
}

/// Validate, plan, digests, decide; and once more where binding found
/// something: no disk.
fn own_work() {
    let folder = tempfile::tempdir().unwrap();
    let registry = registry(folder.path());
    let policy = PolicySet::shipped().unwrap();
    let (ceiling, principal) = (default_ceiling(), principal());
    let backend = Nothing;
    let request = env_contracts::ActionRequest::new("bench.none".parse().unwrap(), serde_json::Value::Null);
    let id: env_contracts::Id = "01a22da3-9150-77f7-a402-23e19dde5682".parse().unwrap();
    let profiles = env_contracts::Profiles::default();
    let once = |again: bool| {
        let tool = registry.callable_by(&request.capability, &principal, &profiles).unwrap();
        let asked = Asked {
            tool: &tool,
            request: &request,
            received: Some(br#"{"path": "src/lib.rs", "count": 3}"#),
            principal: &principal,
            action_id: id.clone(),
            revision: 1,
            permission: false,
        };
        let planned = plan(asked, &ceiling, std::iter::once(&backend as &dyn Backend)).unwrap();
        let bound = BoundFacts::default();
        let tenants = [principal.tenant.clone()];
        let facts = |bound| Facts {
            principal: &principal,
            tool: ToolFacts {
                manifest: &tool.manifest,
                artifact: &tool.registered.digest,
                builtin: true,
                accepted: true,
            },
            arguments: planned.arguments.value(),
            contract: &planned.plan.contract,
            effects: planned.plan.effects,
            delta: &[],
            backend: "nothing",
            task: TaskFacts { session: &id, task: &id, purpose: None, stage: None },
            budget: glovebox_policy::BudgetFacts::default(),
            past: glovebox_policy::PastFacts::default(),
            attended: false,
            bound,
            labels: LabelFacts { inputs: env_contracts::Label::Public, tenants: &tenants },
            secrets: &[],
            always_ask: false,
            approval: None,
        };
        black_box(policy.decide(&facts(None)));
        let intent = planned.plan.intent(&bound);
        black_box(planned.plan.digest(&intent));
        if again {
            black_box(policy.decide(&facts(Some(&bound))));
        }
    };
    println!("{:<34} {:>11} {:>11} {:>8}", "own work, no disk", "p50", "p99", "budget");
    for (title, again) in [("nothing is bound: decided once", false), ("something is bound: decided twice", true)] {
        let mut times = Vec::new();
        let start = Instant::now();
        while start.elapsed() < SLICE * 8 {
            let start = Instant::now();
            once(again);
            times.push(start.elapsed());
        }
        let (p50, p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
        println!("{title:<34} {p50:>8.1} us {p99:>8.1} us {:>8}", "60 us");
    }
}

/// An action with one caller, and one bare transaction with its rows.
fn one_caller(title: &str, tool: &str, budget: &str) {
    let (house, bare) = (House::new(), Bare::new());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // The rows of a real action of the same kind.
    let captured = |n: usize| {
        *house.seen.kept.lock().unwrap() = Some(Vec::new());
        runtime.block_on(house.action(tool, n / IN_SESSION));
        house.seen.kept.lock().unwrap().take().unwrap()
    };
    let mut times = [Vec::new(), Vec::new()];
    let mut n = 0;
    for _ in 0..TURNS {
        // Captured outside of the time that counts.
        let rows: Vec<_> = (0..100)
            .map(|_| {
                n += 1;
                bare.rows(captured(n))
            })
            .collect();
        let start = Instant::now();
        for rows in rows.iter() {
            let start = Instant::now();
            bare.write(rows);
            times[0].push(start.elapsed());
        }
        let least = start.elapsed().max(SLICE);
        let start = Instant::now();
        while start.elapsed() < least {
            n += 1;
            let start = Instant::now();
            runtime.block_on(house.action(tool, n / IN_SESSION));
            times[1].push(start.elapsed());
        }
    }
    let [mut bare, mut ours] = times;
    let (bare50, ours50, ours99) = (percentile(&mut bare, 50), percentile(&mut ours, 50), percentile(&mut ours, 99));
    println!(
        "{title:<34} {bare50:>8.0} us {ours50:>8.0} us {:>7.2} {:>8} {ours99:>8.0} us",
        ours50 / bare50,
        format!("<= {budget}")
    );
}

fn many_callers(title: &str, tool: &'static str) {
    let house = Arc::new(House::new());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (start, length) = (Instant::now(), SLICE * 16);
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let house = house.clone();
            runtime.spawn(async move {
                let mut done = 0;
                while start.elapsed() < length {
                    house.action(tool, caller).await;
                    done += 1;
                }
                done
            })
        })
        .collect();
    let done: usize = callers.into_iter().map(|caller| runtime.block_on(caller).unwrap()).sum();
    println!("{title:<34} {:>11.0} {:>8}", done as f64 / start.elapsed().as_secs_f64(), ">= 3000");
}

/// Submitting with a log of ten million events against an empty one.
fn large() {
    let (empty, full) = (House::new(), House::filled(fill::fill));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut times = [Vec::new(), Vec::new()];
    let mut n = fill::EVENTS;
    for _ in 0..2 * TURNS {
        for (house, times) in [&empty, &full].into_iter().zip(&mut times) {
            let start = Instant::now();
            while start.elapsed() < SLICE {
                n += 1;
                let start = Instant::now();
                runtime.block_on(house.action("bench.none", n / IN_SESSION));
                times.push(start.elapsed());
            }
        }
    }
    let [mut empty, mut full] = times;
    println!("\n{:<34} {:>11} {:>11} {:>7} {:>8}", "submit, one caller", "empty", "10 M events", "ratio", "budget");
    for place in [50, 99] {
        let (empty, full) = (percentile(&mut empty, place), percentile(&mut full, place));
        println!("{:<34} {empty:>8.0} us {full:>8.0} us {:>7.2} {:>8}", format!("p{place}"), full / empty, "<= 1.2");
    }
}

/// The time below which so many of a hundred lie, in microseconds.
fn percentile(times: &mut [Duration], place: usize) -> f64 {
    times.sort_unstable();
    times[(times.len() - 1) * place / 100].as_secs_f64() * 1e6
}
