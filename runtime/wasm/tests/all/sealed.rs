//! Files whose content was fixed when the plan was bound.

use std::os::unix::fs::{MetadataExt, symlink};

use glovebox_runtime::job::End;
use serde_json::{Value, json};

use crate::harness::{hostile, told};

/// A folder in which `a.txt` was sealed as `checked` and then replaced.
struct World(tempfile::TempDir, (u64, u64));

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a.txt");
        fs_err::write(&file, "checked").unwrap();
        fs_err::create_dir(root.path().join("dir")).unwrap();
        let meta = fs_err::metadata(&file).unwrap();
        fs_err::hard_link(&file, root.path().join("hard")).unwrap();
        symlink("a.txt", root.path().join("link")).unwrap();
        symlink(".", root.path().join("here")).unwrap();
        Self(root, (meta.dev(), meta.ino()))
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    fn run(&self, what: &Value) -> Value {
        let came = told(what.clone())
            .mount("/workspace", self.0.path(), true)
            .seal("/workspace", "a.txt", self.1, b"checked")
            .run(hostile());
        assert_eq!(came.end, End::Exited { code: 0 }, "{what}: {came:?}");
        came.json()
    }

    fn text(&self, path: &str) -> Value {
        self.run(&json!({ "do": "open", "folder": "/workspace", "path": path, "access": ["read"] }))["text"].clone()
    }
}

#[test]
fn whatever_lies_there_now_the_guest_reads_what_was_checked() {
    type Change = fn(&World);
    let changes: [(&str, Change); 5] = [
        ("nothing", |_| {}),
        ("written in place", |world| fs_err::write(world.path("a.txt"), "swapped").unwrap()),
        ("replaced", |world| {
            fs_err::write(world.path("new"), "swapped").unwrap();
            fs_err::rename(world.path("new"), world.path("a.txt")).unwrap();
        }),
        ("removed", |world| fs_err::remove_file(world.path("a.txt")).unwrap()),
        ("a link", |world| {
            fs_err::remove_file(world.path("a.txt")).unwrap();
            fs_err::write(world.path("other"), "swapped").unwrap();
            symlink("other", world.path("a.txt")).unwrap();
        }),
    ];
    for (change, apply) in changes {
        let world = World::new();
        apply(&world);
        for path in ["a.txt", "./a.txt", "dir/../a.txt", "here/a.txt", "here/here/dir/../a.txt"] {
            assert_eq!(world.text(path), "checked", "{change}: {path}");
        }
        // Links lead to the place, another name to the file that was checked.
        if change != "a link" {
            assert_eq!(world.text("link"), "checked", "{change}");
        }
        assert_eq!(world.text("hard"), "checked", "{change}");
        assert_eq!(world.run(&json!({ "do": "read", "path": "/workspace/a.txt" }))["text"], "checked", "{change}");
    }
}

#[test]
fn its_size_is_that_of_what_was_checked() {
    // The tool reads to the size that `stat` names; the two have to agree.
    let world = World::new();
    fs_err::write(world.path("a.txt"), "something much longer than before").unwrap();
    let json = world.run(&json!({ "do": "read", "path": "/workspace/a.txt" }));
    assert_eq!((&json["read"], &json["text"]), (&json!(7), &json!("checked")));
}

#[test]
fn it_can_only_be_read() {
    let world = World::new();
    for path in ["a.txt", "hard", "link", "here/a.txt"] {
        for (what, code) in [
            (json!({ "do": "open", "access": ["write"], "text": "x" }), "access"),
            (json!({ "do": "open", "flags": ["truncate"] }), "access"),
            (json!({ "do": "open", "flags": ["create", "exclusive"], "access": ["write"] }), "exist"),
            (json!({ "do": "set-times" }), "access"),
            (json!({ "do": "set-times", "opened": true }), "read-only"),
        ] {
            let mut what = what;
            what["folder"] = json!("/workspace");
            what["path"] = json!(path);
            assert_eq!(world.run(&what)["refused"], code, "{what}");
        }
    }
    for path in ["a.txt", "hard", "here/a.txt"] {
        let from = |what: &str| json!({ "do": what, "nofollow": true, "folder": "/workspace", "path": path, "from_folder": "/workspace", "from_path": path, "to_path": "/workspace/new" });
        for what in ["remove", "rename", "link"] {
            assert_eq!(world.run(&from(what))["refused"], "access", "{what} {path}");
        }
    }
    fs_err::write(world.path("mine"), "mine").unwrap();
    assert_eq!(
        world.run(&json!({ "do": "rename", "from_path": "/workspace/mine", "to_path": "/workspace/a.txt" }))["refused"],
        "access"
    );
    assert_eq!(fs_err::read_to_string(world.path("a.txt")).unwrap(), "checked");
}

#[test]
fn its_place_stays_taken_when_it_is_gone() {
    let world = World::new();
    fs_err::remove_file(world.path("a.txt")).unwrap();
    for what in [
        json!({ "do": "make-folder", "path": "/workspace/a.txt" }),
        json!({ "do": "symlink", "path": "/workspace/a.txt", "target": "hard" }),
        json!({ "do": "open", "path": "/workspace/a.txt", "flags": ["create", "exclusive"], "access": ["write"] }),
    ] {
        assert_eq!(world.run(&what)["refused"], "exist", "{what}");
    }
    assert_eq!(
        world.run(&json!({ "do": "open", "path": "/workspace/a.txt", "flags": ["create"], "access": ["write"] }))["refused"],
        "access"
    );
    assert!(!world.path("a.txt").exists());
}

/// `current/f` was bound when `current` led to `one`; now it leads to `two`.
#[test]
fn a_link_on_the_way_that_leads_elsewhere_by_now_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    for folder in ["one", "two"] {
        fs_err::create_dir(root.path().join(folder)).unwrap();
        fs_err::write(root.path().join(folder).join("f"), folder).unwrap();
    }
    let meta = fs_err::metadata(root.path().join("one/f")).unwrap();
    symlink("two", root.path().join("current")).unwrap();
    let run = |what: Value| {
        let came = told(what)
            .mount("/workspace", root.path(), true)
            .seal_as("/workspace", "one/f", "current/f", (meta.dev(), meta.ino()), b"checked")
            .run(hostile());
        came.json()
    };
    let open = |path: &str, access: &str| {
        run(json!({ "do": "open", "folder": "/workspace", "path": path, "access": [access] }))
    };
    for path in ["current/f", "./current//f", "one/f"] {
        assert_eq!(open(path, "read")["text"], "checked", "{path}");
        assert!(open(path, "write")["refused"].is_string(), "{path}");
    }
    assert!(run(json!({ "do": "remove", "folder": "/workspace", "path": "current/f" }))["refused"].is_string());
    // What was never bound is what it is.
    assert_eq!(open("two/f", "read")["text"], "two");
    assert_eq!(fs_err::read_to_string(root.path().join("two/f")).unwrap(), "two");
}
