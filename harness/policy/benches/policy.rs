//! What a decision costs, and what loading does: `cargo xtask bench policy`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench stops loudly, prints its table and looks at the clock"
)]

#[path = "../tests/all/support.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod support;

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use env_contracts::Manifest;
use glovebox_policy::{Policy as _, PolicySet};
use serde_json::json;

use support::{Folder, World, taking, tool};

/// How often each is done. The median is printed.
const ROUNDS: usize = 400;

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

/// So many rules, all of which look at the facts of every action.
fn rules(count: usize) -> String {
    let mut out =
        String::from("permit (principal, action in Action::\"run\", resource) when { context has approval };\n");
    for number in 1..count {
        let _ = writeln!(
            out,
            "@id(\"rule-{number}\")\nforbid (principal, action in Action::\"run\", resource)\nwhen {{ \
             context.args has path && context.args.path like \"secret-{number}/*\" && resource.name != \"x\" }}\n\
             unless {{ context has approval && context.approval.classes.contains(\"person\") }};"
        );
    }
    out
}

fn main() {
    let manifest: Manifest = taking(json!({ "path": { "type": "string" }, "count": { "type": "integer" } }));
    let ask = World::new(manifest.clone()).with(json!({ "path": "src/main.rs", "count": 3 }));
    println!("{:<44} {:>10}  {:>10}", "a decision", "µs", "of budget");
    for count in [10, 100, 500] {
        let folder = Folder::new(&rules(count));
        let set = folder.load(std::slice::from_ref(&manifest)).unwrap();
        // Nothing permits it without an approval: three evaluations.
        let time = median(|| drop(black_box(set.decide(&ask.facts()))));
        println!("{:<44} {time:>10.1}  {:>9.2}×", format!("{count} rules, ASK over two classes"), time / BUDGET);
    }
    let shipped = PolicySet::shipped().unwrap();
    let reading = World::new(tool(json!({ "type": "object" }), json!({})));
    let time = median(|| drop(black_box(shipped.decide(&reading.facts()))));
    println!("{:<44} {time:>10.1}  {:>9.2}×", "shipped rules, ALLOW", time / BUDGET);

    println!("\n{:<44} {:>10}", "loading", "µs");
    println!("{:<44} {:>10.1}", "shipped", median(|| drop(black_box(PolicySet::shipped().unwrap()))));
    for count in [10, 500] {
        let (folder, stamps) = (Folder::new(&rules(count)), tempfile::tempdir().unwrap());
        let load = || PolicySet::load(Some(folder.0.path()), [&manifest], Some(stamps.path())).unwrap();
        let start = Instant::now();
        drop(load());
        let first = start.elapsed().as_secs_f64() * 1e6;
        println!("{:<44} {first:>10.1}", format!("{count} rules, first time"));
        println!("{:<44} {:>10.1}", format!("{count} rules, stamped"), median(|| drop(black_box(load()))));
    }
}
