//! MCP over HTTP, behind the guard of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::house::{House, said, text_of};

/// A message of the newest revision, as whoever has this credential.
async fn send(house: &House, who: &str, path: &str, method: &str, params: Value) -> (u16, Value) {
    send_as(house, who, path, method, params, json!({})).await
}

/// The same from a client that can do this.
async fn send_as(house: &House, who: &str, path: &str, method: &str, mut params: Value, can: Value) -> (u16, Value) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": can,
    });
    let mut request = house
        .request("POST", who, path)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if let Some(name) = params["name"].as_str().or(params["taskId"].as_str()).or(params["uri"].as_str()) {
        request = request.header("mcp-name", name);
    }
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let response = request.json(&body).send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let message = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
    (status, serde_json::from_str(message).unwrap_or_else(|_| panic!("{status} {text}")))
}

async fn call(house: &House, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    let (status, answer) = send(house, "agent", "/mcp?workspace=work", "tools/call", params).await;
    assert_eq!(status, 200, "{answer}");
    answer["result"].clone()
}

/// The tools of the registry are there for an agent; a person's credential, and
/// none, are refused.
#[tokio::test(flavor = "multi_thread")]
async fn agents_list_and_call_tools() {
    let house = House::new().await;
    let (status, list) = send(&house, "agent", "/mcp", "tools/list", json!({})).await;
    assert_eq!(status, 200, "{list}");
    let names: Vec<&str> =
        list["result"]["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"fake.read") && names.contains(&"glovebox.result"), "{names:?}");
    let done = call(&house, "fake.read", json!({})).await;
    assert!(!done["isError"].as_bool().unwrap_or_default(), "{done}");
    assert_eq!(send(&house, "operator", "/mcp", "tools/list", json!({})).await.0, 403);
    assert_eq!(send(&house, "", "/mcp", "tools/list", json!({})).await.0, 401);
}

/// The older handshake is none of this revision, and what is not there is named
/// where clients look for it.
#[tokio::test(flavor = "multi_thread")]
async fn what_this_revision_does_not_have_is_said_as_it_says_it() {
    let house = House::new().await;
    let (status, answer) = send(&house, "agent", "/mcp", "initialize", json!({})).await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!(-32601)), "{answer}");
    let (_, answer) = send(&house, "agent", "/mcp", "resources/read", json!({ "uri": "test://none" })).await;
    assert_eq!(answer["error"]["data"]["uri"], "test://none", "{answer}");
    house.close().await;
}

/// How often a run looks whether it may end: for ten seconds, at least.
const PATIENCE: u32 = 5_000;

/// Whoever comes back for tasks is given one for a run that takes long, and the
/// run goes on when their request is over.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_takes_long_becomes_a_task() {
    let house = House::new().await;
    let go = Arc::new(AtomicBool::new(false));
    let gone = go.clone();
    house.ground.on_run(move |_, ports| {
        // Where nobody comes back for it, it ends by itself.
        for _ in 0..PATIENCE {
            if gone.load(Ordering::SeqCst) || ports.stop.is_requested() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        said(ports, "well", u32::from(ports.stop.is_requested()))
    });
    let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let params = json!({ "name": "fake.read", "arguments": {} });
    let (_, answer) = send_as(&house, "agent", "/mcp", "tools/call", params, tasks.clone()).await;
    assert_eq!(
        (&answer["result"]["resultType"], &answer["result"]["status"]),
        (&json!("task"), &json!("working")),
        "{answer}"
    );
    let task = text_of(&answer["result"]["taskId"]);
    go.store(true, Ordering::SeqCst);
    let result = loop {
        let get = json!({ "taskId": task });
        let (_, seen) = send_as(&house, "agent", "/mcp", "tasks/get", get, tasks.clone()).await;
        if seen["result"]["status"] != "working" {
            break seen["result"].clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    assert_eq!((&result["status"], &result["result"]["isError"]), (&json!("completed"), &json!(false)), "{result}");
    assert_eq!(house.ground.ran().len(), 1);
    house.close().await;
}

/// What needs a person is said so, with the page where they decide; whoever
/// comes back for it runs it once.
#[tokio::test(flavor = "multi_thread")]
async fn what_needs_a_person_is_answered_in_the_inbox() {
    let house = House::new().await;
    let asked = call(&house, "fake.write", json!({ "text": "one" })).await;
    assert_eq!(asked["isError"], true, "{asked}");
    let (_, list) = house.get("approver", "/v1/approvals").await;
    let card = &list["items"][0];
    let text = asked.to_string();
    assert!(text.contains(&format!("/inbox/approvals/{}", text_of(&card["approval"]))), "{text}");
    assert!(house.ground.ran().is_empty());
    let (status, settled) = house.decide("approver", card, "once").await;
    assert_eq!(status, 200, "{settled}");
    let done = call(&house, "glovebox.result", json!({ "action_id": card["action"] })).await;
    assert!(!done["isError"].as_bool().unwrap_or_default(), "{done}");
    assert_eq!(house.ground.ran(), [text_of(&card["action"])]);
}

/// A page of a stranger reaches this door no more than the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_page_is_refused_here_as_well() {
    let house = House::new().await;
    let request = house.request("POST", "agent", "/mcp").header("origin", "http://evil.example").json(&json!({}));
    let (status, problem) = crate::house::answer(request).await;
    assert_eq!((status, &problem["code"]), (403, &json!("origin-refused")));
}

/// What the transport refuses before it is a message is said as every error
/// here is: a problem with a code.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_transport_refuses_is_a_problem() {
    let house = House::new().await;
    let (both, ping) = ("application/json, text/event-stream", json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }));
    let tries = [
        ("application/json", "2025-11-25", &ping, "Not Acceptable"),
        (both, "1999-01-01", &ping, "1999-01-01"),
        (both, "2025-11-25", &json!({ "jsonrpc": "1.0" }), "deserialize"),
    ];
    for (accept, revision, body, why) in tries {
        let request = house.request("POST", "agent", "/mcp").header("accept", accept);
        let response = request.header("mcp-protocol-version", revision).json(body).send().await.unwrap();
        let (status, kind) = (response.status().as_u16(), response.headers().get("content-type").cloned());
        let text = response.text().await.unwrap();
        assert_eq!(kind.unwrap_or_else(|| panic!("{status} {text}")), "application/problem+json", "{text}");
        let problem: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, &problem["code"]), (400, &json!("usage")), "{text}");
        assert!(text_of(&problem["detail"]).contains(why), "{text}");
    }
}
