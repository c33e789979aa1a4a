//! The program behind its doors, and the barest clients that can be measured
//! with.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A running `glovebox serve` with its folders.
pub(crate) struct Served {
    home: PathBuf,
    child: Child,
    pub(crate) address: String,
    pub(crate) token: String,
}

fn glovebox(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_glovebox"));
    command.current_dir(home).env("HOME", home).env("XDG_CONFIG_HOME", home.join("config"));
    command.env("GLOVEBOX_STATE", home.join("state")).env("GLOVEBOX_WASM_PLACEMENT", "in-process");
    // What is measured is the way through, and not the limit.
    command.env("GLOVEBOX_SERVE_RATE", "1000000");
    command
}

impl Served {
    pub(crate) fn start(home: &Path) -> Self {
        let token = glovebox(home).args(["token", "add", "bench", "--role", "operator"]).output().unwrap();
        let token = String::from_utf8(token.stdout).unwrap().trim().to_owned();
        let mut serve = glovebox(home);
        serve.args(["serve", "--listen", "127.0.0.1:0", "--workspace", "docs=docs"]);
        let mut child = serve.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
        Self { home: home.to_owned(), child, address, token }
    }

    /// What it keeps in memory, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let status = fs_err::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    }

    pub(crate) fn connect(&self) -> Http {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        Http { address: self.address.clone(), token: self.token.clone(), stream: BufReader::new(stream) }
    }

    /// A code that logs one browser in.
    pub(crate) fn code(&self) -> String {
        let ran = glovebox(&self.home).args(["inbox", "--json"]).output().unwrap();
        let shown: Value = serde_json::from_slice(&ran.stdout).unwrap();
        shown["code"].as_str().unwrap().to_owned()
    }

    pub(crate) fn mcp(&self) -> Mcp {
        Mcp::start(&self.home)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that is kept alive.
pub(crate) struct Http {
    address: String,
    token: String,
    stream: BufReader<TcpStream>,
}

impl Http {
    /// Asks, with these headers and this body; gives head and body.
    pub(crate) fn ask(&mut self, method: &str, path: &str, headers: &str, body: &str) -> (String, String) {
        self.send(method, path, headers, body);
        let head = self.head();
        let length = |line: &str| line.strip_prefix("content-length: ").map(|n| n.parse::<usize>().unwrap());
        let mut body = vec![0; head.lines().find_map(length).unwrap_or_default()];
        self.stream.read_exact(&mut body).unwrap();
        (head, String::from_utf8(body).unwrap())
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> Value {
        let headers = format!("authorization: Bearer {}\r\ncontent-type: application/json\r\n", self.token);
        let (head, text) = self.ask("POST", path, &headers, body);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}{text}");
        serde_json::from_str(&text).unwrap()
    }

    fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) {
        let (host, length) = (&self.address, body.len());
        let text =
            format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n{headers}content-length: {length}\r\n\r\n{body}");
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.stream.read_line(&mut head).unwrap() > 0, "it hung up: {head}");
        }
        head.replace("\r\n", "\n")
    }

    /// A stream of events, from now on.
    pub(crate) fn events(mut self, session: &str) -> Events {
        let headers = format!("authorization: Bearer {}\r\n", self.token);
        self.send("GET", &format!("/v1/sessions/{session}/events"), &headers, "");
        let head = self.head();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Events(self.stream)
    }
}

/// What a reader of a stream gets.
pub(crate) struct Events(BufReader<TcpStream>);

impl Events {
    /// Reads up to the next event of this name.
    pub(crate) fn until(&mut self, name: &str) {
        let name = format!("\"name\":\"{name}\"");
        let mut line = String::new();
        while !(line.starts_with("data:") && line.contains(&name)) {
            line.clear();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
        }
    }
}

/// A client of `glovebox mcp`.
pub(crate) struct Mcp {
    child: Child,
    write: ChildStdin,
    read: BufReader<ChildStdout>,
    asked: u32,
}

impl Mcp {
    fn start(home: &Path) -> Self {
        let mut command = glovebox(home);
        command.args(["mcp", "--agent", "coder", "--workspace", "docs"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (write, read) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Self { child, write, read, asked: 0 };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" },
        });
        client.ask("initialize", &hello);
        writeln!(client.write, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
        client
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params });
        writeln!(self.write, "{request}").unwrap();
        let mut line = String::new();
        self.read.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
