//! Whose a folder is: who reads it, and whose is what comes of it.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;

use env_contracts::Code;
use rustix::fs::{CWD, FileType, mknodat};
use rustix::process::geteuid;
use serde_json::json;

use super::{Row, row};
use crate::act::Lacking;
use crate::house::House;

const NO_USERS: &str = "a component is no process, and has no user";

/// Somebody of this machine who is not root.
const SOMEBODY: (u32, u32) = (4321, 4322);

/// Who a tool is that has no folder of somebody's.
const NOBODY: u32 = 65532;

pub(super) const ROWS: &[Row] = &[
    row("a workspace of an ordinary user is read by a tool that is that user", of_a_user).of_images(NO_USERS),
    row("a pipe or a socket in a workspace that is shown leads to nobody", leads_to_nobody)
        .of_images("they are not opened: see *files*"),
    row("a workspace of root is copied for a tool that is nobody, and what it changed comes out", of_root)
        .of_images(NO_USERS),
    row("what a tool writes is afterwards of whoever runs Glovebox, in a workspace of theirs", written),
    row("what a tool writes in somebody else's workspace is afterwards theirs", written_for_somebody)
        .of_images("a component writes as Glovebox itself does"),
];

/// Only root has folders of others.
fn as_root() {
    if !geteuid().is_root() {
        std::panic::resume_unwind(Box::new(Lacking("only root can make folders of others")));
    }
}

