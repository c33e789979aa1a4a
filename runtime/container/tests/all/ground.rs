//! One way to run a command in an image and look at what came of it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bollard::query_parameters::{CreateImageOptionsBuilder, ListContainersOptionsBuilder, RemoveImageOptionsBuilder};
use bollard::{API_DEFAULT_VERSION, Docker};
use env_contracts::{
    Contract, DerivedEffects, Digest, ManifestEntry, Name, Notice, Plan, Principal, Problem, ResultFormat, Stdin,
};
use futures_util::StreamExt as _;
use glovebox_container::{ContainerBackend, Containers, ImageRecord, Socket};
use glovebox_runtime::bind::{Binding, PathArgument, RunDir, bind};
use glovebox_runtime::job::{End, Frame, FrameSink, JobUsage};
use glovebox_runtime::{
    ArtifactBytes, Backend, Bound, Ports, Registered, RunReport, Runtime, Stop, enforcement_report,
};
use tokio::sync::OnceCell;

use crate::tar::Tar;

/// How `cargo xtask test` names the engine where there is none.
const NEED: &str = "docker";

/// The name of the tests' image.
const IMAGE: &str = "glovebox-test/busybox:1";

/// What every test has by itself.
pub(crate) const LIMITS: &str = "[limits]\nwall = \"20s\"\nmemory = \"96MiB\"\npids = 40\noutput = \"1MiB\"\n\
                                 storage = \"8MiB\"\ninodes = 200\n";

/// Whether there is an engine; where not, that is said.
pub(crate) fn engine_is_here() -> bool {
    let named = std::env::var("GLOVEBOX_TEST_SKIP").unwrap_or_default().split(',').any(|need| need == NEED);
    if named {
        #[expect(clippy::print_stdout, reason = "whoever reads the tests has to know")]
        {
            println!("skipped: no container engine here");
        }
    }
    !named
}

/// A folder of ours, an engine, an image.
pub(crate) struct Ground {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) containers: Arc<Containers>,
    pub(crate) image: ImageRecord,
    pub(crate) docker: Docker,
}

/// The socket of the engine of the tests.
pub(crate) fn socket() -> Socket {
    Socket::find(std::env::var("DOCKER_HOST").ok().as_deref(), None).unwrap()
}

impl Ground {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let containers = Arc::new(Containers::new(socket(), folder.path().join("containers")));
        let address = socket().path().display().to_string();
        let docker = Docker::connect_with_unix(&address, 60, API_DEFAULT_VERSION).unwrap();
        let docker = docker.negotiate_version().await.unwrap();
        let image = image(&docker, &containers).await;
        Self { folder, containers, image, docker }
    }

    /// The same where containers wait for their tool.
    pub(crate) async fn warm(most: u32) -> Self {
        let mut ground = Self::new().await;
        let folder = ground.folder.path().join("containers");
        ground.containers = Arc::new(Containers::new(socket(), folder).warm(most));
        ground
    }

    /// Another process of the same state folder, as far as containers know.
    pub(crate) fn sibling(&self) -> Arc<Containers> {
        Arc::new(Containers::new(socket(), self.folder.path().join("containers")))
    }

    pub(crate) fn act(&self, script: &str) -> Act<'_> {
        Act::new(self, &["sh", "-c", script])
    }

    /// The containers of this ground that are there, whatever their state.
    pub(crate) async fn containers(&self) -> Vec<String> {
        let labels = self.installation_label();
        let filters = std::collections::HashMap::from([("label".to_owned(), vec![labels])]);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let list = self.docker.list_containers(Some(options)).await.unwrap();
        list.into_iter().filter_map(|container| container.id).collect()
    }

    fn installation_label(&self) -> String {
        // None before the first container.
        let id = fs_err::read_to_string(self.folder.path().join("containers/installation")).unwrap_or_default();
        format!("dev.glovebox.installation={id}")
    }
}

/// The tests' image, made once: a static busybox and nothing else. What is in it
/// changes with its tag alone.
async fn image(docker: &Docker, containers: &Containers) -> ImageRecord {
    static MADE: OnceCell<()> = OnceCell::const_new();
    MADE.get_or_init(|| async {
        if containers.find_image(IMAGE).await.is_err() {
            import(docker, IMAGE, &[]).await;
        }
    })
    .await;
    containers.find_image(IMAGE).await.unwrap()
}

