//! A loop and people on one task, by commands alone, each a process of its own.

use serde_json::{Value, json};

use crate::people::{strs, write};
use crate::support::House;

const QUESTION: &str = r#"{
  "question": "How long do old clients have to work?",
  "options": [
    { "id": "one-year", "label": "A year", "effect": "the first version goes in spring" },
    { "id": "two-years", "label": "Two years", "effect": "the first version stays until 2028" }
  ],
  "recommended": "two-years",
  "affects": ["the public interface"]
}"#;

fn task(house: &House) {
    house.json(&["task", "new", "t", "--session", "s", "--goal", "write the guide", "--purpose", "docs"]);
}

fn turn(house: &House, expected: &str, goal: &str) -> Value {
    house.run(&["turn", "open", "t", "--expected", expected, "--goal-version", goal]).ok().json()
}

/// What a loop reads on standard output when it is refused.
fn refused(house: &House, args: &[&str], exit: i32, code: &str, word: &str) {
    let ran = house.run(args);
    assert_eq!(ran.code, exit, "{args:?}: {}{}", ran.stdout, ran.stderr);
    let problem = &ran.json()["problem"];
    assert_eq!(problem["code"], code);
    assert!(problem["message"].as_str().unwrap().contains(word), "{problem}");
}

fn not_opened(house: &House, expected: &str, goal: &str, exit: i32, code: &str, word: &str) {
    refused(house, &["turn", "open", "t", "--expected", expected, "--goal-version", goal], exit, code, word);
}

