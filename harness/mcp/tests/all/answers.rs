//! Calls that get their answer at once.

use env_contracts::{Access, Profiles};
use glovebox_plane::{Asking, Saying};
use glovebox_runtime::job::{End, Frame, ToolFailure};
use rmcp::model::ErrorCode;
use serde_json::json;

use crate::client::{ASK, ERAS, Era, Hand, Seat, call, named, refused, said, text};
use crate::fake::{COMMAND, TOOL, WRITE, printed, returned};
use crate::house::{Setup, agent, id, person};

#[test]
fn a_result_comes_as_text_and_as_the_data_that_the_tool_promised() {
    for era in ERAS {
        let seat = Seat::of(&Setup::of(&[TOOL]));
        seat.house.on_run(|bound, _| {
            assert_eq!(bound.plan.arguments, r#"{"count":2}"#);
            returned(r#"{"ok":1}"#)
        });
        seat.house.block_on(async {
            let client = seat.client(era, Hand::default()).await;
            let result = call(&client, "fake.tool", json!({ "count": 2 })).await;
            assert_eq!(result.is_error, Some(false));
            assert_eq!(result.structured_content, Some(json!({ "ok": 1 })));
            assert_eq!(text(&result), r#"{"ok":1}"#);
            let meta = result.meta.as_ref().unwrap();
            assert_eq!(meta["glovebox/trust"], "untrusted");
            assert_eq!(meta["glovebox/source"]["capability"], "fake.tool@1.0.0");
            let action = &seat.actions()[0];
            assert_eq!((named(&result), action.principal.clone()), (action.id.clone(), agent("u", "coder")));
        });
    }
}

/// What a model can act on it gets to read; what it can't, the client does.
#[test]
fn failures_say_code_cause_and_way_out_in_the_channel_where_they_belong() {
    for era in ERAS {
        let seat = Seat::of(&Setup::of(&[TOOL, COMMAND]).rules(ASK));
        seat.house.block_on(async {
            let client = seat.client(era, Hand::default()).await;
            let wrong = call(&client, "fake.tool", json!({ "count": "x" })).await;
            assert_eq!((wrong.is_error, said(&wrong, "code")), (Some(true), "schema-rejected"));
            assert!(text(&wrong).contains("/count") && text(&wrong).contains("what helps"), "{}", text(&wrong));
            assert_eq!(wrong.structured_content, None, "it is not what the tool promised");

            let failure = ToolFailure { kind: "not-found".into(), ..failure() };
            seat.house.on_run(move |_, _| End::Failed(failure.clone()));
            let failed = call(&client, "fake.tool", json!({})).await;
            assert_eq!((failed.is_error, said(&failed, "code")), (Some(true), "tool-failed"));
            assert!(text(&failed).contains("correct the arguments"), "{}", text(&failed));

            seat.house.on_run(|_, ports| printed(ports, "[1]", 3));
            let exit = call(&client, "fake.command", json!({})).await;
            let structured = exit.structured_content.as_ref().unwrap();
            assert_eq!((structured["code"].as_str(), structured["exit"].as_u64()), (Some("tool-failed"), Some(3)));

            seat.house.on_run(|_, _| End::HostFailed("the disk is on fire".into()));
            let broke = refused(&client, "fake.tool", json!({})).await;
            assert_eq!(broke.code, ErrorCode::INTERNAL_ERROR);
            assert!(broke.message.contains("on fire"), "{}", broke.message);
            assert_eq!(broke.data.unwrap()["code"], "backend-error");
        });
    }
}

fn failure() -> ToolFailure {
    ToolFailure { kind: String::new(), message: "no such thing".into(), retryable: false, details: None }
}

#[test]
fn what_is_not_disclosed_is_answered_like_what_does_not_exist() {
    let profiles =
        "schema = \"glovebox/profiles/v1\"\n[default]\ndiscover = [\"fake.tool\"]\nexecute = [\"fake.tool\"]\n";
    let profiles = Profiles::from_toml(profiles).unwrap();
    let seat = Seat::of(&Setup { profiles, ..Setup::of(&[TOOL, COMMAND]) });
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::default()).await;
        let hidden = refused(&client, "fake.command", json!({})).await;
        let missing = refused(&client, "fake.comma-d", json!({})).await;
        assert_eq!((hidden.code, missing.code), (ErrorCode::INVALID_PARAMS, ErrorCode::INVALID_PARAMS));
        assert_eq!(hidden.message.replace("command", "comma-d"), missing.message);
        let listed = client.peer().list_tools(None).await.unwrap();
        assert!(listed.tools.iter().all(|tool| tool.name != "fake.command"));
        let no_name = refused(&client, "../../etc", json!({})).await;
        assert_eq!(no_name.code, ErrorCode::INVALID_PARAMS);
    });
}

