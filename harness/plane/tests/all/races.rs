//! What changes at the last moment: right before something begins, is asked or
//! is opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use env_contracts::Code;
use glovebox_events::{AskedOf, TaskState};
use glovebox_plane::{ActionService, Interrupting, NewQuestion, NewSession, OpenTurn, Saying, Submitted, Target};
use glovebox_store::Store;

use crate::between::{Between, Moment};
use crate::fake::{TOOL, WRITE, returned};
use crate::house::{Ground, House, Setup, id, person};
use crate::loops::{about, called, coder, new_task};
use crate::turns::ASK;

const ALLOW: &str = "permit (principal, action, resource);";

/// What changes, and how an action ends that was to begin after it.
const CHANGES: &[(&str, &str)] = &[
    ("turn", "interrupted(turn-closed)"),
    ("goal", "interrupted(goal-changed)"),
    ("interrupt", "interrupted(interrupted)"),
    ("end", "interrupted(task-ended)"),
];

async fn change(service: &ActionService, what: &str) {
    match what {
        "turn" => {
            let open = OpenTurn { task: id("t1"), expected_turn: 1, goal_version: 1, key: None };
            Box::pin(service.open_turn(&coder(), open)).await.unwrap();
        }
        "goal" => {
            service.say(&person("u"), &id("t1"), Saying::Goal("something else")).await.unwrap();
        }
        "interrupt" => {
            // The turn stays the same one to whoever looks at nothing else.
            let asked = Interrupting { target: Target::Session(id("s1")), grace: None, reason: None };
            service.interrupt(&person("u"), asked).await.unwrap();
        }
        _ => {
            service.end_task(&coder(), &id("t1"), TaskState::Done, None).await.unwrap();
        }
    }
}

/// Lets something happen at one moment.
fn at(
    store: Arc<dyn Store>,
    then: impl Fn(&Moment, u32) -> bool + Send + Sync + 'static,
    what: impl Fn() + Send + Sync + 'static,
) -> Arc<dyn Store> {
    let reads = AtomicU32::new(0);
    Between::over(store, move |moment| {
        let number = match moment {
            Moment::Read => reads.fetch_add(1, Ordering::SeqCst) + 1,
            Moment::Before(number) | Moment::After(number) => number,
        };
        if then(&moment, number) {
            tokio::task::block_in_place(&what);
        }
        true
    })
}

