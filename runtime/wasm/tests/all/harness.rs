//! One way to run a guest and look at what came of it.

use std::fs::File;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use glovebox_runtime::job::{
    End, Entry, FdIndex, Frame, FrameSink, Job, JobLimits, JobReport, Mount, SealedFile, UngrantedImports,
};
use glovebox_wasm::{
    Artefact, CompileCache, CompileLimits, Compiler, Engine, EngineConfig, Executor, Helper, Loaded, WasmError, adapt,
    inspect,
};
use sha2::{Digest, Sha256};

/// The compiler that this crate builds for its tests.
pub(crate) fn compiler(limits: CompileLimits) -> Compiler {
    Compiler::new(Helper::new(env!("CARGO_BIN_EXE_wasm-helper"), vec![]), limits)
}

/// The executor of all tests.
pub(crate) fn executor() -> &'static Executor {
    static EXECUTOR: LazyLock<Executor> = LazyLock::new(|| {
        let engine = Engine::new(EngineConfig { slots: 8, ..EngineConfig::default() }).unwrap();
        Executor::new(engine).unwrap()
    });
    &EXECUTOR
}

/// Compiled guests, kept between runs of the tests.
pub(crate) fn cache() -> CompileCache {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wasm-cache");
    CompileCache::open(folder, executor().engine(), compiler(CompileLimits::default())).unwrap()
}

/// The sha256 in hex.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The compiled form of any module or component.
pub(crate) fn compile(bytes: &[u8]) -> Result<Artefact, WasmError> {
    let inspection = inspect(bytes, 64 << 20)?;
    let component = adapt(bytes, &inspection)?.into_owned();
    cache().get_or_compile(&digest(&component), || Ok(component), &mut |_| {})
}

/// A guest, ready to run.
pub(crate) fn load(bytes: &[u8]) -> Arc<Loaded> {
    executor().load(&compile(bytes).unwrap(), UngrantedImports::Refuse).unwrap()
}

/// A guest from text.
pub(crate) fn text(wat: &str) -> Arc<Loaded> {
    load(&wat::parse_str(wat).unwrap())
}

/// A built guest: `tools/dist/text.count.wasm`, counted from the workspace.
pub(crate) fn built(path: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs_err::read(path).unwrap()
}

/// What a guest said.
#[derive(Debug, Default, Clone)]
pub(crate) struct Heard {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) log: Vec<(String, String)>,
    pub(crate) progress: Vec<(u64, Option<u64>, String)>,
}

impl Heard {
    /// Standard output as text.
    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// Keeps what it hears.
pub(crate) struct Ear(pub(crate) Arc<Mutex<Heard>>);

impl FrameSink for Ear {
    fn frame(&mut self, frame: Frame<'_>) {
        let mut heard = self.0.lock().unwrap();
        match frame {
            Frame::Stdout(bytes) => heard.stdout.extend_from_slice(bytes),
            Frame::Stderr(bytes) => heard.stderr.extend_from_slice(bytes),
            Frame::Log { level, message } => heard.log.push((level.into(), message.into())),
            Frame::Progress { done, total, message } => heard.progress.push((done, total, message.into())),
        }
    }
}

/// One execution being put together.
pub(crate) struct Act {
    pub(crate) job: Job,
    pub(crate) fds: Vec<OwnedFd>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) end: End,
    pub(crate) report: JobReport,
    pub(crate) heard: Heard,
}

impl Act {
    /// A command with its standard input.
    pub(crate) fn command(stdin: &str) -> Self {
        let entry = Entry::Command { argv: vec!["guest".into()], stdin: env_contracts::Stdin::Args, env: vec![] };
        Self::new(entry, stdin)
    }

    /// A call of the tool interface.
    pub(crate) fn tool(name: &str, args: &str) -> Self {
        Self::new(Entry::Tool { name: name.into() }, args)
    }

    pub(crate) fn new(entry: Entry, args: &str) -> Self {
        let limits = JobLimits {
            wall: Duration::from_secs(20),
            idle: None,
            cpu: None,
            memory: 64 << 20,
            output: 1 << 20,
            storage: 1 << 20,
            inodes: 100,
        };
        let job = Job {
            action: "act-1".into(),
            component: String::new(),
            entry,
            args: args.into(),
            mounts: vec![],
            sealed: vec![],
            limits,
            imports: UngrantedImports::Refuse,
            deterministic: None,
        };
        Self { job, fds: vec![] }
    }

