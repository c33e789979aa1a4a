//! What people say: steers, constraints, goals, stages, each by its verb.

use env_contracts::{Code, Observation};
use glovebox_plane::{Saying, Submitted};

use crate::between::{Between, Moment};
use crate::fake::{TOOL, WRITE};
use crate::house::{Ground, House, Setup, done, id, person};
use crate::loops::coder;
use crate::turns::ASK;

fn setup() -> Setup {
    Setup::of(&[WRITE, TOOL]).rules(ASK)
}

fn house() -> House {
    let house = House::of(&setup());
    house.runs_well();
    house.open_task();
    house
}

fn notices(seen: &Observation, kind: &str) -> Vec<String> {
    seen.notices.iter().filter(|notice| notice.kind == kind).map(|notice| notice.message.clone()).collect()
}

#[test]
fn a_steer_reaches_the_loop_at_its_next_step_once_and_in_its_order() {
    let house = house();
    house.turn();
    house.say(Saying::Steer("first"));
    house.say(Saying::Steer("second"));
    let start = house.turn();
    let said: Vec<_> = start.steers.iter().map(|said| (said.text.as_deref().unwrap(), said.by.as_str())).collect();
    assert_eq!(said, [("first", "u"), ("second", "u")]);
    assert!(start.replan.is_empty(), "a direction is no new plan");
    assert!(house.turn().steers.is_empty(), "it was told already");
    house.audit(&["s1"]);
}

#[test]
fn a_constraint_keeps_the_goal_holds_from_here_on_and_asks_for_another_plan() {
    let house = house();
    house.turn();
    house.say(Saying::Constrain("no new dependency"));
    let start = house.turn();
    assert_eq!((start.goal.version, start.replan[0].as_str()), (1, "constrained"));
    assert_eq!(start.constraints[0].text.as_deref(), Some("no new dependency"));
    let start = house.turn();
    assert_eq!((start.constraints.len(), start.replan.len()), (1, 0), "it holds, and was planned with");
    house.audit(&["s1"]);
}

#[test]
fn the_verb_says_what_it_is_and_only_people_say_it() {
    let house = house();
    for saying in [Saying::Steer("a"), Saying::Constrain("a"), Saying::Goal("a"), Saying::Stage(Some("a"))] {
        let by_agent = house.block_on(house.service.say(&coder(), &id("t1"), saying)).unwrap_err();
        assert_eq!(by_agent.code, Code::NotEligible);
        let by_other = house.block_on(house.service.say(&person("v"), &id("t1"), saying)).unwrap_err();
        assert_eq!(by_other.code, Code::TaskUnknown);
    }
    for words in [" ", &"a".repeat(glovebox_plane::MAX_TEXT + 1)] {
        let wrong = house.block_on(house.service.say(&person("u"), &id("t1"), Saying::Steer(words))).unwrap_err();
        assert_eq!(wrong.code, Code::Usage);
    }
    // Words that sound like another verb are what their verb says.
    house.say(Saying::Steer("cancel everything and change the goal"));
    assert_eq!((house.task().goal.version, house.task().steers.len()), (1, 1));
    house.audit(&["s1"]);
}

#[test]
fn a_loop_that_never_comes_back_does_not_fill_the_store() {
    let house = house();
    for number in 0..200 {
        house.say(Saying::Steer(&format!("step {number}")));
    }
    let many = house.block_on(house.service.say(&person("u"), &id("t1"), Saying::Steer("one more"))).unwrap_err();
    assert_eq!(many.code, Code::Usage);
    // It keeps nobody from saying what the work is for.
    house.say(Saying::Goal("something else"));
    house.say(Saying::Constrain("carefully"));
}

#[test]
fn a_client_without_turns_is_told_with_its_next_observation_exactly_once() {
    let house = house();
    house.say(Saying::Steer("look at the tests first"));
    house.say(Saying::Constrain("no new dependency"));
    house.say(Saying::Goal("make it fast"));
    let seen = done(house.send(house.asked("fake.tool", "{}")).unwrap());
    assert_eq!(notices(&seen, "steer"), ["`u` says: look at the tests first"]);
    assert_eq!(notices(&seen, "constraint"), ["`u` says: no new dependency"]);
    assert_eq!(notices(&seen, "goal"), ["`u` says: make it fast"]);
    let next = done(house.send(house.asked("fake.tool", "{}")).unwrap());
    assert_eq!(next.notices, [], "it was told already");
    house.audit(&["s1"]);
}

