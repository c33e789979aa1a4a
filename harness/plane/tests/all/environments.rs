//! Environments: what actions that share one find of each other, and for how long.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use env_contracts::{Code, Digest, Id, Observation, OutcomeKind, Persistence, Sharing, Snapshot};
use glovebox_events::{Budget, TaskState, What};
use glovebox_plane::{EnvironmentLimits, EnvironmentState, EnvironmentView, PolicySource, Submitted};
use glovebox_runtime::{Bound, Stop};
use rustix::fs::{Mode, OFlags};

use crate::fake::returned;
use crate::house::{Ground, House, Setup, approval, done, id, person, waiting};
use crate::loops::new_task;

/// A tool that keeps a folder for the actions of a task.
const KEEPS: &str = r#"
name = "fake.keeps"
entry = { kind = "tool" }
[input]
type = "object"
additionalProperties = false
properties = { add = { type = "string" } }
[contract]
schema = "glovebox/contract/v1"
filesystem = [{ guest = "/cache", source = "scratch", access = "write" }]
limits = { wall = "10s", memory = "64MiB", output = "1MiB", storage = "1KiB", inodes = 8 }
state = { persistence = "environment", snapshot = "never" }
isolation = { sharing = "task" }
"#;

const ALLOW: &str = "permit (principal, action, resource);";
const ASK: &str = "permit (principal, action, resource) when { context has approval };";

fn setup(manifests: &[String], rules: &str) -> Setup {
    let manifests: Vec<&str> = manifests.iter().map(String::as_str).collect();
    let mut setup = Setup::of(&manifests).rules(rules);
    setup.keeps = true;
    let install = &mut setup.ceiling.install;
    install.isolation.sharing = Sharing::Agent;
    install.state.persistence = Persistence::Environment;
    install.state.snapshot = Snapshot::After;
    setup
}

fn house() -> House {
    House::of(&setup(&[KEEPS.to_owned()], ALLOW))
}

/// The kept folder of a run.
fn cache(bound: &Bound) -> OwnedFd {
    let mount = bound.files.mounts.iter().find(|mount| mount.guest == "/cache").unwrap();
    assert!(mount.kept && mount.writable);
    mount.dir.as_fd().try_clone_to_owned().unwrap()
}

/// The names in a folder, in order.
fn names(dir: &OwnedFd) -> Vec<String> {
    let entries = rustix::fs::Dir::read_from(dir).unwrap().map(|entry| entry.unwrap().file_name().to_owned());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name != "." && name != "..");
    names.sort();
    names
}

fn put(dir: &OwnedFd, name: &str, content: &[u8]) {
    let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY;
    let file = rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o600)).unwrap();
    rustix::io::write(file, content).unwrap();
}

/// Runs add a file of this name, and return the names that were there.
fn adds(house: &House) {
    house.on_run(|bound, _| {
        let dir = cache(bound);
        let found = serde_json::to_string(&names(&dir)).unwrap();
        let arguments: serde_json::Value = serde_json::from_str(&bound.plan.arguments).unwrap();
        if let Some(name) = arguments["add"].as_str() {
            put(&dir, name, b"12345678");
        }
        returned(&found)
    });
}

