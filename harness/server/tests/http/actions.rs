//! Actions over HTTP: asked for, decided, gone on with.

use serde_json::json;

use crate::house::{House, said, text_of};

/// What is allowed is answered with its end, in one request.
#[tokio::test(flavor = "multi_thread")]
async fn an_allowed_action_is_answered_with_its_observation() {
    let house = House::new().await;
    let (status, view) = house
        .post("agent", "/v1/actions", &json!({ "capability": "fake.read", "arguments": {}, "session": "s1" }))
        .await;
    assert_eq!((status, &view["state"]), (200, &json!("succeeded")), "{view}");
    assert_eq!(view["observation"]["output"]["stdout"]["text"], "well\n");
    assert_eq!(view["principal"]["agent"], "coder", "who asks comes from the credential");
}

/// Two requests with one key are one action, whichever way the key came.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_makes_two_requests_one() {
    let house = House::new().await;
    let body = json!({ "capability": "fake.read", "arguments": { "a": 1 }, "session": "s1" });
    let send = || {
        crate::house::answer(house.request("POST", "agent", "/v1/actions").header("idempotency-key", "k1").json(&body))
    };
    let (one, two) = tokio::join!(send(), send());
    assert_eq!(one.1["id"], two.1["id"], "{one:?} {two:?}");
    assert_eq!(house.ground.ran().len(), 1);
    let other = json!({ "capability": "fake.read", "arguments": { "a": 2 }, "session": "s1", "idempotency_key": "k1" });
    let (status, problem) = house.post("agent", "/v1/actions", &other).await;
    assert_eq!((status, &problem["code"]), (409, &json!("key-conflict")));
}

/// The same bytes, delivered twice by a network that does so: on one connection
/// and on two, with the request, the answer and the resumption of an action.
/// It is one action, one answer counts, and it runs once.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_delivered_twice_happens_once() {
    let house = House::new().await;
    let body = json!({
        "capability": "fake.write", "arguments": { "text": "one" }, "workspace": "work", "session": "s1",
        "idempotency_key": "k1",
    });
    let asked = house.twice("agent", "/v1/actions", &body).await;
    let (action, approval) = (text_of(&asked[0].1["id"]), text_of(&asked[0].1["approval"]["id"]));
    for (status, view) in &asked {
        assert_eq!((*status, &view["id"], &view["approval"]["id"]), (202, &json!(action), &json!(approval)), "{view}");
    }
    let (_, list) = house.get("approver", "/v1/approvals").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
    let (_, card) = house.get("approver", &format!("/v1/approvals/{approval}")).await;
    let answer = json!({ "plan": card["plan"], "offer": "once" });
    let answered = house.twice("approver", &format!("/v1/approvals/{approval}/answer"), &answer).await;
    // The same answer of the same person is told what it came to, and is no second one.
    for (status, settled) in &answered {
        let first = &answered[0].1["approval"]["answer"];
        assert_eq!((*status, &settled["approval"]["answer"]), (200, first), "{settled}");
    }
    let (status, late) = house.decide("operator", &card, "decline").await;
    assert_eq!((status, &late["code"]), (409, &json!("approval-closed")), "{late}");
    for (status, view) in house.twice("agent", &format!("/v1/actions/{action}/resume"), &json!({})).await {
        assert_eq!((status, &view["state"]), (200, &json!("succeeded")), "{view}");
    }
    assert_eq!(house.ground.ran(), [action]);
}

/// What waits for a person runs once it is answered, as its requester, though
/// nobody waits for it any more: the server carries it.
#[tokio::test(flavor = "multi_thread")]
async fn an_approved_action_runs_though_its_client_is_gone() {
    let house = House::new().await;
    let (action, card) = house.asked("one").await;
    assert!(house.ground.ran().is_empty());
    let (status, settled) = house.decide("approver", &card, "once").await;
    assert_eq!(status, 200, "{settled}");
    let view = house.until(&action, "succeeded").await;
    assert_eq!(view["approval"]["answer"]["by"]["name"], "approver");
    assert_eq!(house.ground.ran(), [action]);
}

