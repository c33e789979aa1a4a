//! What a guest sees without asking, and what its failures tell.

use serde_json::{Value, json};

use super::{Row, row};
use crate::guests::Guest;
use crate::house::House;

pub(super) const ROWS: &[Row] = &[
    row("a guest has the arguments, variables and folders of its contract, and no others", seen_from_inside),
    row("a guest that is given nothing sees nothing of the host", nothing),
    row("no failure tells a path of the host", no_host_paths),
    row("random bytes differ from action to action", random),
];

/// Where programs of an image are looked for that says nothing of it.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Texts of a list, sorted.
fn sorted(list: &Value) -> Vec<&str> {
    let mut texts: Vec<_> = list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    texts.sort_unstable();
    texts
}

fn seen_from_inside(house: &House) {
    let entry = "kind = \"command\", argv = [\"PROGRAM\", \"--flag\", \"{x}\"], env = { A = \"1\", B = \"\" }";
    let act =
        house.command(&json!({ "do": "surroundings", "x": "ä b" })).entry(&entry.replace("PROGRAM", house.program()));
    let act = act.input("type = \"object\", properties = { x = { type = \"string\" } }");
    let seen = act.mount("workspace read").mount("outputs").mount("scratch").run().succeeds();
    assert_eq!(seen.data()["arguments"], json!([house.program(), "--flag", "ä b"]));
    if house.has_components() {
        assert_eq!(seen.data()["environment"], json!({ "A": "1", "B": "" }));
        assert_eq!(seen.data()["folders"], json!(["/workspace", "/outputs", "/tmp"]));
    } else {
        // Programs take a home, a path and shared memory to be there.
        assert_eq!(seen.data()["environment"], json!({ "A": "1", "B": "", "HOME": "/tmp", "PATH": PATH }));
        assert_eq!(sorted(&seen.data()["folders"]), ["/dev/shm", "/outputs", "/tmp", "/workspace"]);
    }
    assert_eq!(seen.data()["terminal"], json!({ "stdin": false, "stdout": false, "stderr": false }));
}

fn nothing(house: &House) {
    assert!(std::env::vars_os().count() > 0, "there is something to inherit");
    let seen = house.command(&json!({ "do": "surroundings" })).run().succeeds();
    let (environment, folders) = if house.has_components() {
        (json!({}), &[][..])
    } else {
        (json!({ "HOME": "/tmp", "PATH": PATH }), &["/dev/shm", "/tmp"][..])
    };
    assert_eq!(seen.data()["environment"], environment, "{seen:?}");
    assert_eq!(sorted(&seen.data()["folders"]), folders, "{seen:?}");
    // A program has a name; that of the capability is no secret.
    assert_eq!(seen.data()["arguments"].as_array().unwrap().len(), 1, "{seen:?}");
    let name = seen.data()["arguments"][0].as_str().unwrap();
    assert!(name.starts_with("guest.") || name == house.program(), "{seen:?}");
    let mut paths = vec!["/", "/etc/passwd", ".", "..", "/workspace", "/tmp", "/outputs"];
    if house.has_components() {
        // What a process is to the kernel it may read of itself.
        paths.push("/proc/self/environ");
    }
    let here = house.path("").display().to_string();
    let (program, own) = (std::env::current_exe().unwrap().display().to_string(), format!("{here}own"));
    fs_err::write(&own, "of this host").unwrap();
    paths.extend([here.as_str(), program.as_str(), own.as_str(), "/etc/shadow", "/root/.ssh", "/var/lib/docker"]);
    let seen = house.command(&json!({ "do": "escape", "paths": paths })).run().succeeds();
    assert_eq!(seen.number("reached"), 0, "{seen:?}");
}

/// [`House::after`] looks through everything that comes back from any action;
/// here are many that fail.
fn no_host_paths(house: &House) {
    house.file("a.txt", "a");
    house.file("dir/b", "b");
    let mut failed = 0;
    for told in [
        json!({ "do": "panic" }),
        json!({ "do": "unreachable" }),
        json!({ "do": "exit", "code": 9 }),
        json!({ "do": "read", "path": "/workspace/missing", "fail": true }),
        json!({ "do": "open", "folder": "/workspace", "path": "..", "access": ["read"], "fail": true }),
        json!({ "do": "open", "folder": "/workspace", "path": "a.txt/", "access": ["read"], "fail": true }),
        json!({ "do": "rename", "from_path": "/workspace/a.txt", "to_path": "/outputs/x", "fail": true }),
        json!({ "do": "copy", "from": "/workspace/dir", "to": "/outputs/x", "fail": true }),
        json!({ "do": "write-file", "path": "/outputs/x", "fail": true }),
        json!({ "do": "surroundings" }),
    ] {
        let act = house.command(&told).mount("workspace read").mount("outputs").limit("storage = \"64KiB\"");
        failed += usize::from(act.run().outcome.code.is_some());
    }
    if !house.has_components() {
        assert!(failed >= 6, "only {failed} failed");
        return;
    }
    for args in [json!({ "path": "missing" }), json!({ "path": "dir" }), json!({ "path": "../x" }), json!({})] {
        for tool in ["fs.read", "text.count"] {
            failed += usize::from(house.builtin(tool, &args).attempt().outcome.code.is_some());
        }
    }
    for guest in ["imports-sockets", "imports-unknown", "fails", "stack"] {
        failed += usize::from(house.act(&Guest::Wat(guest), &json!({})).attempt().outcome.code.is_some());
    }
    assert!(failed > 10, "only {failed} failed");
}

fn random(house: &House) {
    let first = || house.command(&json!({ "do": "random", "bytes": 64 })).run().succeeds().data()["first"].to_string();
    let seen: std::collections::BTreeSet<String> = (0..5).map(|_| first()).collect();
    assert_eq!(seen.len(), 5, "{seen:?}");
}