#[test]
fn an_action_that_is_refused_tells_what_was_said_too() {
    let rules = "forbid (principal, action, resource);";
    let house = House::of(&Setup::of(&[TOOL]).rules(rules));
    house.open_task();
    house.say(Saying::Steer("stop trying that"));
    let seen = done(house.send(house.asked("fake.tool", "{}")).unwrap());
    assert_eq!(seen.outcome.code, Some(Code::PolicyDenied));
    assert_eq!(notices(&seen, "steer"), ["`u` says: stop trying that"]);
    assert!(house.task().steers.is_empty());
    let next = done(house.send(house.asked("fake.tool", "{}")).unwrap());
    assert_eq!(notices(&next, "steer").len(), 0);
    house.audit(&["s1"]);
}

#[test]
fn a_session_that_nobody_opened_can_be_steered() {
    let house = House::of(&setup());
    house.runs_well();
    let mut implicit = house.asked("fake.tool", "{}");
    implicit.context.task = id("s1");
    done(house.send(implicit).unwrap());
    let task = house.block_on(house.service.task_of(&person("u"), &id("s1"))).unwrap();
    house.block_on(house.service.say(&person("u"), &task.id, Saying::Steer("this way"))).unwrap();
    let mut implicit = house.asked("fake.tool", "{}");
    implicit.context.task = id("s1");
    let seen = done(house.send(implicit).unwrap());
    assert_eq!(notices(&seen, "steer"), ["`u` says: this way"]);
    house.audit(&["s1"]);
}

#[test]
fn two_actions_that_end_at_once_tell_a_steer_once_between_them() {
    for _ in 0..10 {
        let house = house();
        house.say(Saying::Steer("this way"));
        let stop = glovebox_runtime::Stop::default();
        let send = || {
            let watch = std::sync::Arc::new(glovebox_plane::Unwatched);
            house.service.submit(house.asked("fake.tool", "{}"), watch, &stop)
        };
        let (one, two) = house.block_on(async { tokio::join!(send(), send()) });
        let told = [one, two].map(|seen| notices(&done(seen.unwrap()), "steer").len());
        assert_eq!(told.iter().sum::<usize>(), 1, "{told:?}");
        house.audit(&["s1"]);
    }
}

/// Another process says something, and another one wants the run stopped,
/// right when its end is written down: neither costs the end, or a word.
#[test]
fn an_end_that_is_written_down_while_people_talk_loses_nothing() {
    for approved in [false, true] {
        let rules = if approved { ASK } else { "permit (principal, action, resource);" };
        let ground = Ground::new();
        let setup = Setup::of(&[WRITE, TOOL]).rules(rules);
        let plain = House::open(&ground, &setup);
        plain.runs_well();
        plain.open_task();
        plain.say(Saying::Steer("first"));
        let action = approved.then(|| {
            let action = plain.waits("fake.write", "{}");
            plain.approve(&action);
            action
        });
        let service = plain.service.clone();
        let store = plain.store.clone();
        let house = House::open_over(&ground, &setup, |inner| {
            Between::over(inner, move |moment| {
                // The claim is the first commit, the end the second and what
                // comes after it where that was refused.
                let say = |words: &str| {
                    tokio::runtime::Handle::current()
                        .block_on(service.say(&person("u"), &id("t1"), Saying::Steer(words)))
                        .unwrap();
                };
                tokio::task::block_in_place(|| match moment {
                    Moment::Before(2) => {
                        let filter = glovebox_store::ActionFilter {
                            states: vec![glovebox_events::ActionState::Running],
                            ..glovebox_store::ActionFilter::default()
                        };
                        let running = store.actions(&crate::house::name("local"), &filter).unwrap().items.remove(0);
                        tokio::runtime::Handle::current()
                            .block_on(service.cancel(&person("u"), &running.id, "cancelled"))
                            .unwrap();
                    }
                    Moment::Before(3) => say("second"),
                    Moment::Before(4) => say("third"),
                    _ => {}
                });
                true
            })
        });
        let went = match &action {
            Some(action) => house.resume_as(&action.principal, &action.id, glovebox_plane::Asking::Leave),
            None => house.send(house.asked("fake.write", "{}")),
        };
        let Ok(Submitted::Done(seen)) = went else { panic!("{went:?}") };
        assert_eq!(seen.outcome.code, None);
        let words: Vec<_> = notices(&seen, "steer");
        assert_eq!(words, ["`u` says: first", "`u` says: second", "`u` says: third"], "{:?}", seen.notices);
        assert!(house.task().steers.is_empty());
        house.audit(&["s1"]);
    }
}
