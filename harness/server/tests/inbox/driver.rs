//! As much of WebDriver as these tests need: JSON to `chromedriver`.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// How long a page may take for what it does: far more than it needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The key by which WebDriver names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A driver of browsers, which ends with its test, and they with it.
pub(crate) struct Driver {
    child: Child,
    url: String,
    http: reqwest::Client,
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Asked to end, it ends its browsers; killed, it would leave them all.
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
        // One that it was still opening, it leaves.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

/// A window of a browser.
pub(crate) struct Client {
    url: String,
    http: reqwest::Client,
}

impl Driver {
    /// `None`, and a loud line, where Chromium is not installed.
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    pub(crate) async fn start() -> Option<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        #[expect(clippy::disallowed_methods, reason = "the browser that these tests are about")]
        let mut command = std::process::Command::new("chromedriver");
        command.arg(format!("--port={port}")).process_group(0);
        let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = match started {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                eprintln!(
                    "SKIPPED, no Chromium here: `apt-get install chromium-driver`, and the inbox is tested in it"
                );
                return None;
            }
            Err(error) => panic!("chromedriver: {error}"),
        };
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let driver = Self { child, url: format!("http://127.0.0.1:{port}"), http };
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Some(driver)
    }

    pub(crate) async fn session(&self, wanted: Value) -> Client {
        let body = json!({ "capabilities": { "alwaysMatch": wanted } });
        let answer = send(&self.http, &format!("{}/session", self.url), Some(body)).await.unwrap();
        let id = answer["sessionId"].as_str().unwrap();
        Client { url: format!("{}/session/{id}", self.url), http: self.http.clone() }
    }
}

/// A command, and what it gives; the error as text.
async fn send(http: &reqwest::Client, url: &str, body: Option<Value>) -> Result<Value, String> {
    let request = match body {
        Some(body) => http.post(url).json(&body),
        None => http.get(url),
    };
    let answer = request.send().await.unwrap();
    let ok = answer.status().is_success();
    let value = answer.json::<Value>().await.unwrap()["value"].take();
    if ok { Ok(value) } else { Err(value.to_string()) }
}

impl Client {
    async fn post(&self, path: &str, body: Value) -> Result<Value, String> {
        send(&self.http, &format!("{}/{path}", self.url), Some(body)).await
    }

    async fn get(&self, path: &str) -> Result<Value, String> {
        send(&self.http, &format!("{}/{path}", self.url), None).await
    }

    pub(crate) async fn goto(&self, url: &str) {
        self.post("url", json!({ "url": url })).await.unwrap();
    }

    async fn find(&self, css: &str) -> Result<String, String> {
        let found = self.post("element", json!({ "using": "css selector", "value": css })).await?;
        Ok(found[ELEMENT].as_str().unwrap().to_owned())
    }

    pub(crate) async fn has(&self, css: &str) -> bool {
        self.find(css).await.is_ok()
    }

    /// Clicks as a person would: what is hidden or covered takes no click.
    pub(crate) async fn click(&self, css: &str) {
        let at = self.find(css).await.unwrap();
        self.post(&format!("element/{at}/click"), json!({})).await.unwrap();
    }

    pub(crate) async fn type_at(&self, css: &str, text: &str) {
        let at = self.find(css).await.unwrap();
        self.post(&format!("element/{at}/value"), json!({ "text": text })).await.unwrap();
    }

    /// Presses keys, wherever the focus is.
    pub(crate) async fn press(&self, keys: &str) {
        let keys = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|what| json!({ "type": what, "value": key.to_string() })));
        let actions = json!([{ "type": "key", "id": "keys", "actions": keys.collect::<Vec<_>>() }]);
        self.post("actions", json!({ "actions": actions })).await.unwrap();
    }

    pub(crate) async fn execute(&self, script: &str) -> Result<Value, String> {
        self.post("execute/sync", json!({ "script": script, "args": [] })).await
    }

    pub(crate) async fn screenshot(&self) -> Vec<u8> {
        let text = self.get("screenshot").await.unwrap();
        data_encoding::BASE64.decode(text.as_str().unwrap().as_bytes()).unwrap()
    }

    /// What the browser refused since it was last asked, because a page's own
    /// policy forbids it.
    pub(crate) async fn refused(&self) -> Vec<Value> {
        let log = self.post("se/log", json!({ "type": "browser" })).await.unwrap();
        let messages = log.as_array().unwrap().iter().map(|entry| entry["message"].clone());
        messages.filter(|message| message.as_str().unwrap_or_default().contains("Content Security Policy")).collect()
    }

    /// Whether a page put up a message.
    pub(crate) async fn alerted(&self) -> bool {
        self.get("alert/text").await.is_ok()
    }
}

pub(crate) async fn run(client: &Client, script: &str) -> Value {
    client.execute(script).await.unwrap()
}

/// Waits until a script says yes.
pub(crate) async fn until(client: &Client, script: &str) {
    let wait = async {
        while client.execute(script).await != Ok(Value::Bool(true)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, wait).await.is_err() {
        let page = client.get("source").await.unwrap_or_default();
        panic!("it never came to `{script}`:\n{page}");
    }
}
