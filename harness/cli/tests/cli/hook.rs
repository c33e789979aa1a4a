//! An agent's own tools: it asks before each call, and whatever goes wrong
//! stops the call.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{House, Ran};

/// What the agent is told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Allow,
    Deny(String),
    Nothing,
}

impl House {
    /// The hook, where nobody waits for a person: the question stays.
    pub(crate) fn hook(&self) -> Command {
        let mut command = self.command();
        command.env("GLOVEBOX_APPROVALS_ASK", "leave").arg("hook");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn call(&self, tool: &str, input: &Value) -> String {
        let call = json!({
            "session_id": "5f0c8a3e-1d2b-4c9f-9a77-000000000001", "transcript_path": "/tmp/t.jsonl",
            "cwd": self.workspace(), "permission_mode": "default", "hook_event_name": "PreToolUse",
            "tool_name": tool, "tool_input": input, "tool_use_id": "toolu_01", "new_to_us": { "deep": [1] },
        });
        call.to_string()
    }

    fn asks(&self, tool: &str, input: &Value) -> Told {
        told(&heard(self.hook(), self.call(tool, input).into_bytes()))
    }

    /// The same where it has to be denied; why.
    fn denies(&self, tool: &str, input: &Value) -> String {
        match self.asks(tool, input) {
            Told::Deny(why) => why,
            other => panic!("{tool} {input}: {other:?}"),
        }
    }

    pub(crate) fn policy_adds(&self, rules: &str) {
        let folder = self.path("config/glovebox/policy");
        self.run(&["policy", "init", &folder]).ok();
        fs_err::write(Path::new(&folder).join("own.cedar"), rules).unwrap();
    }
}

/// Runs it with something on standard input.
pub(crate) fn heard(mut command: Command, input: Vec<u8>) -> Ran {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
}

pub(crate) fn told(ran: &Ran) -> Told {
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stdout.lines().count(), 1, "{ran:?}");
    let said = ran.json();
    if said == json!({}) {
        return Told::Nothing;
    }
    let said = &said["hookSpecificOutput"];
    assert_eq!(said["hookEventName"], "PreToolUse", "{ran:?}");
    match said["permissionDecision"].as_str().unwrap() {
        "allow" => Told::Allow,
        "deny" => Told::Deny(said["permissionDecisionReason"].as_str().unwrap().to_owned()),
        other => panic!("{other}"),
    }
}

pub(crate) fn bash(command: &str) -> Value {
    json!({ "command": command, "description": "what the model says of it" })
}

#[test]
fn what_a_person_approved_goes_ahead_once() {
    let house = House::new();
    let why = house.denies("Bash", &bash("cargo test"));
    let pending = house.json(&["approvals", "list"])["approvals"].clone();
    assert_eq!(pending.as_array().unwrap().len(), 1, "{pending}");
    let (approval, action) = (pending[0]["approval"].as_str().unwrap(), pending[0]["action"].as_str().unwrap());
    assert!(why.contains(action) && why.contains(approval) && why.contains("very same call"), "{why}");
    let card = house.json(&["approvals", "show", approval]);
    assert_eq!((&card["capability"], &card["effects"]), (&json!("native.shell@1.0.0"), &json!("external")), "{card:#}");
    assert_eq!(card["requester"]["agent"], "claude-code");
    assert_eq!(card["session"], "5f0c8a3e-1d2b-4c9f-9a77-000000000001");
    assert_eq!(card["model_purpose"], "what the model says of it");
    assert!(card["uncontained"].as_str().unwrap().starts_with("nothing: "), "{card:#}");
    assert_eq!(card["clauses"], json!([]), "what holds for nothing is no clause");
    let shown = house.run(&["approvals", "show", approval]);
    assert!(shown.stdout.contains("CONTAINED    by nothing"), "{shown:?}");

    // Asked again before anybody decided, it is the same question.
    assert!(house.denies("Bash", &bash("cargo test")).contains(approval));
    house.run(&["approvals", "approve", approval]).ok();
    // Another call is not that call, and in another folder or beyond the agent's
    // own sandbox it is another.
    for other in [
        bash("cargo test --all"),
        json!({ "command": "cargo test", "dangerouslyDisableSandbox": true }),
        json!({ "command": "cargo test", "run_in_background": true }),
        json!({ "command": "cargo test", "new_to_us": "x" }),
    ] {
        house.denies("Bash", &other);
    }
    let same = json!({ "command": "cargo test", "description": "other words" });
    assert_eq!(house.asks("Bash", &same), Told::Allow);
    assert!(!house.denies("Bash", &bash("cargo test")).contains(approval), "it went ahead twice");
    let view = house.json(&["action", "show", action]);
    assert_eq!((&view["state"], &view["right"]["kind"]), (&json!("succeeded"), &json!("approval")), "{view:#}");
    let seen = &view["observation"];
    assert_eq!(seen["enforcement"][0]["value"], "none", "{seen:#}");
    assert!(seen["notices"].to_string().contains("nothing contains it"), "{seen:#}");
    house.run(&["audit", "verify"]).ok();
    house.is_tidy();
}

