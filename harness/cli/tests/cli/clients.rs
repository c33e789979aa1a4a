//! The clients that people have, played: what each says of itself, what it can't
//! do, and that it gives a call up after a minute. And the server that the first
//! of them starts for the people who decide.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::House;

/// A client, message by message.
struct Raw {
    child: Child,
    write: ChildStdin,
    read: BufReader<ChildStdout>,
    asked: u64,
}

/// What a client says of itself.
struct Shape {
    name: &'static str,
    version: &'static str,
    capabilities: Value,
    /// Whether it opens pages for its user.
    opens: bool,
}

fn shapes() -> [Shape; 4] {
    let shape = |name, version, capabilities, opens| Shape { name, version, capabilities, opens };
    [
        shape("claude-code", "2025-11-25", json!({ "roots": {}, "elicitation": {} }), false),
        shape("codex-mcp-client", "2025-06-18", json!({ "elicitation": {} }), false),
        shape("cursor-vscode", "2025-11-25", json!({ "roots": { "listChanged": false } }), false),
        shape(
            "Visual Studio Code",
            "2025-11-25",
            json!({ "roots": { "listChanged": true }, "sampling": {}, "elicitation": { "form": {}, "url": {} } }),
            true,
        ),
    ]
}

impl Raw {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (write, read) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, write, read, asked: 0 }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.write, "{message}").unwrap();
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.asked += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        self.asked
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.read.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The answer to a request, past what is told meanwhile.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let heard = self.hear();
            if heard["id"] == id && heard["method"].is_null() {
                return heard;
            }
            assert!(heard["id"].is_null(), "nobody waits for that: {heard}");
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    fn greet(&mut self, shape: &Shape) {
        let hello = json!({
            "protocolVersion": shape.version, "capabilities": shape.capabilities,
            "clientInfo": { "name": shape.name, "version": "1.0.0" },
        });
        let answer = self.ask("initialize", &hello)["result"].clone();
        assert_eq!(answer["protocolVersion"], shape.version, "{}: {answer}", shape.name);
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))["result"].clone()
    }

    fn end(self) -> String {
        drop(self.write);
        let output = self.child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    }
}

fn write(path: &str) -> Value {
    json!({ "mode": "create", "path": path, "text": "words" })
}

#[test]
fn every_client_gets_the_end_of_what_took_a_person_longer_than_it_waits() {
    for shape in shapes() {
        let house = House::new();
        house.may_write();
        // A server that runs has pages, and decides nothing here.
        let serve = json!({ "url": "http://127.0.0.1:4321", "pid": std::process::id() });
        fs_err::write(house.state().join("serve.json"), serve.to_string()).unwrap();
        let mut command = house.command();
        command.args(["mcp", "--no-serve", "--agent", "coder", "--workspace", ".:write"]);
        let mut client = Raw::start(command);
        client.greet(&shape);
        let listed = client.ask("tools/list", &json!({}))["result"]["tools"].clone();
        for tool in listed.as_array().unwrap() {
            assert!(tool["name"].as_str().unwrap().len() <= 64 && tool["inputSchema"]["type"] == "object", "{tool}");
        }
        assert_eq!(client.call("text.count", &json!({ "path": "a.txt" }))["structuredContent"]["words"], 3);

        let call = client.send("tools/call", &json!({ "name": "fs.write", "arguments": write("new.txt") }));
        if shape.opens {
            // Its user is sent to the page, and it says that they went there.
            let page = client.hear();
            assert_eq!(
                (&page["method"], &page["params"]["mode"]),
                (&json!("elicitation/create"), &json!("url")),
                "{page}"
            );
            assert!(page["params"]["url"].as_str().unwrap().starts_with("http://127.0.0.1:4321/inbox/"), "{page}");
            client.say(&json!({ "jsonrpc": "2.0", "id": page["id"], "result": { "action": "accept" } }));
            client.say(&given_up(call));
        } else {
            // It is told at once, and nothing is held for it.
            let told = client.answer(call)["result"].clone();
            let outcome = &told["_meta"]["glovebox/outcome"];
            assert_eq!((&told["isError"], &outcome["code"]), (&json!(true), &json!("approval-pending")), "{told}");
            assert!(told["content"][0]["text"].as_str().unwrap().contains("glovebox.result"), "{told}");
        }
        let pending = house.pending();
        assert_eq!(pending.len(), 1, "{}", shape.name);
        let action = json!({ "action_id": pending[0]["action"] });

        // A minute goes by: the client gives its call up, and asks again.
        let waits = client.send("tools/call", &json!({ "name": "glovebox.result", "arguments": action }));
        client.say(&given_up(waits));
        assert_eq!(client.call("text.count", &json!({ "path": "a.txt" }))["structuredContent"]["words"], 3);
        assert!(!house.has("new.txt"));
        house.run(&["approvals", "approve", pending[0]["approval"].as_str().unwrap()]).ok();
        let seen = client.call("glovebox.result", &action);
        assert_eq!(seen["isError"], false, "{}: {seen}", shape.name);
        assert!(house.has("new.txt"), "{}", shape.name);
        client.end();
    }
}