#[test]
fn a_loop_is_told_at_each_turn_what_was_said_meanwhile() {
    let house = House::new();
    task(&house);
    not_opened(&house, "1", "1", 46, "turn-conflict", "no turn");
    let first = turn(&house, "0", "1");
    assert_eq!((&first["turn"], &first["goal"]["text"]), (&json!(1), &json!("write the guide")));
    not_opened(&house, "0", "1", 46, "turn-conflict", "turn 1");

    let read = ["--session", "s", "--task", "t", "--turn", "1", "--agent", "coder"];
    let count = [&["run", "text.count", "--arg", "path=a.txt", "--workspace", "."][..], &read].concat();
    let counted = house.json(&count);
    assert_eq!(counted["data"]["lines"], 2);
    let told = ["turn", "tell", "t", "text", "the parser is small", "--turn", "1", "--parents"];
    house.run(&[&told[..], &[counted["action_id"].as_str().unwrap()]].concat()).ok();

    let question = house.file("q.json", QUESTION);
    let ask = ["questions", "ask", "--task", "t", "--turn", "1", "--topic", "window", &question];
    let asked = house.run(&ask).ok().json();
    refused(&house, &ask, 49, "question-refused", "asked or answered already");
    let id = asked["id"].as_str().unwrap();
    assert!(house.run(&["questions", "list"]).ok().stdout.contains("two-years (it recommends this)"));
    house.refuses(&["questions", "answer", id, "--option", "never"], 2, "usage", &["none of its options"]);
    house.json(&["questions", "answer", &id[..10], "--option", "two-years", "--say", "and tell them"]);
    house.refuses(&["questions", "answer", id, "--option", "one-year"], 48, "question-closed", &["answered"]);
    house.run(&["session", "steer", "s", "shorter"]).ok();
    house.run(&["task", "constrain", "t", "no new dependencies"]).ok();

    let second = turn(&house, "1", "1");
    assert_eq!(second["steers"][0]["text"], "shorter");
    assert_eq!(second["constraints"][0]["text"], "no new dependencies");
    assert_eq!(second["replan"], json!(["constrained"]));
    let answer = &second["answers"][0];
    assert_eq!((&answer["option"], &answer["text"]), (&json!("two-years"), &json!("and tell them")));
    assert_eq!(answer["source"], "person");
    // What belongs to a turn that is over is refused.
    house.refuses(&count, 46, "turn-conflict", &["not in turn 1"]);
    let third = turn(&house, "2", "1");
    assert_eq!((&third["steers"], &third["answers"], &third["replan"]), (&json!([]), &json!([]), &json!([])));

    house.run(&["task", "goal", "t", "write the short guide"]).ok();
    not_opened(&house, "3", "1", 47, "goal-changed", "goal 2");
    assert_eq!(turn(&house, "3", "2")["goal"]["text"], "write the short guide");
    house.run(&["task", "end", "t", "done"]).ok();
    not_opened(&house, "4", "2", 45, "task-closed", "done");

    let story = house.run(&["trace", "t"]).ok().stdout;
    let order = ["write the guide", "text.count@", "the parser is small", "How long", "answered by", "shorter"];
    let places: Vec<Option<usize>> = order.iter().map(|text| story.find(text)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{story}");
    house.run(&["audit", "verify"]).ok();
    house.run(&["db", "check"]).ok();
}

#[test]
fn what_waits_in_a_turn_ends_with_it_and_an_agent_directs_nobody() {
    let house = House::that_may_write();
    task(&house);
    turn(&house, "0", "1");
    let more = ["--session", "s", "--task", "t", "--turn", "1", "--ask", "leave"];
    let left = house.run(&strs(&write("n.txt", &more)));
    assert_eq!(left.code, 38, "{}", left.stderr);
    let waiting = house.json(&["action", "list", "--open"]);
    let action = waiting["actions"][0]["id"].as_str().unwrap().to_owned();
    let approval = waiting["actions"][0]["approval"]["id"].as_str().unwrap().to_owned();
    turn(&house, "1", "1");
    house.refuses(&["approvals", "approve", &approval], 35, "approval-closed", &["withdrawn"]);
    let ended = house.json(&["action", "show", &action]);
    assert_eq!(ended["observation"]["outcome"]["which"], "turn-closed");
    for said in [&["session", "steer", "s", "x"][..], &["task", "goal", "t", "x"], &["task", "stage", "t", "x"]] {
        let ran = crate::support::Ran::of(house.command().env("GLOVEBOX_AGENT", "coder").args(said));
        assert_eq!(ran.code, 36, "{said:?}: {}", ran.stderr);
    }
}

#[test]
fn an_interrupt_says_what_was_received_and_what_has_stopped() {
    let house = House::that_may_write();
    task(&house);
    turn(&house, "0", "1");
    let more = ["--session", "s", "--task", "t", "--turn", "1", "--ask", "leave"];
    house.run(&strs(&write("n.txt", &more)));
    let done = house.json(&["session", "interrupt", "s", "--reason", "wrong branch"]);
    assert_eq!((done["ended"].as_array().unwrap().len(), done["running"].as_array().unwrap().len()), (1, 0));
    assert!(done["stopped_ms"].is_u64());
    assert!(house.run(&["approvals", "list"]).ok().stdout.is_empty());
    let next = turn(&house, "1", "1");
    assert_eq!(next["replan"], json!(["interrupted"]));
    house.run(&["session", "interrupt", "s", "--task", "t"]).ok();
    not_opened(&house, "2", "1", 45, "task-closed", "cancelled");
    house.refuses(&["session", "interrupt", "nowhere"], 2, "session-unknown", &[]);
    house.run(&["audit", "verify"]).ok();
}

#[test]
fn a_plan_and_a_result_are_put_before_a_person_who_gives_no_right_with_it() {
    let house = House::new();
    task(&house);
    turn(&house, "0", "1");
    let plan = house.file(
        "plan.json",
        r#"{ "summary": "write it, then publish it", "steps": [{ "title": "publish it", "effects": "external" }] }"#,
    );
    let accepted = |args: &[&str], shows: &str| {
        let left = house.run(args);
        assert_eq!(left.code, 38, "{}", left.stderr);
        let card = house.pending().remove(0);
        let (approval, action) = (card["approval"].as_str().unwrap(), card["action"].as_str().unwrap());
        let shown = house.run(&["approvals", "show", approval]).ok().stdout;
        assert!(shown.contains(shows) && !shown.contains("limits.wall"), "{shown}");
        house.run(&["approvals", "approve", approval, "--say", "fine"]).ok();
        let seen = house.json(&["action", "resume", action]);
        assert_eq!((&seen["data"]["accepted"], &seen["data"]["words"]), (&json!(true), &json!("fine")));
    };
    accepted(&["task", "plan", "t", &plan, "--turn", "1", "--ask", "leave", "--json"], "publish it");
    let sha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
    let tell = ["turn", "tell", "t", "verified", "--holds", "true", "--revision", sha256, "--condition", "it is short"];
    let entry = house.run(&tell).ok().json()["id"].as_str().unwrap().to_owned();
    let result = ["task", "result", "t", "--sha256", sha256, "--turn", "1", "--ask", "leave", "--json"];
    let with = |condition| [&result[..], &["--condition", condition, "--evidence", &entry]].concat();
    refused(&house, &with("it is long"), 61, "evidence-stale", "condition");
    accepted(&with("it is short"), "it is short");
    let unattended = house.run(&["task", "plan", "t", &plan, "--turn", "1", "--ask", "never", "--json"]);
    assert_eq!(unattended.code, 25, "{}", unattended.stdout);
    let asked = house.json(&["session", "show", "s"]);
    assert_eq!(asked["attention"]["rules"], json!({ "decision": 2 }));
}

#[test]
fn a_session_belongs_to_whoever_opened_it_and_a_wrong_name_stops_nothing() {
    let house = House::new();
    house.run(&["session", "new", "s", "--agent", "coder"]).ok();
    house.run(&["task", "new", "t", "--session", "s", "--goal", "g", "--agent", "coder"]).ok();
    house.run(&["task", "new", "u", "--session", "other", "--goal", "g"]).ok();
    let evil = |args: &[&str]| crate::support::Ran::of(house.command().env("GLOVEBOX_AGENT", "evil").args(args)).code;
    assert_eq!(evil(&["session", "steer", "s", "hi"]), 36);
    assert_eq!(evil(&["session", "steer", "fresh", "hi"]), 36);
    for refused in [
        &["task", "new", "x", "--session", "s", "--goal", "z"][..],
        &["session", "new", "below", "--parent", "s"],
        &["run", "text.count", "--arg", "path=a.txt", "--session", "s", "--task", "x"],
        &["session", "interrupt", "s"],
    ] {
        assert_eq!(evil(refused), 2, "{refused:?}");
    }
    let names = |of: &str| house.json(&[of, "list"]).to_string();
    assert!(!names("session").contains("fresh") && !names("task").contains("evil"), "{}", names("task"));
    // A slip in the name of a session is no session, and stops no other's work.
    house.refuses(&["session", "steer", "typo", "x"], 2, "session-unknown", &[]);
    house.refuses(&["session", "steer", "s", "x", "--task", "u"], 2, "task-unknown", &[]);
    house.refuses(&["session", "interrupt", "s", "--task", "u"], 2, "task-unknown", &[]);
    house.run(&["session", "steer", "s", "go on"]).ok();
    house.run(&["session", "close", "s"]).ok();
    house.refuses(&["session", "steer", "s", "x"], 2, "session-conflict", &["closed"]);
    house.run(&["audit", "verify"]).ok();
}

#[test]
fn what_is_asked_again_and_again_is_one_row_with_its_chain_and_its_end() {
    let house = House::that_may_write();
    let more = ["--chain", "lead", "--session", "s", "--ask", "leave"];
    let asked: Vec<_> = (0..3).map(|_| crate::people::Asked::of(&house.writes("n.txt", &more))).collect();
    crate::people::Asked::of(&house.writes("o.txt", &more));
    let listed = house.run(&["approvals", "list"]).ok().stdout;
    let rows: Vec<&str> = listed.lines().collect();
    assert_eq!(rows.len(), 2, "{listed}");
    assert!(rows[0].contains("lead > coder") && rows[0].contains("until ") && rows[0].contains("alike: "), "{listed}");
    for other in &asked[1..] {
        assert!(rows[0].contains(&other.approval[..8]), "{listed}");
    }
    // Each has a record and an answer of its own.
    assert_eq!(house.pending().len(), 4);
    house.run(&["approvals", "decline", &asked[1].approval]).ok();
    assert_eq!(house.pending().len(), 3);
}

#[test]
fn what_was_typed_and_what_is_too_long_is_told_without_harm() {
    let house = House::new();
    task(&house);
    let evil = "\u{202e}x\u{9b}y";
    let ran = house.run(&["turn", "tell", "t", evil]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("\\u{202e}") && !ran.stderr.contains('\u{202e}'), "{}", ran.stderr);
    let ask = ["questions", "ask", "--task", "t", "--topic", "a", "-"];
    let long = house.run_with(&ask, vec![b'x'; 10 << 20]);
    assert!(long.code == 49 && long.stderr.contains("more than"), "{}", long.stderr);
}
