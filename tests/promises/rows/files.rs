//! Folders: what was not given can't be reached, and what may only be read
//! stays as it is.

use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use env_contracts::{Code, Content, OutcomeKind};
use glovebox_plane::Watch;
use glovebox_runtime::job::Frame;
use serde_json::{Value, json};

use super::{Row, row};
use crate::house::House;

pub(super) const ROWS: &[Row] = &[
    row("a read-only folder stays as it is: content, names, links, times", read_only),
    row("no path, link or trick leads out of a folder", nothing_leads_out),
    row("what `hide` names is not there: not read, listed, made, moved or removed", hidden),
    row("the usual secrets are hidden without anybody asking", hidden_by_default),
    row("named pipes, sockets and the kernel's own trees are not opened", special),
    row("Glovebox's own state is not there, wherever it lies", state),
    row("an action leaves a folder as it found it, but for what it was told to write", nothing_besides),
    row("a file's name is a name, whatever characters it has", odd_names),
    row("a path argument outside of its mount is refused before anything runs", path_arguments),
    row("a path argument is read as it was when it was bound, whatever lies there later", sealed),
];

/// A path, with its content, number of names and modification time.
type Entry = (PathBuf, Vec<u8>, u64, i64, i64);

/// Everything below a folder: paths, content, links, modification times.
fn snapshot(path: &Path) -> Vec<Entry> {
    let mut all = Vec::new();
    for entry in fs_err::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs_err::symlink_metadata(&path).unwrap();
        let content = if meta.is_file() { fs_err::read(&path).unwrap() } else { Vec::new() };
        if meta.is_dir() {
            all.extend(snapshot(&path));
        }
        all.push((path, content, meta.nlink(), meta.mtime(), meta.mtime_nsec()));
    }
    all.sort();
    all
}

/// How a folder to read is given: a container shows one of which all may be
/// seen, and copies any other.
fn reading(house: &House) -> &'static [&'static str] {
    if house.has_components() { &["workspace read"] } else { &["workspace read, hiding nothing", "workspace read"] }
}

/// What the command is told to do, in a workspace of this access.
fn told(house: &House, mount: &'static str, told: &Value) -> Value {
    let seen = house.command(told).mount(mount).mount("outputs").run().succeeds();
    seen.data().clone()
}

fn read_only(house: &House) {
    house.file("a.txt", "precious");
    house.file("dir/b.txt", "b");
    let before = snapshot(&house.workspace());
    let between = |what: &str, from: &str, to: &str| json!({ "do": what, "nofollow": true, "from_path": from, "to_path": to, "path": "/outputs/x", "flags": ["create"] });
    let at = |what: &str, path: &str| json!({ "do": what, "path": path, "target": "a.txt" });
    let open = |path: &str, flags: Value, access: Value| json!({ "do": "open", "path": path, "flags": flags, "access": access, "text": "x" });
    for attempt in [
        json!({ "do": "open", "path": "/workspace/a.txt", "flags": ["truncate"] }),
        json!({ "do": "open", "path": "/workspace/a.txt", "flags": ["truncate"], "access": ["read"] }),
        open("/workspace/a.txt", json!([]), json!(["write"])),
        open("/workspace/new", json!(["create"]), json!(["write"])),
        open("/workspace/new", json!(["create", "exclusive"]), json!(["write"])),
        at("remove", "/workspace/a.txt"),
        json!({ "do": "remove", "path": "/workspace/dir", "folders": true }),
        at("make-folder", "/workspace/new"),
        at("symlink", "/workspace/new"),
        at("set-times", "/workspace/a.txt"),
        at("set-times", "/workspace/dir"),
        json!({ "do": "set-times", "path": "/workspace/a.txt", "opened": true }),
        between("rename", "/workspace/a.txt", "/workspace/b"),
        between("rename", "/workspace/a.txt", "/outputs/b"),
        between("link", "/workspace/a.txt", "/workspace/b"),
        between("link", "/workspace/a.txt", "/outputs/b"),
    ] {
        for mount in reading(house) {
            let refused = &told(house, mount, &attempt)["refused"];
            if house.has_components() {
                assert_eq!(refused, "read-only", "{attempt}");
            }
            // A copy is the tool's own: what it makes of it is nobody's.
            assert!(refused.is_string() || *mount == "workspace read", "{attempt}");
        }
    }
    assert_eq!(snapshot(&house.workspace()), before);
    if !house.has_components() {
        shown_is_read_only(house);
        assert_eq!(snapshot(&house.workspace()), before);
        return;
    }
    // Into it, from a folder that may be written.
    for what in ["rename", "link"] {
        let attempt = json!({ "do": "artifacts", "write": [{ "path": "/outputs/o", "text": "o" }, { "path": "/workspace/o", "text": "o" }] });
        let seen = house.tool(&attempt).mount("workspace read").mount("outputs").run();
        assert_eq!(seen.outcome.kind, OutcomeKind::Completed, "{seen:?}");
        seen.coded(Code::ToolFailed);
        let attempt = between(what, "/outputs/o", "/workspace/a.txt");
        assert!(told(house, "workspace read", &attempt)["refused"].is_string(), "{attempt}");
    }
    let shrink = json!({ "do": "set-size", "path": "/workspace/a.txt", "read_only": true, "size": 0 });
    assert!(told(house, "workspace read", &shrink)["refused"].is_string());
    assert_eq!(snapshot(&house.workspace()), before);
}