/// Adds a file, for a task: what was there before.
fn add_for(house: &House, task: &str, name: &str) -> Observation {
    let mut submission = house.asked("fake.keeps", &format!(r#"{{"add":"{name}"}}"#));
    submission.context.task = id(task);
    done(house.send(submission).unwrap())
}

fn add(house: &House, name: &str) -> serde_json::Value {
    let seen = add_for(house, "t1", name);
    assert_eq!(seen.outcome.code, None, "{:?}", seen.outcome);
    seen.data
}

fn only(house: &House) -> EnvironmentView {
    let mut all = house.service.environments(&person("u")).unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// What happened to environments, in the order of the log.
fn story(house: &House) -> Vec<&'static str> {
    let events = house.service.session_events(&person("u"), &id("s1"), 0, 0).unwrap();
    let of = |what: &What| matches!(what, What::Environment { .. }).then(|| what.name());
    events.iter().filter_map(|logged| of(&logged.event.what)).collect()
}

#[test]
fn the_actions_of_a_task_find_what_the_one_before_left_and_nobody_elses_do() {
    let house = House::of(&setup(&[KEEPS.to_owned(), KEEPS.replace("fake.keeps", "fake.other")], ALLOW));
    adds(&house);
    assert_eq!(add(&house, "a"), serde_json::json!([]));
    assert_eq!(add(&house, "b"), serde_json::json!(["a"]));
    assert_eq!(add_for(&house, "t2", "c").data, serde_json::json!([]), "another task has its own");
    let mut others = house.asked("fake.keeps", "{}");
    others.principal = crate::house::agent("u", "other");
    assert_eq!(done(house.send(others).unwrap()).data, serde_json::json!([]), "another agent has its own");
    let mut others = house.asked("fake.keeps", "{}");
    others.principal = crate::house::agent("v", "coder");
    assert_eq!(done(house.send(others).unwrap()).data, serde_json::json!([]), "another user has their own");
    let other = done(house.send(house.asked("fake.other", "{}")).unwrap());
    assert_eq!(other.data, serde_json::json!([]), "another tool has its own");

    let seen = add_for(&house, "t1", "c");
    assert_eq!(seen.data, serde_json::json!(["a", "b"]));
    let of_task = |view: &EnvironmentView| view.environment.actions == 3;
    let all = house.service.environments(&person("u")).unwrap();
    let mine = &all.iter().find(|view| of_task(view)).unwrap().environment;
    assert_eq!(seen.environment.unwrap().id, mine.id);
    // The folder that is kept is an entry too.
    assert_eq!((mine.entries, mine.bytes, &mine.running), (4, 24, &None));
    assert_eq!(seen.effects.derived, env_contracts::DerivedEffects::Workspace);
    assert!(house.service.environments(&person("w")).unwrap().is_empty(), "nobody else sees them");
    house.audit(&["s1"]);
}

#[test]
fn what_nobody_asked_to_keep_is_gone() {
    for change in [("persistence = \"environment\"", "persistence = \"none\""), ("\"task\"", "\"action\"")] {
        let house = House::of(&setup(&[KEEPS.replace(change.0, change.1)], ALLOW));
        house.on_run(|bound, _| {
            let mount = &bound.files.mounts[0];
            assert!(!mount.kept && bound.facts.environment.is_none());
            let found = serde_json::to_string(&names(&mount.dir)).unwrap();
            put(&mount.dir, "a", b"1");
            returned(&found)
        });
        for _ in 0..2 {
            let seen = add_for(&house, "t1", "a");
            assert_eq!((seen.data, seen.environment), (serde_json::json!([]), None));
        }
        assert!(house.service.environments(&person("u")).unwrap().is_empty());
    }
    // A snapshot of nothing is refused, and not left out.
    let house = House::of(&setup(&[KEEPS.replace("\"task\"", "\"action\"").replace("never", "after")], ALLOW));
    let seen = add_for(&house, "t1", "a");
    assert_eq!(seen.outcome.kind, OutcomeKind::ContractUnsatisfied);
    assert_eq!(seen.outcome.which.as_deref(), Some("state.snapshot"));
}

#[test]
fn the_ceiling_decides_how_far_anything_is_shared() {
    let mut narrow = setup(&[KEEPS.to_owned()], ALLOW);
    narrow.ceiling.install.isolation.sharing = Sharing::Action;
    let seen = add_for(&House::of(&narrow), "t1", "a");
    assert_eq!(seen.outcome.which.as_deref(), Some("isolation.sharing"), "{:?}", seen.outcome);
}

#[test]
fn one_action_at_a_time_is_in_an_environment() {
    let house = house();
    let (inside, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (now, seen) = (inside.clone(), most.clone());
    house.on_run(move |bound, _| {
        seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(5));
        let dir = cache(bound);
        let count = names(&dir).len();
        put(&dir, &format!("f{count}"), b"1");
        now.fetch_sub(1, Ordering::SeqCst);
        returned("{}")
    });
    house.block_on(async {
        let watch = Arc::new(glovebox_plane::Unwatched);
        let stop = Stop::default();
        let submit = || house.service.submit(house.asked("fake.keeps", "{}"), watch.clone(), &stop);
        let (a, b, c, d) = tokio::join!(submit(), submit(), submit(), submit());
        for one in [a, b, c, d] {
            assert_eq!(done(one.unwrap()).outcome.code, None);
        }
    });
    assert_eq!(most.load(Ordering::SeqCst), 1);
    let environment = only(&house).environment;
    assert_eq!((environment.actions, environment.entries), (4, 5), "none overwrote another's");
    assert_eq!(story(&house), ["environment-begun"], "four asked for it at one time, and there is one");
}

#[test]
fn an_environment_ends_when_nobody_uses_it_when_it_is_old_and_when_its_task_is_over() {
    let mut setup = setup(&[KEEPS.to_owned()], ALLOW);
    let (idle, age) = (Duration::from_secs(60), Duration::from_secs(100));
    setup.settings.environments = EnvironmentLimits { idle, age };
    let house = House::of(&setup);
    adds(&house);
    let clock = &house.ground.clock;
    add(&house, "a");
    // Looking is no use of it.
    clock.forward(Duration::from_secs(59));
    assert_eq!(only(&house).state, EnvironmentState::Ready);
    clock.forward(Duration::from_secs(1));
    assert_eq!(only(&house).state, EnvironmentState::Over);
    assert_eq!(add(&house, "b"), serde_json::json!([]), "a new one");
    // Used again and again, and old all the same.
    for (after, expected) in [(50, serde_json::json!(["b"])), (50, serde_json::json!([]))] {
        clock.forward(Duration::from_secs(after));
        assert_eq!(add(&house, "c"), expected);
    }
    assert_eq!(story(&house), ["environment-begun", "environment-ended"].repeat(3)[..5]);

    // The task is over: who looks after them ends its environment.
    let owner = person("u");
    let loops = crate::house::agent("u", "coder");
    house.block_on(house.service.open_task(&loops, new_task("t9", "s1", Budget::default()))).unwrap();
    assert_eq!(add_for(&house, "t9", "x").outcome.code, None);
    let tend = || house.block_on(house.service.tend_environments(&owner.tenant, 0, false)).unwrap().ended.len();
    assert_eq!((house.service.environments(&owner).unwrap().len(), tend()), (2, 0));
    house.block_on(house.service.end_task(&loops, &id("t9"), TaskState::Done, None)).unwrap();
    assert_eq!(tend(), 1);
    assert_eq!(house.service.environments(&owner).unwrap().len(), 1);
    house.audit(&["s1"]);
}

#[test]
fn what_was_approved_for_one_environment_runs_in_no_other() {
    let house = House::of(&setup(&[KEEPS.replace("never", "after")], ALLOW));
    adds(&house);
    let snapshot = add_for(&house, "t1", "a").environment.unwrap().snapshot.unwrap();
    crate::house::put_policy(&house.ground, ASK, crate::house::CLASSES);
    assert!(PolicySource::refresh(&*house.policy).is_none());
    let ask = |house: &House| waiting(house.send(house.asked("fake.keeps", r#"{"add":"b"}"#)).unwrap());

    // As it was: it runs.
    let action = ask(&house);
    house.approve(&action);
    assert_eq!(done(house.resume(&action)).data, serde_json::json!(["a"]));

    // Restored meanwhile: it is asked again, and says why.
    let action = ask(&house);
    house.approve(&action);
    let person = person("u");
    house.block_on(house.service.restore_environment(&person, &snapshot, None, true)).unwrap();
    let again = waiting(house.resume(&action));
    assert_eq!(house.ground.ran(&action.id), 0);
    let card = house.service.approval(&person, approval(&again)).unwrap();
    assert!(format!("{card:?}").contains("a snapshot was restored"), "{card:?}");
    house.approve(&again);
    assert_eq!(done(house.resume(&again)).data, serde_json::json!(["a"]), "the snapshot's");

    // Ended meanwhile: the same.
    let action = ask(&house);
    house.approve(&action);
    let environment = only(&house).environment.id;
    house.block_on(house.service.end_environment(&person, &environment)).unwrap();
    waiting(house.resume(&action));
    assert_eq!(house.ground.ran(&action.id), 0);
    house.audit(&["s1"]);
}

#[test]
fn another_component_does_not_find_what_the_one_before_made_unless_a_person_says_so() {
    let ground = Ground::new();
    let first = setup(&[KEEPS.to_owned()], ALLOW);
    let house = House::open(&ground, &first);
    adds(&house);
    add(&house, "a");
    let house = House::open(&ground, &Setup { component: b"another component", ..first });
    adds(&house);
    let submitted = house.send(house.asked("fake.keeps", r#"{"add":"b"}"#)).unwrap();
    let Submitted::Waiting(action) = submitted else { panic!("a rule let it run: {submitted:?}") };
    let card = house.service.approval(&person("u"), approval(&action)).unwrap();
    assert!(format!("{card:?}").contains("its files were made by component"), "{card:?}");
    house.approve(&action);
    assert_eq!(done(house.resume(&action)).data, serde_json::json!(["a"]));
    assert_eq!(add(&house, "c"), serde_json::json!(["a", "b"]), "and then it is the one");
}

#[test]
fn a_snapshot_brings_back_what_was_there() {
    let house = House::of(&setup(&[KEEPS.replace("never", "before")], ALLOW));
    adds(&house);
    let owner = person("u");
    add(&house, "a");
    let before_b = add_for(&house, "t1", "b").environment.unwrap().snapshot.unwrap();
    let view = only(&house);
    assert_eq!(view.snapshots.len(), 2);
    let taken = house.block_on(house.service.take_environment_snapshot(&owner, &view.environment.id)).unwrap();
    assert_eq!((taken.of.entries, taken.of.bytes, &taken.of.action), (3, 16, &None));
    let changes = house.service.snapshot_changes(&owner, &before_b, &taken.snapshot).unwrap();
    assert_eq!(changes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["added  cache/b"]);

    let restore = |snapshot: &Digest, into: Option<&Id>| {
        house.block_on(house.service.restore_environment(&owner, snapshot, into, false))
    };
    let restored = restore(&before_b, None).unwrap();
    assert_eq!(restored.environment.from.as_ref(), Some(&before_b));
    assert_eq!(add(&house, "c"), serde_json::json!(["a"]));

    // Another environment of the tool can begin with it, and one that ended comes back.
    add_for(&house, "t2", "x");
    let all = house.service.environments(&owner).unwrap();
    let other = all.iter().find(|view| view.environment.shared.by == "t2").unwrap().environment.id.clone();
    restore(&taken.snapshot, Some(&other)).unwrap();
    assert_eq!(add_for(&house, "t2", "y").data, serde_json::json!(["a", "b"]));
    house.block_on(house.service.end_environment(&owner, &other)).unwrap();
    house.block_on(house.service.end_environment(&owner, &view.environment.id)).unwrap();
    restore(&taken.snapshot, None).unwrap();
    assert_eq!(add(&house, "z"), serde_json::json!(["a", "b"]));
    house.audit(&["s1"]);
}

#[test]
fn restoring_compares_policy_component_and_every_byte() {
    let ground = Ground::new();
    let first = setup(&[KEEPS.replace("never", "after")], ALLOW);
    let house = House::open(&ground, &first);
    adds(&house);
    let snapshot = add_for(&house, "t1", "a").environment.unwrap().snapshot.unwrap();
    let owner = person("u");
    let restore = |house: &House, accept| {
        house.block_on(house.service.restore_environment(&owner, &snapshot, None, accept)).map(drop)
    };
    restore(&house, false).unwrap();

    let rules = "permit (principal, action, resource) when { true };";
    let other = Setup { component: b"another component", rules: Some(rules.to_owned()), ..first.clone() };
    let changed = House::open(&ground, &other);
    let refused = restore(&changed, false).unwrap_err();
    assert_eq!(refused.code, Code::Drift);
    assert!(refused.message.contains("the policy was") && refused.message.contains("component"), "{refused:?}");
    restore(&changed, true).unwrap();

    // What its bytes were can't be accepted away.
    let house = House::open(&ground, &first);
    let objects = ground.path("state/environments/local/snapshots/objects");
    let object = walkdir(&objects).into_iter().find(|path| fs_err::read(path).unwrap() == b"12345678").unwrap();
    fs_err::write(&object, "1234567x").unwrap();
    for accept in [false, true] {
        assert_eq!(restore(&house, accept).unwrap_err().code, Code::SnapshotDamaged);
    }
    adds(&house);
    assert_eq!(add(&house, "b"), serde_json::json!(["a"]), "the environment is as it was");
    let checkpoint = ground.path(&format!("state/environments/local/checkpoints/{snapshot}.json"));
    let text = fs_err::read_to_string(&checkpoint).unwrap();
    fs_err::write(&checkpoint, text.replace("\"u\"", "\"v\"")).unwrap();
    assert_eq!(restore(&house, true).unwrap_err().code, Code::SnapshotDamaged);
}

/// The files below a folder.
fn walkdir(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walkdir(&path) } else { vec![path] }).collect()
}

#[test]
fn only_people_restore_and_end_and_only_what_is_theirs() {
    let house = House::of(&setup(&[KEEPS.replace("never", "after")], ALLOW));
    adds(&house);
    let snapshot = add_for(&house, "t1", "a").environment.unwrap().snapshot.unwrap();
    let environment = only(&house).environment.id;
    for (who, end, restored) in [
        (crate::house::agent("u", "coder"), Code::NotEligible, Code::NotEligible),
        (person("v"), Code::EnvironmentUnknown, Code::SnapshotUnknown),
    ] {
        let ended = house.block_on(house.service.end_environment(&who, &environment));
        assert_eq!(ended.unwrap_err().code, end);
        let taken = house.block_on(house.service.take_environment_snapshot(&who, &environment));
        assert_eq!(taken.unwrap_err().code, end);
        let back = house.block_on(house.service.restore_environment(&who, &snapshot, None, true));
        assert_eq!(back.unwrap_err().code, restored);
    }
    // An agent sees its own, and no other's.
    let mine = house.service.environments(&crate::house::agent("u", "coder")).unwrap();
    assert_eq!(mine.len(), 1);
    assert!(house.service.environments(&crate::house::agent("u", "other")).unwrap().is_empty());
    let begun = |who| {
        let events = house.service.session_events(&who, &id("s1"), 0, 0).unwrap();
        events.iter().any(|logged| matches!(logged.event.what, What::Environment { .. }))
    };
    assert!(begun(person("u")) && begun(crate::house::agent("u", "coder")));
}

#[test]
fn a_full_environment_is_refused_before_anything_runs() {
    let house = house();
    house.on_run(|bound, _| {
        put(&cache(bound), "big", &[0; 2000]);
        returned("{}")
    });
    assert_eq!(add_for(&house, "t1", "a").outcome.code, None);
    let runs = house.ground.runs().len();
    let seen = add_for(&house, "t1", "a");
    assert_eq!((seen.outcome.kind, seen.outcome.which.as_deref()), (OutcomeKind::LimitHit, Some("storage")));
    assert_eq!(house.ground.runs().len(), runs);
    let environment = only(&house).environment.id;
    house.block_on(house.service.end_environment(&person("u"), &environment)).unwrap();
    assert_eq!(add_for(&house, "t1", "a").outcome.code, None);
}

#[test]
fn what_is_gone_long_ago_keeps_no_snapshots() {
    let house = House::of(&setup(&[KEEPS.replace("never", "after")], ALLOW));
    adds(&house);
    let owner = person("u");
    let snapshot = add_for(&house, "t1", "a").environment.unwrap().snapshot.unwrap();
    let tend = |before, dry| house.block_on(house.service.tend_environments(&owner.tenant, before, dry)).unwrap();
    let later = house.ground.clock.ms() + 1;
    assert_eq!(tend(later, false).snapshots, 0, "its environment is there");
    house.block_on(house.service.end_environment(&owner, &only(&house).environment.id)).unwrap();
    assert_eq!(tend(later - 1, false).snapshots, 0, "it is not old");
    assert_eq!(tend(later, true).snapshots, 1, "only looked");
    house.service.snapshot_changes(&owner, &snapshot, &snapshot).unwrap();
    assert_eq!(tend(later, false).snapshots, 1);
    let gone = house.service.snapshot_changes(&owner, &snapshot, &snapshot).unwrap_err();
    assert_eq!(gone.code, Code::SnapshotUnknown);
}