/// Gives the workspace to a user, with a file that only they may read.
fn give(house: &House, (uid, gid): (u32, u32), folder: u32) {
    house.file("own", "own");
    for (path, mode) in [(house.workspace().join("own"), 0o600), (house.workspace(), folder)] {
        chown(&path, Some(uid), Some(gid)).unwrap();
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// Who the tool is, with a workspace given like this.
fn user(house: &House, mount: &'static str) -> String {
    let seen = house.command(&json!({ "do": "standing" })).mount(mount).run().succeeds();
    let line = |key: &str| seen.data()[key].as_str().unwrap().to_owned();
    let own = line("Gid").split(' ').next().unwrap().to_owned();
    assert!(["", own.as_str()].contains(&line("Groups").as_str()), "its own group at the most: {seen:?}");
    format!("{}; {}", line("Uid"), line("Gid"))
}

fn four(uid: u32, gid: u32) -> String {
    format!("{uid} {uid} {uid} {uid}; {gid} {gid} {gid} {gid}")
}

fn of_a_user(house: &House) {
    as_root();
    give(house, SOMEBODY, 0o700);
    let shown = "workspace read, hiding nothing";
    assert_eq!(user(house, shown), four(SOMEBODY.0, SOMEBODY.1));
    let read = json!({ "do": "read", "path": "/workspace/own" });
    let told = |mount| house.command(&read).mount(mount).run().succeeds().data()["text"].clone();
    assert_eq!(told(shown), "own");
    // Theirs is no longer anybody's who reads a copy.
    assert_eq!(told("workspace read"), "own");
    // Another's file in it is another's.
    let others = house.workspace().join("another's");
    fs_err::write(&others, "another's").unwrap();
    fs_err::set_permissions(&others, std::fs::Permissions::from_mode(0o600)).unwrap();
    chown(&others, Some(SOMEBODY.0 + 1), Some(SOMEBODY.1 + 1)).unwrap();
    let read = json!({ "do": "read", "path": "/workspace/another's" });
    let seen = house.command(&read).mount(shown).run().succeeds();
    assert!(seen.data()["refused"].is_string(), "{seen:?}");
    // A user whose group is root's is not in it.
    chown(house.workspace(), Some(SOMEBODY.0), Some(0)).unwrap();
    assert_eq!(user(house, shown), four(SOMEBODY.0, NOBODY));
}

/// A tool is the owner of what is shown to it, and reading only holds for files.
fn leads_to_nobody(house: &House) {
    as_root();
    give(house, SOMEBODY, 0o700);
    let (socket, fifo) = (house.workspace().join("socket"), house.workspace().join("fifo"));
    let listener = UnixListener::bind(&socket).unwrap();
    mknodat(CWD, &fifo, FileType::Fifo, 0o600.into(), 0).unwrap();
    [&socket, &fifo].into_iter().for_each(|path| chown(path, Some(SOMEBODY.0), Some(SOMEBODY.1)).unwrap());
    let shown = "workspace read, hiding nothing";
    let told = json!({ "do": "reach-network", "sockets": ["/workspace/socket"] });
    assert_eq!(house.command(&told).mount(shown).run().succeeds().data()["reached"], json!([]));
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "somebody spoke to it");
    let told = json!({ "do": "open", "path": "/workspace/fifo", "access": ["read"] });
    assert!(house.command(&told).mount(shown).run().succeeds().data()["refused"].is_string());
}

fn of_root(house: &House) {
    as_root();
    give(house, (0, 0), 0o755);
    for mount in ["workspace read", "workspace write", "workspace read, hiding nothing"] {
        assert_eq!(user(house, mount), four(NOBODY, NOBODY), "{mount}");
    }
    let read = json!({ "do": "read", "path": "/workspace/own" });
    for (mount, text) in [("workspace read", "own"), ("workspace write", "own")] {
        let seen = house.command(&read).mount(mount).run().succeeds();
        assert_eq!(seen.data()["text"], text, "{mount}: {seen:?}");
    }
    // What is shown as it is stays root's.
    let seen = house.command(&read).mount("workspace read, hiding nothing").run().succeeds();
    assert!(seen.data()["refused"].is_string(), "{seen:?}");
    // And is not even entered where nobody else may.
    give(house, (0, 0), 0o700);
    house.command(&read).mount("workspace read, hiding nothing").run().coded(Code::ImageCommand);
    let write = json!([{ "path": "/workspace/own", "text": "changed" }, { "path": "/workspace/new", "text": "new" }]);
    let act = house.command(&json!({ "do": "write-files", "write": write })).mount("workspace write");
    act.run().succeeds();
    for (path, text, mode) in [("own", "changed", Some(0o600)), ("new", "new", None)] {
        let path = house.workspace().join(path);
        let meta = fs_err::metadata(&path).unwrap();
        assert_eq!((fs_err::read_to_string(&path).unwrap().as_str(), meta.uid(), meta.gid()), (text, 0, 0));
        assert!(mode.is_none_or(|mode| meta.mode() & 0o7777 == mode) && meta.mode() & 0o111 == 0, "{meta:?}");
    }
}

fn written(house: &House) {
    house.file("known", "known");
    fs_err::set_permissions(house.workspace().join("known"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let write = json!([
        { "path": "/workspace/known", "text": "changed" }, { "path": "/workspace/new", "text": "new" },
        { "path": "/outputs/out", "text": "out" },
    ]);
    let told = json!({ "do": "write-files", "write": write });
    let seen = house.command(&told).mount("workspace write").mount("outputs").run().succeeds();
    assert_eq!(seen.artifact("out"), b"out");
    let told = json!({ "do": "make-folder", "path": "/workspace/folder" });
    house.command(&told).mount("workspace write").run().succeeds();
    let me = (geteuid().as_raw(), rustix::process::getegid().as_raw());
    for name in ["known", "new", "folder"] {
        let meta = fs_err::metadata(house.workspace().join(name)).unwrap();
        assert_eq!((meta.uid(), meta.gid()), me, "{name}");
        // Nobody else may write what only its owner could.
        assert_eq!(meta.mode() & 0o7022, 0, "{name}: {:o}", meta.mode());
    }
    assert_eq!(fs_err::metadata(house.workspace().join("known")).unwrap().mode() & 0o777, 0o640);
}

fn written_for_somebody(house: &House) {
    as_root();
    give(house, SOMEBODY, 0o755);
    let write = json!([{ "path": "/workspace/own", "text": "changed" }, { "path": "/workspace/new", "text": "new" }]);
    house.command(&json!({ "do": "write-files", "write": write })).mount("workspace write").run().succeeds();
    house
        .command(&json!({ "do": "make-folder", "path": "/workspace/folder" }))
        .mount("workspace write")
        .run()
        .succeeds();
    for name in ["own", "new", "folder"] {
        let meta = fs_err::metadata(house.workspace().join(name)).unwrap();
        assert_eq!((meta.uid(), meta.gid()), SOMEBODY, "{name}");
    }
    assert_eq!(fs_err::metadata(house.workspace().join("own")).unwrap().mode() & 0o777, 0o600);
}