/// A folder that is shown, from inside of what is not: links lead nowhere else.
fn shown_is_read_only(house: &House) {
    let mount = "workspace read, hiding nothing";
    let shrink = json!({ "do": "set-size", "path": "/workspace/a.txt", "size": 0 });
    assert!(told(house, mount, &shrink)["refused"].is_string());
    let link = json!({ "do": "write", "paths": ["/workspace/a.txt", "/workspace/dir/new", "/proc/self/cwd/a.txt", "/proc/1/cwd/a.txt"] });
    assert_eq!(told(house, mount, &link)["written"], json!([]));
}

fn nothing_leads_out(house: &House) {
    let outside = house.path("outside");
    fs_err::create_dir(&outside).unwrap();
    fs_err::write(outside.join("secret"), "secret").unwrap();
    fs_err::create_dir(house.workspace().join("dir")).unwrap();
    let link = |target: &str, name: &str| symlink(target, house.workspace().join(name)).unwrap();
    link(&outside.display().to_string(), "absolute");
    link("../outside", "up");
    link("../outside/secret", "file");
    link("dir/../../outside", "detour");
    link("up", "twice");
    link("/proc/self/root", "magic");
    link("loop", "loop");
    let (absolute, secret) = (outside.display().to_string(), outside.join("secret").display().to_string());
    let paths = json!([
        "..",
        "../",
        "../outside/secret",
        "dir/../../outside/secret",
        "./../outside/secret",
        "//etc/passwd",
        "/etc/passwd",
        "absolute/secret",
        "absolute/",
        "absolute/.",
        "absolute/..",
        "up/secret",
        "up/",
        "up/.",
        "file",
        "file/",
        "file/.",
        "detour/secret",
        "twice/secret",
        "twice/../outside/secret",
        "magic/etc/passwd",
        "magic/",
        "loop",
        "loop/",
        "dir/../../../../../../../etc/passwd",
        absolute,
        secret,
    ]);
    let seen = told(house, "workspace write", &json!({ "do": "escape", "paths": paths }));
    assert_eq!(seen["reached"], 0, "{seen:#}");
    let before = snapshot(&outside);
    for path in ["up/new", "absolute/new", "../outside/new", "detour/new", "twice/new"] {
        for what in ["make-folder", "symlink", "open", "set-times", "remove"] {
            let attempt = json!({ "do": what, "folder": "/workspace", "path": path, "target": "x", "flags": ["create"], "access": ["write"], "text": "x" });
            assert!(told(house, "workspace write", &attempt)["refused"].is_string(), "{attempt}");
        }
    }
    for path in ["up/secret", "absolute/secret", "file/"] {
        for what in ["rename", "link"] {
            let attempt = json!({ "do": what, "nofollow": true, "from_folder": "/workspace", "from_path": path, "to_path": "/workspace/stolen" });
            assert!(told(house, "workspace write", &attempt)["refused"].is_string(), "{attempt}");
        }
    }
    let absolute = json!({ "do": "symlink", "path": "/workspace/new", "target": "/etc/passwd" });
    if house.has_components() {
        assert_eq!(told(house, "workspace write", &absolute)["refused"], "not-permitted");
    } else {
        changes_nothing(house, &absolute);
    }
    assert!(fs_err::symlink_metadata(house.workspace().join("new")).is_err());
    assert_eq!(snapshot(&outside), before);
    assert!(!house.workspace().join("stolen").exists());
}

