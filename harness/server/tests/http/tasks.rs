//! Tasks as their readers see them.

use serde_json::json;

use crate::house::House;

/// Every answer has the words, not where they are kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_answered_with_its_words() {
    let house = House::new().await;
    let (status, opened) =
        house.post("agent", "/v1/tasks", &json!({ "id": "t1", "session": "s1", "goal": "find out" })).await;
    assert_eq!((status, &opened["goal"]["text"]), (200, &json!("find out")), "{opened}");
    let steer = json!({ "kind": "steer", "text": "look in the attic" });
    let (status, steered) = house.post("operator", "/v1/tasks/t1/say", &steer).await;
    assert_eq!((status, &steered["steers"][0]["text"]), (200, &json!("look in the attic")), "{steered}");
    let (_, listed) = house.get("operator", "/v1/tasks").await;
    assert_eq!(listed["items"][0], steered, "{listed}");
    // Who sees that something is done does not see what.
    let (status, outline) = house.get("observer", "/v1/tasks").await;
    assert_eq!((status, &outline["items"][0]["task"]["id"]), (200, &json!("t1")), "{outline}");
    for word in ["find out", "attic"] {
        assert!(!outline.to_string().contains(word), "{outline}");
    }
    let (status, ended) = house.post("agent", "/v1/tasks/t1/end", &json!({ "state": "done" })).await;
    assert_eq!((status, &ended["task"]["state"], &ended["goal"]["text"]), (200, &json!("done"), &json!("find out")));
}
