//! What a decision costs, and what loading does: `cargo xtask bench policy`.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench stops loudly, and prints its table")]

#[path = "../tests/all/support.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod support;

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use env_contracts::Manifest;
use glovebox_policy::{Live, Policy as _, PolicySet};
use serde_json::json;

use support::{Folder, World, taking, tool};

/// How often each is done. The median is printed.
const ROUNDS: usize = 200;

/// What five hundred rules may take, in microseconds.
const BUDGET: f64 = 1000.0;

fn median(mut once: impl FnMut()) -> f64 {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            once();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2].as_secs_f64() * 1e6
}

/// Rules about one action, or about as many as an organisation has tools.
#[derive(Clone, Copy)]
enum Kind {
    /// Each is about one of fifty tools.
    Spread,
    /// Each is about every action.
    General,
    /// Each is about every action, and asks whether somebody approved.
    Approvals,
}

fn rules(count: usize, kind: Kind) -> String {
    let mut out =
        String::from("permit (principal, action in Action::\"run\", resource) when { context has approval };\n");
    for number in 1..count {
        let action = match kind {
            Kind::Spread if number % 50 != 0 => format!("action == Action::\"other.tool-{}@1.0.0\"", number % 50),
            Kind::Spread => "action in Action::\"test.tool\"".into(),
            Kind::General | Kind::Approvals => "action in Action::\"run\"".into(),
        };
        let unless = match kind {
            Kind::Approvals => "unless { context has approval && context.approval.classes.contains(\"person\") }",
            Kind::Spread | Kind::General => "",
        };
        let _ = writeln!(
            out,
            "@id(\"rule-{number}\")\nforbid (principal, {action}, resource)\nwhen {{ \
             context.args has path && context.args.path like \"secret-{number}/*\" }}\n{unless};"
        );
    }
    out
}

/// The tools that those rules are about.
fn tools() -> Vec<Manifest> {
    let mut out = vec![taking(json!({ "path": { "type": "string" }, "count": { "type": "integer" } }))];
    for number in 1..50 {
        let name = format!("other.tool-{number}").parse().unwrap();
        out.push(Manifest { name, ..out[0].clone() });
    }
    out
}

fn main() {
    // `cargo test --benches` only wants to know that it links.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let tools = tools();
    let ask = World::new(tools[0].clone()).with(json!({ "path": "src/main.rs", "count": 3 }));
    println!("{:<52} {:>10}  {:>10}", "a decision", "µs", "of budget");
    for (count, kind, name) in [
        (10, Kind::General, "10 rules about every action, ASK"),
        (500, Kind::Spread, "500 rules about 50 tools, ASK"),
        (500, Kind::General, "500 rules about every action, ASK"),
        (500, Kind::Approvals, "500 rules about every action and approval, ASK"),
    ] {
        let set = Folder::new(&rules(count, kind)).load(&tools).unwrap();
        let time = median(|| drop(black_box(set.decide(&ask.facts()))));
        println!("{name:<52} {time:>10.1}  {:>9.2}×", time / BUDGET);
    }
    let shipped = PolicySet::shipped().unwrap();
    let reading = World::new(tool(json!({ "type": "object" }), json!({})));
    let time = median(|| drop(black_box(shipped.decide(&reading.facts()))));
    println!("{:<52} {time:>10.1}  {:>9.2}×", "shipped rules, ALLOW", time / BUDGET);

    println!("\n{:<52} {:>10}", "loading", "µs");
    println!("{:<52} {:>10.1}", "shipped", median(|| drop(black_box(PolicySet::shipped().unwrap()))));
    for count in [10, 500] {
        let (folder, stamps) = (Folder::new(&rules(count, Kind::Spread)), tempfile::tempdir().unwrap());
        let load = || PolicySet::load(Some(folder.0.path()), &tools, Some(stamps.path())).unwrap();
        let start = Instant::now();
        drop(load());
        let first = start.elapsed().as_secs_f64() * 1e6;
        println!("{:<52} {first:>10.1}", format!("{count} rules, checked"));
        println!("{:<52} {:>10.1}", format!("{count} rules, stamped"), median(|| drop(black_box(load()))));
        let live = Live::load(Some(folder.0.path().into()), &tools, Some(stamps.path().into())).unwrap();
        let again = median(|| drop(black_box(live.reload(&tools).unwrap())));
        println!("{:<52} {again:>10.1}", format!("{count} rules, unchanged while in force"));
    }
}
