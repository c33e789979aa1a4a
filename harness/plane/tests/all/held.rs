//! What a door goes on with by itself: its client may be gone.

use std::sync::Arc;

use env_contracts::{Id, Principal};
use glovebox_events::{Action, Event, What};
use glovebox_plane::{Asking, Submission, Submitted, Unwatched};
use glovebox_runtime::Stop;

use crate::fake::{WRITE, returned};
use crate::house::{Ground, House, Setup, agent, done, id, name, waiting};

/// A request that waits for a person, and that the door holds.
fn waits(house: &House, count: u8, change: impl FnOnce(&mut Submission)) -> Action {
    let mut submission = house.asked("fake.write", &format!(r#"{{"count":{count}}}"#));
    submission.held = true;
    change(&mut submission);
    waiting(house.send(submission).unwrap())
}

fn names(actions: &[&Action]) -> Vec<(Principal, Id)> {
    actions.iter().map(|action| (action.principal.clone(), action.id.clone())).collect()
}

#[test]
fn what_a_door_holds_is_found_while_it_neither_runs_nor_ended() {
    let house = House::of(&Setup::of(&[WRITE]));
    let held = |limit| house.service.held(limit).unwrap();
    assert_eq!(held(10), []);
    let first = waits(&house, 1, |_| {});
    let _other = waits(&house, 2, |submission| submission.held = false);
    let chained = waits(&house, 3, |submission| submission.principal.chain = vec![name("root")]);
    let elsewhere = waits(&house, 4, |submission| {
        submission.principal = Principal { tenant: name("elsewhere"), ..agent("v", "coder") };
    });
    assert_eq!(held(10), names(&[&first, &chained, &elsewhere]), "of all tenants, as whoever asked");
    assert_eq!(held(2), names(&[&first, &chained]));
    assert!(house.now(&first.id).held);

    house.approve(&first);
    assert_eq!(held(1), names(&[&first]), "what was approved has to be run by somebody");
    house.edit(&chained, r#"{"count":5}"#).unwrap();
    assert_eq!(held(10), names(&[&first, &chained, &elsewhere]), "what was edited is asked again");
    let (service, running) = (house.service.clone(), first.id.clone());
    house.on_run(move |_, _| {
        assert!(service.held(10).unwrap().iter().all(|(_, id)| *id != running), "it is under way");
        returned(r#"{"ok":1}"#)
    });
    assert_eq!(done(house.resume_as(&first.principal, &first.id, Asking::Wait).unwrap()).outcome.code, None);
    house.block_on(house.service.cancel(&chained.principal, &chained.id, "cancelled")).unwrap();
    assert_eq!(held(10), names(&[&elsewhere]));
    house.audit(&["s1"]);
}

#[test]
fn two_doors_that_go_on_with_it_run_it_once() {
    let ground = Ground::new();
    let setup = Setup::of(&[WRITE]);
    let houses = [House::open(&ground, &setup), House::open(&ground, &setup)];
    houses[0].runs_well();
    for round in 0..8 {
        let action = waits(&houses[0], round, |_| {});
        // One began before the answer, the other after it.
        let go_on = |house: &House| {
            let service = house.service.clone();
            let held = service.held(10).unwrap();
            let (requester, id) = held.into_iter().find(|(_, id)| *id == action.id).unwrap();
            ground.tokio.spawn(async move {
                service.resume(&requester, &id, Asking::Wait, Arc::new(Unwatched), &Stop::default()).await
            })
        };
        let first = go_on(&houses[0]);
        houses[1].approve(&action);
        // It may have ended by now: then there is nothing to find.
        let service = houses[1].service.clone();
        let (requester, id) = (action.principal.clone(), action.id.clone());
        let second = ground.tokio.spawn(async move {
            service.resume(&requester, &id, Asking::Wait, Arc::new(Unwatched), &Stop::default()).await
        });
        let ends: Vec<_> = [first, second].map(|end| done(ground.tokio.block_on(end).unwrap().unwrap())).into();
        assert_eq!(ends[0], ends[1]);
        assert_eq!((ends[0].outcome.code, ground.ran(&action.id)), (None, 1));
    }
    houses[0].audit(&["s1"]);
}

#[test]
fn the_same_request_is_the_same_whether_it_is_held() {
    let house = House::of(&Setup::of(&[WRITE]));
    let keyed = |held: bool| {
        let mut submission = house.asked("fake.write", "{}");
        submission.held = held;
        submission.request.idempotency_key = Some(name("key"));
        house.send(submission).unwrap()
    };
    let Submitted::Waiting(first) = keyed(true) else { panic!("nobody is asked") };
    let Submitted::Waiting(again) = keyed(false) else { panic!("nobody is asked") };
    assert_eq!(first.id, again.id);
    assert_eq!(house.service.held(10).unwrap(), names(&[&first]), "it stays held");
}

/// Every form ever stored is still read, and written as it was.
#[test]
fn stored_forms() {
    let v1 = include_str!("../../golden/requested.held.v1.json");
    let event: Event = serde_json::from_str(v1).unwrap();
    assert_eq!(serde_json::to_string_pretty(&event).unwrap(), v1.trim_end());
    let What::Requested { held, .. } = &event.what else { panic!("{event:?}") };
    assert!(held);
    // What was written before says nothing about it, and is not held.
    let before = v1.replace(",\n    \"held\": true", "");
    assert_ne!(before, v1);
    let What::Requested { held, .. } = serde_json::from_str::<Event>(&before).unwrap().what else { panic!() };
    assert!(!held);
    assert_eq!(event.action, Some(id("a1")));
}
