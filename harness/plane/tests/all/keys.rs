//! Idempotency keys: two requests with one key are one request.

use std::sync::Arc;

use env_contracts::Code;
use glovebox_plane::{Saying, Submission, Unwatched};
use glovebox_runtime::Stop;

use crate::fake::{TOOL, WRITE};
use crate::house::{House, Setup, agent, done, id, name, waiting};

const ALLOW: &str = "permit (principal, action, resource);";

fn keyed(house: &House, key: &str, args: &str) -> Submission {
    let mut submission = house.asked("fake.write", args);
    submission.request.idempotency_key = Some(name(key));
    submission
}

#[test]
fn the_same_request_under_one_key_runs_once_and_gets_the_stored_result_also_after_a_restart() {
    let setup = Setup::of(&[WRITE]).rules(ALLOW);
    let house = House::of(&setup);
    house.runs_well();
    let first = done(house.send(keyed(&house, "k", r#"{"count":1,"text":"a"}"#)).unwrap());
    // Spelled otherwise, with another purpose: still the same request.
    let mut again = keyed(&house, "k", r#" { "text": "a", "count": 1 } "#);
    again.request.purpose = Some("once more".into());
    assert_eq!(done(house.send(again).unwrap()), first);
    let ground = house.ground.clone();
    drop(house);
    let house = House::open(&ground, &setup);
    assert_eq!(done(house.send(keyed(&house, "k", r#"{"count":1,"text":"a"}"#)).unwrap()), first);
    assert_eq!(ground.runs().len(), 1);
    house.audit(&["s1"]);
}

/// What was done stays done: whoever lost the answer still gets it.
#[test]
fn the_result_stays_with_its_key_when_the_task_is_over_or_stands_elsewhere() {
    let house = House::of(&Setup::of(&[WRITE]).rules(ALLOW));
    house.runs_well();
    house.open_task();
    let (coder, task) = (agent("u", "coder"), id("t1"));
    let first = done(house.send(keyed(&house, "k", "{}")).unwrap());
    house.say(Saying::Stage(Some("review")));
    assert_eq!(done(house.send(keyed(&house, "k", "{}")).unwrap()), first);
    let over = glovebox_events::TaskState::Done;
    house.block_on(house.service.end_task(&coder, &task, over, None)).unwrap();
    assert_eq!(done(house.send(keyed(&house, "k", "{}")).unwrap()), first);
    assert_eq!(house.send(keyed(&house, "k", r#"{"count":1}"#)).unwrap_err().code, Code::KeyConflict);
    assert_eq!(house.send(keyed(&house, "other", "{}")).unwrap_err().code, Code::TaskClosed);
    assert_eq!(house.ground.runs().len(), 1);
    house.audit(&["s1"]);
}

#[test]
fn another_request_under_the_same_key_is_a_conflict_and_runs_nothing() {
    let house = House::of(&Setup::of(&[WRITE]).rules(ALLOW));
    house.runs_well();
    done(house.send(keyed(&house, "k", r#"{"count":5}"#)).unwrap());
    for args in [r#"{"count":6}"#, "{}", r#"{"count":5,"tags":[]}"#] {
        assert_eq!(house.send(keyed(&house, "k", args)).unwrap_err().code, Code::KeyConflict, "{args}");
    }
    let mut elsewhere = keyed(&house, "k", r#"{"count":5}"#);
    elsewhere.workspace = Some(house.path(""));
    assert_eq!(house.send(elsewhere).unwrap_err().code, Code::KeyConflict);
    assert_eq!(house.ground.runs().len(), 1);
}

#[test]
fn a_key_of_another_user_or_agent_is_another_key() {
    let house = House::of(&Setup::of(&[WRITE]).rules(ALLOW));
    house.runs_well();
    let mut ids = std::collections::BTreeSet::new();
    for principal in [agent("u", "coder"), agent("u", "other"), agent("v", "coder")] {
        let mut submission = keyed(&house, "k", "{}");
        submission.principal = principal;
        ids.insert(done(house.send(submission).unwrap()).action_id);
    }
    assert_eq!((ids.len(), house.ground.runs().len()), (3, 3));
}

#[test]
fn two_requests_at_once_under_one_key_are_one_run_in_two_processes_too() {
    let setup = Setup::of(&[WRITE]).rules(ALLOW);
    let a = House::of(&setup);
    let b = House::open(&a.ground, &setup);
    a.runs_well();
    for round in 0..20 {
        let key = format!("k{round}");
        let both = a.block_on(async {
            let send = |house: &House| {
                let mut submission = keyed(house, &key, "{}");
                submission.asking = glovebox_plane::Asking::Wait;
                let service = house.service.clone();
                async move { service.submit(submission, Arc::new(Unwatched), &Stop::default()).await }
            };
            tokio::join!(send(&a), send(&b))
        });
        let (left, right) = (done(both.0.unwrap()), done(both.1.unwrap()));
        assert_eq!(left.action_id, right.action_id);
        assert_eq!(left.outcome.code, None, "{:?}", left.outcome);
        assert_eq!(right.outcome, left.outcome);
        assert_eq!(a.ground.ran(&left.action_id), 1, "round {round}");
    }
    a.audit(&["s1"]);
}

#[test]
fn a_request_that_waits_is_found_again_by_its_key() {
    let house = House::of(&Setup::of(&[WRITE]));
    let first = waiting(house.send(keyed(&house, "k", "{}")).unwrap());
    let again = waiting(house.send(keyed(&house, "k", "{}")).unwrap());
    assert_eq!(first.approval, again.approval);
    assert_eq!(house.pending().len(), 1, "nobody is asked twice for one request");
}

#[test]
fn plans_differ_in_what_differs_and_in_nothing_else() {
    let house = House::of(&Setup::of(&[WRITE]));
    let intent = |args: &str| house.waits("fake.write", args).intent.unwrap();
    let base = intent(r#"{"text":"5","count":5}"#);
    assert_eq!(base, intent(r#"{ "count":5, "text":"5" }"#), "the order of keys");
    let others = [r#"{"text":"5"}"#, r#"{"text":"5","count":6}"#, r#"{"text":"5 ","count":5}"#];
    for other in others {
        assert_ne!(base, intent(other), "{other}");
    }
    assert_ne!(intent(r#"{"tags":[1,2]}"#), intent(r#"{"tags":[2,1]}"#), "the order of a list");
    assert_ne!(intent(r#"{"tags":["5"]}"#), intent(r#"{"tags":[5]}"#), "a text is no number");
    assert_ne!(intent(r#"{"tags":[null]}"#), intent(r#"{"tags":[]}"#), "nothing is not absent");
}

#[test]
fn an_id_that_comes_twice_runs_once_also_where_it_could_do_no_harm() {
    let house = House::of(&Setup::of(&[TOOL]).rules(ALLOW));
    house.runs_well();
    let named = || {
        let mut submission = house.asked("fake.tool", r#"{"count":1}"#);
        submission.request.action_id = Some(id("mine"));
        submission
    };
    done(house.send(named()).unwrap());
    assert_eq!(house.send(named()).unwrap_err().code, Code::ActionConflict);
    assert_eq!(house.ground.runs().len(), 1);
    house.audit(&["s1"]);
}
