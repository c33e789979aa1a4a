//! What a guest leaves behind.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use env_contracts::{Code, Digest};
use glovebox_plane::Watch;
use glovebox_runtime::job::Frame;
use rustix::fs::{CWD, FileType, makedev, mknodat};
use serde_json::json;

use super::{NO_TOOL, Row, row};
use crate::house::House;

pub(super) const ROWS: &[Row] = &[
    row("every file in `/outputs` becomes an artifact with its size and sha256", collected),
    row(
        "links, pipes, sockets and devices in `/outputs` are named, and neither followed nor collected",
        only_plain_files,
    ),
    row("folders grow to `limits.storage` and no further, holes included", storage),
    row("no more entries are made than `limits.inodes`", inodes),
    row("scratch is counted too, starts empty and is gone afterwards", scratch),
    row("what a tool describes and did not make is no artifact", described).of_components(NO_TOOL),
    row("outputs of a failed, trapped or ended action are kept", kept_after_failure),
];

fn collected(house: &House) {
    let write = json!([
        { "path": "/outputs/a.txt", "text": "hello" },
        { "path": "/outputs/ä \u{1f9e4}.json", "text": "{}" },
        { "path": "/outputs/empty", "text": "" },
    ]);
    let seen = house.command(&json!({ "do": "write-files", "write": write })).mount("outputs").run().succeeds();
    assert_eq!(seen.names(), ["a.txt", "empty", "ä \u{1f9e4}.json"]);
    assert_eq!(seen.artifact("a.txt"), b"hello");
    assert_eq!(seen.artifact("empty"), b"");
    assert_eq!(seen.artifact("ä \u{1f9e4}.json"), b"{}");
    if !house.has_components() {
        return;
    }
    assert_eq!(seen.usage.bytes_written, 7, "{seen:?}");
    let told = json!({ "do": "artifacts", "write": write, "describe": [{ "path": "a.txt", "media_type": "text/plain", "description": "a greeting" }] });
    let seen = house.tool(&told).mount("outputs").run().succeeds();
    let artifact = seen.artifacts.iter().find(|artifact| artifact.name == "a.txt").unwrap();
    assert_eq!(artifact.sha256, Digest::of(b"hello"));
    assert_eq!(artifact.description.as_deref(), Some("a greeting"));
}

/// Puts things into the outputs folder that no guest can make itself, once
/// the guest speaks.
struct Plant(PathBuf);

impl Watch for Plant {
    fn frame(&self, _: &Frame<'_>) {
        for run in fs_err::read_dir(self.0.join("state/run")).unwrap() {
            let outputs = run.unwrap().path().join("outputs");
            if !outputs.is_dir() || outputs.join("plain").exists() {
                continue;
            }
            fs_err::write(outputs.join("plain"), "plain").unwrap();
            fs_err::hard_link(self.0.join("workspace/a.txt"), outputs.join("hard")).unwrap();
            symlink("/etc/passwd", outputs.join("absolute")).unwrap();
            symlink("/etc", outputs.join("folder")).unwrap();
            let node = |name: &str, kind, device| mknodat(CWD, outputs.join(name), kind, 0o600.into(), device);
            node("fifo", FileType::Fifo, 0).unwrap();
            // Only the privileged may make devices.
            let _ = node("device", FileType::CharacterDevice, makedev(1, 3));
            drop(UnixListener::bind(outputs.join("socket")).unwrap());
        }
    }
}

fn only_plain_files(house: &House) {
    house.file("a.txt", "somebody's");
    let seen = if house.has_components() {
        let told = json!({ "do": "drip", "count": 1, "every_ms": 1 });
        house.command(&told).text().mount("outputs").watched(Plant(house.path(""))).run().succeeds()
    } else {
        let seen = house.command(&json!({ "do": "plant" })).mount("outputs").run().succeeds();
        assert_eq!((&seen.data()["planted"], seen.number("devices")), (&json!(true), 0), "{seen:?}");
        seen
    };
    // A file of this host can have a name in a folder of it, and none in a
    // container's memory: there, each name is a file of the tool's own.
    let all: &[&str] = if house.has_components() { &["plain"] } else { &["hard", "one", "plain"] };
    assert_eq!(seen.names(), all, "{seen:?}");
    let skipped: String = seen.notices.iter().map(|notice| notice.message.as_str()).collect();
    for name in ["absolute", "folder", "hard", "fifo", "socket"].into_iter().filter(|name| !all.contains(name)) {
        assert!(skipped.contains(&format!("\"{name}\"")), "{name}: {skipped}");
    }
    // A link of the guest's own making.
    for target in ["../../../../etc/passwd", "nothing"] {
        let told = json!({ "do": "symlink", "path": "/outputs/link", "target": target });
        let seen = house.command(&told).mount("outputs").run().succeeds();
        assert!(seen.artifacts.is_empty() && seen.noticed("output-skipped"), "{seen:?}");
    }
}

