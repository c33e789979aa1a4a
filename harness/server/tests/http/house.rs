//! A server over real sockets, around a backend that does what a test tells it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use env_contracts::{Access, Assurance, ByteSize, Clause, Contract, Name, Principal, Problem, Profiles};
use glovebox_artifacts::ArtifactStore;
use glovebox_identity::{Credentials, New, Role, Signature, Statement};
use glovebox_mcp::upstream::UpstreamBackend;
use glovebox_plane::{
    ActionService, Builtin, LivePolicy, Operator, Parts as Plane, People, Registry, Settings as Asks, TimeOrderedIds,
};
use glovebox_runtime::job::{End, Frame, JobUsage};
use glovebox_runtime::{
    Admission, Backend, Bound, BoxFuture, Budgets, Cleared, Enforcement, Ports, Prepared, Registered, RunReport,
    Runtime, SystemClock, default_ceiling,
};
use glovebox_server::{Front, Listeners, LogForm, Logs, Parts, Server, Settings, Tenants, Ways, Webhooks, Workspace};
use glovebox_store::{Options, Sqlite, Store as _};
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// What a run does.
pub(crate) type Script = dyn Fn(&Bound, &mut Ports) -> End + Send + Sync;

struct Scripted {
    script: Arc<Mutex<Arc<Script>>>,
    ran: Arc<Mutex<Vec<String>>>,
}

impl Backend for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn enforce(&self, clause: &Clause<'_>) -> Enforcement {
        match clause {
            Clause::Egress(_) => Enforcement::refused("there is no network here", "leave it out"),
            _ => Enforcement::By("the test"),
        }
    }

    fn prepare<'a>(
        &'a self,
        _: &'a Registered,
        _: &'a Contract,
        _: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Result<Prepared, Problem>> {
        Box::pin(async { Ok(Box::new(()) as Prepared) })
    }

    fn run(&self, cleared: Cleared, mut ports: Ports) -> BoxFuture<'_, RunReport> {
        let script = self.script.lock().unwrap().clone();
        self.ran.lock().unwrap().push(cleared.plan.action_id.to_string());
        Box::pin(async move {
            let end = tokio::task::spawn_blocking(move || script(&cleared, &mut ports)).await.unwrap();
            RunReport { end, usage: JobUsage::default(), notices: Vec::new() }
        })
    }
}

const HEAD: &str = "schema = \"glovebox/tool/v1\"\nversion = \"1.0.0\"\ntitle = \"t\"\ndescription = \"d\"\n";

/// A tool that can change nothing.
const READ: &str = r#"
name = "fake.read"
entry = { kind = "command", argv = ["prog"], result = "text" }
input = { type = "object" }
[contract]
schema = "glovebox/contract/v1"
filesystem = [{ guest = "/outputs", source = "outputs", access = "write" }]
limits = { wall = "60s", memory = "64MiB", output = "1MiB" }
"#;

/// A tool that changes the real workspace: for an agent it needs an approval.
const WRITE: &str = r#"
name = "fake.write"
entry = { kind = "command", argv = ["prog"], result = "text" }
[input]
type = "object"
properties = { path = { type = "string" }, text = { type = "string" } }
[contract]
schema = "glovebox/contract/v1"
filesystem = [{ guest = "/workspace", source = "workspace", access = "write" }]
limits = { wall = "60s", memory = "64MiB", output = "1MiB" }
"#;

struct Nobody;

impl People for Nobody {
    fn known(&self) -> Result<Vec<(Name, Assurance)>, Problem> {
        Ok(Vec::new())
    }

    fn verify(&self, _: &Name, _: Assurance, _: &Statement, _: &Signature) -> Result<(), Problem> {
        Err(Problem::new(env_contracts::Code::SignatureInvalid, "nobody signs here"))
    }
}

/// The services of two tenants over one store.
struct Both(BTreeMap<Name, ActionService>);

impl Tenants for Both {
    fn service(&self, tenant: &Name) -> Result<ActionService, Problem> {
        self.0.get(tenant).cloned().ok_or_else(|| Problem::new(env_contracts::Code::Usage, "no such tenant"))
    }
}