fn given_up(id: u64) -> Value {
    let params = json!({ "requestId": id, "reason": "timed out after 60 s" });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
}

/// The server that was started for agents, to be ended with its test.
struct Started(PathBuf);

impl Started {
    fn of(house: &House) -> Self {
        Self(house.state().join("serve.json"))
    }

    /// Once it said where it is.
    fn found(&self) -> Value {
        loop {
            if let Ok(text) = fs_err::read(&self.0) {
                return serde_json::from_slice(&text).unwrap();
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

impl Drop for Started {
    #[expect(clippy::disallowed_methods, reason = "a signal, as a shell sends it")]
    fn drop(&mut self) {
        let text = fs_err::read(&self.0).unwrap_or_default();
        let pid = serde_json::from_slice::<Value>(&text).ok().and_then(|found| found["pid"].as_u64());
        if let Some(pid) = pid {
            // Once more where it is not heard: nothing here is about that, and
            // what waits for ever says nothing.
            for round in 0..6_000 {
                if round % 500 == 0 {
                    let _ = Command::new("kill").args(["-TERM", &pid.to_string()]).status();
                }
                if !self.0.exists() {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
    }
}

#[test]
fn agents_that_come_at_once_share_a_server_that_stays_for_the_people() {
    let house = House::new();
    let started = Started::of(&house);
    let shape = &shapes()[0];
    let mut clients: Vec<Raw> = (0..3)
        .map(|_| {
            let mut command = house.command();
            // Who decides there is the user, whichever agent came first.
            command.arg("mcp").env("GLOVEBOX_AGENT", "coder").env("GLOVEBOX_SERVE_LISTEN", "127.0.0.1:0");
            Raw::start(command)
        })
        .collect();
    for client in &mut clients {
        client.greet(shape);
    }
    let found = started.found();
    let url = found["url"].as_str().unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{found}");
    for mut client in clients {
        let mut err = BufReader::new(client.child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("people decide at") {
            assert_ne!(err.read_line(&mut said).unwrap(), 0, "{said}");
        }
        client.end();
        err.read_to_string(&mut said).unwrap();
        assert_eq!(said.matches("people decide at").count(), 1, "{said}");
        assert!(said.contains(url), "{said}");
    }
    // They are gone, and it is there: it knows whoever comes from its socket.
    assert_eq!(house.json(&["inbox"])["url"], url);
    assert_eq!(started.found(), found, "another one took its place");
}

#[test]
fn a_door_without_a_server_works_and_says_why_once() {
    let house = House::new();
    let run = |args: &[&str], list: &str| {
        let mut command = house.command();
        command.arg("mcp").args(args).env("GLOVEBOX_CREDENTIALS", list);
        let mut client = Raw::start(command);
        client.greet(&shapes()[1]);
        assert_eq!(client.call("text.count", &json!({ "path": "a.txt" }))["structuredContent"]["words"], 3);
        client
    };
    let broken = house.file("credentials.toml", "no list of credentials");
    let mut client = run(&[], &broken);
    let mut said = String::new();
    let mut err = BufReader::new(client.child.stderr.take().unwrap());
    while !said.contains("no server could be started") {
        assert_ne!(err.read_line(&mut said).unwrap(), 0, "{said}");
    }
    assert!(said.contains(" approvals`") && said.contains("credentials.toml") && !said.contains("\\n"), "{said}");
    client.end();
    let said = run(&["--no-serve"], &house.path("none.toml")).end();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(!house.state().join("serve.json").exists());
}