/// The first answer counts, whoever else answers at the same moment.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_answers_at_once_one_counts() {
    let house = House::new().await;
    for round in 0..8 {
        let (action, card) = house.asked(&format!("r{round}")).await;
        let (yes, no) =
            tokio::join!(house.decide("approver", &card, "once"), house.decide("operator", &card, "decline"));
        let won = [&yes, &no].iter().filter(|(status, _)| *status == 200).count();
        assert_eq!(won, 1, "{yes:?} {no:?}");
        let lost = if yes.0 == 200 { &no } else { &yes };
        assert_eq!((lost.0, &lost.1["code"]), (409, &json!("approval-closed")));
        let ended = if yes.0 == 200 { "succeeded" } else { "failed" };
        house.until(&action, ended).await;
        assert_eq!(house.ground.ran().contains(&action), yes.0 == 200);
    }
}

/// An answer to a plan that was not shown is none.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_for_what_was_shown() {
    let house = House::new().await;
    let (_, mut card) = house.asked("one").await;
    card["plan"] = json!("0123456789ab");
    let (status, problem) = house.decide("approver", &card, "once").await;
    assert_eq!((status, &problem["code"]), (409, &json!("drift")), "{problem}");
    assert!(house.ground.ran().is_empty());
}

/// Output can be read by its offset while the action runs, and after it.
#[tokio::test(flavor = "multi_thread")]
async fn output_is_read_by_offset_while_it_grows() {
    let house = House::new().await;
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let gone = std::sync::Mutex::new(gone);
    house.ground.on_run(move |_, ports| {
        said(ports, "first line\n", 0);
        let _ = gone.lock().unwrap().recv();
        said(ports, "last line\n", 0)
    });
    let body = json!({ "capability": "fake.read", "arguments": {}, "session": "s1" });
    let (status, view) = house.post("agent", "/v1/actions?wait=0", &body).await;
    assert_eq!(status, 202, "{view}");
    let path = format!("/v1/actions/{}/output/stdout", text_of(&view["id"]));
    let read = async |query: &str| {
        let response = house.request("GET", "agent", &format!("{path}{query}")).send().await.unwrap();
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        let (offset, ended) = (header("x-output-offset"), header("x-output-ended"));
        (offset, ended, response.text().await.unwrap())
    };
    assert_eq!(read("?wait=10").await, ("0".into(), "false".into(), "first line\n".into()));
    assert_eq!(read("?offset=6").await.2, "line\n");
    go.send(()).unwrap();
    assert_eq!(read("?offset=11&wait=10").await.2, "last line\n");
    house.until(&text_of(&view["id"]), "succeeded").await;
    assert_eq!(read("?offset=6").await, ("6".into(), "true".into(), "line\nlast line\n".into()));
}

/// An agent sees that it waits, and for whom; not what people are offered.
#[tokio::test(flavor = "multi_thread")]
async fn what_people_are_offered_is_not_for_agents() {
    let house = House::new().await;
    let (action, card) = house.asked("well").await;
    let approval = format!("/v1/approvals/{}", text_of(&card["approval"]));
    let seen = async |who: &str| {
        let mut seen = String::new();
        for path in
            ["/v1/actions".to_owned(), format!("/v1/actions/{action}"), "/v1/approvals".to_owned(), approval.clone()]
        {
            let (status, body) = house.get(who, &path).await;
            assert_eq!(status, 200, "{who} {path}: {body}");
            seen += &body.to_string();
        }
        seen
    };
    assert!(seen("approver").await.contains("\"offers\":[{"));
    let agents = seen("agent").await;
    assert!(
        agents.contains("\"classes\":[") && !agents.contains("\"offers\":[{") && !agents.contains("matcher"),
        "{agents}"
    );
    house.close().await;
}

/// Nobody waits longer than clients do, and what asks for it begins nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_has_an_end_and_a_longer_one_begins_nothing() {
    let house = House::new().await;
    let body = json!({ "capability": "fake.read", "arguments": {}, "session": "s1" });
    let (status, answer) = house.post("agent", "/v1/actions?wait=51", &body).await;
    assert_eq!((status, &answer["code"]), (400, &json!("usage")), "{answer}");
    assert_eq!(house.ground.ran(), Vec::<String>::new());
    assert_eq!(house.post("agent", "/v1/actions?wait=50", &body).await.0, 200);
    assert_eq!(house.ground.ran().len(), 1);
    house.close().await;
}