/// A helper's call is seen to be one, and gets nothing that the agent itself got.
#[test]
fn a_helper_of_the_agent_asks_for_itself() {
    let house = House::new();
    let by_helper = |kind: Value| {
        let mut call: Value = serde_json::from_str(&house.call("Bash", &bash("make"))).unwrap();
        (call["agent_id"], call["agent_type"]) = (json!("agent-1"), kind);
        heard(house.hook(), call.to_string().into_bytes())
    };
    house.denies("Bash", &bash("make"));
    let approval = house.json(&["approvals", "list"])["approvals"][0]["approval"].as_str().unwrap().to_owned();
    house.run(&["approvals", "approve", &approval]).ok();
    let Told::Deny(why) = told(&by_helper(json!("Explore"))) else { panic!("it had the agent's approval") };
    assert!(!why.contains(&approval), "{why}");
    let of_helper = house.json(&["approvals", "list"])["approvals"][0]["approval"].as_str().unwrap().to_owned();
    let card = house.json(&["approvals", "show", &of_helper]);
    assert!(card["arguments"].as_str().unwrap().contains(r#""subagent":"Explore""#), "{card:#}");
    assert_eq!(card["requester"]["agent"], "claude-code", "its name is the agent's word");
    assert_eq!(house.asks("Bash", &bash("make")), Told::Allow);
    assert_eq!(by_helper(json!({ "kind": "Explore" })).code, 2, "what can't be read is stopped");
}

#[test]
fn of_two_that_ask_at_once_one_goes_ahead() {
    let house = House::new();
    house.denies("Bash", &bash("make"));
    let pending = house.json(&["approvals", "list"])["approvals"].clone();
    house.run(&["approvals", "approve", pending[0]["approval"].as_str().unwrap()]).ok();
    let call = house.call("Bash", &bash("make"));
    let asked: Vec<_> = (0..4)
        .map(|_| {
            let (hook, call) = (house.hook(), call.clone().into_bytes());
            std::thread::spawn(move || told(&heard(hook, call)))
        })
        .collect();
    let answers: Vec<Told> = asked.into_iter().map(|asked| asked.join().unwrap()).collect();
    assert_eq!(answers.iter().filter(|told| **told == Told::Allow).count(), 1, "{answers:?}");
}

/// What one of them used up is no answer for the others, though it ended well.
#[test]
fn of_those_that_wait_for_one_answer_one_goes_ahead() {
    let house = House::new();
    let start = || {
        let mut hook = house.hook();
        hook.env_remove("GLOVEBOX_APPROVALS_ASK");
        let call = house.call("Bash", &bash("make")).into_bytes();
        std::thread::spawn(move || told(&heard(hook, call)))
    };
    let mut asked = vec![start()];
    while house.pending().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    asked.extend([start(), start()]);
    // Time for them to find it; whoever comes later asks anew, and is told no.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let mut verb = "approve";
    while !asked.iter().all(std::thread::JoinHandle::is_finished) {
        for card in house.pending() {
            house.run(&["approvals", verb, card["approval"].as_str().unwrap()]);
            verb = "decline";
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let answers: Vec<Told> = asked.into_iter().map(|asked| asked.join().unwrap()).collect();
    assert_eq!(answers.iter().filter(|told| **told == Told::Allow).count(), 1, "{answers:?}");
}

#[test]
fn whoever_waits_hears_it_when_a_person_decides() {
    let house = House::new();
    for (verb, goes) in [("approve", true), ("decline", false)] {
        let call = house.call("Bash", &bash(&format!("make {verb}"))).into_bytes();
        let mut hook = house.hook();
        hook.env_remove("GLOVEBOX_APPROVALS_ASK");
        let asked = std::thread::spawn(move || told(&heard(hook, call)));
        let approval = loop {
            let pending = house.json(&["approvals", "list"])["approvals"].clone();
            if let Some(approval) = pending[0]["approval"].as_str() {
                break approval.to_owned();
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        house.run(&["approvals", verb, &approval]).ok();
        assert_eq!(asked.join().unwrap() == Told::Allow, goes);
    }
}

#[test]
fn an_agent_reads_its_workspace_and_neither_what_is_hidden_nor_what_lies_elsewhere() {
    let house = House::new();
    house.file("workspace/.env", "KEY=1");
    house.file("workspace/src/deep/ok.rs", "fn main() {}");
    house.file("workspace/src/.git/config", "");
    house.file("workspace/lib/node_modules/p/.env", "KEY=2");
    house.file("elsewhere/notes.txt", "private");
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(house.path(to), house.workspace().join(name)).unwrap();
    link("elsewhere/notes.txt", "link.txt");
    link("workspace/.env", "plain.txt");
    link("nowhere", "dangling");
    let read = |path: &str| ("Read", json!({ "file_path": path }));
    let inside = |path: &str| house.workspace().join(path).display().to_string();
    for (tool, input) in [
        read(&inside("a.txt")),
        read("a.txt"),
        read(&inside("src/../a.txt")),
        read(&inside("not-yet.txt")),
        ("Glob", json!({ "pattern": "**/*.rs" })),
        ("LS", json!({ "path": inside("") })),
        ("Grep", json!({ "pattern": "main", "path": inside("src") })),
    ] {
        assert_eq!(house.asks(tool, &input), Told::Allow, "{tool} {input}");
    }
    for (tool, input) in [
        read(&inside(".env")),
        read("plain.txt"),
        read("link.txt"),
        read("dangling"),
        read(&house.path("elsewhere/notes.txt")),
        read("../elsewhere/notes.txt"),
        read("src/none/../../../elsewhere/notes.txt"),
        read("/etc/passwd"),
        read("~/elsewhere/notes.txt"),
        read(&house.state().join("state.db").display().to_string()),
        // An agent may cut off what nobody sees.
        read(" /etc/passwd"),
        read("/etc/passwd\t"),
        read("\u{feff}/etc/passwd"),
        ("Grep", json!({ "pattern": "root", "path": " /etc" })),
        ("Glob", json!({ "pattern": "passwd", "path": " /etc" })),
        ("Grep", json!({ "pattern": "KEY" })),
        ("Grep", json!({ "pattern": "KEY", "path": "lib" })),
        ("Grep", json!({ "pattern": "url", "path": "src", "glob": ".git/**" })),
        ("Grep", json!({ "pattern": "url", "path": "src/.git" })),
        ("Glob", json!({ "pattern": "../elsewhere/*" })),
        ("Glob", json!({ "pattern": "/etc/*" })),
    ] {
        let ran = heard(house.hook(), house.call(tool, &input).into_bytes());
        let denied = ran.code == 2 && ran.stdout.is_empty() || matches!(told(&ran), Told::Deny(_));
        assert!(denied, "{tool} {input}: {ran:?}");
    }
    // What is decided with is nobody's to give away.
    let own = house.denies("Write", &json!({ "file_path": house.path("config/glovebox/ceiling.toml"), "content": "" }));
    assert!(own.contains("policy-denied") && own.contains("nothing there is for agents"), "{own}");
}

#[test]
fn a_grant_for_the_workspace_ends_at_its_edge_and_before_the_agents_settings() {
    let house = House::new();
    let write = |path: &str| json!({ "file_path": path, "content": "x" });
    house.denies("Write", &write("b.txt"));
    let pending = house.json(&["approvals", "list"])["approvals"].clone();
    house.run(&["approvals", "approve", pending[0]["approval"].as_str().unwrap(), "--offer", "session"]).ok();
    for path in ["b.txt", "src/c.txt"] {
        assert_eq!(house.asks("Write", &write(path)), Told::Allow, "{path}");
    }
    for path in [".claude/settings.json", ".git/hooks/pre-commit", ".env", "../d.txt", "CLAUDE.md"] {
        house.denies("Write", &write(path));
    }
    house.denies("Edit", &json!({ "file_path": "b.txt", "old_string": "x", "new_string": "y" }));
}

#[test]
fn a_rule_decides_with_its_reason_and_stop_stops_it() {
    let house = House::new();
    house.policy_adds(
        "@id(\"tests\") permit (principal, action in Action::\"native.shell\", resource)\n\
         when { context.facets has command && context.facets.command has program &&\n\
         context.facets.command.program == \"make\" };\n\
         @id(\"no-rm\") @model(\"nothing is removed here\")\n\
         forbid (principal, action in Action::\"native.shell\", resource) when { context.may_run.contains(\"rm\") };\n\
         @id(\"docs\") permit (principal, action in Action::\"native.fetch\", resource)\n\
         when { context.args has host && context.args.host == \"docs.example.com\" };\n",
    );
    assert_eq!(house.asks("Bash", &bash("make -s check")), Told::Allow);
    house.denies("Bash", &bash("make; true"));
    let why = house.denies("Bash", &bash("make clean && rm -rf target"));
    assert!(why.contains("nothing is removed here"), "{why}");
    let fetch = |url: &str| json!({ "url": url, "prompt": "what is new" });
    assert_eq!(house.asks("WebFetch", &fetch("https://docs.example.com/a")), Told::Allow);
    for url in ["https://docs.example.com.evil.net/", "https://docs.example.com@evil.net/", "no address"] {
        house.denies("WebFetch", &fetch(url));
    }
    assert_eq!(house.asks("TodoWrite", &json!({ "todos": [] })), Told::Allow);
    house.denies("mcp__prod__deploy", &json!({}));
    house.run(&["stop", "--all"]).ok();
    let why = house.denies("Bash", &bash("make -s check"));
    assert!(why.contains("halted"), "{why}");
}

/// They are decided on when they are called, and by the same service.
#[test]
fn tools_of_our_own_server_are_left_to_it() {
    let house = House::new();
    assert_eq!(house.asks("mcp__glovebox__text_count", &json!({ "path": "a.txt" })), Told::Nothing);
    for tool in ["mcp__glovebox_evil__x", "mcp__evil__glovebox__x", "mcp__glovebox__", "glovebox__x"] {
        house.denies(tool, &json!({}));
    }
}

#[test]
fn nobody_else_calls_what_an_agent_does_by_itself() {
    let house = House::new();
    let args = json!({
        "tool": "Bash", "command": "true", "workspace": "/", "cwd": "/", "background": false, "unsandboxed": false,
    });
    let run = ["run", "native.shell", "--args", &args.to_string()];
    house.refuses(&run, 26, "unsupported", &["nothing of it runs here", "asks for its own"]);
    house.run(&["tool", "list"]).ok().stdout.lines().for_each(|line| assert!(!line.contains("native."), "{line}"));
    let mut client = crate::mcp::Client::start(&house, &["--agent", "claude-code"]);
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].to_string();
    assert!(!tools.contains("native."), "{tools}");
    for name in ["native.shell", "native_shell"] {
        let called = client.ask("tools/call", json!({ "name": name, "arguments": args.clone() }));
        assert!(!called["error"].is_null() || called["result"]["isError"] == true, "{called}");
    }

    // Nor does somebody else go on with it: that would use the right up.
    house.denies("Bash", &bash("make"));
    let card = house.json(&["approvals", "list"])["approvals"][0].clone();
    let (approval, action) = (card["approval"].as_str().unwrap(), card["action"].as_str().unwrap());
    house.refuses(&["approvals", "edit", approval, "--args", &args.to_string()], 2, "usage", &["can't be edited"]);
    house.run(&["approvals", "approve", approval]).ok();
    let resumed = house.run(&["action", "resume", action, "--agent", "claude-code", "--json"]);
    assert_eq!(resumed.code, 38, "{resumed:?}");
    let result = client.call("glovebox.result", json!({ "action_id": action }));
    assert_eq!(result["isError"], true, "{result}");
    client.end();
    assert_eq!(house.asks("Bash", &bash("make")), Told::Allow);
}
