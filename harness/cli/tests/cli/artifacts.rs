//! What actions made, and taking it away again.

use serde_json::Value;

use crate::support::{House, files, talker};

/// A house where a command has said more than an Observation holds.
fn talked() -> (House, Value) {
    let house = House::new();
    let file = house.file("talker.wasm", talker(64));
    house.run(&["tool", "add", &file]).ok();
    let seen = house.run(&["run", "talker", "--json"]).ok().json();
    (house, seen)
}

#[test]
fn a_long_output_becomes_an_artifact() {
    let (house, seen) = talked();
    let stdout = &seen["output"]["stdout"];
    let (total, uri) = (stdout["total"].as_u64().unwrap(), stdout["artifact"].as_str().unwrap());
    assert!(stdout["omitted"].as_u64().unwrap() > 0 && total == 64 * 4096, "{total}");

    let listed = house.run(&["artifacts", "list", "--json"]).ok().json();
    assert_eq!((listed["artifacts"].as_array().unwrap().len(), &listed["artifacts"][0]["uri"]), (1, &Value::from(uri)));
    let action = seen["action_id"].as_str().unwrap();
    assert!(house.run(&["artifacts", "list", "--action", action]).ok().stdout.contains(uri));
    assert!(house.run(&["artifacts", "list", "--action", &action[..8]]).ok().stdout.contains(uri));
    for other in ["other", &action[..7], "ffffffff"] {
        let ran = house.run(&["artifacts", "list", "--action", other]).ok();
        let words = format!("nothing of action {other} is kept; of other actions, 1 artifacts are");
        assert!(ran.stdout.is_empty() && ran.stderr.contains(&words), "{}", ran.stderr);
    }
    // Ids begin with the time: both have the same first character.
    house.run(&["run", "talker"]).ok();
    let common = &action[..8];
    house.refuses(&["artifacts", "list", "--action", common], 2, "usage", &["begins the ids of 2 actions", action]);

    let got = house.run(&["artifacts", "get", uri]).ok();
    assert_eq!(got.stdout, "x".repeat(usize::try_from(total).unwrap()));
    let out = house.path("out.txt");
    house.run(&["artifacts", "get", uri, "--out", &out]).ok();
    assert_eq!(fs_err::metadata(&out).unwrap().len(), total);
    // Never overwrites, and leaves nothing beside it.
    fs_err::write(&out, "mine").unwrap();
    house.refuses(&["artifacts", "get", uri, "--out", &out], 2, "usage", &["exists"]);
    assert_eq!(fs_err::read_to_string(&out).unwrap(), "mine");

    house.refuses(&["artifacts", "get", "artifact/none/1"], 2, "artifact-unknown", &["artifact/none/1"]);
    house.refuses(&["artifacts", "get", "../../etc/passwd"], 2, "artifact-unknown", &[]);
}

#[test]
fn a_damaged_artifact_is_never_written_out() {
    let (house, seen) = talked();
    let uri = seen["output"]["stdout"]["artifact"].as_str().unwrap();
    let state = house.state();
    let blob = files(&state)
        .into_iter()
        .map(|path| state.join(path))
        .find(|path| path.is_file() && path.to_string_lossy().contains("/blobs/"))
        .unwrap();
    let mut bytes = fs_err::read(&blob).unwrap();
    bytes[1000] ^= 1;
    fs_err::remove_file(&blob).unwrap();
    fs_err::write(&blob, bytes).unwrap();
    let out = house.path("out.txt");
    house.refuses(&["artifacts", "get", uri, "--out", &out], 54, "artifact-corrupt", &[uri]);
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn gc_keeps_to_the_bounds_and_a_dry_run_changes_nothing() {
    let (house, _) = talked();
    house.file("state/run/dead/lock", "");
    house.file("state/run/dead/outputs/file", "left");
    let tight = |args: &[&str]| {
        let mut command = house.command();
        command.args(args).env("GLOVEBOX_ARTIFACTS_MAX_SIZE", "1KiB").env("GLOVEBOX_CACHE_MAX_SIZE", "1KiB");
        crate::support::Ran::of(&mut command).ok()
    };
    let before = files(&house.state());
    let would = tight(&["gc", "--dry-run", "--json"]).json();
    assert_eq!(files(&house.state()), before);
    let did = tight(&["gc", "--json"]).json();
    for key in ["compiled", "runs", "leftovers"] {
        assert_eq!(would[key], did[key], "{key}");
    }
    assert_eq!(did["artifacts"]["dropped"].as_array().unwrap().len(), 1);
    assert_eq!(did["runs"].as_array().unwrap().len(), 1);
    assert!(did["compiled"].as_array().unwrap().len() >= 3);
    assert_eq!(files(&house.state().join("compiled")), Vec::<String>::new());
    assert_eq!((&did["artifacts"]["fresh"], &did["artifacts"]["blobs"]), (&1.into(), &0.into()));
    let said = tight(&["gc"]).stdout;
    assert!(said.contains("stays for now: 1 blobs (262144 bytes); it goes once it is older than 1h"), "{said}");
    assert_eq!(house.run(&["artifacts", "list"]).ok().stdout, "");
    house.is_tidy();
    // Within its bounds nothing goes.
    house.run(&["run", "talker"]).ok();
    let did = house.run(&["gc", "--json"]).ok().json();
    assert_eq!(
        (did["artifacts"]["dropped"].as_array().unwrap().len(), did["compiled"].as_array().unwrap().len()),
        (0, 0)
    );
}

#[test]
fn gc_drops_what_was_used_longest_ago() {
    let house = House::new();
    let folder = house.state().join("compiled");
    let entries: Vec<_> = files(&folder).into_iter().filter(|name| name.ends_with(".json")).collect();
    assert!(entries.len() >= 2);
    for (hours, name) in entries.iter().enumerate() {
        let seconds = i64::try_from(hours).unwrap() * 3600 + 1_000_000;
        let time = rustix::fs::Timespec { tv_sec: seconds, tv_nsec: 0 };
        let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(rustix::fs::CWD, folder.join(name), &times, rustix::fs::AtFlags::empty()).unwrap();
    }
    let newest = entries.last().unwrap();
    let size = fs_err::metadata(folder.join(newest.replace(".json", ".cwasm"))).unwrap().len() + 1024;
    let mut command = house.command();
    command.args(["gc", "--json"]).env("GLOVEBOX_CACHE_MAX_SIZE", format!("{size}B"));
    crate::support::Ran::of(&mut command).ok();
    let left: Vec<_> = files(&folder).into_iter().filter(|name| name.ends_with(".json")).collect();
    assert_eq!(left, std::slice::from_ref(newest));
}