/// A tool that changes its copy of a folder in a way that may not come out is
/// told so by its end.
fn changes_nothing(house: &House, told: &Value) {
    let seen = house.command(told).mount("workspace write").run().coded(Code::ToolFailed);
    assert!(seen.outcome.which.as_deref() == Some("conflict") && seen.noticed("change-refused"), "{told}: {seen:?}");
}

fn secrets(house: &House) {
    for (path, text) in [("a.txt", "a"), (".env", "secret"), ("sub/key.pem", "secret"), (".git/config", "secret")] {
        house.file(path, text);
    }
    symlink(".env", house.workspace().join("to-env")).unwrap();
    symlink("../.git", house.workspace().join("sub/to-git")).unwrap();
}

fn hidden(house: &House) {
    secrets(house);
    let before = snapshot(&house.workspace());
    for path in [".env", "./.env", "sub/../.env", "to-env", "sub/key.pem", ".git/config", "sub/to-git/config"] {
        for (what, access) in [("open", "read"), ("open", "write"), ("set-times", "")] {
            let attempt = json!({ "do": what, "folder": "/workspace", "path": path, "access": [access] });
            assert_eq!(told(house, "workspace write", &attempt)["refused"], "no-entry", "{attempt}");
        }
    }
    for path in [".env", "sub/new.pem", ".git/config"] {
        for what in ["open", "make-folder", "symlink", "rename", "link", "remove"] {
            let attempt = json!({ "do": what, "nofollow": true, "folder": "/workspace", "path": path, "flags": ["create"], "access": ["write"],
                "text": "x", "target": "a.txt", "from_path": "/workspace/a.txt", "to_folder": "/workspace", "to_path": path });
            if house.has_components() || what == "remove" {
                assert_eq!(told(house, "workspace write", &attempt)["refused"], "no-entry", "{attempt}");
                continue;
            }
            // What is not there can be made in a copy, and does not come out.
            let seen = house.command(&attempt).mount("workspace write").run();
            assert!(what == "link" || seen.outcome.which.as_deref() == Some("conflict"), "{attempt}: {seen:?}");
            // What was moved away is gone.
            house.file("a.txt", "a");
        }
    }
    let contents = |all: &[Entry]| all.iter().map(|entry| (entry.0.clone(), entry.1.clone())).collect::<Vec<_>>();
    let now = snapshot(&house.workspace());
    assert_eq!(contents(&now), contents(&before));
    let before = if house.has_components() { before } else { now };
    let list = |path: &str| told(house, "workspace write", &json!({ "do": "list", "path": path }))["names"].clone();
    assert_eq!(list("/workspace"), json!([".git", "a.txt", "sub", "to-env"]));
    assert_eq!(list("/workspace/sub"), json!(["to-git"]));
    assert_eq!(list("/workspace/.git"), json!([]));
    assert_eq!(snapshot(&house.workspace()), before);
}

