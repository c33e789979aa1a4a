//! The main job: a tool on a file of the current folder.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::{House, Ran, guest};

/// What differs from run to run and machine to machine.
const VARYING: &[&str] = &["action_id", "intent", "plan", "provenance", "times", "usage", "evidence", "enforcement"];

#[test]
fn a_tool_runs_and_its_observation_is_printed() {
    let house = House::cold();
    let ran = house.run(&["run", "text.count", "--arg", "path=a.txt"]).ok();
    let mut lines = ran.stdout.lines();
    assert!(lines.next().unwrap().starts_with("completed  text.count@1.0.0  "), "{}", ran.stdout);
    for line in ["  lines       2", "  words       3", "  bytes       14", "  characters  14"] {
        assert!(ran.stdout.lines().any(|printed| printed == line), "`{line}` is missing: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "colours go to terminals alone");
    house.is_tidy();
}

#[test]
fn the_observation_as_json() {
    let house = House::new();
    let mut seen = house.run(&["run", "text.count", "--arg", "path=a.txt", "--json"]).ok().json();
    assert_eq!(seen["provenance"]["backend"], "wasm-cell");
    let clauses: Vec<&str> =
        seen["enforcement"].as_array().unwrap().iter().map(|line| line["clause"].as_str().unwrap()).collect();
    for clause in [
        "filesystem[/workspace]",
        "limits.wall",
        "limits.memory",
        "limits.output",
        "limits.storage",
        "isolation.sharing",
    ] {
        assert!(clauses.contains(&clause), "{clause}: {clauses:?}");
    }
    let facts = seen["evidence"].as_array().unwrap();
    assert!(facts.iter().any(|fact| fact["subject"] == "/workspace/a.txt"), "{facts:?}");
    for key in VARYING {
        assert!(seen.as_object_mut().unwrap().remove(*key).is_some(), "{key}");
    }
    let text = seen["text"].take();
    assert!(text.as_str().unwrap().contains('2'), "{text}");
    let expected = json!({
        "schema": "glovebox/observation/v1",
        "capability": "text.count@1.0.0",
        "outcome": { "kind": "completed", "retryable": false },
        "data": { "lines": 2, "words": 3, "bytes": 14, "characters": 14 },
        "text": null,
        "output": { "stdout": { "text": "", "total": 0, "omitted": 0 }, "stderr": { "text": "", "total": 0, "omitted": 0 } },
        "artifacts": [],
        "effects": { "derived": "none", "side_effects": "none" },
        "notices": [],
        "trust": "untrusted",
    });
    assert_eq!(seen, expected);
}

#[test]
fn equal_requests_have_equal_intents_and_different_plans() {
    let house = House::new();
    let run = |args: &str| house.run(&["run", "text.count", "--json", "--args", args]).ok().json();
    let (one, two) = (run(r#"{"path":"a.txt"}"#), run(r#" { "path" : "\u0061.txt" } "#));
    assert_eq!(one["intent"], two["intent"]);
    assert_ne!(one["plan"], two["plan"]);
    house.file("workspace/a.txt", "changed\n");
    assert_ne!(run(r#"{"path":"a.txt"}"#)["intent"], one["intent"]);
}

#[test]
fn the_bare_result() {
    let house = House::new();
    let ran = house.run(&["run", "text.count", "--arg", "path=a.txt", "--raw"]).ok();
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["lines"], 2);
    let ran = house.run(&["run", "text.count", "--arg", "path=missing", "--raw"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("error [tool-failed]"), "{}", ran.stderr);
}

#[test]
fn every_built_in_tool_runs_as_it_ships() {
    let house = House::new();
    for args in [["fs.read", "path=a.txt"], ["fs.search", "pattern=three"], ["text.count", "path=a.txt"]] {
        house.run(&["run", args[0], "--arg", args[1]]).ok();
    }
}

#[test]
fn two_processes_on_a_cold_cache() {
    let house = House::cold();
    let start = || {
        let mut command = house.command();
        command.args(["run", "text.count", "--arg", "path=a.txt", "--json"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children = [start(), start(), start()];
    for child in children {
        let output = child.wait_with_output().unwrap();
        let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &seen["data"]["lines"]), (Some(0), &json!(2)), "{seen}");
    }
    house.is_tidy();
}

#[test]
fn a_damaged_cache_is_made_anew() {
    let house = House::new();
    let mut damaged = 0;
    for entry in fs_err::read_dir(house.state().join("compiled")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "cwasm") {
            let mut bytes = fs_err::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs_err::write(&path, bytes).unwrap();
            damaged += 1;
        }
    }
    assert!(damaged > 0);
    let seen = house.run(&["run", "text.count", "--arg", "path=a.txt", "--json"]).ok().json();
    assert_eq!(seen["data"]["lines"], 2);
    assert_eq!(seen["notices"][0]["kind"], "cache-corrupt", "{}", seen["notices"]);
    let seen = house.run(&["run", "text.count", "--arg", "path=a.txt", "--json"]).ok().json();
    assert_eq!(seen["notices"], json!([]));
    house.is_tidy();
}

/// A process that runs an action which does not end by itself, and is at it.
fn busy(house: &House) -> Child {
    busy_with(house, &[])
}

fn busy_with(house: &House, more: &[&str]) -> Child {
    let file = house.file("bulk.wasm", guest("bulk.wat"));
    house.run(&["tool", "add", &file, "--name", "bulk"]).ok();
    let mut command = house.command();
    command.args(["run", "bulk", "--json"]).args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut progress = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    // Progress says when it runs; nobody has to guess how long that takes.
    while !line.contains("running") {
        line.clear();
        assert!(progress.read_line(&mut line).unwrap() > 0, "it ended before it ran");
    }
    child
}

#[test]
fn a_key_of_what_runs_already_is_told_so_and_nobody_is_asked() {
    let house = House::new();
    let mut child = busy_with(&house, &["--key", "k"]);
    let again = house.run(&["run", "bulk", "--key", "k", "--ask", "leave", "--json"]);
    assert_eq!(again.code, 60, "{}{}", again.stdout, again.stderr);
    let action = &again.json()["running"]["action"];
    assert_eq!(action["state"], "running");
    let shown = house.run(&["run", "bulk", "--key", "k", "--ask", "leave"]);
    assert!(shown.code == 60 && shown.stdout.contains("--ask wait"), "{}", shown.stdout);
    house.run(&["action", "cancel", action["id"].as_str().unwrap()]).ok();
    assert_eq!(child.wait().unwrap().code(), Some(30));
}

/// Whoever looks sees what runs, for whom, and the process that can be asked
/// for more; without a server. What is over is not there.
#[test]
fn what_runs_is_listed_with_its_process() {
    let house = House::new();
    assert_eq!(house.json(&["ps"])["running"], json!([]));
    let mut child = busy(&house);
    // It is written down once it takes longer than a moment.
    let listed = loop {
        let listed = house.json(&["ps"])["running"].clone();
        if listed != json!([]) {
            break listed;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert_eq!(
        (&listed[0]["capability"], &listed[0]["process"]),
        (&json!("bulk@0.1.0"), &json!(child.id())),
        "{listed}"
    );
    let shown = house.run(&["ps"]).ok().stdout;
    let action = listed[0]["action"].as_str().unwrap();
    for word in [action, "bulk@0.1.0", "since 20", &format!("process {}", child.id())] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    house.run(&["action", "cancel", action]).ok();
    child.wait().unwrap();
    assert_eq!(house.json(&["ps"])["running"], json!([]));
    // One whose process was killed runs no more either.
    let mut child = busy(&house);
    while house.json(&["ps"])["running"] == json!([]) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(house.json(&["ps"])["running"], json!([]));
}

#[test]
fn an_interrupt_ends_the_action_and_is_observed() {
    let house = House::new();
    let mut child = busy(&house);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    let seen: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(30));
    assert_eq!((&seen["outcome"]["kind"], &seen["outcome"]["code"]), (&json!("interrupted"), &json!("interrupted")));
    house.is_tidy();
}

/// Processes whose command line has these words, as one of its arguments each.
fn running(words: &[&str]) -> Vec<String> {
    let processes = fs_err::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs_err::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| words.iter().all(|word| line.split(' ').any(|argument| argument == *word))).collect()
}

#[test]
fn nothing_survives_a_glovebox_that_is_killed() {
    let house = House::new();
    let mut child = busy(&house);
    let own = child.id().to_string();
    let words = ["__glovebox-zygote", own.as_str()];
    let within = |seconds, is: &dyn Fn(usize) -> bool| {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
        while !is(running(&words).len()) {
            assert!(std::time::Instant::now() < until, "{:?}", running(&words));
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    };
    // The zygote, the template, the cell.
    within(10, &|count| count >= 3);
    child.kill().unwrap();
    child.wait().unwrap();
    within(2, &|count| count == 0);
}

#[test]
fn budgets_hold_over_all_processes_of_a_state_folder() {
    let house = House::new();
    let mut child = busy(&house);
    // `bulk` may use 256 MiB and holds one of the places.
    for (variable, value) in [("GLOVEBOX_ADMISSION_ACTIONS", "1"), ("GLOVEBOX_ADMISSION_MEMORY", "270MiB")] {
        let mut second = house.command();
        second
            .args(["run", "text.count", "--arg", "path=a.txt"])
            .env(variable, value)
            .env("GLOVEBOX_ADMISSION_WAIT", "50ms");
        let ran = Ran::of(&mut second);
        assert_eq!(ran.code, 40, "{variable}: {}", ran.stdout);
        assert!(ran.stdout.contains("[busy]"), "{variable}: {}", ran.stdout);
        let mut unqueued = house.command();
        unqueued
            .args(["run", "text.count", "--arg", "path=a.txt"])
            .env(variable, value)
            .env("GLOVEBOX_ADMISSION_QUEUE", "0");
        assert_eq!(Ran::of(&mut unqueued).code, 40, "{variable}: the queue is not bounded");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // A process that was killed holds nothing, and who fits need not wait.
    let mut after = house.command();
    after
        .args(["run", "fs.search", "--arg", "pattern=x"])
        .env("GLOVEBOX_ADMISSION_ACTIONS", "1")
        .env("GLOVEBOX_ADMISSION_QUEUE", "0");
    let ran = Ran::of(&mut after);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let house = House::new();
    #[expect(clippy::disallowed_methods, reason = "a shell with a pipe")]
    let mut shell = std::process::Command::new("sh");
    let script = format!("'{}' explain | true", env!("CARGO_BIN_EXE_glovebox"));
    shell.args(["-c", &script]).current_dir(house.workspace());
    let ran = Ran::of(&mut shell);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}
