//! What a task may use, has used and has left; waiting apart from running; and
//! what is held while a person is asked.

use std::sync::Arc;
use std::time::Duration;

use env_contracts::{Code, OutcomeKind};
use glovebox_events::{Budget, Told};
use glovebox_plane::{Asking, Submitted, Telling, Unwatched};
use glovebox_runtime::Stop;

use crate::fake::{TOOL, WRITE};
use crate::house::{House, Setup, approval, done, id, offered, person};
use crate::loops::coder;
use crate::turns::ASK;

const ALLOW: &str = "permit (principal, action, resource);";

/// Also for what is written down once, with its end.
#[test]
fn nothing_begins_when_the_budget_is_spent() {
    for tool in ["fake.tool", "fake.write"] {
        let house = House::of(&Setup::of(&[WRITE, TOOL]).rules(ALLOW));
        house.runs_well();
        house.open_task_with(Budget { actions: Some(2), ..Budget::default() });
        for _ in 0..2 {
            assert_eq!(done(house.send(house.asked(tool, "{}")).unwrap()).outcome.code, None);
        }
        house.on_run(|_, _| panic!("it ran without a budget"));
        let seen = done(house.send(house.asked(tool, "{}")).unwrap());
        assert_eq!(
            (seen.outcome.to_string().as_str(), seen.outcome.code),
            ("limit-hit(budget.actions)", Some(Code::BudgetSpent))
        );
        assert_eq!(house.ground.runs().len(), 2);
        let mut elsewhere = house.asked(tool, "{}");
        elsewhere.context.task = id("t2");
        house.runs_well();
        assert_eq!(done(house.send(elsewhere).unwrap()).outcome.code, None, "another task has its own");
        house.audit(&["s1"]);
    }
}

#[test]
fn every_part_of_a_budget_is_one() {
    let none = Budget::default();
    for (part, budget) in [
        ("actions", Budget { actions: Some(0), ..none }),
        ("run_ms", Budget { run_ms: Some(0), ..none }),
        ("output_bytes", Budget { output_bytes: Some(0), ..none }),
        ("egress_bytes", Budget { egress_bytes: Some(0), ..none }),
        ("cost_micros", Budget { cost_micros: Some(0), ..none }),
    ] {
        for tool in ["fake.tool", "fake.write"] {
            let house = House::of(&Setup::of(&[WRITE, TOOL]).rules(ALLOW));
            house.on_run(|_, _| panic!("it ran without a budget"));
            house.open_task_with(budget);
            let seen = done(house.send(house.asked(tool, "{}")).unwrap());
            assert_eq!(seen.outcome.to_string(), format!("limit-hit(budget.{part})"), "{tool}");
        }
    }
}

#[test]
fn what_models_cost_counts_and_what_is_left_is_told_at_each_turn() {
    let house = House::of(&Setup::of(&[WRITE, TOOL]).rules(ALLOW));
    house.runs_well();
    house.open_task_with(Budget { actions: Some(3), cost_micros: Some(10), ..Budget::default() });
    house.turn();
    done(house.send(house.in_turn("fake.tool", "{}", 1)).unwrap());
    let what = Told::ModelCall { model: "m".into(), input_tokens: 1, output_tokens: 1, cost_micros: 4, context: None };
    let call = Telling { turn: Some(1), parents: Vec::new(), what, content: None };
    house.block_on(house.service.tell(&coder(), &id("t1"), call.clone())).unwrap();
    let budget = house.turn().budget;
    assert_eq!((budget.used.actions, budget.left.actions, budget.left.run_ms), (Some(1), Some(2), None));
    assert_eq!((budget.used.cost_micros, budget.left.cost_micros, budget.models.calls), (Some(4), Some(6), 1));
    for _ in 0..2 {
        house.block_on(house.service.tell(&coder(), &id("t1"), call.clone())).unwrap();
    }
    let seen = done(house.send(house.in_turn("fake.tool", "{}", 2)).unwrap());
    assert_eq!(seen.outcome.to_string(), "limit-hit(budget.cost_micros)");
    let left = house.turn().budget.left;
    assert_eq!((left.cost_micros, left.actions), (Some(0), Some(2)));
    house.audit(&["s1"]);
}

