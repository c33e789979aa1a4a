//! A person has to decide, and the client can do nothing but tell its model.

use std::time::Duration;

use env_contracts::Code;
use glovebox_events::{ActionState, Asks};
use glovebox_plane::ActionView;
use rmcp::model::ErrorCode;
use serde_json::json;

use crate::client::{ASK, ERAS, Era, Hand, Seat, call, named, refused, said, text};
use crate::fake::{TOOL, WRITE};
use crate::house::{Ground, House, Setup, agent};

fn setup() -> Setup {
    Setup::of(&[WRITE, TOOL]).rules(ASK)
}

fn seat() -> Seat {
    let seat = Seat::of(&setup());
    seat.house.runs_well();
    seat
}

#[test]
fn the_answer_names_the_action_where_it_is_decided_and_what_to_do_next() {
    for era in ERAS {
        let seat = seat();
        seat.house.block_on(async {
            let client = seat.client(era, Hand::default()).await;
            let waiting = call(&client, "fake.write", json!({ "text": "x" })).await;
            let action = &seat.actions()[0];
            let approval = action.approval.as_ref().unwrap().id.clone();
            assert_eq!((waiting.is_error, said(&waiting, "code")), (Some(true), "approval-pending"));
            let told = text(&waiting);
            assert!(told.contains(&format!("http://127.0.0.1:1/approvals/{approval}")), "{told}");
            assert!(told.contains(&format!("glovebox approvals show {approval}")), "{told}");
            assert!(told.contains("glovebox.result") && told.contains(action.id.as_str()), "{told}");
            assert_eq!(seat.house.ground.ran(&action.id), 0, "nobody approved it");

            seat.answer(action, "once", None).await;
            assert_eq!(seat.house.ground.ran(&action.id), 0, "whoever asked comes back for it");
            for _ in 0..2 {
                let result = call(&client, "glovebox.result", json!({ "action_id": action.id })).await;
                assert_eq!(said(&result, "outcome"), "completed", "{}", text(&result));
            }
            assert_eq!((seat.house.ground.ran(&action.id), seat.actions().len()), (1, 1));
        });
    }
}

#[test]
fn the_result_is_waited_for_while_a_person_decides_and_no_longer_than_a_client_waits() {
    let seat = Seat::in_house(House::of(&setup()), Duration::from_millis(300));
    seat.house.runs_well();
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::default()).await;
        let action = named(&call(&client, "fake.write", json!({})).await);
        let asked = call(&client, "glovebox.result", json!({ "action_id": action })).await;
        assert_eq!(said(&asked, "code"), "approval-pending", "it still waits");
        let waits = seat.house.now(&action);
        assert_eq!(waits.state, ActionState::WaitingApproval, "that nobody waits for it takes nothing away");
        seat.answer(&waits, "once", None).await;
        let client = seat.patient(Hand::default()).await;
        let result = call(&client, "glovebox.result", json!({ "action_id": action })).await;
        assert_eq!(said(&result, "outcome"), "completed");
    });
}

/// What was approved and takes longer than a request goes on without it.
#[test]
fn a_run_that_outlasts_the_wait_goes_on_and_its_result_is_had_later() {
    let seat = Seat::in_house(House::of(&setup()), Duration::from_millis(300));
    seat.house.on_run(|_, ports| {
        for _ in 0..40 {
            assert!(!ports.stop.is_requested(), "it was stopped");
            std::thread::sleep(Duration::from_millis(30));
        }
        crate::fake::returned("7")
    });
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::default()).await;
        let action = named(&call(&client, "fake.write", json!({})).await);
        seat.answer(&seat.house.now(&action), "once", None).await;
        let mut rounds = 0;
        loop {
            let result = call(&client, "glovebox.result", json!({ "action_id": action })).await;
            rounds += 1;
            if result.meta.as_ref().unwrap()["glovebox/outcome"]["outcome"] == "completed" {
                break;
            }
            assert_eq!(said(&result, "code"), "action-running");
        }
        assert!(rounds > 1);
        assert_eq!(seat.house.ground.ran(&action), 1);
    });
}

/// A person's words come with the answer, not after it.
#[test]
fn a16_what_a_person_says_when_they_decline_stands_in_the_same_result() {
    let seat = seat();
    seat.house.block_on(async {
        let client = seat.client(Era::Old, Hand::default()).await;
        let action = named(&call(&client, "fake.write", json!({})).await);
        seat.answer(&seat.house.now(&action), "decline", Some("use the other file")).await;
        let result = call(&client, "glovebox.result", json!({ "action_id": action })).await;
        assert_eq!((result.is_error, said(&result, "code")), (Some(true), "declined"));
        assert!(text(&result).contains("use the other file"), "{}", text(&result));
        let again = call(&client, "fake.write", json!({})).await;
        assert_eq!(said(&again, "code"), "declined", "the same is not asked again");
        assert!(text(&again).contains("use the other file"), "{}", text(&again));
        assert_eq!(seat.house.ground.runs().len(), 0);
    });
}

