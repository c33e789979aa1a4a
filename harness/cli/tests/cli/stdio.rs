//! MCP servers on standard input and output, in containers: what they offer is
//! registered, called, asked about where it changed, and never believed.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::containers::{PYTHON, are_here, containers, docker};
use crate::people::Asked;
use crate::support::{House, Ran};

/// A server, as a command of Python's.
const SERVER: &str = include_str!("notes.py");

/// Rules that permit everything.
const EVERYTHING: &str = "@id(\"all\")\npermit (principal, action in Action::\"run\", resource);\n";

/// A house, where there is an engine with our images.
fn house() -> Option<House> {
    are_here().then(House::cold)
}

fn add<'a>(mode: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let add = ["tool", "add", "--mcp-stdio", "--image", PYTHON, "--name", "notes"];
    [&add[..], more, &["--", "python3", "-c", SERVER, mode]].concat()
}

fn called(house: &House, tool: &str) -> Value {
    let seen = house.run(&["run", &format!("notes.{tool}"), "--arg", "text=hello", "--json"]).json();
    assert_eq!(containers(house), Vec::<String>::new(), "{tool} left its container");
    seen
}

#[test]
fn a_server_in_an_image_is_called_and_shut_in() {
    let Some(house) = house() else { return };
    let limits = ["--limits", "wall=20s,memory=128MiB", "--limits", "pids=50", "--env", "WHO=me"];
    let ran = house.run(&add("well", &limits)).ok();
    assert!(ran.stderr.contains("registered notes.echo@1.0.0"), "{}", ran.stderr);
    assert!(ran.stderr.contains("the descriptions are the server's words"), "{}", ran.stderr);
    assert!(house.run(&add("well", &limits)).ok().stderr.contains("already registered: notes.echo@1.0.0"));
    assert_eq!(containers(&house), Vec::<String>::new());

    // Nothing that it can do reaches outside, so the shipped rules let it be called.
    let seen = called(&house, "echo");
    assert_eq!(seen["data"], "{\"text\": \"hello\"}", "{seen:#}");
    assert_eq!((&seen["trust"], &seen["provenance"]["backend"]), (&"untrusted".into(), &"mcp-container".into()));
    assert_eq!((&seen["effects"]["derived"], &seen["effects"]["side_effects"]), (&"none".into(), &"none".into()));
    assert_eq!(seen["output"]["stderr"]["text"], "notes: well\n", "{seen:#}");
    let digest = house.json(&["tool", "show", "notes.echo"])["manifest"]["contract"]["platform"]["image"].clone();
    let sources = seen["provenance"]["sources"].to_string();
    assert!(sources.contains("python3 -c") && sources.contains(digest.as_str().unwrap()), "{sources}");
    assert!(seen["enforcement"].to_string().contains("image by its digest"), "{seen:#}");
    assert_eq!(called(&house, "look-around")["data"], "65532 none read-only me");

    let shown = house.run(&["tool", "show", "notes.echo"]).ok().stdout;
    assert!(
        shown.contains("tool `echo` of the MCP server `python3 -c") && shown.contains("counted for nothing"),
        "{shown}"
    );
    let checked = house.run(&["tool", "check", "notes.echo"]).ok().stdout;
    assert!(checked.contains("says of it what was registered"), "{checked}");
    // Another command is another version, and what was registered stays.
    let ran = house.run(&add("other", &limits)).ok();
    assert!(ran.stderr.contains("registered notes.echo@2.0.0"), "{}", ran.stderr);
    assert_eq!(called(&house, "echo")["output"]["stderr"]["text"], "notes: other\n");
    assert_eq!(called(&house, "echo@1.0.0")["output"]["stderr"]["text"], "notes: well\n");
    house.is_tidy();
}

/// However a server ends, it is over, and it is said how.
#[test]
fn whatever_a_server_does_has_a_name_and_an_end() {
    let Some(house) = house() else { return };
    house.run(&add("well", &["--limits", "wall=6s,output=4MiB,memory=128MiB"])).ok();
    for (tool, code, which) in [
        ("die", "tool-trapped", "trap"),
        ("crash", "tool-trapped", "trap"),
        ("hang", "timed-out", "wall"),
        ("flood", "limit-hit", "output"),
        ("endless", "limit-hit", "output"),
        ("chat", "tool-failed", "bad-answer"),
        ("foreign", "tool-failed", "bad-answer"),
        ("fail", "tool-failed", "upstream"),
    ] {
        let outcome = called(&house, tool)["outcome"].clone();
        assert_eq!((&outcome["code"], &outcome["which"]), (&code.into(), &which.into()), "{tool}: {outcome}");
    }
    // One answer too many comes too late to matter.
    assert_eq!(called(&house, "twice")["data"], "{\"text\": \"hello\"}");
    house.is_tidy();
}

