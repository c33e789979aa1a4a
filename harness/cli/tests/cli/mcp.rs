//! `glovebox mcp` as a client meets it: the program, its pipes, and a person at
//! another terminal.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::House;

/// A client of the older kind: it begins with a handshake.
pub(crate) struct Client {
    child: Child,
    write: ChildStdin,
    read: BufReader<ChildStdout>,
    asked: u32,
}

impl Client {
    pub(crate) fn start(house: &House, args: &[&str]) -> Self {
        let mut command = house.command();
        command
            .args(["mcp", "--no-serve"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (write, read) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Self { child, write, read, asked: 0 };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "root", "version": "1" },
        });
        let answer = client.ask("initialize", hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "glovebox");
        client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.write, "{message}").unwrap();
    }

    /// A request and its answer. Every line must be one of the protocol's.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        let mut line = String::new();
        self.read.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(answer["id"], self.asked, "{line}");
        answer
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))["result"].clone()
    }

    /// Closes standard input, and gives what standard error said.
    pub(crate) fn end(self) -> String {
        drop(self.write);
        let output = self.child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(!said.contains("panicked"), "{said}");
        said
    }
}

#[test]
fn an_agent_lists_and_calls_tools_and_the_program_ends_with_its_client() {
    let house = House::new();
    let mut client = Client::start(&house, &["--agent", "coder@1.2.0", "--session", "work"]);
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"text.count") && names.contains(&"glovebox.result"), "{names:?}");
    assert!(names.is_sorted());
    let counted = client.call("text.count", json!({ "path": "a.txt" }));
    assert_eq!((&counted["isError"], &counted["structuredContent"]["words"]), (&json!(false), &json!(3)), "{counted}");
    let said = client.end();
    assert_eq!(said.lines().count(), 1, "{said}");
    for word in ["`coder@1.2.0`", "session work", "(read)", "workspace"] {
        assert!(said.contains(word), "`{word}` is missing: {said}");
    }
    house.is_tidy();
    let listed = house.run(&["action", "list", "--session", "work", "--json"]).ok().json();
    let asked_by = &listed["actions"][0]["principal"];
    assert_eq!((&asked_by["agent"], &asked_by["agent_version"]), (&json!("coder"), &json!("1.2.0")), "{listed}");
}

/// What it says of itself makes a client nobody else, and an agent is always
/// one.
#[test]
fn a_client_that_nobody_named_is_an_agent_all_the_same() {
    let house = House::new();
    let mut client = Client::start(&house, &[]);
    client.call("text.count", json!({ "path": "a.txt" }));
    assert!(client.end().contains("agent `mcp`"));
    let listed = house.run(&["action", "list", "--json"]).ok().json();
    assert_eq!(listed["actions"][0]["principal"]["agent"], "mcp", "{listed}");
}

#[test]
fn a_person_decides_at_another_terminal_and_the_agent_gets_the_result() {
    let house = House::new();
    house.may_write();
    let mut client = Client::start(&house, &["--agent", "coder", "--workspace", ".:write"]);
    // A server that runs is named, as the place where people decide.
    let serve = json!({ "url": "http://127.0.0.1:4321/", "pid": std::process::id() });
    fs_err::write(house.state().join("serve.json"), serve.to_string()).unwrap();
    let asked = client.call("fs.write", json!({ "mode": "create", "path": "new.txt", "text": "words" }));
    let outcome = &asked["_meta"]["glovebox/outcome"];
    assert_eq!(outcome["code"], "approval-pending", "{asked}");
    let approval = outcome["approval_id"].as_str().unwrap();
    let told = asked["content"][0]["text"].as_str().unwrap();
    assert!(told.contains(&format!("http://127.0.0.1:4321/inbox/approvals/{approval}")), "{told}");
    assert!(!house.workspace().join("new.txt").exists());
    house.run(&["approvals", "approve", approval]).ok();
    let result = client.call("glovebox.result", json!({ "action_id": outcome["action_id"] }));
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(fs_err::read_to_string(house.workspace().join("new.txt")).unwrap(), "words");
    client.end();
    let mode = fs_err::metadata(house.state().join("mcp.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    house.is_tidy();
}

/// A key that others could have read seals nothing.
#[test]
fn a_key_that_is_none_or_that_others_can_read_is_refused() {
    let house = House::new();
    let key = house.state().join("mcp.key");
    for (bytes, mode) in [(32, 0o644), (31, 0o600)] {
        let _ = fs_err::remove_file(&key);
        fs_err::write(&key, vec![1_u8; bytes]).unwrap();
        fs_err::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        house.refuses(&["mcp"], 2, "key-invalid", &["mcp.key"]);
    }
}
