//! A person has to decide, and the client opens a page for its user: in rounds
//! of one request, or while the request is open.

use std::time::Duration;

use env_contracts::Access;
use glovebox_events::ActionState;
use glovebox_plane::Asking;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ElicitRequestParams, ErrorCode, ErrorData, InputRequest,
    InputRequiredResult, InputResponses,
};
use serde_json::json;

use crate::client::{ASK, Answers, Client, Era, Hand, Seat, calling, error, named, said, text};
use crate::fake::{TOOL, WRITE};
use crate::house::{Ground, House, Setup, agent, approval, person};

fn setup() -> Setup {
    Setup::of(&[WRITE, TOOL]).rules(ASK)
}

fn seat_waiting(wait: Duration) -> Seat {
    let seat = Seat::in_house(House::of(&setup()), wait);
    seat.house.runs_well();
    seat
}

async fn asked(client: &Client, request: CallToolRequestParams) -> InputRequiredResult {
    match client.peer().call_tool_once(request).await.unwrap() {
        CallToolResponse::InputRequired(asked) => asked,
        other => panic!("{other:?}"),
    }
}

fn request() -> CallToolRequestParams {
    calling("fake.write", json!({ "text": "x", "count": 1 }))
}

/// The next round of a request, as a client answers the one before.
fn round(before: &InputRequiredResult, action: &str) -> CallToolRequestParams {
    let keys = before.input_requests.iter().flat_map(|requests| requests.keys());
    let responses: InputResponses = keys.map(|key| (key.clone(), json!({ "action": action }))).collect();
    let next = request().with_request_state(before.request_state.clone().unwrap());
    if responses.is_empty() { next } else { next.with_input_responses(responses) }
}

#[test]
fn accepting_to_open_the_page_decides_nothing_and_the_same_action_goes_on() {
    let seat = seat_waiting(Duration::from_millis(300));
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::opens(Answers::Accept)).await;
        let first = asked(&client, request()).await;
        let action = seat.actions()[0].clone();
        let page = first.input_requests.as_ref().unwrap()[approval(&action).as_str()].clone();
        let InputRequest::Elicitation(page) = page else { panic!("{page:?}") };
        let ElicitRequestParams::UrlElicitationParams { url, .. } = page.params else { panic!("a form") };
        assert_eq!(url, format!("http://127.0.0.1:1/approvals/{}", approval(&action)));

        let second = asked(&client, round(&first, "accept")).await;
        assert_eq!(second.input_requests, None, "the page is not opened again");
        assert_eq!(seat.house.now(&action.id).state, ActionState::WaitingApproval, "an accept is no approval");
        assert_eq!(seat.house.ground.runs().len(), 0);

        seat.answer(&action, "once", None).await;
        let client = seat.patient(Hand::opens(Answers::Accept)).await;
        for _ in 0..2 {
            let done = client.peer().call_tool_once(round(&second, "accept")).await.unwrap();
            let CallToolResponse::Complete(result) = done else { panic!("{done:?}") };
            assert_eq!((said(&result, "outcome"), named(&result)), ("completed", action.id.clone()));
        }
        assert_eq!((seat.actions().len(), seat.house.ground.ran(&action.id)), (1, 1));
    });
}

#[test]
fn a_user_who_opens_no_page_leaves_the_question_where_it_is() {
    let seat = seat_waiting(Duration::from_secs(60));
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::opens(Answers::Decline)).await;
        let first = asked(&client, request()).await;
        for word in ["decline", "cancel"] {
            let told = client.peer().call_tool_once(round(&first, word)).await.unwrap();
            let CallToolResponse::Complete(told) = told else { panic!("{told:?}") };
            assert_eq!(said(&told, "code"), "approval-pending");
        }
        assert_eq!(seat.actions()[0].state, ActionState::WaitingApproval);
    });
}

/// What comes back from a client is a stranger's until it is shown to be ours,
/// for this very call. Nothing is ever begun for what isn't.
#[test]
fn a_request_state_counts_for_its_own_call_its_own_party_and_its_own_time() {
    // Refused for the state itself, before anything is looked up for it.
    let foreign = |refused: &ErrorData| {
        refused.code == ErrorCode::INVALID_PARAMS && refused.message.contains("for this very call")
    };
    let seat = seat_waiting(Duration::from_millis(100));
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::opens(Answers::Accept)).await;
        let first = asked(&client, request()).await;
        let state = first.request_state.clone().unwrap();
        let mut forged = state.clone();
        forged.replace_range(10..11, if &forged[10..11] == "A" { "B" } else { "A" });
        let tries = [
            ("forged", request().with_request_state(forged)),
            ("made up", request().with_request_state("rs1.AAAA.BBBB")),
            ("other arguments", calling("fake.write", json!({ "text": "y", "count": 1 })).with_request_state(&state)),
            ("another tool", calling("fake.tool", json!({ "text": "x", "count": 1 })).with_request_state(&state)),
        ];
        for (what, request) in tries {
            let refused = error(client.peer().call_tool_once(request).await);
            assert!(foreign(&refused), "{what}: {refused:?}");
        }
        // Also where they could see the action itself: it is not their request.
        for other in [agent("u", "other"), agent("v", "coder"), person("u")] {
            let party = seat.party_of(other.clone(), Access::Write, Asking::Leave);
            let theirs = seat.client_of(party, Era::New, Hand::opens(Answers::Accept)).await;
            let refused = error(theirs.peer().call_tool_once(round(&first, "accept")).await);
            assert!(foreign(&refused), "{other:?}: {refused:?}");
        }
        // The order of keys is none of its business.
        let spelled = calling("fake.write", json!({ "count": 1, "text": "x" })).with_request_state(&state);
        asked(&client, spelled).await;
        seat.house.ground.clock.forward(Duration::from_secs(3601));
        let late = error(client.peer().call_tool_once(round(&first, "accept")).await);
        assert!(late.code == ErrorCode::INVALID_PARAMS && late.message.contains("too old"), "{late:?}");
        assert_eq!(seat.actions().len(), 1, "a second action was begun");
    });
}