/// What is written, kept.
struct Kept(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A name by which servers are reached, besides those of the loopback.
pub(crate) const NAMED: &str = "glovebox.test";

/// What outlives a server.
pub(crate) struct Ground {
    dir: tempfile::TempDir,
    script: Arc<Mutex<Arc<Script>>>,
    ran: Arc<Mutex<Vec<String>>>,
    tokens: Mutex<BTreeMap<String, String>>,
    said: Arc<Mutex<Vec<u8>>>,
    /// What is between the next servers and the network.
    pub(crate) front: Mutex<Front>,
    /// Where the next servers send their spans.
    pub(crate) otlp: Mutex<Option<String>>,
    /// Manifests beside those that are always there.
    pub(crate) more: Mutex<Vec<String>>,
    /// Ports of this host that tools may reach.
    pub(crate) reached: Mutex<Vec<u16>>,
    /// The store of the server that runs.
    store: Mutex<Option<Arc<Sqlite>>>,
}

impl Ground {
    pub(crate) fn new() -> Arc<Self> {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("workspace")).unwrap();
        let script: Arc<Script> = Arc::new(|_, ports| said(ports, "well\n", 0));
        let ground = Self {
            dir,
            script: Arc::new(Mutex::new(script)),
            ran: Arc::default(),
            tokens: Mutex::default(),
            said: Arc::default(),
            front: Mutex::default(),
            otlp: Mutex::default(),
            more: Mutex::default(),
            reached: Mutex::default(),
            store: Mutex::default(),
        };
        for role in Role::ALL {
            ground.credential(role.as_str(), role, "local");
        }
        ground.credential("front-end", Role::Approver, "local");
        ground.credential("stranger", Role::Agent, "other");
        ground.credential("strange-operator", Role::Operator, "other");
        Arc::new(ground)
    }

    fn credential(&self, text: &str, role: Role, tenant: &str) {
        let mut credentials = Credentials::load(&self.path("credentials.toml")).unwrap();
        let new = New {
            name: name(text),
            role,
            tenant: name(tenant),
            user: name(if role == Role::Agent { "uma" } else { text }),
            agent: (role == Role::Agent).then(|| name("coder")),
            agent_version: None,
            stage: None,
            on_behalf: text == "front-end",
            expires_ms: None,
        };
        let (_, token) = credentials.add_token(new, 1).unwrap();
        self.tokens.lock().unwrap().insert(text.to_owned(), token.reveal().to_owned());
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Every line that servers wrote.
    pub(crate) fn lines(&self) -> String {
        String::from_utf8(self.said.lock().unwrap().clone()).unwrap()
    }

    fn said(&self) -> impl Fn() -> Kept + Send + Sync + 'static {
        let said = self.said.clone();
        move || Kept(said.clone())
    }

    /// The token of a credential.
    pub(crate) fn token(&self, who: &str) -> String {
        self.tokens.lock().unwrap()[who].clone()
    }

    /// What the next runs do.
    pub(crate) fn on_run(&self, script: impl Fn(&Bound, &mut Ports) -> End + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Arc::new(script);
    }

    /// Every run that began.
    pub(crate) fn ran(&self) -> Vec<String> {
        self.ran.lock().unwrap().clone()
    }

    /// How many events were ever written down.
    pub(crate) fn recorded(&self) -> u64 {
        self.store.lock().unwrap().as_ref().map_or(0, |store| store.last_recorded().unwrap())
    }

    fn services(&self) -> Both {
        let state = self.path("state");
        fs_err::create_dir_all(&state).unwrap();
        let more = self.more.lock().unwrap().clone();
        let manifests = [READ, WRITE].map(str::to_owned).into_iter().chain(more).map(|text| Builtin {
            manifest: Box::leak(format!("{HEAD}{text}").into_boxed_str()),
            component: b"component",
        });
        let registry = Registry::new(state.join("tools"), manifests.collect());
        let rules = self.path("policy");
        let rules = rules.is_dir().then_some(rules);
        let policy = Arc::new(LivePolicy::load(rules, registry.clone(), None).unwrap());
        let store = Arc::new(Sqlite::open(&state, &Options::default()).unwrap());
        *self.store.lock().unwrap() = Some(store.clone());
        let mut ceiling = default_ceiling();
        ceiling.install.filesystem[0].access = Access::Write;
        let ports = self.reached.lock().unwrap().clone();
        if !ports.is_empty() {
            let rule = json!([{ "host": "127.0.0.1", "ports": ports }]);
            ceiling.install.network.egress = serde_json::from_value(rule).unwrap();
        }
        let service = |tenant: &str| {
            let scripted = Scripted { script: self.script.clone(), ran: self.ran.clone() };
            let upstream = UpstreamBackend::new(Arc::new(Ways::of_this_host()));
            let (runtime, authority) = Runtime::new(vec![Arc::new(scripted), Arc::new(upstream)]);
            let service = ActionService::new(Plane {
                registry: registry.clone(),
                operator: Operator { ceiling: ceiling.clone(), profiles: Profiles::default() }.fixed(),
                policy: policy.clone(),
                people: Arc::new(Nobody),
                store: store.clone(),
                holders: store.clone(),
                runtime,
                authority,
                admission: Admission::new(Budgets::for_host(ByteSize::gib(1), 8)),
                artifacts: ArtifactStore::open(&state.join("artifacts"), tenant).unwrap(),
                clock: Arc::new(SystemClock),
                ids: Arc::new(TimeOrderedIds),
                run_root: state.join("run"),
                environments: state.join("environments"),
                protect: vec![state.clone()],
                max_sealed: ByteSize::mib(1),
                settings: Asks::new("operator".parse().unwrap()),
            });
            (name(tenant), service)
        };
        Both(["local", "other"].map(service).into())
    }
}

