//! The same clock and the same random numbers in every run.

use std::time::{Duration, Instant};

use env_contracts::Deterministic;
use glovebox_runtime::job::{End, Entry, Timer};
use serde_json::{Value, json};

use crate::harness::{Act, Came, hostile, hostile_tool, told};

/// The first second of 2026.
const TIME: u64 = 1_767_225_600;

fn chosen(seed: u64) -> Deterministic {
    Deterministic { seed, time: "2026-01-01T00:00:00Z".parse().unwrap() }
}

fn seeded(seed: u64, what: &Value) -> Act {
    let mut act = told(what.clone());
    act.job.deterministic = Some(chosen(seed));
    act
}

fn all(came: &Came) -> (Vec<u8>, Vec<u8>, End) {
    (came.heard.stdout.clone(), came.heard.stderr.clone(), came.end.clone())
}

#[test]
fn one_seed_gives_the_same_bytes_and_another_gives_others() {
    let what = json!({ "do": "random", "bytes": 1000 });
    let one = seeded(7, &what).run(hostile());
    assert_eq!(one.end, End::Exited { code: 0 });
    assert_eq!(all(&one), all(&seeded(7, &what).run(hostile())));
    for other in [seeded(8, &what), told(what.clone()), seeded(7 << 40, &what)] {
        let other = other.run(hostile()).json();
        for source in ["first", "number", "insecure", "insecure_seed"] {
            assert_ne!(one.json()[source], other[source], "{source}");
        }
    }
}

/// Replays are compared over years: what follows from a seed is fixed.
#[test]
fn what_follows_from_a_seed_never_changes() {
    let seen = seeded(7, &json!({ "do": "random", "bytes": 16 })).run(hostile()).json();
    assert_eq!(seen.to_string(), include_str!("deterministic.json").trim());
}

#[test]
fn clocks_begin_where_they_are_told_and_waiting_takes_no_time() {
    let what = json!({ "do": "clock", "seconds": 86_400 });
    let start = Instant::now();
    let one = seeded(7, &what).run(hostile());
    // The guest waits for a day and a minute; the limit is 20 seconds.
    assert!(start.elapsed() < Duration::from_secs(15));
    let seen = one.json();
    let number = |name: &str| seen[name].as_u64().unwrap();
    assert_eq!(seen["wall"][0], TIME);
    assert_eq!((&seen["first"], &seen["long_is_ready"]), (&json!([1]), &json!(false)));
    let minute = number("between") - number("before");
    assert!((60_000_000_000..60_001_000_000).contains(&minute), "{minute}");
    let day = number("after") - number("between");
    assert!((86_400_000_000_000..86_400_001_000_000).contains(&day), "{day}");
    assert_eq!(number("wall_after"), TIME + 86_460);
    assert_eq!(all(&one), all(&seeded(7, &what).run(hostile())));
    // Time does not follow from the seed.
    assert_eq!(one.json(), seeded(8, &what).run(hostile()).json());
    let real = told(json!({ "do": "surroundings" })).run(hostile()).json();
    assert!(real["wall_s"].as_u64().unwrap() > TIME, "the real clock is the real one");
}

#[test]
fn real_limits_stay_real() {
    for what in [json!({ "do": "loop" }), json!({ "do": "sleep" })] {
        let came = seeded(7, &what).limit(|limits| limits.wall = Duration::from_millis(100)).run(hostile());
        assert_eq!(came.end, End::TimedOut(Timer::Wall), "{what}");
    }
}

#[test]
fn files_are_all_from_one_moment() {
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join("a.txt"), "text").unwrap();
    let read = json!({ "do": "read" });
    let seen = seeded(7, &read).mount("/workspace", folder.path(), false).run(hostile()).json();
    assert_eq!(seen["modified"], TIME);
    let real = told(read).mount("/workspace", folder.path(), false).run(hostile()).json();
    assert!(real["modified"].as_u64().unwrap() > TIME);
}

#[test]
fn a_tool_learns_no_id_of_the_run_and_its_log_does_not_depend_on_time() {
    let call = |action: &str, args: Value| {
        let mut act = Act::new(Entry::Tool { name: "hostile".into() }, &args.to_string());
        act.job.action = action.into();
        act.job.deterministic = Some(chosen(7));
        act.run(hostile_tool())
    };
    let (one, two) = (call("act-1", json!({ "do": "echo" })), call("act-2", json!({ "do": "echo" })));
    assert_eq!(one.end, two.end);
    let talk = json!({ "do": "log", "level": "warn", "count": 3_000, "message": "m" });
    let (one, two) = (call("act-1", talk.clone()), call("act-2", talk));
    assert_eq!(one.heard.log.len(), 1_001, "a thousand lines, and one about the rest");
    assert_eq!(one.heard.log, two.heard.log);
}
