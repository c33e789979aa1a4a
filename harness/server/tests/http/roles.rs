//! Role by route: the table is the test.

use std::collections::BTreeMap;

use glovebox_identity::{Credentials, New, Role};
use serde_json::{Value, json};

use crate::house::{House, answer, name, text_of};

/// Every route refuses every role that is not in its row, and nobody else; and
/// everybody who has no credential, where it needs one.
#[tokio::test(flavor = "multi_thread")]
async fn a_route_is_for_the_roles_of_its_row() {
    let house = House::new().await;
    let document = glovebox_server::openapi();
    let paths = document["paths"].as_object().unwrap();
    let mut seen = 0;
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap() {
            let roles: Vec<&str> = operation["x-roles"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let open = roles.is_empty();
            let path: String = path
                .split('/')
                .map(|part| if part.starts_with('{') { "unknown-thing" } else { part })
                .collect::<Vec<_>>()
                .join("/");
            let send = async |who: &str| {
                let request = house.request(&method.to_uppercase(), who, &path);
                let request = if method == "post" { request.json(&json!({})) } else { request };
                let response = request.send().await.unwrap();
                response.status().as_u16()
            };
            assert_eq!(send("").await == 401, !open, "{method} {path} without a credential");
            for role in Role::ALL {
                let refused = send(role.as_str()).await == 403;
                let may = open || roles.contains(&role.as_str());
                // An agent may use some, and is refused what is for people further in.
                assert!(!may || !refused || role == Role::Agent, "{method} {path} by {role}");
                assert!(may || refused, "{method} {path} lets {role} in");
                seen += 1;
            }
        }
    }
    assert!(seen > 200, "{seen}");
}

/// An agent decides nothing, whatever route it tries.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_approves_nothing() {
    let house = House::new().await;
    let (_, card) = house.asked("one").await;
    for who in ["agent", "observer", "worker"] {
        let (status, problem) = house.decide(who, &card, "once").await;
        assert_eq!((status, &problem["code"]), (403, &json!("role-forbidden")), "{who}");
    }
    let (status, problem) = house.decide("", &card, "once").await;
    assert_eq!((status, &problem["code"]), (401, &json!("credential-missing")));
}

/// What belongs to another tenant looks as if it were not there.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_foreign_looks_unknown() {
    let house = House::new().await;
    let (action, card) = house.asked("one").await;
    let approval = card["approval"].as_str().unwrap();
    let nothing = "01999999-9999-7999-8999-999999999999";
    for (path, code) in [("/v1/actions/", "action-unknown"), ("/v1/approvals/", "approval-unknown")] {
        let id = if path.contains("actions") { action.as_str() } else { approval };
        for who in ["stranger", "strange-operator"] {
            let (foreign, none) =
                (house.get(who, &format!("{path}{id}")).await, house.get(who, &format!("{path}{nothing}")).await);
            assert_eq!((foreign.0, &foreign.1["code"]), (404, &json!(code)), "{who} {path}");
            assert_eq!(foreign.1.to_string().replace(id, ""), none.1.to_string().replace(nothing, ""));
        }
    }
    let (_, list) = house.get("strange-operator", "/v1/approvals").await;
    assert_eq!(list["items"], json!([]));
}

/// An agent looks over nobody: what another agent asked for looks as if it were
/// not there, be it of another user of the same tenant or of the same user.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_agent_asked_for_looks_unknown() {
    let house = House::new().await;
    let (action, card) = house.asked("one").await;
    let approval = text_of(&card["approval"]);
    let paths = [
        format!("/v1/actions/{action}"),
        format!("/v1/actions/{action}/events"),
        format!("/v1/approvals/{approval}"),
        "/v1/sessions/s1/events".to_owned(),
    ];
    let mut credentials = Credentials::load(&house.ground.path("credentials.toml")).unwrap();
    for (user, agent) in [("vic", "coder"), ("uma", "other")] {
        let new = New {
            name: name(&format!("{user}-{agent}")),
            role: Role::Agent,
            tenant: name("local"),
            user: name(user),
            agent: Some(name(agent)),
            agent_version: None,
            stage: None,
            on_behalf: false,
            expires_ms: None,
        };
        let (_, token) = credentials.add_token(new, 1).unwrap();
        let get = |path: &str| house.request("GET", "", path).bearer_auth(token.reveal());
        for path in &paths {
            let status = get(path).send().await.unwrap().status();
            assert_eq!(status, 404, "{user}/{agent} {path}");
        }
        for path in ["/v1/actions", "/v1/approvals"] {
            let (status, list) = answer(get(path)).await;
            assert_eq!((status, &list["items"]), (200, &json!([])), "{user}/{agent} {path}");
        }
        let path = format!("/v1/actions/{action}/cancel");
        let cancelled = house.request("POST", "", &path).bearer_auth(token.reveal()).json(&json!({}));
        assert_eq!(answer(cancelled).await.0, 404, "{user}/{agent}");
    }
    let (_, list) = house.get("agent", "/v1/actions").await;
    assert_eq!((&list["items"][0]["id"], &list["items"][0]["state"]), (&json!(action), &json!("waiting_approval")));
}

/// Who only watches sees that something waits, and nothing of what it is.
#[tokio::test(flavor = "multi_thread")]
async fn an_observer_sees_that_it_waits_and_not_what() {
    let house = House::new().await;
    house.asked("SECRET-OBJECT").await;
    for path in ["/v1/approvals", "/v1/actions", "/v1/sessions", "/v1/tasks"] {
        let (status, list) = house.get("observer", path).await;
        assert_eq!(status, 200);
        assert!(!list.to_string().contains("SECRET-OBJECT"), "{path}: {list}");
    }
    let (_, list) = house.get("observer", "/v1/approvals").await;
    assert_eq!(list["items"][0]["state"], "pending");
    let (_, list) = house.get("approver", "/v1/approvals").await;
    assert!(list.to_string().contains("SECRET-OBJECT"));
}

/// Schemas of the document name what is defined in it, once.
#[test]
fn the_document_holds_together() {
    let document = glovebox_server::openapi();
    let text = document.to_string();
    let defined: BTreeMap<&String, &Value> = document["components"]["schemas"].as_object().unwrap().iter().collect();
    for part in text.split("#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap().to_owned();
        assert!(defined.contains_key(&name), "{name} is not defined");
    }
    assert!(!text.contains("#/$defs/"), "a schema points outside of the document");
}