/// A server that runs.
pub(crate) struct House {
    pub(crate) ground: Arc<Ground>,
    pub(crate) url: String,
    pub(crate) socket: PathBuf,
    end: Option<oneshot::Sender<()>>,
    served: Option<tokio::task::JoinHandle<Result<(), Problem>>>,
    client: reqwest::Client,
}

impl House {
    pub(crate) async fn open(ground: &Arc<Ground>) -> Self {
        let workspace = Workspace { folder: ground.path("workspace"), access: Access::Write };
        let server = Server::new(Parts {
            tenants: Arc::new(ground.services()),
            own: person("owner"),
            credentials: ground.path("credentials.toml"),
            logins: ground.path("logins.toml"),
            approvers: ground.path("approvers.toml"),
            witness: ground.path("witness-key.toml"),
            webhooks: Webhooks {
                list: ground.path("webhooks.toml"),
                state: ground.path("webhooks"),
                first_retry: Duration::from_millis(20),
            },
            clock: Arc::new(SystemClock),
            ids: Arc::new(TimeOrderedIds),
            mcp_key: [7; 32],
            settings: Settings {
                workspaces: [(name("work"), workspace)].into(),
                url: "http://127.0.0.1".to_owned(),
                hosts: vec![NAMED.to_owned()],
                rate: NonZeroU32::new(10_000).unwrap(),
                connections: 1000,
                grace: Duration::from_secs(2),
                logs: Logs::to(LogForm::Json, "info".parse().unwrap(), ground.said()),
                otlp: ground.otlp.lock().unwrap().clone(),
            },
        })
        .unwrap();
        let socket = ground.path("serve.sock");
        let address = "127.0.0.1:0".parse().unwrap();
        let front = ground.front.lock().unwrap().clone();
        let listeners = Listeners::open(Some(address), Some(&socket), false, front).await.unwrap();
        let url = listeners.url(&[]).unwrap();
        let (end, ended) = oneshot::channel::<()>();
        let served = tokio::spawn(async move {
            let ended = async move { drop(ended.await) };
            Box::pin(server.serve(listeners, ended)).await
        });
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { ground: ground.clone(), url, socket, end: Some(end), served: Some(served), client }
    }