#[test]
fn a_round_goes_on_after_a_restart_of_the_door() {
    let ground = Ground::new();
    let first = Seat::in_house(House::open(&ground, &setup()), Duration::from_secs(300));
    let before = first.house.block_on(async {
        let client = first.client(Era::New, Hand::opens(Answers::Accept)).await;
        asked(&client, request()).await
    });
    drop(first);
    let second = Seat::in_house(House::open(&ground, &setup()), Duration::from_secs(300));
    second.house.runs_well();
    second.house.block_on(async {
        let action = second.actions()[0].clone();
        second.answer(&action, "once", None).await;
        let client = second.client(Era::New, Hand::opens(Answers::Accept)).await;
        let done = client.peer().call_tool_once(round(&before, "accept")).await.unwrap();
        let CallToolResponse::Complete(result) = done else { panic!("{done:?}") };
        assert_eq!((said(&result, "outcome"), ground.ran(&action.id)), ("completed", 1));
        assert_eq!(second.actions().len(), 1);
    });
}

/// rmcp's client drives the rounds by itself.
#[test]
fn a_client_that_drives_its_rounds_gets_the_result_once_a_person_approved() {
    let seat = seat_waiting(Duration::from_secs(300));
    let hand = Hand::opens(Answers::Accept);
    seat.house.block_on(async {
        let client = seat.client(Era::New, hand.clone()).await;
        let approving = async {
            let action = seat.once(ActionState::WaitingApproval).await;
            seat.answer(&action, "once", None).await;
        };
        let (result, ()) = tokio::join!(client.call_tool(request()), approving);
        let result = result.unwrap();
        assert_eq!(said(&result, "outcome"), "completed", "{}", text(&result));
    });
    assert_eq!(hand.pages.lock().unwrap().len(), 1);
}

#[test]
fn with_the_older_handshake_the_page_is_opened_while_the_request_is_open() {
    for answers in [Answers::Accept, Answers::Never] {
        let seat = seat_waiting(Duration::from_secs(300));
        let hand = Hand::opens(answers);
        seat.house.block_on(async {
            let client = seat.client(Era::Old, hand.clone()).await;
            let approving = async {
                let action = seat.once(ActionState::WaitingApproval).await;
                // The store decides, whatever the client says or does not say.
                seat.answer(&action, "once", None).await;
            };
            let (result, ()) = tokio::join!(client.call_tool(request()), approving);
            let result = result.unwrap();
            assert_eq!(said(&result, "outcome"), "completed", "{}", text(&result));
        });
        assert!(hand.pages.lock().unwrap().len() <= 1);
        assert_eq!((seat.actions().len(), seat.house.ground.runs().len()), (1, 1));
    }
}

/// A client that can't answer holds nobody up: the call is answered, and the
/// action expires as what it is.
#[test]
fn a11_a_client_that_never_answers_an_elicitation_blocks_nothing_for_ever() {
    for (answers, wait) in [(Answers::Never, 300), (Answers::Decline, 60_000)] {
        let house = House::of(&Setup { settings: crate::asking::short(), ..setup() });
        let seat = Seat::in_house(house, Duration::from_millis(wait));
        let hand = Hand::opens(answers);
        seat.house.block_on(async {
            let client = seat.client(Era::Old, hand.clone()).await;
            let told = client.call_tool(request()).await.unwrap();
            assert_eq!((told.is_error, said(&told, "code")), (Some(true), "approval-pending"));
            let action = named(&told);
            assert_eq!(seat.house.now(&action).state, ActionState::WaitingApproval);
            seat.house.ground.clock.forward(Duration::from_secs(61));
            let ended = crate::client::call(&client, "glovebox.result", json!({ "action_id": action })).await;
            assert_eq!(said(&ended, "code"), "expired");
        });
        assert_eq!(hand.pages.lock().unwrap().len(), 1, "{answers:?}");
    }
}