#[test]
fn waiting_for_people_is_told_apart_from_running_and_counts_against_nothing() {
    let house = House::of(&Setup::of(&[WRITE]).rules(ASK));
    house.runs_well();
    house.open_task_with(Budget { run_ms: Some(60_000), ..Budget::default() });
    house.turn();
    let action = house.waits("fake.write", "{}");
    house.ground.clock.forward(Duration::from_secs(7200));
    house.approve(&action);
    assert_eq!(done(house.resume(&action)).outcome.code, None);
    let budget = house.turn().budget;
    assert_eq!((budget.waited_ms, budget.asks), (7_200_000, 1));
    assert!(budget.used.run_ms.unwrap() < 60_000);
    let attention = house.service.attention(&coder(), &id("s1")).unwrap();
    assert_eq!((attention.waited_ms, attention.run_ms), (7_200_000, budget.used.run_ms.unwrap()));
    assert_eq!(
        done(
            house
                .send(house.asked("fake.write", "{}"))
                .map(|waits| {
                    let Submitted::Waiting(action) = waits else { panic!("nobody is asked") };
                    house.approve(&action);
                    house.resume(&action)
                })
                .unwrap()
        )
        .outcome
        .kind,
        OutcomeKind::Completed
    );
}

/// Policy allows it until it is bound: room was taken for it by then.
#[test]
fn who_waits_for_a_person_holds_no_room_no_slot_no_cell_and_no_run_folder() {
    let rules = "permit (principal, action, resource) when { !(context has bound) };\n\
         permit (principal, action, resource) when { context has approval };\n\
         permit (principal, action, resource) when { context.args has count && context.args.count == 7 };";
    let tool = WRITE.replace("memory = \"64MiB\"", "memory = \"512MiB\", concurrency = 1");
    let house = House::of(&Setup::of(&[&tool]).rules(rules));
    let idle = Arc::strong_count(&house.ground.held);
    let held = Arc::downgrade(&house.ground.held);
    let counted = move || held.strong_count();
    let during = counted.clone();
    house.on_run(move |_, _| {
        assert!(during() > idle, "this test proves nothing: a run holds nothing");
        crate::fake::returned("{}")
    });
    let mut submission = house.asked("fake.write", "{}");
    submission.asking = Asking::Wait;
    let stop = Stop::default();
    let submit = house.service.submit(submission, Arc::new(Unwatched), &stop);
    let workspace = house.path("workspace/kept");
    fs_err::write(&workspace, "kept").unwrap();
    let meanwhile = async {
        let mut changes = house.store.changes().unwrap();
        while house.pending().is_empty() {
            changes.changed().await.unwrap();
        }
        house.nothing_left();
        assert_eq!(counted(), idle, "a cell is held");
        // It has the only slot and more than half of the memory.
        for _ in 0..2 {
            let other = house.asked("fake.write", r#"{"count":7}"#);
            let other = house.service.submit(other, Arc::new(Unwatched), &stop).await.unwrap();
            assert_eq!(done(other).outcome.code, None, "a slot or room is held");
        }
        let waits = house.pending().first().unwrap().clone();
        let person = person("u");
        let by = glovebox_plane::Signed { principal: &person, key: None, channel: "test".parse().unwrap() };
        house.service.answer(by, offered(&waits, "once", None)).await.unwrap()
    };
    let (submitted, settled) = house.block_on(async { tokio::join!(submit, meanwhile) });
    assert_eq!(done(submitted.unwrap()).outcome.code, None);
    assert_eq!(settled.approval.id, *approval(&settled.action));
    assert_eq!(fs_err::read_to_string(&workspace).unwrap(), "kept");
    house.nothing_left();
    house.audit(&["s1"]);
}
