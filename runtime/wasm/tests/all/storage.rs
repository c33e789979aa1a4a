//! Bytes and entries that folders may grow by.

use glovebox_runtime::job::{End, Limit};
use serde_json::{Value, json};

use crate::harness::{Act, Came, hostile, hostile_tool, still_usable, text, told};

const KIB: u64 = 1 << 10;

fn outputs(what: Value) -> (tempfile::TempDir, Act) {
    let folder = tempfile::tempdir().unwrap();
    let act = told(what).mount("/outputs", folder.path(), true).limit(|limits| {
        limits.storage = 200 * KIB;
        limits.inodes = 10;
    });
    (folder, act)
}

/// Bytes in a folder, by length.
fn size(folder: &tempfile::TempDir) -> u64 {
    fs_err::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn writing_is_refused_at_the_limit() {
    let (folder, act) = outputs(json!({ "do": "write-file" }));
    let came = act.run(hostile());
    assert_eq!(came.end, End::Exited { code: 0 }, "a guest that copes is no failure");
    assert!(came.json()["refused"].is_string());
    assert!(size(&folder) <= 200 * KIB && size(&folder) >= 128 * KIB);
    assert!(came.report.usage.denied_storage >= 1);
    // Asked directly, the guest learns why; its C library may tell it less.
    let what = json!({ "do": "open", "path": "/outputs/f", "flags": ["create"], "access": ["write"], "text": "x" });
    let came = outputs(what).1.limit(|limits| limits.storage = 0).run(hostile());
    assert_eq!(came.json()["refused"], "insufficient-space");
    still_usable();
}

#[test]
fn failing_after_a_refusal_is_the_limit_and_keeps_the_words() {
    let folder = tempfile::tempdir().unwrap();
    let args = json!({ "do": "artifacts", "write": [{ "path": "/outputs/a", "text": "x".repeat(5000) }] });
    let came = Act::tool("hostile", &args.to_string())
        .mount("/outputs", folder.path(), true)
        .limit(|limits| limits.storage = 1000)
        .run(hostile_tool());
    assert_eq!(came.end, End::LimitHit(Limit::Storage));
    assert!(
        came.heard.log.iter().any(|(level, text)| level == "error" && text.contains("os error")),
        "{:?}",
        came.heard.log
    );
}

#[test]
fn holes_count_in_full() {
    let (folder, act) = outputs(json!({ "do": "set-size" }));
    assert!(act.run(hostile()).json()["refused"].is_string());
    assert_eq!(size(&folder), 0);
    let (folder, act) = outputs(json!({ "do": "set-size", "size": 200 * KIB }));
    assert_eq!(act.run(hostile()).json()["size"], 200 * KIB);
    assert_eq!(size(&folder), 200 * KIB);
}

#[test]
fn entries_are_counted() {
    for folders in [false, true] {
        let (folder, act) = outputs(json!({ "do": "create-files", "folders": folders }));
        let came = act.run(hostile());
        assert_eq!(came.json()["created"], 10, "{came:?}");
        assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 10);
        assert!(came.report.usage.denied_storage >= 1);
    }
}

#[test]
fn existing_files_grow_and_shrink_by_the_difference() {
    // 300 KiB were there before and don't count; they may be written again.
    let (folder, act) = outputs(json!({ "do": "write-file", "path": "/outputs/old", "bytes": 300 * KIB }));
    fs_err::write(folder.path().join("old"), vec![b'o'; 300 << 10]).unwrap();
    let came = act.run(hostile());
    assert_eq!(came.json()["written"], 300 * KIB, "truncating gives back what was there");
    assert_eq!(came.report.usage.denied_storage, 0);
}

#[test]
fn a_folder_that_shrinks_gives_no_credit_to_another() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs_err::write(old.path().join("big"), vec![0; 1 << 20]).unwrap();
    // Truncates and rewrites a little in one, floods the other.
    let program = |dir: &str| json!({ "do": "write-file", "path": format!("{dir}/big"), "bytes": 500 * KIB });
    let came = told(program("/old"))
        .mount("/old", old.path(), true)
        .mount("/new", new.path(), true)
        .limit(|limits| limits.storage = 100 * KIB);
    assert_eq!(came.run(hostile()).json()["written"], 500 * KIB);
    let came = told(program("/new"))
        .mount("/old", old.path(), true)
        .mount("/new", new.path(), true)
        .limit(|limits| limits.storage = 100 * KIB);
    assert!(came.run(hostile()).json()["refused"].is_string());
}

/// A command in WebAssembly text that works on `/outputs` through `wasi:filesystem`.
/// `body` is the body of `run`; `$open`, `$write`, `$unlink`, `$close` and
/// `$link` act on the file `f` and answer 0 for success.
fn script(body: &str) -> Came {
    let folder = tempfile::tempdir().unwrap();
    let guest = text(&include_str!("storage.wat").replace(";; BODY", body));
    Act::command("")
        .mount("/outputs", folder.path(), true)
        .limit(|limits| {
            limits.storage = 100 * KIB;
            limits.inodes = 3;
        })
        .run(&guest)
}

#[test]
fn a_removed_file_keeps_its_space_until_it_is_closed() {
    // Write 64 KiB, remove: eight times over, one handle each.
    let again = r#"
      (drop (call $open))
      (if (call $write) (then (return (i32.const 1))))
      (drop (call $unlink))
    "#;
    let came = script(&again.repeat(2));
    assert_eq!(came.end, End::LimitHit(Limit::Storage), "space of an open file was given back");
    let came = script(&format!("{again} (call $close)").repeat(8));
    assert_eq!(came.end, End::Exited { code: 0 }, "space of a closed file was kept: {came:?}");
}

#[test]
fn a_second_name_keeps_the_space() {
    let body = r#"
      (drop (call $open))
      (if (call $write) (then (return (i32.const 1))))
      (call $close)
      (drop (call $link))
      (drop (call $unlink))
      (drop (call $open))
      (call $write)
      return
    "#;
    let came = script(body);
    assert_eq!(
        came.end,
        End::LimitHit(Limit::Storage),
        "the space of a file with another name was given back: {came:?}"
    );
}
