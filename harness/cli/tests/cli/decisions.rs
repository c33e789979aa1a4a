//! An agent asks, a person decides: through the program, as both meet it.

use std::process::Stdio;

use crate::people::{Asked, ended, strs, write};
use crate::support::{House, Ran};

#[test]
fn what_a_person_approved_runs_once() {
    let house = House::that_may_write();
    let asked = house.asks_to_write("n.txt");
    let pending = house.pending();
    assert_eq!((pending.len(), &pending[0]["approval"]), (1, &asked.approval.as_str().into()));
    let card = house.json(&["approvals", "show", &asked.approval]);
    assert_eq!((&card["action"], &card["requester"]["agent"]), (&asked.action.as_str().into(), &"coder".into()));
    assert!(card["arguments"].as_str().unwrap().contains("n.txt"), "{card:#}");
    let shown = house.run(&["approvals", "show", &asked.approval]).ok().stdout;
    assert!(shown.contains("agent coder for") && shown.contains("offer once"), "{shown}");

    assert_eq!(house.resumes(&asked.action).code, 38, "nobody answered");
    let plan = card["plan"].as_str().unwrap();
    house.refuses(&["approvals", "approve", &asked.approval, "--plan", "000000000000"], 33, "drift", &[plan]);
    let settled = house.json(&["approvals", "approve", &asked.approval, "--plan", plan]);
    assert_eq!((&settled["approval"]["state"], &settled["repeated"]), (&"approved".into(), &false.into()));
    assert!(!house.has("n.txt"), "approving ran it");

    let first = house.resumes(&asked.action).ok();
    assert!(house.has("n.txt"));
    fs_err::remove_file(house.workspace().join("n.txt")).unwrap();
    let again = house.resumes(&asked.action).ok();
    assert_eq!(again.json(), first.json());
    assert!(!house.has("n.txt"), "it ran twice");
    assert_eq!(house.json(&["approvals", "approve", &asked.approval])["repeated"], true);
    house.refuses(&["approvals", "decline", &asked.approval], 35, "approval-closed", &["consumed by"]);
    let view = house.json(&["action", "show", &asked.action]);
    assert_eq!((&view["state"], &view["right"]["kind"]), (&"succeeded".into(), &"approval".into()), "{view:#}");
    house.is_tidy();
}

