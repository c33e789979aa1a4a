//! Folders: what was not given can't be reached, and what may only be read
//! stays as it is.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use glovebox_runtime::job::End;
use serde_json::{Value, json};

use crate::harness::{Came, hostile, still_usable, told};

/// A read-only `/workspace`, a writable `/outputs`, and something outside of both.
struct World {
    root: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = root.path();
        for folder in ["workspace/dir", "outputs/dir", "outside"] {
            fs_err::create_dir_all(path.join(folder)).unwrap();
        }
        fs_err::write(path.join("workspace/a.txt"), "precious").unwrap();
        fs_err::write(path.join("workspace/dir/b.txt"), "b").unwrap();
        fs_err::write(path.join("outputs/o.txt"), "o").unwrap();
        fs_err::write(path.join("outside/secret"), "secret").unwrap();
        Self { root }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.root.path().join(path)
    }

    fn run(&self, what: &Value) -> Came {
        told(what.clone())
            .mount("/workspace", &self.path("workspace"), false)
            .mount("/outputs", &self.path("outputs"), true)
            .run(hostile())
    }

    /// What the guest was refused with.
    fn refused(&self, what: &Value) -> String {
        let came = self.run(what);
        assert_eq!(came.end, End::Exited { code: 0 }, "{what}: {came:?}");
        let json = came.json();
        json["refused"].as_str().unwrap_or_else(|| panic!("{what} was not refused: {json}")).to_owned()
    }

    fn allowed(&self, what: &Value) -> Value {
        let json = self.run(what).json();
        assert!(json.get("refused").is_none(), "{what}: {json}");
        json
    }
}

/// Everything below a folder: paths, content and modification times.
fn snapshot(path: &Path) -> Vec<(String, Vec<u8>, i64, i64)> {
    let mut all = Vec::new();
    for entry in fs_err::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        let meta = fs_err::symlink_metadata(entry.path()).unwrap();
        let content = if meta.is_file() { fs_err::read(entry.path()).unwrap() } else { vec![] };
        all.push((entry.path().display().to_string(), content, meta.mtime(), meta.mtime_nsec()));
        if meta.is_dir() {
            all.extend(snapshot(&entry.path()));
        }
    }
    all.sort();
    all
}

#[test]
fn a_read_only_folder_stays_as_it_is() {
    let world = World::new();
    let before = snapshot(&world.path("workspace"));
    let (a, o) = (("from_folder", "/workspace"), ("from_folder", "/outputs"));
    let between = |what: &str, from: (&str, &str), old: &str, to: &str, new: &str| json!({ "do": what, "nofollow": true, from.0: from.1, "from_path": old, "to_folder": to, "to_path": new });
    for (what, code) in [
        (json!({ "do": "open", "path": "/workspace/a.txt", "flags": ["truncate"] }), "read-only"),
        (json!({ "do": "open", "path": "/workspace/a.txt", "flags": ["truncate"], "access": ["read"] }), "read-only"),
        (json!({ "do": "open", "path": "/workspace/a.txt", "access": ["write"], "text": "x" }), "read-only"),
        (json!({ "do": "open", "path": "/workspace/a.txt", "access": ["read"], "text": "x" }), "bad-descriptor"),
        (json!({ "do": "open", "path": "/workspace/new", "flags": ["create"] }), "read-only"),
        (
            json!({ "do": "open", "path": "/workspace/new", "flags": ["create", "exclusive"], "access": ["write"] }),
            "read-only",
        ),
        (json!({ "do": "remove", "path": "/workspace/a.txt" }), "read-only"),
        (json!({ "do": "remove", "path": "/workspace/dir", "folders": true }), "read-only"),
        (json!({ "do": "make-folder", "path": "/workspace/new" }), "read-only"),
        (json!({ "do": "symlink", "path": "/workspace/new", "target": "a.txt" }), "read-only"),
        (json!({ "do": "set-times", "path": "/workspace/a.txt" }), "read-only"),
        (json!({ "do": "set-times", "path": "/workspace/a.txt", "opened": true }), "read-only"),
        (json!({ "do": "set-times", "path": "/workspace/dir" }), "read-only"),
        (between("rename", a, "a.txt", "/workspace", "b"), "read-only"),
        (between("rename", a, "a.txt", "/outputs", "b"), "read-only"),
        (between("rename", o, "o.txt", "/workspace", "b"), "read-only"),
        (between("rename", o, "o.txt", "/workspace", "a.txt"), "read-only"),
        (between("link", a, "a.txt", "/workspace", "b"), "read-only"),
        (between("link", a, "a.txt", "/outputs", "b"), "read-only"),
        (between("link", o, "o.txt", "/workspace", "b"), "read-only"),
    ] {
        assert_eq!(world.refused(&what), code, "{what}");
    }
    assert!(
        world
            .refused(&json!({ "do": "set-size", "path": "/workspace/a.txt", "read_only": true, "size": 0 }))
            .contains("Os")
    );
    assert_eq!(snapshot(&world.path("workspace")), before);
    assert_eq!(world.allowed(&json!({ "do": "read", "path": "/workspace/a.txt" }))["text"], "precious");
}

