//! The enforcement report: true, complete, and a refusal where it can't be.

use env_contracts::{Contract, Digest};
use glovebox_runtime::Enforcement;
use glovebox_runtime::algebra::{effective_bounds, fill};
use serde_json::json;

use super::{Row, row};
use crate::act::refusal;
use crate::guests::{Guest, core_command, printer};
use crate::house::{House, TENANT, ceiling};

pub(super) const ROWS: &[Row] = &[
    row("each clause of the effective contract is in the report, with what enforces it", complete),
    row("a clause that can't be kept is refused with clause, backend, reason and remedy, and nothing runs", refused),
    row("two walls stand between a guest and the host where the contract says so", walls),
    row("what runs is what was registered: changed bytes are refused", changed_bytes),
    row("what was prepared and is damaged is made again, said so, and never run", damaged_cache)
        .of_components("nothing is prepared of an image: the engine has it"),
];

const CONTRACT: &str = r#"
schema = "glovebox/contract/v1"
filesystem = [
  { guest = "/workspace", source = "workspace", access = "read", hide = [".env*"] },
  { guest = "/inputs", source = "input:*", access = "read" },
  { guest = "/outputs", source = "outputs", access = "write" },
  { guest = "/tmp", source = "scratch", access = "write" },
]
needs = { memory = "1MiB", cpus = "0.5" }
limits = { wall = "30s", idle = "10s", cpu = "20s", memory = "64MiB", pids = 4, storage = "1MiB", inodes = 10, output = "1MiB", concurrency = 2 }
data = { label = "confidential" }
audit = { level = "output", retain = "1d" }
"#;

fn complete(house: &House) {
    let lines = CONTRACT.replacen("schema = \"glovebox/contract/v1\"", "", 1);
    let seen = house.command(&json!({ "do": "nothing" })).clause(lines).run().succeeds();
    let bounds = effective_bounds(&ceiling(), TENANT, None);
    let contract = CONTRACT.replacen("needs", &format!("{}needs", house.platform(&[])), 1);
    let contract = fill(&Contract::from_toml(&contract).unwrap(), &bounds);
    let claimed: Vec<(String, String, String)> = contract
        .clauses()
        .iter()
        .map(|clause| match house.backend.enforce(clause) {
            Enforcement::By(how) => (clause.path().to_string(), clause.value(), how.to_owned()),
            Enforcement::Refused { reason, .. } => panic!("{}: {reason}", clause.path()),
        })
        .collect();
    let told = seen.enforcement.iter();
    let told: Vec<_> =
        told.map(|line| (line.clause.to_string(), line.value.clone(), line.enforced_by.clone())).collect();
    assert_eq!(told, claimed);
    assert!(claimed.len() > 15 && claimed.iter().all(|(_, _, how)| how.len() > 3), "{claimed:?}");
    assert_eq!(seen.provenance.backend, house.backend.name());
}

/// Clauses of which a backend may keep some and not others. Each is either
/// kept, and in the report, or refused as a refusal has to be.
/// A folder that the actions of a task share.
const KEEPS: &str = "filesystem = [{ guest = \"/cache\", source = \"scratch\", access = \"write\" }]\n\
     state = { persistence = \"environment\", snapshot = \"before\" }\nisolation = { sharing = \"task\" }";

fn refused(house: &House) {
    // Every contract of images has one already.
    let image = house.has_components().then(|| ("image", format!("\"{}\"", Digest::of(b"image"))));
    let platform = [
        ("os", "\"linux\"".to_owned()),
        ("os", "\"wasi\"".to_owned()),
        ("arch", "[\"riscv64\"]".to_owned()),
        ("runtime", "\"runc\"".to_owned()),
    ];
    for (key, value) in platform.into_iter().chain(image) {
        keeps_or_refuses(house, &format!("platform.{key}"), &house.platform(&[(key, value)]));
    }
    for (clause, lines) in [
        (
            "filesystem[/workspace]",
            "filesystem = [{ guest = \"/workspace\", source = \"workspace\", access = \"overlay\" }]",
        ),
        ("network.egress[api.example.com]", "network = { egress = [{ host = \"api.example.com\", ports = [443] }] }"),
        ("network.ingress[8080]", "network = { ingress = [{ port = 8080, protocol = \"http\" }] }"),
        ("identity.delegation", "identity = { delegation = \"user\" }"),
        ("packages[git]", "packages = [{ kind = \"tool\", name = \"git\" }]"),
        ("needs.memory", "needs = { memory = \"3GiB\" }"),
        ("needs.cpus", "needs = { cpus = \"2\" }"),
        ("needs.storage", "needs = { storage = \"1MiB\" }"),
        ("needs.gpu", "needs = { gpu = 1 }"),
        ("limits.cpus", "limits = { cpus = \"0.5\" }"),
        ("state.persistence", "state = { persistence = \"environment\" }"),
        // Of what is kept: where nothing is, it is refused before any backend is asked.
        ("state.snapshot", KEEPS),
        ("isolation.sharing", "isolation = { sharing = \"task\" }"),
        ("isolation.walls", "isolation = { walls = 2 }"),
        ("wasm.imports", "wasm = { imports = \"stub\" }"),
    ] {
        keeps_or_refuses(house, clause, lines);
    }
}