#[test]
fn whoever_waits_goes_on_when_somebody_approves_elsewhere() {
    let house = House::that_may_write();
    let mut command = house.command();
    command.args(write("n.txt", &["--ask", "wait"])).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let approval = loop {
        if let [card] = &house.pending()[..] {
            break card["approval"].as_str().unwrap().to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    house.run(&["approvals", "approve", &approval]).ok();
    // If it did not go on, this would not come back.
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(house.has("n.txt"));
}

#[test]
fn a_decline_ends_it_with_the_persons_words_and_is_remembered() {
    let house = House::that_may_write();
    let asked = house.asks_to_write("n.txt");
    house.run(&["approvals", "decline", &asked.approval, "--say", "put it under docs/"]).ok();
    let (exit, code, message) = ended(&house.resumes(&asked.action));
    assert_eq!((exit, code.as_str()), (23, "declined"));
    assert!(message.contains("put it under docs/"), "{message}");
    // The same again in this task is not asked again.
    let again = house.writes("n.txt", &[]);
    let outcome = again.json()["outcome"].clone();
    assert_eq!((again.code, &outcome["which"]), (23, &"before".into()), "{outcome}");
    assert!(outcome["message"].as_str().unwrap().contains("put it under docs/"), "{outcome}");
    assert!(house.pending().is_empty() && !house.has("n.txt"));
    // In another task, and for something else, it is.
    Asked::of(&house.writes("n.txt", &["--task", "other"]));
    house.asks_to_write("m.txt");
    assert_eq!(house.pending().len(), 2);
}

#[test]
fn edited_arguments_are_asked_anew() {
    let house = House::that_may_write();
    let asked = house.asks_to_write("n.txt");
    let other = r#"{"mode": "create", "path": "m.txt", "text": "y"}"#;
    let settled = house.json(&["approvals", "edit", &asked.approval, "--args", other]);
    assert_eq!(settled["approval"]["state"], "edited");
    let next = settled["action"]["approval"]["id"].as_str().unwrap().to_owned();
    assert_ne!(next, asked.approval);
    house.refuses(&["approvals", "approve", &asked.approval], 35, "approval-closed", &["edited by"]);
    assert_eq!(house.resumes(&asked.action).code, 38, "the edit was taken for an approval");
    house.run(&["approvals", "approve", &next]).ok();
    house.resumes(&asked.action).ok();
    assert!(house.has("m.txt") && !house.has("n.txt"));
}

#[test]
fn where_nobody_can_be_asked_nothing_is_left_waiting() {
    let house = House::that_may_write();
    let (exit, code, message) = ended(&house.writes("n.txt", &["--ask", "never"]));
    assert_eq!((exit, code.as_str()), (25, "unattended"));
    assert!(message.contains("owner or person"), "{message}");
    assert!(house.pending().is_empty() && !house.has("n.txt"));
    house.refuses(
        &strs(&write("n.txt", &["--ask", "here"]))[..]
            .iter()
            .filter(|arg| **arg != "--json")
            .copied()
            .collect::<Vec<_>>(),
        26,
        "unsupported",
        &["no terminal"],
    );
}

#[test]
fn one_key_is_one_run() {
    let house = House::that_may_write();
    let append = |text: &str| {
        let text = format!("text={text}");
        let own = ["run", "fs.write", "--arg", "mode=append", "--arg", "path=a.txt", "--workspace", ".:write"];
        house.run(&[&own[..], &["--key", "once", "--json", "--arg", &text]].concat())
    };
    let (first, second) = (append("more").ok().json(), append("more").ok().json());
    assert_eq!(first, second);
    let text = fs_err::read_to_string(house.workspace().join("a.txt")).unwrap();
    assert_eq!(text, "one two\nthree\nmore");
    let other = append("other");
    assert_eq!((other.code, &other.json()["problem"]["code"]), (37, &"key-conflict".into()));
    assert_eq!(house.json(&["action", "list"])["actions"].as_array().unwrap().len(), 1);
}

#[test]
fn what_was_allowed_for_a_session_holds_until_it_is_taken_back() {
    let house = House::that_may_write();
    let asked = house.asks_to_write("1.txt");
    let settled = house.json(&["approvals", "approve", &asked.approval, "--offer", "session"]);
    let grant = settled["grant"]["id"].as_str().unwrap().to_owned();
    house.resumes(&asked.action).ok();
    house.writes("2.txt", &[]).ok();
    assert_eq!(house.writes("3.txt", &["--session", "other"]).code, 38, "another session");
    let other = house.run(&[
        "run",
        "fs.write",
        "--arg",
        "path=4.txt",
        "--arg",
        "mode=create",
        "--arg",
        "text=x",
        "--workspace",
        ".:write",
        "--agent",
        "other",
        "--json",
    ]);
    assert_eq!(other.code, 38, "another agent");
    let listed = house.json(&["grants", "list"]);
    assert_eq!((&listed["grants"][0]["id"], listed["grants"].as_array().unwrap().len()), (&grant.as_str().into(), 1));
    let shown = house.run(&["grants", "list"]).ok().stdout;
    assert!(shown.contains(&grant) && shown.contains("session  for coder"), "{shown}");
    house.json(&["grants", "revoke", &grant[..8]]);
    assert_eq!(house.writes("5.txt", &[]).code, 38, "it was taken back");
    assert_eq!(house.json(&["grants", "list"])["grants"].as_array().unwrap().len(), 0);
    assert!(house.json(&["grants", "list", "--all"])["grants"][0]["revoked"].is_object());
}

#[test]
fn a_stop_ends_what_waits_and_lets_nothing_past_until_it_is_released() {
    let house = House::that_may_write();
    let asked = house.asks_to_write("n.txt");
    let stopped = house.json(&["stop", "--all", "--reason", "it runs wild"]);
    assert_eq!((&stopped["halted"], &stopped["stopped"]["waiting"]), (&true.into(), &1.into()));
    let read = || house.run(&["run", "text.count", "--arg", "path=a.txt", "--json"]);
    let (exit, code, message) = ended(&read());
    assert_eq!((exit, code.as_str()), (39, "halted"));
    assert!(message.contains("it runs wild"), "{message}");
    let explained = house.run(&["policy", "explain", "text.count", "--arg", "path=a.txt", "--json"]);
    assert_eq!((explained.code, &explained.json()["problem"]["code"]), (39, &"halted".into()));
    let doctor = house.run(&["doctor", "--json"]);
    let lines = doctor.json()["lines"].clone();
    let line = |what: &str| lines.as_array().unwrap().iter().find(|line| line["what"] == what).unwrap().clone();
    assert_eq!((doctor.code, &line("stop")["status"]), (42, &"failed".into()), "{lines:#}");
    assert!(line("stop")["help"].as_str().unwrap().contains("stop --release"));
    house.json(&["stop", "--release"]);
    read().ok();
    // What waited is over.
    house.refuses(&["approvals", "approve", &asked.approval], 35, "approval-closed", &["withdrawn"]);
    assert!(house.resumes(&asked.action).code != 0 && !house.has("n.txt"));
}

#[test]
fn ids_that_are_nobodys_anothers_or_too_short() {
    let house = House::that_may_write();
    let asked = house.asks_to_write("n.txt");
    let (action, approval) = (&asked.action, &asked.approval);
    let foreign = {
        let other = House::that_may_write();
        other.asks_to_write("n.txt")
    };
    for id in [foreign.approval.as_str(), "0000000000000000", &approval[..4]] {
        for command in ["show", "approve", "decline"] {
            house.refuses(
                &["approvals", command, id],
                2,
                "approval-unknown",
                &[&format!("there is no approval `{id}`")],
            );
        }
    }
    for id in [foreign.action.as_str(), "0000000000000000", &action[..4]] {
        for command in ["show", "events", "cancel", "resume"] {
            house.refuses(&["action", command, id], 2, "action-unknown", &[&format!("there is no action `{id}`")]);
        }
    }
    house.refuses(&["grants", "revoke", "0000000000000000"], 2, "grant-unknown", &["there is no grant"]);
    // Another agent's action is none, in the same words.
    let own = house.run(&["action", "resume", action, "--agent", "other"]);
    assert!(own.code == 2 && own.stderr.contains(&format!("there is no action `{action}`")), "{}", own.stderr);
    // The beginning of an id is enough where no other begins so.
    assert_eq!(house.json(&["approvals", "show", &approval[..8]])["approval"], approval.as_str());
    assert!(house.pending().len() == 1 && !house.has("n.txt"));
}

#[test]
fn an_agent_answers_nothing() {
    let house = House::that_may_write();
    let asked = house.asks_to_write("n.txt");
    let mut command = house.command();
    let ran = Ran::of(command.args(["approvals", "approve", &asked.approval]).env("GLOVEBOX_AGENT", "coder"));
    assert!(ran.code == 36 && ran.stderr.contains("an agent approves nothing"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(house.resumes(&asked.action).code, 38);
}

#[test]
fn every_list_and_show_is_json_for_programs() {
    let house = House::that_may_write();
    let asked = house.asks_to_write("n.txt");
    for args in [
        &["action", "list"][..],
        &["action", "list", "--open"],
        &["action", "show", &asked.action],
        &["action", "events", &asked.action],
        &["approvals", "list"],
        &["approvals", "list", "--all"],
        &["approvals", "show", &asked.approval],
        &["grants", "list"],
        &["grants", "list", "--all"],
        &["approver", "list"],
        &["token", "list"],
        &["policy", "check"],
        &["policy", "test"],
        &["audit", "verify"],
        &["db", "check"],
        &["tool", "list"],
        &["tool", "search", "fs"],
        &["tool", "show", "fs.write"],
        &["artifacts", "list"],
        &["config", "show"],
        &["gc", "--dry-run"],
    ] {
        let json = house.json(args);
        assert!(json.is_object(), "{args:?}: {json}");
        assert!(!house.run(args).ok().stdout.starts_with('{'), "{args:?} is JSON without being asked");
    }
}

/// A person pastes what is shown, in another terminal.
#[test]
fn commands_that_are_shown_name_the_state_folder() {
    let house = House::that_may_write();
    let elsewhere = house.path("my state");
    let mut command = house.command();
    command.env_remove("GLOVEBOX_STATE").args(["--state", &elsewhere]);
    let asked = Ran::of(command.args(write("n.txt", &[]).into_iter().filter(|arg| arg != "--json")));
    assert_eq!(asked.code, 38, "{}{}", asked.stdout, asked.stderr);
    let (_, hint) = asked.stdout.split_once("hint: `glovebox ").unwrap();
    let approve = hint.split_once('`').unwrap().0;
    assert!(approve.starts_with(&format!("--state '{elsewhere}' approvals approve ")), "{approve}");
    #[expect(clippy::disallowed_methods, reason = "a person's shell")]
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("exec {} {approve}", env!("CARGO_BIN_EXE_glovebox"))]);
    shell.env_clear().env("HOME", house.path("")).env("XDG_CONFIG_HOME", house.path("config"));
    assert!(Ran::of(&mut shell).ok().stdout.contains("is approved"));
}
