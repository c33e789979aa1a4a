//! The ways on which everything goes well.

use env_contracts::{Code, OutcomeKind};
use glovebox_events::{ActionState, ApprovalState};
use glovebox_plane::Asking;

use crate::fake::{TOOL, WRITE};
use crate::house::{House, Setup, approval, done, person, waiting};

#[test]
fn what_a_rule_allows_runs_at_once_and_is_recorded() {
    let house = House::new(TOOL);
    house.runs_well();
    let seen = done(house.send(house.asked("fake.tool", "{}")).unwrap());
    assert_eq!(seen.outcome.code, None, "{:?}", seen.outcome);
    let kinds = house.kinds(&seen.action_id);
    assert_eq!(kinds, ["requested", "planned", "decided", "bound", "decided", "claimed", "ended"]);
    assert_eq!(house.now(&seen.action_id).state, ActionState::Succeeded);
    house.audit(&["s1"]);
}

#[test]
fn an_approval_runs_nothing_and_whoever_asked_runs_it_once() {
    let house = House::of(&Setup::of(&[WRITE]));
    house.runs_well();
    let action = house.waits("fake.write", r#"{"text":"a"}"#);
    assert_eq!(action.state, ActionState::WaitingApproval);
    assert!(matches!(house.resume(&action), glovebox_plane::Submitted::Waiting(_)));
    let settled = house.approve(&action);
    assert_eq!((settled.action.state, settled.approval.state), (ActionState::Authorized, ApprovalState::Approved));
    assert_eq!(house.ground.ran(&action.id), 0, "approving ran it");
    let seen = done(house.resume(&action));
    assert_eq!(seen.outcome.code, None, "{:?}", seen.outcome);
    assert_eq!(house.now(&action.id).approval.unwrap().state, ApprovalState::Consumed, "the right is used up");
    assert_eq!(done(house.resume(&action)), seen, "the result is what it was");
    assert_eq!(house.ground.ran(&action.id), 1);
    house.audit(&["s1"]);
    house.nothing_left();
}

#[test]
fn who_waits_gets_the_result_when_a_person_has_answered() {
    let house = House::of(&Setup::of(&[WRITE]));
    house.runs_well();
    let mut submission = house.asked("fake.write", "{}");
    submission.asking = Asking::Wait;
    let stop = glovebox_runtime::Stop::default();
    let watch = std::sync::Arc::new(glovebox_plane::Unwatched);
    let person = person("u");
    let answered = async {
        let mut changes = house.store.changes().unwrap();
        loop {
            if let Some(approval) = house.pending().first() {
                let by = glovebox_plane::Signed { principal: &person, key: None, channel: "test".parse().unwrap() };
                return house.service.answer(by, crate::house::offered(approval, "once", None)).await.unwrap();
            }
            changes.changed().await.unwrap();
        }
    };
    let (submitted, _) =
        house.block_on(async { tokio::join!(house.service.submit(submission, watch, &stop), answered) });
    let seen = done(submitted.unwrap());
    assert_eq!(seen.outcome.code, None, "{:?}", seen.outcome);
    assert_eq!(house.ground.ran(&seen.action_id), 1);
    house.audit(&["s1"]);
}

#[test]
fn a_declined_action_tells_the_model_why_in_the_same_message() {
    let house = House::of(&Setup::of(&[WRITE]));
    let action = house.waits("fake.write", "{}");
    house.answer(approval(&action), "decline", Some("use the other folder")).unwrap();
    let seen = done(house.resume(&action));
    assert_eq!((seen.outcome.kind, seen.outcome.code), (OutcomeKind::Declined, Some(Code::Declined)));
    assert!(seen.text.contains("use the other folder") && seen.text.contains("`u`"), "{}", seen.text);
    assert_eq!(house.ground.ran(&action.id), 0);
    house.audit(&["s1"]);
}

#[test]
fn what_waits_is_found_again_by_the_next_process() {
    let setup = Setup::of(&[WRITE]);
    let house = House::of(&setup);
    let action = waiting(house.send(house.asked("fake.write", "{}")).unwrap());
    let ground = house.ground.clone();
    drop(house);
    let house = House::open(&ground, &setup);
    house.runs_well();
    assert!(house.pending().contains(approval(&action)));
    house.approve(&action);
    drop(house);
    let house = House::open(&ground, &setup);
    assert_eq!(done(house.resume(&action)).outcome.code, None);
    assert_eq!(ground.ran(&action.id), 1);
    house.audit(&["s1"]);
}