fn keeps_or_refuses(house: &House, clause: &str, lines: &str) {
    let seen = house.command(&json!({ "do": "nothing" })).clause(lines).attempt();
    match refusal(house, &seen) {
        Some(found) => assert_eq!(found, clause),
        None => {
            let seen = seen.succeeds();
            let line = seen.enforcement.iter().find(|line| line.clause.as_str() == clause);
            assert!(line.is_some_and(|line| line.enforced_by.len() > 3), "{clause}: {seen:?}");
        }
    }
}

fn walls(house: &House) {
    let seen = house.command(&json!({ "do": "nothing" })).clause("isolation = { walls = 2 }").run().succeeds();
    let line = seen.enforcement.iter().find(|line| line.clause.as_str() == "isolation.walls").unwrap();
    assert!(line.enforced_by.contains("Landlock") && line.enforced_by.contains("seccomp"), "{line:?}");
    // Some other process must be there in which it ran.
    let below = || {
        let tasks = fs_err::read_dir("/proc/self/task").unwrap().flatten();
        let children = tasks.map(|task| fs_err::read_to_string(task.path().join("children")).unwrap_or_default());
        children.map(|line| line.split_whitespace().count()).sum::<usize>()
    };
    assert!(below() > 0, "there is no process in which it could have run");
}

fn changed_bytes(house: &House) {
    let place = |file: &str| house.path("state/tools/guest.stable/1.0.0").join(file);
    // Bytes that no cache has seen before.
    let fresh = house.path("").display().to_string();
    let components = house.has_components();
    let guest = if components { printer(fresh.as_bytes()) } else { Guest::Built("hostile") };
    let act = || house.act(&guest, &json!({})).text().named("guest.stable");
    drop(act().future());
    let registered = fs_err::read(place("component.wasm")).unwrap();
    let changed = if components {
        printer(&vec![b'x'; fresh.len()]).component()
    } else {
        // It names the same image, which would run.
        String::from_utf8(registered.clone()).unwrap().replacen("glovebox-test", "glovebox-tost", 1).into_bytes()
    };
    assert_ne!(changed, registered);
    assert_eq!(changed.len(), registered.len());
    fs_err::write(place("component.wasm"), changed).unwrap();
    let seen = act().run();
    assert!(seen.outcome.code.is_some() && seen.output.stdout.total == 0, "{seen:?}");

    let text = fs_err::read_to_string(place("tool.toml")).unwrap();
    fs_err::write(place("tool.toml"), text.replace("description = \"d\"", "description = \"e\"")).unwrap();
    let refused = act().submit().unwrap_err();
    assert!(refused.message.contains("was changed after it was registered"), "{refused:?}");
    house.still_works();
}

/// Over folders of its own, so that nobody else meets the damage.
fn damaged_cache(house: &House) {
    let guest = core_command("", "", "(func (export \"run\") (result i32) (i32.const 0))");
    let cache = house.path("cache");
    let run = || {
        let house = house.beside(&cache);
        let seen = house.act(&guest, &json!({})).text().run().succeeds();
        (seen.noticed("cache-corrupt"), seen.outcome.to_string())
    };
    let well = |noticed| (noticed, "completed(0)".to_owned());
    assert_eq!(run(), well(false));
    let prepared: Vec<_> = fs_err::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).collect();
    for path in &prepared {
        let mut bytes = fs_err::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        fs_err::write(path, bytes).unwrap();
        assert_eq!(run(), well(true), "{}", path.display());
        assert_eq!(run(), well(false), "{}", path.display());
    }
}