#[test]
fn a_writable_folder_can_be_used() {
    let world = World::new();
    for what in [
        json!({ "do": "copy" }),
        json!({ "do": "make-folder", "path": "/outputs/new/" }),
        json!({ "do": "open", "path": "/outputs/new/f", "flags": ["create", "exclusive"], "access": ["write"], "text": "hello" }),
        json!({ "do": "rename", "from_path": "/outputs/new/f", "to_path": "/outputs/g" }),
        json!({ "do": "link", "nofollow": true, "from_path": "/outputs/g", "to_path": "/outputs/h" }),
        json!({ "do": "symlink", "path": "/outputs/l", "target": "dir/../h" }),
        json!({ "do": "set-times", "path": "/outputs/l", "seconds": 7 }),
        json!({ "do": "rename", "from_path": "/outputs/new/", "to_path": "/outputs/new2/" }),
        json!({ "do": "remove", "path": "/outputs/new2", "folders": true }),
        json!({ "do": "remove", "path": "/outputs/g" }),
    ] {
        world.allowed(&what);
    }
    assert_eq!(fs_err::read_to_string(world.path("outputs/a.txt")).unwrap(), "precious");
    assert_eq!(world.allowed(&json!({ "do": "read", "path": "/outputs/l" }))["text"], "hello");
    assert_eq!(fs_err::metadata(world.path("outputs/h")).unwrap().mtime(), 7, "times follow the link");
    assert_eq!(
        world.allowed(&json!({ "do": "list", "path": "/outputs" }))["names"],
        json!(["a.txt", "dir", "h", "l", "o.txt"])
    );
    // The rights of a new file are the host's affair, not the guest's.
    assert_eq!(fs_err::metadata(world.path("outputs/a.txt")).unwrap().mode() & 0o7111, 0);
}