/// Imports an image of busybox, with changes as a Dockerfile spells them.
pub(crate) async fn import(docker: &Docker, name: &str, changes: &[&str]) {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
    let busybox = fs_err::read(busybox.expect("busybox-static")).unwrap();
    let mut tar = Tar::default();
    for folder in ["bin", "etc", "root", "data"] {
        tar.entry(folder, b"", 0o755, b'5', "");
    }
    tar.entry("etc/passwd", b"root:x:0:0::/root:/bin/sh\n", 0o644, b'0', "");
    tar.entry("bin/busybox", &busybox, 0o755, b'0', "");
    for applet in [
        "sh", "cat", "echo", "ls", "sleep", "true", "false", "id", "env", "head", "dd", "touch", "mkdir", "rm", "ln",
        "kill", "ps", "mount", "wget", "setsid", "nohup", "seq", "wc", "grep", "chmod", "mkfifo", "yes", "pwd", "stat",
        "find", "mv", "cp", "date", "hostname", "ifconfig", "readlink", "od", "printf", "tr", "sed", "sort", "sync",
        "df",
    ] {
        tar.entry(&format!("bin/{applet}"), b"", 0o777, b'2', "busybox");
    }
    let (repo, tag) = name.split_once(':').unwrap();
    let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
    let options = CreateImageOptionsBuilder::default().from_src("-").repo(repo).tag(tag).changes(changes).build();
    let mut made = docker.create_image(Some(options), Some(bollard::body_full(tar.finish().into())), None);
    while let Some(step) = made.next().await {
        step.unwrap();
    }
}

/// Takes an image away that a test made.
pub(crate) async fn forget(docker: &Docker, name: &str) {
    let options = RemoveImageOptionsBuilder::default().force(true).build();
    docker.remove_image(name, Some(options), None).await.unwrap();
}

/// One action being put together.
pub(crate) struct Act<'a> {
    ground: &'a Ground,
    argv: Vec<String>,
    contract: String,
    env: Vec<(String, String)>,
    args: String,
    stdin: Stdin,
    workspace: Option<PathBuf>,
    inputs: Vec<(Name, OwnedFd)>,
    paths: Vec<PathArgument>,
    pub(crate) stop: Stop,
    pub(crate) heard: Arc<Mutex<Heard>>,
    /// Whether what it says is kept.
    pub(crate) keeps: bool,
    image: ImageRecord,
    containers: Arc<Containers>,
}

/// What a tool said.
#[derive(Debug, Default, Clone)]
pub(crate) struct Heard {
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
    /// Bytes of both.
    pub(crate) count: u64,
}

/// Keeps what it hears, or only counts it.
struct Ear(Arc<Mutex<Heard>>, bool);

impl FrameSink for Ear {
    fn frame(&mut self, frame: Frame<'_>) {
        let mut heard = self.0.lock().unwrap();
        heard.count += match frame {
            Frame::Stdout(bytes) | Frame::Stderr(bytes) => bytes.len() as u64,
            Frame::Log { .. } | Frame::Progress { .. } => 0,
        };
        if !self.1 {
            return;
        }
        match frame {
            Frame::Stdout(bytes) => heard.out.extend_from_slice(bytes),
            Frame::Stderr(bytes) => heard.err.extend_from_slice(bytes),
            Frame::Log { .. } | Frame::Progress { .. } => panic!("an image has no log"),
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) end: End,
    pub(crate) usage: JobUsage,
    pub(crate) notices: Vec<Notice>,
    pub(crate) out: String,
    pub(crate) err: String,
    /// Where its outputs lie, until this is dropped.
    pub(crate) outputs: PathBuf,
    _run: RunDir,
}

impl<'a> Act<'a> {
    pub(crate) fn new(ground: &'a Ground, argv: &[&str]) -> Self {
        Self {
            ground,
            argv: argv.iter().map(|arg| (*arg).to_owned()).collect(),
            contract: LIMITS.to_owned(),
            env: Vec::new(),
            args: "{}".to_owned(),
            stdin: Stdin::None,
            workspace: None,
            inputs: Vec::new(),
            paths: Vec::new(),
            stop: Stop::default(),
            heard: Arc::default(),
            keeps: true,
            image: ground.image.clone(),
            containers: ground.containers.clone(),
        }
    }

    /// Sections of a contract, beside or instead of its limits.
    pub(crate) fn contract(mut self, sections: &str) -> Self {
        self.contract = if sections.contains("[limits]") { sections.to_owned() } else { format!("{LIMITS}{sections}") };
        self
    }

    /// A folder before all others.
    pub(crate) fn contract_first(mut self, folder: &str) -> Self {
        let at = self.contract.find("[[filesystem]]").unwrap_or(self.contract.len());
        self.contract.insert_str(at, folder);
        self
    }

    pub(crate) fn image(mut self, image: ImageRecord) -> Self {
        self.image = image;
        self
    }

