//! Another goal: plans are void, what was approved waits for whoever asked, and
//! what happened is there to be kept, undone or handed over.

use env_contracts::{Code, OutcomeKind, SideEffects};
use glovebox_events::{ActionState, AskedFor};
use glovebox_plane::{Choice, Saying, Submitted};

use crate::fake::{TOOL, WRITE};
use crate::house::{House, Setup, approval, done, waiting};
use crate::turns::ASK;

/// What undoes what `fake.write` does.
const UNDO: &str = "compensate = \"fake.undo@1.0.0\"\nverify = \"fake.check@1.0.0\"\n";

fn setup() -> Setup {
    Setup::of(&[WRITE, TOOL]).rules(ASK)
}

fn house() -> House {
    let house = House::of(&setup());
    house.runs_well();
    house.open_task();
    house
}

#[test]
fn another_goal_ends_what_waits_and_its_cards() {
    let house = house();
    house.turn();
    let (inside, outside) = (
        waiting(house.send(house.in_turn("fake.write", "{}", 1)).unwrap()),
        house.waits("fake.write", r#"{"count":1}"#),
    );
    house.say(Saying::Goal("something else"));
    assert!(house.pending().is_empty());
    for action in [&inside, &outside] {
        let seen = done(house.resume(action));
        assert_eq!(
            (seen.outcome.to_string().as_str(), seen.outcome.code),
            ("interrupted(goal-changed)", Some(Code::GoalChanged))
        );
        assert_eq!(house.answer(approval(action), "once", None).unwrap_err().code, Code::ApprovalClosed);
    }
    assert!(house.ground.runs().is_empty());
    let start = house.try_turn(1, 2).unwrap();
    assert_eq!(start.replan[0].as_str(), "goal-changed");
    house.audit(&["s1"]);
}

#[test]
fn what_was_approved_for_another_goal_runs_only_if_whoever_asked_wants_it_still() {
    let house = house();
    let action = house.waits("fake.write", "{}");
    house.approve(&action);
    house.say(Saying::Goal("something else"));
    assert_eq!(house.now(&action.id).state, ActionState::Authorized, "its approval is no waste");
    house.block_on(house.service.recover()).unwrap();
    assert!(house.ground.runs().is_empty(), "nobody wanted it");
    assert_eq!(done(house.resume(&action)).outcome.code, None);
    assert_eq!(house.now(&action.id).goal, Some(2));
    assert_eq!(house.ground.ran(&action.id), 1);
    assert!(house.kinds(&action.id).contains(&"reaffirmed"));
    house.audit(&["s1"]);
}

/// Somebody waits for the answer while the goal changes: the old waiter does
/// not run it.
#[test]
fn whoever_waited_for_an_approval_is_not_revived_for_another_goal() {
    let house = house();
    let mut submission = house.asked("fake.write", "{}");
    submission.asking = glovebox_plane::Asking::Wait;
    let stop = glovebox_runtime::Stop::default();
    let submit = house.service.submit(submission, std::sync::Arc::new(glovebox_plane::Unwatched), &stop);
    let plain = House::open(&house.ground, &setup());
    let changes = async {
        let mut changes = plain.store.changes().unwrap();
        while plain.pending().is_empty() {
            changes.changed().await.unwrap();
        }
        // Both in the other process, before the waiter looks.
        tokio::task::block_in_place(|| {
            let handle = tokio::runtime::Handle::current();
            let waits = plain.pending().first().unwrap().clone();
            let person = crate::house::person("u");
            let by = glovebox_plane::Signed { principal: &person, key: None, channel: "test".parse().unwrap() };
            let answer = plain.service.answer(by, crate::house::offered(&waits, "once", None));
            handle.block_on(answer).unwrap();
            let task = crate::house::id("t1");
            handle.block_on(plain.service.say(&person, &task, Saying::Goal("something else"))).unwrap();
        });
    };
    let (submitted, ()) = house.block_on(async { tokio::join!(submit, changes) });
    match submitted.unwrap() {
        Submitted::Waiting(action) => {
            assert_eq!(action.state, ActionState::Authorized);
            assert!(house.ground.runs().is_empty());
            assert_eq!(done(house.resume(&action)).outcome.code, None, "whoever asked wants it still");
        }
        // The waiter was faster than the goal.
        Submitted::Done(seen) => assert_eq!(seen.outcome.code, None),
    }
    house.audit(&["s1"]);
}

#[test]
fn an_approval_survives_another_goal_only_for_the_same_to_the_last_byte() {
    let house = house();
    let script = house.path("workspace/t.sh");
    fs_err::write(&script, "approved").unwrap();
    let action = house.waits("fake.write", r#"{"path":"t.sh"}"#);
    house.approve(&action);
    house.say(Saying::Goal("something else"));
    fs_err::write(&script, "something else").unwrap();
    let again = waiting(house.resume(&action));
    assert_eq!(again.approval.as_ref().unwrap().asked_for, AskedFor::Drift);
    assert!(house.ground.runs().is_empty());
    house.approve(&again);
    assert_eq!(done(house.resume(&action)).outcome.code, None);
    house.audit(&["s1"]);
}

#[test]
fn what_happened_stays_and_is_listed_to_be_kept_undone_or_handed_over() {
    let write = WRITE.replacen("entry =", &format!("{UNDO}entry ="), 1);
    let house = House::of(&Setup::of(&[&write, TOOL]).rules("permit (principal, action, resource);"));
    house.runs_well();
    house.open_task();
    house.turn();
    let first = done(house.send(house.in_turn("fake.write", "{}", 1)).unwrap());
    done(house.send(house.in_turn("fake.tool", "{}", 1)).unwrap());
    house.on_run(|_, _| glovebox_runtime::job::End::Exited { code: 1 });
    let second = done(house.send(house.in_turn("fake.write", r#"{"count":1}"#, 1)).unwrap());
    house.runs_well();
    assert!(house.turn().effects.is_empty(), "the plan is the same");
    house.say(Saying::Goal("something else"));
    let start = house.try_turn(2, 2).unwrap();
    let listed: Vec<_> = start.effects.iter().map(|effect| &effect.action).collect();
    assert_eq!(listed, [&first.action_id, &second.action_id], "in the order in which it happened");
    for effect in &start.effects {
        assert_eq!(effect.goal, Some(1));
        assert_ne!(effect.side_effects, SideEffects::None);
        assert_eq!(effect.choices, [Choice::Keep, Choice::Undo, Choice::HandOver]);
        assert!(effect.undo.as_ref().is_some_and(|undo| undo.to_string() == "fake.undo@1.0.0"));
        assert!(effect.verify.is_some());
    }
    house.audit(&["s1"]);
}

#[test]
fn a_run_goes_on_when_the_goal_changes_and_counts_for_the_one_before() {
    let house = House::of(&Setup::of(&[WRITE]).rules("permit (principal, action, resource);"));
    house.open_task();
    let (service, handle) = (house.service.clone(), house.ground.tokio.handle().clone());
    house.on_run(move |_, _| {
        let (person, task) = (crate::house::person("u"), crate::house::id("t1"));
        handle.block_on(service.say(&person, &task, Saying::Goal("something else"))).unwrap();
        crate::fake::returned("{}")
    });
    let seen = done(house.send(house.asked("fake.write", "{}")).unwrap());
    assert_eq!(seen.outcome.kind, OutcomeKind::Completed);
    assert_eq!(house.now(&seen.action_id).goal, Some(1));
    house.audit(&["s1"]);
}

/// A loop that has turns goes on for another goal in a turn that it opened for
/// it: before that it has not read it.
#[test]
fn a_loop_begins_and_resumes_nothing_for_a_goal_that_it_has_not_read() {
    let house = house();
    house.turn();
    let action = waiting(house.send(house.in_turn("fake.write", "{}", 1)).unwrap());
    house.approve(&action);
    house.say(Saying::Goal("something else"));
    let resumed = house.resume_as(&action.principal, &action.id, glovebox_plane::Asking::Leave);
    assert_eq!(resumed.unwrap_err().code, Code::GoalChanged);
    let later = house.send(house.in_turn("fake.tool", "{}", 1));
    assert_eq!(later.unwrap_err().code, Code::GoalChanged);
    assert!(house.ground.runs().is_empty());
    house.try_turn(1, 2).unwrap();
    assert_eq!(done(house.resume(&action)).outcome.code, None);
    assert_eq!(house.now(&action.id).goal, Some(2));
    // Who did what is told by name.
    let pending = waiting(house.send(house.in_turn("fake.write", r#"{"count":2}"#, 2)).unwrap());
    house.say(Saying::Goal("a third thing"));
    let seen = done(house.resume(&pending));
    assert!(seen.outcome.message.unwrap().contains("`u` gave the task another goal"));
    house.audit(&["s1"]);
}
