//! Binding files: what is opened is what is meant, and what is hashed is what
//! is run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::Path;

use env_contracts::{CapabilityRef, Code, Contract, DerivedEffects, Digest, Plan, Principal, Problem};
use glovebox_runtime::bind::{Binding, Files, PathArgument, RunDir, bind, sweep};

const WORKSPACE: &str = "[[filesystem]]\nguest = \"/workspace\"\nsource = \"workspace\"\naccess = \"read\"\n";

struct Desk {
    dir: tempfile::TempDir,
    run_dir: RunDir,
}

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("workspace")).unwrap();
        let run_dir = RunDir::new(&dir.path().join("state/run"), "action");
        Self { dir, run_dir }
    }

    fn workspace(&self) -> std::path::PathBuf {
        self.dir.path().join("workspace")
    }

    fn bind(
        &self,
        contract: &str,
        workspace: &Path,
        paths: &[&str],
        inputs: Vec<(&str, OwnedFd)>,
    ) -> Result<Files, Problem> {
        let plan = Plan {
            action_id: "action".parse().unwrap(),
            revision: 1,
            capability: "a.tool@1.0.0".parse::<CapabilityRef>().unwrap(),
            artifact: Digest::of(b"component"),
            arguments: "{}".into(),
            contract: Contract::from_toml(&format!("schema = \"glovebox/contract/v1\"\n{contract}")).unwrap(),
            effects: DerivedEffects::None,
            principal: Principal {
                tenant: "t".parse().unwrap(),
                user: "u".parse().unwrap(),
                agent: None,
                agent_version: None,
                chain: Vec::new(),
            },
            backend: "b".into(),
        };
        let arguments: Vec<PathArgument> = paths
            .iter()
            .map(|value| PathArgument { pointer: "/path".into(), mount: "/workspace".into(), value: (*value).into() })
            .collect();
        bind(Binding {
            plan: &plan,
            workspace: Some(workspace),
            inputs: inputs.into_iter().map(|(name, fd)| (name.parse().unwrap(), fd)).collect(),
            artifacts: BTreeMap::new(),
            path_arguments: &arguments,
            run_dir: &self.run_dir,
            environment: None,
            protect: &[self.dir.path().join("state"), self.dir.path().join("config/ceiling.toml")],
            max_sealed: 1 << 20,
        })
    }

    fn bind_path(&self, path: &str) -> Result<Files, Problem> {
        self.bind(WORKSPACE, &self.workspace(), &[path], Vec::new())
    }
}

fn text(fd: OwnedFd) -> String {
    let mut text = String::new();
    File::from(fd).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_path_argument_is_sealed_as_it_was_when_it_was_bound() {
    let desk = Desk::new();
    fs_err::write(desk.workspace().join("a.txt"), "before").unwrap();
    let mut files = desk.bind_path("a.txt").unwrap();
    fs_err::write(desk.workspace().join("a.txt"), "after").unwrap();
    assert_eq!(files.facts.paths["/workspace/a.txt"], Digest::of(b"before"));
    let sealed = files.sealed.remove(0);
    assert_eq!((sealed.mount.as_str(), sealed.path.as_str()), ("/workspace", "a.txt"));
    // Nobody can change it, we ourselves included.
    assert!(rustix::io::write(&sealed.content, b"x").is_err());
    let writable = fs_err::OpenOptions::new()
        .write(true)
        .open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&sealed.content)));
    assert!(writable.and_then(|mut file| std::io::Write::write_all(&mut file, b"x")).is_err());
    assert_eq!(text(sealed.content), "before");
}

