//! What the benches of this crate have in common: a job and its folders.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use glovebox_runtime::job::{Entry, FdIndex, Frame, FrameSink, Job, JobLimits, Mount, UngrantedImports};
use glovebox_wasm::{Artefact, CompileCache, CompileLimits, Compiler, Engine, Helper};
use sha2::{Digest, Sha256};

/// What is called and with which folders.
pub(crate) struct Case {
    pub(crate) title: &'static str,
    pub(crate) component: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) args: &'static str,
    pub(crate) folders: bool,
}

/// A tool that touches no file.
pub(crate) const BARE: Case = Case {
    title: "no folders",
    component: "tests/guests/dist/hostile-tool.wasm",
    tool: "hostile",
    args: r#"{"do":"echo"}"#,
    folders: false,
};

/// A tool that reads one.
pub(crate) const FOLDERS: Case = Case {
    title: "workspace and outputs on tmpfs",
    component: "tools/dist/text.count.wasm",
    tool: "text.count",
    args: r#"{"path":"a.txt"}"#,
    folders: true,
};

pub(crate) fn read(path: &str) -> Vec<u8> {
    fs_err::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

/// A workspace with one small file, and an empty folder for outputs.
pub(crate) struct Folders(tempfile::TempDir);

impl Folders {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        fs_err::create_dir(dir.path().join("workspace")).unwrap();
        fs_err::create_dir(dir.path().join("outputs")).unwrap();
        fs_err::write(dir.path().join("workspace/a.txt"), "one two\nthree\n").unwrap();
        Self(dir)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// The program that compiles and becomes cells.
pub(crate) fn helper() -> Helper {
    Helper::new(env!("CARGO_BIN_EXE_wasm-helper"), vec![])
}

/// Compiled components, as long as the folder is there.
pub(crate) fn cache(folder: &Path, engine: &Engine) -> CompileCache {
    let compiler = Compiler::new(helper(), CompileLimits::default());
    CompileCache::open(folder.join("cache"), engine, compiler).unwrap()
}

/// The compiled component of a case.
pub(crate) fn artefact(case: &Case, cache: &CompileCache) -> Artefact {
    let bytes = read(case.component);
    cache.get_or_compile(&digest(&bytes), || Ok(bytes), &mut |_| {}).unwrap()
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Nobody listens.
pub(crate) struct Deaf;

impl FrameSink for Deaf {
    fn frame(&mut self, _frame: Frame<'_>) {}
}

/// A job, and the folders that it is done on again and again.
pub(crate) struct Work {
    pub(crate) job: Job,
    folders: Option<(Folders, File, File)>,
}

impl Work {
    pub(crate) fn new(case: &Case, component: &str) -> Self {
        let folders = case.folders.then(|| {
            let folders = Folders::new();
            let open = |path: &Path| File::from(fs_err::File::open(path).unwrap());
            let (workspace, outputs) = (open(&folders.path("workspace")), open(&folders.path("outputs")));
            (folders, workspace, outputs)
        });
        let mount = |guest: &str, dir, writable, hide: &[&str]| Mount {
            guest: guest.into(),
            dir: FdIndex(dir),
            writable,
            counted: true,
            hide: hide.iter().map(|&glob| glob.into()).collect(),
        };
        let job = Job {
            action: "act-1".into(),
            component: component.into(),
            entry: Entry::Tool { name: case.tool.into() },
            args: case.args.into(),
            mounts: if case.folders {
                vec![mount("/workspace", 0, false, env_contracts::DEFAULT_HIDE), mount("/outputs", 1, true, &[])]
            } else {
                vec![]
            },
            sealed: vec![],
            limits: JobLimits {
                wall: Duration::from_secs(60),
                idle: None,
                cpu: None,
                memory: 512 << 20,
                output: 1 << 20,
                storage: 64 << 20,
                inodes: 10_000,
            },
            imports: UngrantedImports::Refuse,
            deterministic: None,
        };
        Self { job, folders }
    }

    /// Descriptors for one more time.
    pub(crate) fn descriptors(&self) -> Vec<OwnedFd> {
        match &self.folders {
            Some((_, workspace, outputs)) => {
                vec![workspace.try_clone().unwrap().into(), outputs.try_clone().unwrap().into()]
            }
            None => vec![],
        }
    }
}

/// The time below which so many of a hundred lie: 50 is the median.
pub(crate) fn percentile(times: &mut [Duration], place: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * place / 100]
}