    /// Adds a folder.
    pub(crate) fn mount(mut self, guest: &str, dir: &Path, writable: bool) -> Self {
        let dir = self.fd(File::from(fs_err::File::open(dir).unwrap()).into());
        self.job.mounts.push(Mount { guest: guest.into(), dir, writable, counted: true, hide: vec![] });
        self
    }

    /// Fixes the content of a file.
    pub(crate) fn seal(self, mount: &str, path: &str, identity: (u64, u64), content: &[u8]) -> Self {
        self.seal_as(mount, path, path, identity, content)
    }

    /// The same where the argument spells its path otherwise.
    pub(crate) fn seal_as(
        mut self,
        mount: &str,
        path: &str,
        spelled: &str,
        identity: (u64, u64),
        content: &[u8],
    ) -> Self {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, content).unwrap();
        let content = self.fd(file.into());
        self.job.sealed.push(SealedFile {
            mount: mount.into(),
            path: path.into(),
            spelled: spelled.into(),
            identity,
            content,
        });
        self
    }

    /// Changes limits.
    pub(crate) fn limit(mut self, change: impl FnOnce(&mut JobLimits)) -> Self {
        change(&mut self.job.limits);
        self
    }

    /// Changes argv and environment.
    pub(crate) fn surroundings(mut self, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        if let Entry::Command { argv, env, .. } = &mut self.job.entry {
            *argv = arguments.iter().map(|&text| text.into()).collect();
            *env = variables.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        }
        self
    }

    /// Runs it to its end.
    pub(crate) fn run(self, loaded: &Loaded) -> Came {
        self.run_until(loaded, std::future::pending())
    }

    /// Runs it until it ends or is stopped.
    pub(crate) fn run_until(mut self, loaded: &Loaded, stop: impl Future<Output = ()>) -> Came {
        self.job.component = loaded.component().into();
        let heard = Arc::new(Mutex::new(Heard::default()));
        let ear = Box::new(Ear(Arc::clone(&heard)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let report = runtime.block_on(executor().run(loaded, &self.job, self.fds, ear, stop));
        let heard = heard.lock().unwrap().clone();
        Came { end: report.end.clone(), report, heard }
    }

    /// Adds a descriptor.
    fn fd(&mut self, fd: OwnedFd) -> FdIndex {
        self.fds.push(fd);
        FdIndex(u32::try_from(self.fds.len() - 1).unwrap())
    }
}

/// The command that does what it is told, in `tests/guests`.
pub(crate) fn hostile() -> &'static Loaded {
    static HOSTILE: LazyLock<Arc<Loaded>> = LazyLock::new(|| load(&built("tests/guests/dist/hostile.wasm")));
    &HOSTILE
}

/// The same, compiled, for cells.
pub(crate) fn hostile_artefact() -> &'static Arc<Artefact> {
    static HOSTILE: LazyLock<Arc<Artefact>> =
        LazyLock::new(|| Arc::new(compile(&built("tests/guests/dist/hostile.wasm")).unwrap()));
    &HOSTILE
}

/// The tool that does what it is told.
pub(crate) fn hostile_tool() -> &'static Loaded {
    static HOSTILE: LazyLock<Arc<Loaded>> = LazyLock::new(|| load(&built("tests/guests/dist/hostile-tool.wasm")));
    &HOSTILE
}

/// A guest written as text, in `tests/guests/wat`.
pub(crate) fn wat(name: &str) -> Vec<u8> {
    wat::parse_bytes(&built(&format!("tests/guests/wat/{name}.wat"))).unwrap().into_owned()
}

/// Tells the command what to do.
pub(crate) fn told(what: serde_json::Value) -> Act {
    Act::command(&what.to_string())
}

impl Came {
    /// What the command printed, which is one JSON document.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.heard.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The engine still works: a small execution succeeds.
pub(crate) fn still_usable() {
    let came = told(serde_json::json!({ "do": "nothing" })).run(hostile());
    assert_eq!(came.end, End::Exited { code: 0 }, "{came:?}");
}