/// The answer of a person who is away is not made up: nobody cancelled.
#[test]
fn a19_where_nobody_can_be_asked_the_answer_says_so_and_a_rule_that_allows_works() {
    for (rules, ends) in [(ASK, "unattended"), ("permit (principal, action, resource);", "completed")] {
        let seat = Seat::of(&Setup::of(&[WRITE]).rules(rules));
        seat.house.runs_well();
        seat.house.block_on(async {
            let party = seat.party_of(agent("u", "coder"), Access::Write, Asking::Never);
            let client = seat.client_of(party, Era::New, Hand::with_tasks()).await;
            let result = call(&client, "fake.write", json!({})).await;
            assert_eq!(said(&result, "outcome"), ends);
            if ends == "unattended" {
                assert!(text(&result).contains("approval unavailable (unattended)"), "{}", text(&result));
                assert!(!text(&result).contains("cancel"), "{}", text(&result));
            }
        });
    }
}

#[test]
fn what_a_person_says_to_the_session_reaches_the_model_with_the_next_result() {
    let seat = Seat::of(&Setup::of(&[TOOL]).rules(ASK));
    seat.house.runs_well();
    seat.house.block_on(async {
        let client = seat.client(Era::Old, Hand::default()).await;
        call(&client, "fake.tool", json!({})).await;
        seat.house.service.say(&person("u"), &id("s1"), Saying::Steer("leave the tests alone")).await.unwrap();
        let next = call(&client, "fake.tool", json!({})).await;
        assert!(text(&next).contains("leave the tests alone"), "{}", text(&next));
        let later = call(&client, "fake.tool", json!({})).await;
        assert!(!text(&later).contains("leave the tests alone"), "it was told already");
    });
}

#[test]
fn the_workspace_is_given_no_further_than_the_door_says() {
    let seat = Seat::of(&Setup::of(&[WRITE]).rules(ASK));
    seat.house.on_run(|bound, _| {
        assert_eq!(bound.plan.contract.filesystem[0].access, Access::Read);
        returned("1")
    });
    seat.house.block_on(async {
        let party = seat.party_of(agent("u", "coder"), Access::Read, Asking::Leave);
        let client = seat.client_of(party, Era::New, Hand::default()).await;
        let result = call(&client, "fake.write", json!({})).await;
        assert_eq!(result.is_error, Some(false), "{}", text(&result));
        assert!(text(&result).contains("the tool asks for write access"), "{}", text(&result));
    });
}

/// The client of these tests asks for progress with each of its requests.
#[test]
fn progress_is_told_while_a_tool_runs_and_only_grows() {
    let seat = Seat::of(&Setup::of(&[TOOL]).rules(ASK));
    seat.house.on_run(|_, ports| {
        for done in [5, 3, 4, 9] {
            ports.frames.frame(Frame::Progress { done, total: Some(10), message: "on its way" });
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        returned(r#"{"ok":1}"#)
    });
    let hand = Hand::default();
    seat.house.block_on(async {
        let client = seat.client(Era::New, hand.clone()).await;
        call(&client, "fake.tool", json!({})).await;
    });
    let told = hand.progress.lock().unwrap().clone();
    assert!(told.len() >= 2, "{told:?}");
    assert!(told.windows(2).all(|pair| pair[0] < pair[1]), "{told:?}");
}
