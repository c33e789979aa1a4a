//! Paths that don't exist for the guest.

use std::os::unix::fs::symlink;

use glovebox_runtime::job::End;
use serde_json::{Value, json};

use crate::harness::{hostile, told};

fn world() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("a.txt", "a"),
        (".env", "secret"),
        ("sub/.env.local", "secret"),
        ("sub/key.pem", "secret"),
        (".git/config", "secret"),
        (".git/HEAD", "ref"),
        ("deep/.aws/credentials/x", "secret"),
    ] {
        let path = root.path().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
    symlink(".env", root.path().join("to-env")).unwrap();
    symlink("../.git", root.path().join("sub/to-git")).unwrap();
    symlink("deep/.aws", root.path().join("to-aws")).unwrap();
    root
}

fn run(root: &tempfile::TempDir, what: &Value) -> Value {
    let mut act = told(what.clone()).mount("/workspace", root.path(), true);
    act.job.mounts[0].hide = env_contracts::DEFAULT_HIDE.iter().map(|&glob| glob.into()).collect();
    let came = act.run(hostile());
    assert_eq!(came.end, End::Exited { code: 0 }, "{what}: {came:?}");
    came.json()
}

#[test]
fn hidden_paths_are_not_found_whichever_way() {
    let root = world();
    for path in [
        ".env",
        "./.env",
        "sub/../.env",
        "to-env",
        "sub/.env.local",
        "sub/key.pem",
        ".git/config",
        ".git/../.git/config",
        "sub/to-git/config",
        "deep/.aws",
        "deep/.aws/",
        "deep/.aws/credentials/x",
        "to-aws/credentials/x",
        "to-aws/../a.txt",
    ] {
        for what in [
            json!({ "do": "open", "access": ["read"] }),
            json!({ "do": "open", "access": ["read"], "flags": ["directory"] }),
            json!({ "do": "set-times" }),
        ] {
            let mut what = what;
            what["folder"] = json!("/workspace");
            what["path"] = json!(path);
            assert_eq!(run(&root, &what)["refused"], "no-entry", "{what}");
        }
    }
    assert_eq!(run(&root, &json!({ "do": "open", "path": "/workspace/.git/HEAD", "access": ["read"] }))["text"], "ref");
}

#[test]
fn hidden_paths_are_not_listed() {
    let root = world();
    let list = |path: &str| run(&root, &json!({ "do": "list", "path": path }))["names"].clone();
    assert_eq!(list("/workspace"), json!([".git", "a.txt", "deep", "sub", "to-aws", "to-env"]));
    assert_eq!(list("/workspace/sub"), json!(["to-git"]));
    assert_eq!(list("/workspace/.git"), json!(["HEAD"]));
    assert_eq!(list("/workspace/sub/to-git"), json!(["HEAD"]));
    assert_eq!(list("/workspace/deep"), json!([]));
}

#[test]
fn hidden_paths_are_not_made_moved_or_removed() {
    let root = world();
    for path in [".env", "sub/new.pem", ".git/config", "deep/.aws/new", ".env.new"] {
        let to = |what: &str| {
            json!({ "do": what, "nofollow": true, "folder": "/workspace", "path": path, "flags": ["create"], "access": ["write"], "text": "x",
                "target": "a.txt", "from_path": "/workspace/a.txt", "to_folder": "/workspace", "to_path": path })
        };
        for what in ["open", "make-folder", "symlink", "rename", "link", "remove"] {
            assert_eq!(run(&root, &to(what))["refused"], "no-entry", "{what} {path}");
        }
        let from =
            json!({ "do": "rename", "from_folder": "/workspace", "from_path": path, "to_path": "/workspace/found" });
        assert_eq!(run(&root, &from)["refused"], "no-entry", "{path}");
    }
    assert_eq!(fs_err::read_to_string(root.path().join(".env")).unwrap(), "secret");
    assert!(!root.path().join("found").exists());
}

#[test]
fn a_folder_that_hides_by_its_name_keeps_it() {
    let root = world();
    let away = json!({ "do": "rename", "from_path": "/workspace/.git", "to_path": "/workspace/git" });
    assert_eq!(run(&root, &away)["refused"], "access");
    // Above it, renaming changes nothing about what is hidden.
    assert_eq!(
        run(&root, &json!({ "do": "rename", "from_path": "/workspace/deep", "to_path": "/workspace/deeper" }))["moved"],
        true
    );
    assert_eq!(run(&root, &json!({ "do": "list", "path": "/workspace/deeper" }))["names"], json!([]));
}

#[test]
fn a_glob_that_is_none_is_refused() {
    let root = world();
    let mut act = told(json!({ "do": "nothing" })).mount("/workspace", root.path(), false);
    act.job.mounts[0].hide = vec!["a[".into()];
    let End::Refused(problem) = act.run(hostile()).end else { panic!() };
    assert_eq!(problem.code, env_contracts::Code::ContractInvalid);
}

/// `.git/config` is hidden where there is a `.git`, and where there is none
/// yet: no other folder, and no link, may take that name.
#[test]
fn nothing_is_put_in_the_place_of_what_leads_to_something_hidden() {
    let root = world();
    fs_err::create_dir_all(root.path().join("evil")).unwrap();
    fs_err::create_dir_all(root.path().join("fresh")).unwrap();
    symlink("sub", root.path().join("deep/.git")).unwrap();
    let at = |path: &str| format!("/workspace/{path}");
    for what in [
        json!({ "do": "rename", "from_path": at("evil"), "to_path": at("fresh/.git") }),
        json!({ "do": "symlink", "path": at("fresh/.git"), "target": "../evil" }),
        json!({ "do": "rename", "from_path": at("deep/.git"), "to_path": at("deep/git") }),
        json!({ "do": "rename", "from_path": at("a.txt"), "to_path": at("deep/.git") }),
        json!({ "do": "remove", "path": at("deep/.git") }),
    ] {
        assert!(run(&root, &what)["refused"].is_string(), "{what}");
    }
    // What lies beside it is as free as anything: that is how tools write.
    let beside = json!({ "do": "rename", "from_path": at(".git/HEAD"), "to_path": at(".git/ORIG_HEAD") });
    assert_eq!(run(&root, &beside)["moved"], true);
}
