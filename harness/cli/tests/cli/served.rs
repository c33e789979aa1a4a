//! A server that runs as a program of its own, and whoever talks to it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::{Value, json};

use crate::support::House;

/// A running `glovebox serve`. It is killed where a test fails.
pub(crate) struct Served {
    child: Child,
    /// What it says goes on here.
    said: BufReader<ChildStderr>,
    /// Its address.
    pub(crate) url: String,
    /// The line after its address: how one logs in.
    pub(crate) login: String,
    client: reqwest::Client,
    runtime: tokio::runtime::Runtime,
}

/// Somebody who waits for an answer.
pub(crate) type Waiting = tokio::task::JoinHandle<Option<(u16, Value)>>;

impl Served {
    /// Starts it at a free port.
    pub(crate) fn start(house: &House, more: &[&str]) -> Self {
        let mut command = house.command();
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(more);
        Self::of(&mut command)
    }

    /// Starts this command.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            said.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        let (serving, login) = (line(), line());
        let url = serving.split_whitespace().find(|word| word.starts_with("http"));
        let url = url.unwrap_or_else(|| panic!("{serving}\n{login}")).to_owned();
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { child, said, url, login, client, runtime: tokio::runtime::Runtime::new().unwrap() }
    }

    /// A request of whoever has this token; nobody's, where it is empty.
    pub(crate) fn request(&self, method: &str, token: &str, path: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method.parse().unwrap(), format!("{}{path}", self.url));
        if token.is_empty() { request } else { request.bearer_auth(token) }
    }

    /// Does something beside the server, as its clients do.
    pub(crate) fn block_on<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }

    /// The process of the server.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Follows a stream of events, to its end.
    pub(crate) fn follow(&self, token: &str, path: &str) -> tokio::task::JoinHandle<Vec<Value>> {
        let request = self.request("GET", token, path);
        let (open, opened) = std::sync::mpsc::channel();
        let following = self.runtime.spawn(async move {
            let response = request.send().await.unwrap();
            assert_eq!(response.status().as_u16(), 200);
            open.send(()).unwrap();
            let text = response.text().await.unwrap();
            let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
            data.map(|data| serde_json::from_str(data).unwrap()).collect()
        });
        // What happens from here on comes as it happens.
        opened.recv().unwrap();
        following
    }

    /// Its status, headers and text.
    pub(crate) fn send(&self, request: reqwest::RequestBuilder) -> (u16, reqwest::header::HeaderMap, String) {
        self.runtime.block_on(async {
            let response = request.send().await.unwrap();
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            (status, headers, response.text().await.unwrap())
        })
    }

    pub(crate) fn get(&self, token: &str, path: &str) -> (u16, Value) {
        let (status, _, text) = self.send(self.request("GET", token, path));
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub(crate) fn post(&self, token: &str, path: &str, body: &Value) -> (u16, Value) {
        let (status, _, text) = self.send(self.request("POST", token, path).json(body));
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Asks, and does not wait for the answer here. `None`: the connection broke.
    pub(crate) fn post_beside(&self, token: &str, path: &str, body: &Value) -> Waiting {
        let request = self.request("POST", token, path).json(body);
        self.runtime.spawn(async move {
            let response = request.send().await.ok()?;
            Some((response.status().as_u16(), response.json().await.ok()?))
        })
    }

    /// The answer of somebody who waits.
    pub(crate) fn answer(&self, waiting: Waiting) -> Option<(u16, Value)> {
        self.runtime.block_on(waiting).unwrap()
    }

    /// The action, once it is in this state.
    pub(crate) fn until(&self, token: &str, action: &str, state: &str) -> Value {
        loop {
            let (status, view) = self.get(token, &format!("/v1/actions/{action}"));
            if status == 200 && view["state"] == state {
                return view;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Tells it to end, and gives its exit code with what it said.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.said, &mut said).unwrap();
        let code = self.child.wait().unwrap().code();
        assert!(!said.contains("panicked"), "{said}");
        (code, said)
    }

    /// Kills it as a power cut does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Gone already, where it was ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl House {
    /// A new token.
    pub(crate) fn token(&self, name: &str, role: &str) -> String {
        let agent: &[&str] = if role == "agent" { &["--agent", "coder"] } else { &[] };
        let ran = self.run(&[&["token", "add", name, "--role", role], agent].concat()).ok();
        ran.stdout.trim_end().to_owned()
    }
}

/// A request for `fs.write` in the folder that is called `docs`.
pub(crate) fn write(path: &str, text: &str) -> Value {
    let arguments = json!({ "path": path, "text": text, "mode": "create" });
    json!({ "capability": "fs.write", "arguments": arguments, "workspace": "docs" })
}