/// Who does not want it any more waits for no server.
#[test]
fn an_interrupted_call_ends_its_server() {
    let Some(house) = house() else { return };
    house.run(&add("well", &["--limits", "memory=128MiB"])).ok();
    let mut command = house.command();
    command.args(["run", "notes.hang", "--json"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let run = command.spawn().unwrap();
    // The one that is only looked at belongs to no action.
    let began = Instant::now();
    while containers(&house).iter().all(|id| docker(&["inspect", "--format", "{{.Name}}", id]).contains("talk-")) {
        assert!(began.elapsed() < Duration::from_secs(60), "it did not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(500));
    let pid = rustix::process::Pid::from_raw(run.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let ran = Ran::from(run.wait_with_output().unwrap());
    assert_eq!((ran.code, &ran.json()["outcome"]["code"]), (30, &"interrupted".into()), "{}", ran.stdout);
    assert_eq!(containers(&house), Vec::<String>::new());
    house.is_tidy();
}

/// What changed is not called before a person saw it, whatever the rules allow.
#[test]
fn a_server_that_says_something_else_is_asked_about() {
    let Some(house) = house() else { return };
    house.file("config/glovebox/policy/rules.cedar", EVERYTHING);
    let owner = "[classes.owner]\nsubjects = [\"*\"]\nassurance = \"same-user\"\n";
    house.file("config/glovebox/policy/approvers.toml", owner);
    house.run(&add("counts", &[])).ok();
    assert_eq!(called(&house, "echo")["outcome"]["kind"], "completed");
    // The server sees what it may use (and PID 1 beside it), and says so.
    let ceiling = house.run(&["config", "show", "--ceiling=shipped"]).ok().stdout;
    house.file("config/glovebox/ceiling.toml", ceiling.replace("pids = 256", "pids = 200"));
    let checked = house.run(&["tool", "check", "notes.echo"]);
    assert!(checked.code == 2 && checked.stdout.contains("its server changed the description"), "{}", checked.stdout);
    let asked = Asked::of(&house.run(&["run", "notes.echo", "--arg", "text=hello", "--agent", "coder", "--json"]));
    let card = house.json(&["approvals", "show", &asked.approval]);
    assert_eq!(card["asked_for"], "drift", "{card:#}");
    assert!(card["changed"].to_string().contains("At most 201"), "{card:#}");
    house.run(&["approvals", "approve", &asked.approval]).ok();
    assert_eq!(house.resumes(&asked.action).ok().json()["data"], "{\"text\": \"hello\"}");
    // Registered again, it is what it is.
    assert!(house.run(&add("counts", &[])).ok().stderr.contains("registered notes.echo@2.0.0"));
    assert_eq!(called(&house, "echo")["outcome"]["kind"], "completed");
    // One that never says the same is asked about each time, and not called.
    house.run(&add("wavers", &[])).ok();
    let run = ["run", "notes.echo", "--agent", "coder", "--json"];
    let asked = Asked::of(&house.run(&run));
    house.run(&["approvals", "approve", &asked.approval]).ok();
    assert_eq!(house.resumes(&asked.action).code, 38, "what was approved is not what it says now");
    assert_eq!(containers(&house), Vec::<String>::new());
}

#[test]
fn what_is_no_server_or_nowhere_is_refused_with_a_way_out() {
    let stdio = ["tool", "add", "--mcp-stdio"];
    let cold = House::cold();
    cold.refuses(
        &[&stdio[..], &["--", "npx", "-y", "server"]].concat(),
        55,
        "isolation-unavailable",
        &["`npx`", "--image"],
    );
    assert_eq!(cold.run(&stdio).code, 2);
    assert_eq!(cold.run(&["tool", "add", "--image", PYTHON, "--", "python3"]).code, 2);
    let reserved = ["--image", PYTHON, "--name", "fs", "--", "python3"];
    cold.refuses(&[&stdio[..], &reserved].concat(), 2, "tool-reserved", &["--name"]);
    let Some(house) = house() else { return };
    let within = ["--limits", "wall=4s,memory=128MiB"];
    house.refuses(&add("dies", &within), 2, "upstream-program", &["exit code 1", "no database"]);
    house.refuses(&add("hangs", &within), 2, "upstream-program", &["no answer in time", "notes: hangs"]);
    house.refuses(&add("chats", &within), 2, "upstream-invalid", &["Listening on"]);
    house.refuses(&add("endless", &within), 2, "upstream-invalid", &["more than is listened to"]);
    house.refuses(&add("well", &["--limits", "memory=16GiB"]), 21, "contract-unsatisfied", &["the ceiling has"]);
    let other = |image: &str, program: &str, code| {
        house.refuses(&[&stdio[..], &["--image", image, "--name", "notes", "--", program]].concat(), 2, code, &[]);
    };
    other(PYTHON, "no-such-program", "image-command");
    other("no/such:1", "python3", "image-unknown");
    assert_eq!(containers(&house), Vec::<String>::new());
    assert!(house.run(&["tool", "list"]).ok().stdout.lines().all(|line| !line.starts_with("notes.")));
}