fn hidden_by_default(house: &House) {
    secrets(house);
    let read = json!({ "do": "read", "path": "/workspace/.env" });
    assert!(told(house, "workspace read", &read)["refused"].is_string());
    assert_eq!(told(house, "workspace read, hiding nothing", &read)["text"], "secret");
    if !house.has_components() {
        return;
    }
    let seen = house.builtin("fs.search", &json!({ "pattern": "secret", "hidden": true })).run().succeeds();
    assert!(!seen.data().to_string().contains("key.pem"), "{seen:?}");
}

fn special(house: &House) {
    let fifo = house.workspace().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o666.into(), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(house.workspace().join("socket")).unwrap();
    symlink("fifo", house.workspace().join("to-fifo")).unwrap();
    for path in ["/workspace/fifo", "/workspace/socket", "/workspace/to-fifo"] {
        for access in ["read", "write"] {
            let attempt = json!({ "do": "open", "path": path, "access": [access] });
            // They are not copied.
            let refused = if house.has_components() { "access" } else { "no-entry" };
            assert_eq!(told(house, "workspace write", &attempt)["refused"], refused, "{attempt}");
        }
    }
    // A workspace may hold what the kernel mounts to speak of itself.
    for (folder, path) in [
        ("/dev", "null"),
        ("/dev", "zero"),
        ("/proc", "self/environ"),
        ("/proc", "self/mem"),
        ("/proc/self", "environ"),
        ("/", "proc/self/environ"),
        ("/", "proc/1/environ"),
        ("/", "sys/kernel/mm"),
        ("/", "dev/null"),
    ] {
        for attempt in [
            json!({ "do": "open", "folder": "/workspace", "path": path, "access": ["read"] }),
            json!({ "do": "list", "folder": "/workspace", "path": path }),
        ] {
            let act = house.command(&attempt).mount("workspace read");
            let seen = act.asking(|submission| submission.workspace = Some(folder.into())).attempt();
            // The folder as a whole may be refused as well.
            let shut = seen.outcome.code.is_some() || seen.data()["refused"].is_string();
            assert!(shut, "{attempt}: {seen:?}");
        }
    }
}

fn state(house: &House) {
    house.file("a.txt", "a");
    // The folder that holds both the state and the workspace.
    let told = |told: Value| {
        let act = house.command(&told).mount("workspace write");
        act.asking(|submission| submission.workspace = Some(house.path(""))).run().succeeds().data().clone()
    };
    assert_eq!(told(json!({ "do": "list", "path": "/workspace" }))["names"], json!(["workspace"]));
    assert_eq!(told(json!({ "do": "read", "path": "/workspace/workspace/a.txt" }))["text"], "a");
    for attempt in [
        json!({ "do": "list", "path": "/workspace/state" }),
        json!({ "do": "list", "path": "/workspace/workspace/../state/tools" }),
        json!({ "do": "open", "path": "/workspace/state/new", "flags": ["create"], "access": ["write"], "text": "x" }),
        json!({ "do": "rename", "from_path": "/workspace/state", "to_path": "/workspace/mine" }),
        json!({ "do": "rename", "from_path": "/workspace/workspace", "to_path": "/workspace/state" }),
    ] {
        if house.has_components() || attempt["do"] == "list" {
            assert!(told(attempt.clone())["refused"].is_string(), "{attempt}");
            continue;
        }
        let act = house.command(&attempt).mount("workspace write");
        let seen = act.asking(|submission| submission.workspace = Some(house.path(""))).run();
        let shut = seen.data()["refused"].is_string() || seen.outcome.which.as_deref() == Some("conflict");
        assert!(shut && house.path("state/store.db").exists() && !house.path("mine").exists(), "{attempt}: {seen:?}");
        assert!(!house.path("state/new").exists() && !house.path("state/a.txt").exists(), "{attempt}: {seen:?}");
        house.file("a.txt", "a");
    }
}