#[test]
fn nothing_leads_out() {
    let world = World::new();
    let outside = world.path("outside");
    symlink(&outside, world.path("outputs/absolute")).unwrap();
    symlink("../outside", world.path("outputs/up")).unwrap();
    symlink("../outside/secret", world.path("outputs/file")).unwrap();
    symlink("dir/../../outside", world.path("outputs/detour")).unwrap();
    symlink("up", world.path("outputs/twice")).unwrap();
    symlink("/proc/self/root", world.path("outputs/magic")).unwrap();
    symlink("loop", world.path("outputs/loop")).unwrap();
    let secret = outside.join("secret");
    let mut paths: Vec<String> = [
        "..",
        "../",
        "../outside",
        "../outside/secret",
        "dir/../../outside/secret",
        "./../outside/secret",
        "dir/./../.././outside/secret",
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
        "detour/secret",
        "twice/secret",
        "twice/../outside/secret",
        "magic/etc/passwd",
        "magic/",
        "loop",
        "loop/",
        "dir/../../../../../../../etc/passwd",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.push(secret.display().to_string());
    let came = world.run(&json!({ "do": "escape", "paths": paths }));
    assert_eq!(came.end, End::Exited { code: 0 });
    let json = came.json();
    assert_eq!(json["reached"], 0, "{json:#}");
    // Nor is anything done out there.
    let before = snapshot(&outside);
    for path in ["up/new", "absolute/new", "../outside/new", "detour/new", "twice/new", "file", "up", "up/."] {
        let there = |what: Value| {
            let mut what = what;
            what["folder"] = json!("/outputs");
            what["path"] = json!(path);
            what
        };
        if path.contains('/') {
            world.refused(&there(json!({ "do": "make-folder" })));
            world.refused(&there(json!({ "do": "symlink", "target": "x" })));
        }
        world.refused(&there(json!({ "do": "open", "flags": ["create"], "access": ["write"], "text": "x" })));
        world.refused(&there(json!({ "do": "open", "flags": ["truncate"] })));
        world.refused(&there(json!({ "do": "set-times" })));
    }
    for path in ["up/secret", "up/", "file/", "absolute/secret"] {
        world.refused(&json!({ "do": "remove", "folder": "/outputs", "path": path }));
        world.refused(
            &json!({ "do": "rename", "from_folder": "/outputs", "from_path": path, "to_path": "/outputs/stolen" }),
        );
        world.refused(&json!({ "do": "link", "nofollow": true, "from_folder": "/outputs", "from_path": path, "to_path": "/outputs/stolen" }));
    }
    assert_eq!(snapshot(&outside), before);
    assert!(!world.path("outputs/stolen").exists());
}

#[test]
fn links_are_made_and_read_inside_only() {
    let world = World::new();
    symlink("/etc/passwd", world.path("outputs/out")).unwrap();
    assert_eq!(world.refused(&json!({ "do": "symlink", "path": "/outputs/new" })), "not-permitted");
    assert_eq!(
        world.refused(&json!({ "do": "link", "from_path": "/outputs/o.txt", "to_path": "/outputs/x" })),
        "invalid"
    );
    // A hard link to a link is one to the link itself.
    world.allowed(&json!({ "do": "link", "nofollow": true, "from_path": "/outputs/out", "to_path": "/outputs/out2" }));
    assert!(fs_err::symlink_metadata(world.path("outputs/out2")).unwrap().is_symlink());
    // A link of the guest's own that leads out is worth nothing.
    world.allowed(&json!({ "do": "symlink", "path": "/outputs/sly", "target": "../outside/secret" }));
    assert_eq!(world.refused(&json!({ "do": "open", "path": "/outputs/sly", "access": ["read"] })), "not-permitted");
    assert_eq!(
        world.refused(&json!({ "do": "open", "path": "/outputs/sly", "nofollow": true, "access": ["read"] })),
        "loop"
    );
}

#[test]
fn trailing_slashes_change_nothing_about_files_and_links() {
    let world = World::new();
    symlink("o.txt", world.path("outputs/link")).unwrap();
    symlink("dir", world.path("outputs/dirlink")).unwrap();
    for (what, code) in [
        (json!({ "do": "open", "path": "/outputs/o.txt/", "access": ["read"] }), "not-directory"),
        (json!({ "do": "open", "path": "/outputs/link/", "access": ["read"] }), "not-directory"),
        (json!({ "do": "open", "path": "/outputs/link/.", "access": ["read"] }), "not-directory"),
        (json!({ "do": "open", "path": "/outputs/new/", "flags": ["create"], "access": ["write"] }), "no-entry"),
        (json!({ "do": "remove", "path": "/outputs/link/" }), "not-directory"),
        (json!({ "do": "remove", "path": "/outputs/dirlink/", "folders": true }), "not-directory"),
        (json!({ "do": "rename", "from_path": "/outputs/link/", "to_path": "/outputs/x" }), "not-directory"),
        (json!({ "do": "rename", "from_path": "/outputs/o.txt", "to_path": "/outputs/x/" }), "not-directory"),
        (json!({ "do": "remove", "path": "/outputs/dir/.", "folders": true }), "invalid"),
        (json!({ "do": "remove", "path": "/outputs/dir/..", "folders": true }), "invalid"),
    ] {
        assert_eq!(world.refused(&what), code, "{what}");
    }
    assert!(
        world.path("outputs/o.txt").exists()
            && world.path("outputs/link").exists()
            && world.path("outputs/dir").exists()
    );
    world.allowed(&json!({ "do": "list", "path": "/outputs/dirlink/" }));
}

#[test]
fn nothing_moves_between_mounts() {
    let world = World::new();
    fs_err::create_dir(world.path("tmp")).unwrap();
    for what in ["rename", "link"] {
        let came =
            told(json!({ "do": what, "nofollow": true, "from_path": "/outputs/o.txt", "to_path": "/tmp/o.txt" }))
                .mount("/outputs", &world.path("outputs"), true)
                .mount("/tmp", &world.path("tmp"), true)
                .run(hostile());
        assert_eq!(came.json()["refused"], "cross-device", "{what}");
    }
    assert!(world.path("outputs/o.txt").exists());
}

#[test]
fn files_that_could_block_or_do_something_are_not_opened() {
    let world = World::new();
    let fifo = world.path("outputs/fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o666.into(), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(world.path("outputs/socket")).unwrap();
    symlink("fifo", world.path("outputs/to-fifo")).unwrap();
    let start = Instant::now();
    for path in ["/outputs/fifo", "/outputs/socket", "/outputs/to-fifo"] {
        for access in ["read", "write"] {
            assert_eq!(
                world.refused(&json!({ "do": "open", "path": path, "access": [access] })),
                "access",
                "{path} {access}"
            );
        }
    }
    // A device, where the tests may make or mount one.
    let device =
        told(json!({ "do": "open", "path": "/dev/null", "access": ["read"] })).mount("/dev", Path::new("/dev"), false);
    assert_eq!(device.run(hostile()).json()["refused"], "access");
    assert!(start.elapsed() < Duration::from_secs(10));
    still_usable();
}

#[test]
fn a_mount_may_be_a_descriptor_that_can_only_be_looked_through() {
    let world = World::new();
    let mut act =
        told(json!({ "do": "list", "path": "/workspace" })).mount("/workspace", &world.path("workspace"), false);
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY;
    act.fds[0] = rustix::fs::open(world.path("workspace"), flags, rustix::fs::Mode::empty()).unwrap();
    assert_eq!(act.run(hostile()).json()["names"], json!(["a.txt", "dir"]));
}

#[test]
fn bad_times_and_missing_descriptors_are_errors() {
    let world = World::new();
    assert_eq!(
        world.refused(&json!({ "do": "set-times", "path": "/outputs/o.txt", "nanoseconds": 2_000_000_000 })),
        "invalid"
    );
    let mut act = told(json!({ "do": "nothing" })).mount("/workspace", &world.path("workspace"), false);
    act.fds.clear();
    assert!(matches!(act.run(hostile()).end, End::HostFailed(text) if text.contains("descriptor 0")));
}

/// A folder can hold mount points. What the kernel mounts to speak of itself
/// and of this very process is no file of anybody's.
#[test]
fn the_kernels_own_trees_are_shut_wherever_they_are_mounted() {
    for path in
        ["proc/self/environ", "proc/self/mem", "proc/self/fd", "proc", "sys/kernel/mm", "dev/../proc/self/environ"]
    {
        for what in [
            json!({ "do": "open", "folder": "/workspace", "path": path, "access": ["read"] }),
            json!({ "do": "open", "folder": "/workspace", "path": path, "access": ["write"] }),
            json!({ "do": "list", "folder": "/workspace", "path": path }),
        ] {
            let came = told(what.clone()).mount("/workspace", Path::new("/"), true).run(hostile());
            assert!(came.json()["refused"].is_string(), "{what}: {came:?}");
        }
    }
    still_usable();
}