#[test]
fn a_restart_takes_nothing_away_from_what_waits() {
    let ground = Ground::new();
    let first = Seat::in_house(House::open(&ground, &setup()), Duration::from_secs(300));
    let action = first.house.block_on(async {
        let client = first.client(Era::New, Hand::default()).await;
        named(&call(&client, "fake.write", json!({})).await)
    });
    drop(first);
    let second = Seat::in_house(House::open(&ground, &setup()), Duration::from_secs(300));
    second.house.runs_well();
    second.house.block_on(async {
        second.answer(&second.house.now(&action), "once", None).await;
        let client = second.client(Era::New, Hand::default()).await;
        let result = call(&client, "glovebox.result", json!({ "action_id": action })).await;
        assert_eq!(said(&result, "outcome"), "completed", "{}", text(&result));
        assert_eq!(ground.ran(&action), 1);
    });
}

#[test]
fn the_actions_of_others_are_no_actions() {
    let seat = seat();
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::default()).await;
        let action = named(&call(&client, "fake.write", json!({})).await);
        for other in [agent("u", "other"), agent("v", "coder")] {
            let party = seat.party_of(other, env_contracts::Access::Write, glovebox_plane::Asking::Leave);
            let theirs = seat.client_of(party, Era::New, Hand::default()).await;
            let foreign = refused(&theirs, "glovebox.result", json!({ "action_id": action })).await;
            let missing = refused(&theirs, "glovebox.result", json!({ "action_id": "nothing" })).await;
            assert_eq!(foreign.code, ErrorCode::INVALID_PARAMS);
            assert_eq!(foreign.message.replace(action.as_str(), "nothing"), missing.message);
        }
    });
}

/// Asking for a permission opens a request; no tool of the door gives one.
#[test]
fn a_permission_is_asked_for_and_given_by_a_person_alone() {
    let seat = seat();
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::default()).await;
        let wanted = json!({
            "capability": "fake.tool", "scope": { "limits": { "memory": "128MiB" } }, "reason": "a large file",
        });
        let waiting = call(&client, "glovebox.request_permission", wanted.clone()).await;
        assert_eq!(said(&waiting, "code"), "approval-pending");
        let action = seat.house.now(&named(&waiting));
        assert_eq!((action.asks, action.state), (Asks::Permission, ActionState::WaitingApproval));
        assert!(seat.house.service.grants(&crate::house::person("u"), true).unwrap().is_empty());
        seat.answer(&action, "session", None).await;
        let given = call(&client, "glovebox.result", json!({ "action_id": action.id })).await;
        assert_eq!(given.is_error, Some(false), "{}", text(&given));
        assert_eq!(seat.house.service.grants(&crate::house::person("u"), true).unwrap().len(), 1);

        let nothing = json!({ "capability": "fake.tool", "scope": {} });
        let has_it = call(&client, "glovebox.request_permission", nothing).await;
        assert_eq!(said(&has_it, "code"), "usage");
        let wrong = json!({ "capability": "fake.tool", "scope": { "netwrk": {} } });
        let wrong = call(&client, "glovebox.request_permission", wrong).await;
        assert_eq!(said(&wrong, "code"), Code::ArgumentsInvalid.as_str());
        assert!(text(&wrong).contains("netwrk"), "{}", text(&wrong));
    });
}

/// A question that nobody answers ends: within its time, and as what it is.
#[test]
fn a11_a_client_that_drops_the_pipe_leaves_what_expires_by_itself() {
    let seat = Seat::of(&Setup { settings: short(), ..setup() });
    seat.house.block_on(async {
        let client = seat.client(Era::Old, Hand::default()).await;
        let action = named(&call(&client, "fake.write", json!({})).await);
        drop(client);
        assert_eq!(seat.house.now(&action).state, ActionState::WaitingApproval);
        seat.house.ground.clock.forward(Duration::from_secs(61));
        let next = seat.client(Era::Old, Hand::default()).await;
        let result = call(&next, "glovebox.result", json!({ "action_id": action })).await;
        assert_eq!((result.is_error, said(&result, "code")), (Some(true), "expired"));
        let ActionView { action, .. } = seat.house.service.action(&agent("u", "coder"), &action).unwrap();
        assert!(action.state.ended());
    });
}

/// Questions that wait for a minute.
pub(crate) fn short() -> glovebox_plane::Settings {
    let mut settings = glovebox_plane::Settings::new(crate::house::id("operator"));
    settings.ttl = Some(Duration::from_secs(60));
    settings
}