    pub(crate) async fn new() -> Self {
        Self::open(&Ground::new()).await
    }

    /// Stops it as a signal does, and waits until it is gone.
    pub(crate) async fn close(mut self) {
        drop(self.end.take());
        self.served.take().unwrap().await.unwrap().unwrap();
    }

    /// A request of whoever has this credential; nobody's, where it is empty.
    pub(crate) fn request(&self, method: &str, who: &str, path: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method.parse().unwrap(), format!("{}{path}", self.url));
        match self.ground.tokens.lock().unwrap().get(who) {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub(crate) async fn get(&self, who: &str, path: &str) -> (u16, Value) {
        answer(self.request("GET", who, path)).await
    }

    pub(crate) async fn post(&self, who: &str, path: &str, body: &Value) -> (u16, Value) {
        answer(self.request("POST", who, path).json(body)).await
    }

    /// The same bytes twice on one connection, and at the same time on another:
    /// all answers to them.
    pub(crate) async fn twice(&self, who: &str, path: &str, body: &Value) -> Vec<(u16, Value)> {
        let (one, two) = tokio::join!(self.delivered(who, path, body, 2), self.delivered(who, path, body, 1));
        [one, two].concat()
    }

    async fn delivered(&self, who: &str, path: &str, body: &Value, times: usize) -> Vec<(u16, Value)> {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let host = self.url.strip_prefix("http://").unwrap();
        let token = self.ground.tokens.lock().unwrap()[who].clone();
        let body = body.to_string();
        let head = |connection: &str| {
            format!(
                "POST {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\nconnection: {connection}\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
        };
        let mut sent = head("keep-alive").repeat(times - 1);
        sent.push_str(&head("close"));
        let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let answers = text.split("HTTP/1.1 ").skip(1).map(|answer| {
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            (head[..3].parse().unwrap(), serde_json::from_str(body).unwrap())
        });
        let answers: Vec<(u16, Value)> = answers.collect();
        assert_eq!(answers.len(), times, "{text}");
        answers
    }

    /// An action that waits for a person, and its approval.
    pub(crate) async fn asked(&self, text: &str) -> (String, Value) {
        let body =
            json!({ "capability": "fake.write", "arguments": { "text": text }, "workspace": "work", "session": "s1" });
        let (status, waits) = self.post("agent", "/v1/actions", &body).await;
        assert_eq!((status, &waits["state"]), (202, &json!("waiting_approval")), "{waits}");
        let (_, card) = self.get("approver", &format!("/v1/approvals/{}", text_of(&waits["approval"]["id"]))).await;
        (text_of(&waits["id"]), card)
    }

    /// Answers an approval with one of its offers.
    pub(crate) async fn decide(&self, who: &str, card: &Value, offer: &str) -> (u16, Value) {
        let path = format!("/v1/approvals/{}/answer", text_of(&card["approval"]));
        self.post(who, &path, &json!({ "plan": card["plan"], "offer": offer })).await
    }

    /// The action, once it is in this state.
    pub(crate) async fn until(&self, action: &str, state: &str) -> Value {
        let mut last = Value::Null;
        // Long enough for a loaded machine.
        for _ in 0..6000 {
            let (_, view) = self.get("operator", &format!("/v1/actions/{action}")).await;
            if view["state"] == state {
                return view;
            }
            last = view;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it never came to {state}: {last}")
    }
}

pub(crate) async fn answer(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// A command that prints.
pub(crate) fn said(ports: &mut Ports, text: &str, code: u32) -> End {
    ports.frames.frame(Frame::Stdout(text.as_bytes()));
    End::Exited { code }
}

pub(crate) fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn person(user: &str) -> Principal {
    Principal { tenant: name("local"), user: name(user), agent: None, agent_version: None, chain: Vec::new() }
}

#[expect(dead_code, reason = "for whoever reads the folder of a failed test")]
fn shown(path: &Path) -> String {
    path.display().to_string()
}
