//! A front end that says for which of its users it answers.

use glovebox_identity::{Credentials, New, Role};
use serde_json::{Value, json};

use crate::house::{House, answer, name, text_of};

const HEADER: &str = "glovebox-on-behalf-of";

async fn decided(house: &House, who: &str, behalf: &str, card: &Value) -> (u16, Value) {
    let path = format!("/v1/approvals/{}/answer", text_of(&card["approval"]));
    let body = json!({ "plan": card["plan"], "offer": "once" });
    answer(house.request("POST", who, &path).header(HEADER, behalf).json(&body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_the_users_and_names_the_front_end() {
    let house = House::new().await;
    let (action, card) = house.asked("well").await;
    let (status, settled) = decided(&house, "front-end", "mira", &card).await;
    assert_eq!(status, 200, "{settled}");
    let by = &settled["approval"]["answer"]["by"];
    assert_eq!(*by, json!({ "name": "mira", "assurance": "same-user", "channel": "http.front-end" }));
    house.until(&action, "succeeded").await;
    house.close().await;
}

/// One that forgot to say for whom must not become an approver of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_front_end_by_itself_looks_and_answers_nothing() {
    let house = House::new().await;
    let (action, card) = house.asked("well").await;
    let path = format!("/v1/approvals/{}", text_of(&card["approval"]));
    let body = json!({ "plan": card["plan"], "offer": "once" });
    let (status, refused) = answer(house.request("POST", "front-end", &format!("{path}/answer")).json(&body)).await;
    assert_eq!((status, &refused["code"]), (403, &json!("not-eligible")), "{refused}");
    let (status, still) = house.get("front-end", &path).await;
    assert_eq!((status, &still["state"]), (200, &json!("pending")), "{still}");
    assert_eq!(decided(&house, "front-end", "mira", &card).await.0, 200);
    house.until(&action, "succeeded").await;
    house.close().await;
}

/// Whatever a front end says: the agent and those above it answer nothing.
#[tokio::test(flavor = "multi_thread")]
async fn policy_decides_whether_that_user_may_answer() {
    let house = House::new().await;
    let (_, card) = house.asked("well").await;
    let (status, refused) = decided(&house, "front-end", "coder", &card).await;
    assert_eq!((status, &refused["code"]), (403, &json!("not-eligible")), "the agent that asks: {refused}");
    let (_, still) = house.get("approver", &format!("/v1/approvals/{}", text_of(&card["approval"]))).await;
    assert_eq!(still["state"], "pending");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_speaks_for_others_and_a_name_is_one_name() {
    let house = House::new().await;
    let (_, card) = house.asked("well").await;
    for who in ["approver", "operator"] {
        let (status, refused) = decided(&house, who, "mira", &card).await;
        assert_eq!((status, &refused["code"]), (403, &json!("not-eligible")), "{who}");
    }
    for role in ["agent", "observer"] {
        let (status, _) = answer(house.request("GET", role, "/v1/approvals").header(HEADER, "mira")).await;
        assert_eq!(status, 403, "{role}");
    }
    for wrong in ["", "two names", "mira@elsewhere", "../mira"] {
        let (status, refused) = decided(&house, "front-end", wrong, &card).await;
        assert_eq!((status, &refused["code"]), (400, &json!("usage")), "{wrong}");
    }
    let path = format!("/v1/approvals/{}/answer", text_of(&card["approval"]));
    let twice = house.request("POST", "front-end", &path).header(HEADER, "mira").header(HEADER, "noor");
    assert_eq!(answer(twice.json(&json!({ "plan": card["plan"], "offer": "once" }))).await.0, 400);
    house.close().await;
}

/// The user is one of the credential's tenant, whatever they are called.
#[tokio::test(flavor = "multi_thread")]
async fn a_front_end_stays_in_its_tenant() {
    let house = House::new().await;
    let (_, card) = house.asked("well").await;
    let mut credentials = Credentials::load(&house.ground.path("credentials.toml")).unwrap();
    let new = New {
        name: name("foreign-front-end"),
        role: Role::Approver,
        tenant: name("other"),
        user: name("portal"),
        agent: None,
        agent_version: None,
        stage: None,
        on_behalf: true,
        expires_ms: None,
    };
    let (_, token) = credentials.add_token(new, 1).unwrap();
    let path = format!("/v1/approvals/{}/answer", text_of(&card["approval"]));
    let request = house.request("POST", "", &path).bearer_auth(token.reveal()).header(HEADER, "uma");
    let (status, unknown) = answer(request.json(&json!({ "plan": card["plan"], "offer": "once" }))).await;
    assert_eq!((status, &unknown["code"]), (404, &json!("approval-unknown")), "{unknown}");
    house.close().await;
}