/// How many reads there are before something begins.
fn reads(rules: &str, tool: &str) -> u32 {
    let ground = Ground::new();
    let setup = Setup::of(&[WRITE, TOOL]).rules(rules);
    let plain = House::open(&ground, &setup);
    plain.open_task();
    plain.turn();
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    let house = House::open_over(&ground, &setup, |store| {
        Between::over(store, move |moment| {
            counted.fetch_add(u32::from(moment == Moment::Read), Ordering::SeqCst);
            true
        })
    });
    let begun = Arc::new(AtomicU32::new(0));
    let (seen, count) = (begun.clone(), count.clone());
    house.on_run(move |_, _| {
        seen.store(count.load(Ordering::SeqCst), Ordering::SeqCst);
        returned(r#"{"ok":1}"#)
    });
    drop(house.send(house.in_turn(tool, "{}", 1)).unwrap());
    begun.load(Ordering::SeqCst)
}

#[test]
fn nothing_begins_and_nobody_is_asked_when_the_task_moves_on_at_the_last_moment() {
    let mut wrong = Vec::new();
    for (rules, tool) in [(ALLOW, "fake.write"), (ALLOW, "fake.tool"), (ASK, "fake.write")] {
        // Before the last of what is looked at, or before the commit that it
        // begins with.
        let last = if tool == "fake.tool" { reads(rules, tool) } else { u32::MAX };
        for (what, outcome) in CHANGES {
            let ground = Ground::new();
            let setup = Setup::of(&[WRITE, TOOL]).rules(rules);
            let plain = House::open(&ground, &setup);
            plain.open_task();
            plain.turn();
            let (service, handle) = (plain.service.clone(), ground.tokio.handle().clone());
            let moment = move |moment: &Moment, number: u32| match moment {
                Moment::Read => number == last,
                Moment::Before(_) => last == u32::MAX && number == 1,
                Moment::After(_) => false,
            };
            let house = House::open_over(&ground, &setup, |store| {
                at(store, moment, move || handle.block_on(change(&service, what)))
            });
            house.runs_well();
            let went = house.send(house.in_turn(tool, "{}", 1)).unwrap();
            let ended = match &went {
                Submitted::Done(seen) => seen.outcome.to_string(),
                Submitted::Waiting(_) => "waits".to_owned(),
            };
            if ended != *outcome || !ground.runs().is_empty() || !house.pending().is_empty() {
                wrong.push(format!("{tool} when {what}: {ended}, and not {outcome}"));
            }
            house.audit(&["s1"]);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Clients without tasks work in a session alone, which perhaps nobody opened.
#[test]
fn nothing_begins_in_a_session_that_is_interrupted_or_closed_at_the_last_moment() {
    let mut wrong = Vec::new();
    for (rules, opened, close) in [(ALLOW, true, false), (ALLOW, false, false), (ALLOW, true, true), (ASK, true, false)]
    {
        let ground = Ground::new();
        let setup = Setup::of(&[WRITE, TOOL]).rules(rules);
        let plain = House::open(&ground, &setup);
        plain.runs_well();
        if opened {
            plain.open_session(&coder(), "s1", None);
        } else {
            // It is known by what was asked in it before.
            drop(plain.send(plain.asked("fake.tool", "{}")).unwrap());
        }
        let before = ground.runs().len();
        let (service, handle) = (plain.service.clone(), ground.tokio.handle().clone());
        let stop = move || {
            handle.block_on(async {
                if close {
                    Box::pin(service.close_session(&person("u"), &id("s1"))).await.unwrap();
                } else {
                    let asked = Interrupting { target: Target::Session(id("s1")), grace: None, reason: None };
                    let done = Box::pin(service.interrupt(&person("u"), asked)).await.unwrap();
                    assert!(done.stopped_ms.is_some() && done.running.is_empty());
                }
            });
        };
        let house =
            House::open_over(&ground, &setup, |store| at(store, |moment, _| *moment == Moment::Before(1), stop));
        house.runs_well();
        let went = house.send(house.asked("fake.write", r#"{"count":1}"#)).unwrap();
        let ended = match &went {
            Submitted::Done(seen) => seen.outcome.to_string(),
            Submitted::Waiting(_) => "waits".to_owned(),
        };
        let outcome = if close { "interrupted(task-ended)" } else { "interrupted(interrupted)" };
        if ended != outcome || ground.runs().len() != before || !house.pending().is_empty() {
            wrong.push(format!("{rules} opened {opened} closed {close}: {ended}, and not {outcome}"));
        }
        house.audit(&["s1"]);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_opened_below_a_tree_that_is_just_being_stopped() {
    for task in [false, true] {
        let ground = Ground::new();
        let setup = Setup::of(&[WRITE, TOOL]).rules(ASK);
        let plain = House::open(&ground, &setup);
        plain.open_session(&coder(), "s1", None);
        plain.open_session(&called("helper", &["coder"]), "s2", Some("s1"));
        // It is received, and then whoever interrupts is gone.
        let dying = House::open_over(&ground, &setup, |store| {
            Between::over(store, |moment| !matches!(moment, Moment::After(number) if number >= 2))
        });
        let (service, handle) = (dying.service.clone(), ground.tokio.handle().clone());
        let house = House::open_over(&ground, &setup, |store| {
            at(
                store,
                |moment, _| *moment == Moment::Before(1),
                move || {
                    let asked = Interrupting { target: Target::Tree(id("s1")), grace: None, reason: None };
                    handle.block_on(service.interrupt(&person("u"), asked)).unwrap_err();
                },
            )
        });
        let who = called("helper", &["coder"]);
        let late = if task {
            let new = new_task("t2", "s2", glovebox_events::Budget::default());
            house.block_on(house.service.open_task(&who, new)).map(drop)
        } else {
            let new = NewSession { id: Some(id("s3")), parent: Some(id("s2")) };
            house.block_on(house.service.open_session(&who, new)).map(drop)
        };
        assert_eq!(late.unwrap_err().code, Code::Interrupted);
        house.audit(&["s1", "s2"]);
    }
}

#[test]
fn two_questions_that_are_merged_into_each_other_at_once_keep_an_answer() {
    let ground = Ground::new();
    let setup = Setup::of(&[TOOL]).rules(ASK);
    let plain = House::open(&ground, &setup);
    let helper = called("helper", &["coder"]);
    plain.open_session(&coder(), "s1", None);
    plain.open_session(&helper, "s2", Some("s1"));
    let new = new_task("t2", "s2", glovebox_events::Budget::default());
    plain.block_on(plain.service.open_task(&helper, new)).unwrap();
    let ask = |topic: &str| {
        let asking = NewQuestion { task: id("t2"), ..about(topic, None) };
        plain.block_on(plain.service.ask(&helper, asking)).unwrap().question
    };
    let (one, two) = (ask("one"), ask("two"));
    assert_eq!((one.to, two.to), (AskedOf::Root, AskedOf::Root));
    let (service, handle) = (plain.service.clone(), ground.tokio.handle().clone());
    let (first, second) = (one.id.clone(), two.id.clone());
    let house = House::open_over(&ground, &setup, |store| {
        at(
            store,
            |moment, _| *moment == Moment::Before(1),
            move || {
                handle.block_on(service.merge(&coder(), &second, &first)).unwrap();
            },
        )
    });
    let late = house.block_on(house.service.merge(&coder(), &one.id, &two.id)).unwrap_err();
    assert_eq!(late.code, Code::Usage);
    assert_eq!((house.question(&one.id).merged_into, house.question(&two.id).merged_into), (None, Some(one.id)));
    house.audit(&["s1", "s2"]);
}

/// The reviewer says yes to something of a turn that ends while it looks, and
/// whoever opened the next one died before they ended what waits.
#[test]
fn the_yes_of_a_reviewer_comes_too_late_when_the_turn_is_over() {
    let ground = Ground::new();
    let mut setup = Setup::of(&[WRITE, ROBOT]).rules(REVIEWED);
    setup.approvers = "[classes.robot]\nreviewer = { capability = \"fake.robot@1.0.0\", limit = \"60s\" }\n".to_owned();
    let house = House::open(&ground, &setup);
    house.open_task();
    house.turn();
    let dying = House::open_over(&ground, &setup, |store| {
        Between::over(store, |moment| !matches!(moment, Moment::After(number) if number >= 1))
    });
    let (service, handle) = (dying.service.clone(), ground.tokio.handle().clone());
    house.on_run(move |bound, _| {
        assert_eq!(bound.plan.capability.name.to_string(), "fake.robot", "it ran in a turn that is over");
        let open = OpenTurn { task: id("t1"), expected_turn: 1, goal_version: 1, key: None };
        handle.block_on(service.open_turn(&coder(), open)).unwrap_err();
        returned(r#"{"verdict":"approve","reasons":[]}"#)
    });
    let seen = crate::house::done(house.send(house.in_turn("fake.write", "{}", 1)).unwrap());
    assert_eq!(seen.outcome.to_string(), "interrupted(turn-closed)");
    assert!(house.pending().is_empty());
    house.audit(&["s1"]);
}

/// Everything is allowed with any approval; what changes nothing without.
const REVIEWED: &str = "permit (principal, action, resource) when { context has approval };\n\
     permit (principal, action, resource) when { context.effects == \"none\" && !resource.decision };\n";

/// It changes nothing, so it runs without asking.
const ROBOT: &str = r#"
name = "fake.robot"
entry = { kind = "tool" }
input = { type = "object" }
[contract]
schema = "glovebox/contract/v1"
limits = { wall = "60s", memory = "64MiB", output = "1MiB" }
"#;