    pub(crate) fn by(mut self, containers: Arc<Containers>) -> Self {
        self.containers = containers;
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn stdin(mut self, text: &str) -> Self {
        self.args = serde_json::json!({ "stdin": text }).to_string();
        self.stdin = Stdin::Argument;
        self
    }

    /// The workspace, with an access and what is hidden in it.
    pub(crate) fn workspace(mut self, path: &Path, access: &str, hide: &str) -> Self {
        self.workspace = Some(path.to_owned());
        self.contract.push_str(&format!(
            "[[filesystem]]\nguest = \"/workspace\"\nsource = \"workspace\"\naccess = \"{access}\"\nhide = [{hide}]\n"
        ));
        self
    }

    pub(crate) fn outputs(mut self) -> Self {
        self.contract.push_str("[[filesystem]]\nguest = \"/outputs\"\nsource = \"outputs\"\naccess = \"write\"\n");
        self
    }

    pub(crate) fn input(mut self, name: &str, path: &Path) -> Self {
        if self.inputs.is_empty() {
            self.contract.push_str("[[filesystem]]\nguest = \"/inputs\"\nsource = \"input:*\"\naccess = \"read\"\n");
        }
        self.inputs.push((name.parse().unwrap(), fs_err::File::open(path).unwrap().into_parts().0.into()));
        self
    }

    /// An argument that names a path in the workspace.
    pub(crate) fn path(mut self, value: &str) -> Self {
        self.paths.push(PathArgument { pointer: "/path".into(), mount: "/workspace".into(), value: value.into() });
        self
    }

    /// Binds and runs it.
    pub(crate) async fn run(self) -> Result<Came, Problem> {
        self.run_changed(|| {}).await
    }

    /// The same, and something happens between the two.
    pub(crate) async fn run_changed(self, meanwhile: impl FnOnce()) -> Result<Came, Problem> {
        let text = format!(
            "schema = \"glovebox/contract/v1\"\n[platform]\nos = \"linux\"\nimage = \"{}\"\n{}",
            self.image.image, self.contract
        );
        let contract = Contract::from_toml(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let backend = Arc::new(ContainerBackend::new(self.containers));
        let (contract, _) = enforcement_report(&*backend, &contract)?;
        let bytes = self.image.to_bytes();
        let entry = ManifestEntry::Command {
            argv: self.argv,
            stdin: self.stdin,
            result: ResultFormat::Text,
            env: self.env.into_iter().collect(),
        };
        assert!(backend.takes(&entry, &contract));
        let registered = Registered {
            digest: Digest::of(&bytes),
            bytes: ArtifactBytes::Memory(bytes.into()),
            entry,
            name: "t".into(),
        };
        let action = uuid::Uuid::new_v4().simple().to_string();
        let plan = Plan {
            action_id: action.parse().unwrap(),
            revision: 1,
            capability: "a.tool@1.0.0".parse().unwrap(),
            artifact: registered.digest.clone(),
            arguments: self.args,
            contract,
            effects: DerivedEffects::None,
            principal: Principal {
                tenant: "t".parse().unwrap(),
                user: "u".parse().unwrap(),
                agent: None,
                agent_version: None,
                chain: Vec::new(),
            },
            backend: "container".into(),
        };
        let runs = self.ground.folder.path().join("run");
        let run_dir = RunDir::new(&runs, &action);
        let files = bind(Binding {
            plan: &plan,
            workspace: self.workspace.as_deref(),
            inputs: self.inputs,
            artifacts: BTreeMap::new(),
            path_arguments: &self.paths,
            run_dir: &run_dir,
            environment: None,
            protect: &[],
            max_sealed: 4 << 30,
        })?;
        let prepared = backend.prepare(&registered, &plan.contract, &|_| {}).await?;
        meanwhile();
        let bound = Bound::new(plan, registered, prepared, files);
        let (runtime, authority) = Runtime::new(vec![backend]);
        let permit = authority.permit(&bound.digest);
        let ports = Ports { frames: Box::new(Ear(self.heard.clone(), self.keeps)), stop: self.stop };
        let RunReport { end, usage, notices } = runtime.run(bound, permit, ports).await?;
        let heard = self.heard.lock().unwrap().clone();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&heard.out), text(&heard.err));
        Ok(Came { end, usage, notices, out, err, outputs: runs.join(&action).join("outputs"), _run: run_dir })
    }

    /// The same where it has to come to its own end, with success.
    pub(crate) async fn done(self) -> Came {
        let came = self.run().await.unwrap();
        assert_eq!(came.end, End::Exited { code: 0 }, "{came:?}");
        came
    }
}

/// Waits until something holds, but not for ever.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..400 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} did not happen");
}