fn nothing_besides(house: &House) {
    house.file("a.txt", "a");
    house.file("dir/b", "b");
    let before = snapshot(&house.workspace());
    for attempt in [json!({ "do": "nothing" }), json!({ "do": "read" }), json!({ "do": "copy" })] {
        told(house, "workspace write", &attempt);
    }
    assert_eq!(snapshot(&house.workspace()), before);
    told(house, "workspace write", &json!({ "do": "write-file", "path": "/workspace/dir/new", "bytes": 3 }));
    assert_eq!(fs_err::read(house.workspace().join("dir/new")).unwrap(), b"xxx");
    fs_err::remove_file(house.workspace().join("dir/new")).unwrap();
    let names = |all: &[Entry]| all.iter().map(|entry| entry.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&snapshot(&house.workspace())), names(&before));
}

/// A request to read the file that an argument names in the workspace.
fn named<'h>(house: &'h House, path: &str) -> crate::act::Act<'h> {
    let act = house.command(&json!({ "do": "read", "path": path, "below": "/workspace/" }));
    let path = "path = { type = \"string\", x-glovebox-path = \"/workspace\" }";
    act.input(&format!("type = \"object\", properties = {{ {path} }}")).mount("workspace read")
}

fn odd_names(house: &House) {
    for name in ["-rf", "a b", "$(touch x)", "`x`", "'q'", "\"q\"", "new\nline", "\u{202e}evil", ";x", "*", "%s", "{x}"]
    {
        house.file(name, "one two\n");
        let seen = named(house, name).run().succeeds();
        assert_eq!(seen.data()["text"], "one two\n", "{name:?}: {seen:?}");
        let told = json!({ "do": "copy", "from": format!("/workspace/{name}"), "to": format!("/outputs/{name}") });
        let seen = house.command(&told).mount("workspace read").mount("outputs").run().succeeds();
        assert_eq!(seen.artifacts.len(), 1, "{name:?}: {seen:?}");
        assert_eq!(seen.artifact(name), b"one two\n");
    }
    assert!(!house.workspace().join("x").exists());
}

fn path_arguments(house: &House) {
    house.file("a.txt", "a");
    symlink("/etc/passwd", house.workspace().join("link")).unwrap();
    for path in ["../outside", "/etc/passwd", "a/../../x", "..", "link"] {
        let seen = named(house, path).attempt();
        assert!(seen.outcome.code.is_some(), "{path}: {seen:?}");
        assert_eq!((seen.output.stdout.total, seen.times.run_us), (0, 0), "{path}: {seen:?}");
        if path != "link" {
            seen.coded(Code::PathOutsideMounts).ends("contract-unsatisfied");
        }
    }
}

/// Puts another file in the place of `a.txt` once everything is bound.
struct Swap(PathBuf);

impl Watch for Swap {
    fn phase(&self, line: &str) {
        if line == "running" {
            fs_err::write(self.0.join("other"), "something much longer than before").unwrap();
            fs_err::rename(self.0.join("other"), self.0.join("a.txt")).unwrap();
        }
    }

    fn frame(&self, _: &Frame<'_>) {}
}

fn sealed(house: &House) {
    house.file("a.txt", "one two\n");
    let seen = named(house, "a.txt").watched(Swap(house.workspace())).run().succeeds();
    assert_eq!(seen.data()["text"], "one two\n", "{seen:?}");
    assert!(seen.saw(b"one two\n"), "{seen:?}");
    assert_eq!(fs_err::read_to_string(house.workspace().join("a.txt")).unwrap(), "something much longer than before");
    let sealed = seen.enforcement.iter().find(|line| line.clause.as_str() == "filesystem[/workspace/a.txt]");
    assert_eq!(sealed.unwrap().content, Some(Content::Sealed));
}