fn storage(house: &House) {
    let act = |told: serde_json::Value| house.command(&told).mount("outputs").limit("storage = \"200KiB\"");
    let seen = act(json!({ "do": "write-file" })).run().ends("completed(0)");
    assert!(seen.data()["refused"].is_string() && seen.noticed("limit-refused"), "{seen:?}");
    let size = seen.artifact("flood").len();
    assert!((128 << 10..=200 << 10).contains(&size), "{size}");
    let seen = act(json!({ "do": "set-size" })).run();
    assert!(seen.artifacts.iter().all(|artifact| artifact.size <= 200 << 10), "{seen:?}");
    if house.has_components() {
        let seen = seen.succeeds();
        assert!(seen.data()["refused"].is_string(), "{seen:?}");
        assert_eq!(seen.artifact("sparse"), b"");
    } else {
        // A hole takes no room in memory, and all there is here: no part of it is
        // taken for the whole.
        let seen = seen.ends("limit-hit(storage)");
        assert!(seen.artifacts.is_empty(), "{seen:?}");
    }
    // A folder that is somebody's grows no further either.
    let told = json!({ "do": "write-file", "path": "/workspace/flood" });
    let seen = house.command(&told).mount("workspace write").limit("storage = \"200KiB\"").run();
    if house.has_components() {
        assert!(seen.succeeds().data()["refused"].is_string());
    } else {
        // A copy in memory grows until that is seen; nothing of it comes out.
        seen.ends("limit-hit(storage)");
    }
    assert!(fs_err::metadata(house.workspace().join("flood")).map_or(0, |meta| meta.len()) <= 200 << 10);
    // A tool that fails because of it ran into the limit.
    let told = json!({ "do": "write-file", "bytes": 5000, "fail": true });
    let act = house.command(&told).mount("outputs").limit("storage = \"1000B\"");
    act.run().ends("limit-hit(storage)").coded(Code::LimitHit);
    if house.has_components() {
        let told = json!({ "do": "artifacts", "write": [{ "path": "/outputs/a", "text": "x".repeat(5000) }] });
        let act = house.tool(&told).mount("outputs").limit("storage = \"1000B\"");
        act.run().ends("limit-hit(storage)").coded(Code::LimitHit);
    }
}

fn inodes(house: &House) {
    for folders in [false, true] {
        let told = json!({ "do": "create-files", "folders": folders });
        let seen = house.command(&told).mount("outputs").limit("inodes = 10").run().succeeds();
        assert_eq!((seen.number("created"), seen.artifacts.len()), (10, if folders { 0 } else { 10 }), "{seen:?}");
    }
    let write: Vec<_> = (0..3).map(|n| json!({ "path": format!("/outputs/{n}"), "text": "x" })).collect();
    let told = json!({ "do": "write-files", "write": write, "fail": true });
    let act = house.command(&told).mount("outputs").limit("inodes = 2");
    act.run().ends("limit-hit(inodes)");
}

fn scratch(house: &House) {
    for _ in 0..2 {
        let told = json!({ "do": "write-file", "path": "/tmp/flood" });
        let seen = house.command(&told).mount("scratch").limit("storage = \"200KiB\"").run().succeeds();
        assert!(seen.data()["refused"].is_string() && seen.artifacts.is_empty(), "{seen:?}");
        let seen = house.command(&json!({ "do": "list", "path": "/tmp" })).mount("scratch").run().succeeds();
        assert_eq!(seen.data()["names"], json!([]));
    }
    // One ledger for both.
    let told = json!({ "do": "write-file", "path": "/tmp/flood", "bytes": 150 << 10 });
    let both = || house.command(&told).mount("scratch").mount("outputs");
    let seen = both().limit("storage = \"200KiB\"").run().succeeds();
    assert_eq!(seen.number("written"), 150 << 10);
    assert_eq!(fs_err::read_dir(house.path("state/run")).unwrap().count(), 0);
}

fn described(house: &House) {
    let describe = json!([
        { "path": "missing", "description": "x" }, { "path": "/etc/passwd", "description": "x" },
        { "path": "../../../etc/passwd", "description": "x" },
    ]);
    let told = json!({ "do": "artifacts", "describe": describe, "count": 1000 });
    let seen = house.tool(&told).mount("outputs").run().succeeds();
    assert!(seen.artifacts.is_empty(), "{seen:?}");
}

fn kept_after_failure(house: &House) {
    let write = json!([{ "path": "/outputs/made", "text": "kept" }, { "path": "/nowhere/x", "text": "" }]);
    let told = json!({ "do": "write-files", "write": write, "fail": true });
    let seen = house.command(&told).mount("outputs").run().coded(Code::ToolFailed).ends("completed(1)");
    assert_eq!(seen.artifact("made"), b"kept");
    let told = json!({ "do": "print-then-hang", "write": write });
    let act = house.command(&told).mount("outputs").limit("wall = \"500ms\"");
    assert_eq!(act.run().ends("timed-out(wall)").artifact("made"), b"kept");
    if house.has_components() {
        let told = json!({ "do": "artifacts", "write": write });
        let seen = house.tool(&told).mount("outputs").run().coded(Code::ToolFailed).ends("completed(internal)");
        assert_eq!(seen.artifact("made"), b"kept");
    }
}