#[test]
fn paths_that_lead_out_or_block_are_refused() {
    let desk = Desk::new();
    fs_err::write(desk.dir.path().join("secret"), "canary").unwrap();
    fs_err::write(desk.workspace().join(".env"), "canary").unwrap();
    symlink("../secret", desk.workspace().join("out")).unwrap();
    symlink(desk.dir.path().join("secret"), desk.workspace().join("absolute")).unwrap();
    symlink(".env", desk.workspace().join("innocent")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        desk.workspace().join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    for path in [
        "../secret",
        "out",
        "absolute",
        "/etc/passwd",
        "/workspaces/a",
        "/workspace/../secret",
        "fifo",
        "a/../../secret",
    ] {
        let problem = desk.bind_path(path).map(|files| format!("{:?}", files.facts)).unwrap_err();
        assert_eq!(problem.code, Code::PathOutsideMounts, "{path}: {problem}");
        assert!(problem.message.contains("/path"), "{problem}");
    }
}

#[test]
fn what_names_no_regular_file_is_left_to_the_tool() {
    let desk = Desk::new();
    fs_err::create_dir(desk.workspace().join("folder")).unwrap();
    // What is hidden is answered as what is not there.
    fs_err::write(desk.workspace().join(".env"), "canary").unwrap();
    symlink(".env", desk.workspace().join("innocent")).unwrap();
    for path in ["missing", "folder", "", ".", "/workspace", "/workspace/", "missing/deeper", ".env", "innocent"] {
        let files = desk.bind_path(path).unwrap();
        assert!(files.sealed.is_empty() && files.facts.paths.is_empty(), "{path}");
    }
}

#[test]
fn links_inside_the_workspace_lead_to_the_same_sealed_file() {
    let desk = Desk::new();
    fs_err::create_dir(desk.workspace().join("sub")).unwrap();
    fs_err::write(desk.workspace().join("sub/real"), "text").unwrap();
    symlink("sub/real", desk.workspace().join("link")).unwrap();
    let files = desk.bind_path("/workspace//./link").unwrap();
    assert_eq!((files.sealed[0].path.as_str(), files.sealed[0].spelled.as_str()), ("sub/real", "link"));
    // Two arguments, one file: both spellings lead to the same bytes.
    let files = desk.bind(WORKSPACE, &desk.workspace(), &["sub/real", "link"], Vec::new()).unwrap();
    let spelled: Vec<&str> = files.sealed.iter().map(|file| file.spelled.as_str()).collect();
    assert_eq!((spelled, files.facts.paths.len()), (vec!["sub/real", "link"], 1));
}

#[test]
fn more_than_may_be_sealed_is_refused() {
    let desk = Desk::new();
    fs_err::write(desk.workspace().join("big"), vec![0; (1 << 20) + 1]).unwrap();
    let problem = desk.bind_path("big").map(drop).unwrap_err();
    assert_eq!(problem.code, Code::LimitHit);
}

#[test]
fn workspaces_that_are_none_or_ours_are_refused() {
    let desk = Desk::new();
    fs_err::write(desk.dir.path().join("file"), "").unwrap();
    symlink("state", desk.dir.path().join("alias")).unwrap();
    for folder in ["missing", "file", "state", "state/run", "alias"] {
        let problem = desk.bind(WORKSPACE, &desk.dir.path().join(folder), &[], Vec::new()).map(drop).unwrap_err();
        assert_eq!(problem.code, Code::WorkspaceUnavailable, "{folder}: {problem}");
    }
    for folder in ["/proc", "/sys/kernel", "/dev"] {
        let problem = desk.bind(WORKSPACE, Path::new(folder), &[], Vec::new()).map(drop).unwrap_err();
        assert_eq!(problem.code, Code::WorkspaceUnavailable, "{folder}: {problem}");
    }
    // A workspace that holds our state does not show it.
    let files = desk.bind(WORKSPACE, desk.dir.path(), &[], Vec::new()).unwrap();
    assert!(files.mounts[0].hide.contains(&"/state".to_owned()), "{:?}", files.mounts[0].hide);
    // What is not there yet could be made.
    assert!(files.mounts[0].hide.contains(&"/config/ceiling.toml".to_owned()), "{:?}", files.mounts[0].hide);
}

#[test]
fn inputs_are_copied_hashed_and_asked_for() {
    let desk = Desk::new();
    fs_err::write(desk.dir.path().join("in"), "input").unwrap();
    let open = || OwnedFd::from(fs_err::File::open(desk.dir.path().join("in")).unwrap());
    let one = "[[filesystem]]\nguest = \"/inputs/table\"\nsource = \"input:table\"\naccess = \"read\"\n";
    let files = desk.bind(one, &desk.workspace(), &[], vec![("table", open())]).unwrap();
    assert_eq!(files.facts.inputs[&"table".parse().unwrap()], Digest::of(b"input"));
    let inputs = files.mounts.iter().find(|mount| mount.guest == "/inputs").unwrap();
    let copy =
        rustix::fs::openat(inputs.dir.as_fd(), "table", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    assert_eq!(text(copy), "input");
    // Missing, and brought for nobody.
    let desk = Desk::new();
    assert_eq!(
        desk.bind(one, &desk.workspace(), &[], Vec::new()).map(drop).unwrap_err().code,
        Code::ContractUnsatisfied
    );
    assert_eq!(
        desk.bind("", &desk.workspace(), &[], vec![("table", open())]).map(drop).unwrap_err().code,
        Code::ContractUnsatisfied
    );
}

#[test]
fn a_run_folder_goes_with_its_run_however_deep_a_guest_dug() {
    let desk = Desk::new();
    let parent = desk.dir.path().join("runs");
    let run_dir = RunDir::new(&parent, "deep");
    let mut dir = run_dir.folder("outputs").unwrap();
    // Deeper than the descriptors that a process may usually have.
    for level in 0..1100 {
        rustix::fs::mkdirat(&dir, "d", rustix::fs::Mode::RWXU).unwrap();
        if level % 100 == 0 {
            rustix::fs::mkdirat(&dir, "forbidden", rustix::fs::Mode::empty()).unwrap();
        }
        dir = rustix::fs::openat(&dir, "d", rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
    }
    rustix::fs::symlinkat(desk.dir.path().join("workspace"), &dir, "link").unwrap();
    fs_err::write(desk.workspace().join("keep"), "").unwrap();
    drop(run_dir);
    assert_eq!(fs_err::read_dir(&parent).unwrap().count(), 0);
    assert!(desk.workspace().join("keep").exists());
}

#[test]
fn sweeping_takes_dead_runs_and_leaves_live_ones() {
    let desk = Desk::new();
    let parent = desk.dir.path().join("runs");
    let live = RunDir::new(&parent, "live");
    assert!(!parent.exists(), "a run that needs no folder has none");
    drop(live.folder("outputs").unwrap());
    // Another of the same action, while the first is there.
    let beside = RunDir::new(&parent, "live");
    drop(beside.folder("outputs").unwrap());
    assert!(parent.join("live.2").exists());
    // A run whose process is gone: its folder is there, its lock is free.
    fs_err::create_dir(parent.join("dead")).unwrap();
    fs_err::write(parent.join("dead/lock"), "").unwrap();
    fs_err::write(parent.join("dead/leftover"), "").unwrap();
    assert_eq!(sweep(&parent, true).unwrap(), [parent.join("dead")]);
    assert!(parent.join("dead").exists());
    assert_eq!(sweep(&parent, false).unwrap(), [parent.join("dead")]);
    assert!(!parent.join("dead").exists() && parent.join("live").exists());
    drop((live, beside));
    assert_eq!(fs_err::read_dir(&parent).unwrap().count(), 0);
}

/// Inodes are given again: a folder that took the place of another is told by
/// when it was made.
#[test]
fn a_workspace_is_known_by_when_it_was_made() {
    let desk = Desk::new();
    let files = desk.bind(WORKSPACE, &desk.workspace(), &[], Vec::new()).unwrap();
    let made = fs_err::metadata(desk.workspace()).unwrap().created();
    let made = made.ok().map(|made| made.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos());
    assert_eq!(files.facts.workspace.unwrap().born_ns.map(u128::from), made);
}
