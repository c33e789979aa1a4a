//! A server that stops, and the one after it.

use std::time::Duration;

use serde_json::json;

use crate::house::{Ground, House, text_of};

/// What waits for a person goes on waiting while no server runs, and the next
/// one carries it: answered there, it runs once.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_outlives_its_server() {
    let ground = Ground::new();
    let house = House::open(&ground).await;
    let (action, card) = house.asked("one").await;
    let (_, before) = house.get("operator", &format!("/v1/actions/{action}")).await;
    house.close().await;
    assert!(!ground.path("serve.sock").exists(), "the socket is gone with its server");
    let house = House::open(&ground).await;
    let (_, after) = house.get("operator", &format!("/v1/actions/{action}")).await;
    assert_eq!(before, after, "a restart changes nothing");
    let (status, _) = house.decide("approver", &card, "once").await;
    assert_eq!(status, 200);
    house.until(&action, "succeeded").await;
    assert_eq!(ground.ran(), [action]);
    house.close().await;
}

/// What runs when a server stops is interrupted, said so, and not run again.
#[tokio::test(flavor = "multi_thread")]
async fn what_runs_is_interrupted_and_not_doubled() {
    let ground = Ground::new();
    let house = House::open(&ground).await;
    ground.on_run(|_, ports| {
        while !ports.stop.is_requested() {
            std::thread::sleep(Duration::from_millis(5));
        }
        glovebox_runtime::job::End::Interrupted
    });
    let body = json!({ "capability": "fake.read", "arguments": {}, "session": "s1" });
    let (status, view) = house.post("agent", "/v1/actions?wait=0", &body).await;
    assert_eq!(status, 202);
    house.close().await;
    let house = House::open(&ground).await;
    let action = text_of(&view["id"]);
    let (_, after) = house.get("agent", &format!("/v1/actions/{action}")).await;
    assert_eq!(
        (&after["state"], &after["observation"]["outcome"]["kind"]),
        (&json!("cancelled"), &json!("interrupted")),
        "{after}"
    );
    assert_eq!(ground.ran(), [action]);
    house.close().await;
}
