//! Streams of events over real sockets.

use std::time::Duration;

use serde_json::{Value, json};

use crate::house::{House, said, text_of};

/// A stream as a client reads it.
struct Stream {
    response: reqwest::Response,
    text: String,
}

impl Stream {
    async fn open(house: &House, who: &str, path: &str, last: Option<u64>) -> Result<Self, u16> {
        let mut request = house.request("GET", who, path);
        if let Some(last) = last {
            request = request.header("last-event-id", last.to_string());
        }
        let response = request.send().await.unwrap();
        match response.status().as_u16() {
            200 => Ok(Self { response, text: String::new() }),
            other => Err(other),
        }
    }

    /// The next event; `None`: the stream ended.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let data: String = block.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
                let id = block.lines().find_map(|line| line.strip_prefix("id: ")).map(str::to_owned);
                self.text = rest.to_owned();
                if data.is_empty() {
                    continue;
                }
                let event: Value = serde_json::from_str(&data).unwrap();
                assert_eq!(id, event["seq"].as_u64().map(|seq| seq.to_string()), "the id is the number: {event}");
                return Some(event);
            }
            let chunk =
                tokio::time::timeout(Duration::from_secs(20), self.response.chunk()).await.expect("an event in time");
            self.text.push_str(std::str::from_utf8(&chunk.unwrap()?).unwrap());
        }
    }

    /// The events up to the one of this name, with it.
    async fn until(&mut self, name: &str) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("it ended before {name}: {all:#?}"));
            let found = event["name"] == name;
            all.push(event);
            if found {
                return all;
            }
        }
    }
}

fn numbers(events: &[Value]) -> Vec<u64> {
    events.iter().filter_map(|event| event["seq"].as_u64()).collect()
}

/// Numbers are dense; whoever comes back gets what followed, without a hole
/// and without a double.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_comes_back_misses_nothing() {
    let house = House::new().await;
    house.post("agent", "/v1/sessions", &json!({ "id": "s1" })).await;
    let path = "/v1/sessions/s1/events";
    let mut stream = Stream::open(&house, "agent", path, None).await.unwrap();
    let (action, card) = house.asked("one").await;
    let mut seen = stream.until("approval-opened").await;
    drop(stream);
    house.decide("approver", &card, "once").await;
    house.until(&action, "succeeded").await;
    let last = numbers(&seen).pop().unwrap();
    let mut again = Stream::open(&house, "agent", path, Some(last)).await.unwrap();
    seen.extend(again.until("ended").await);
    let all = numbers(&seen);
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>(), "{seen:#?}");
    // What came of it stands before its end, so that it is not lost with a broken stream.
    let kinds: Vec<&str> = seen.iter().rev().take(2).filter_map(|event| event["kind"].as_str()).collect();
    assert_eq!(kinds, ["state", "usage"]);
}

/// A reader whose server stops comes back to the next one with the number of the
/// last event that it has, and gets what followed: what was recorded by the old
/// one, and what the new one does.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_goes_on_with_the_next_server() {
    let ground = crate::house::Ground::new();
    let house = House::open(&ground).await;
    house.post("agent", "/v1/sessions", &json!({ "id": "s1" })).await;
    let path = "/v1/sessions/s1/events";
    let mut stream = Stream::open(&house, "agent", path, None).await.unwrap();
    let (action, card) = house.asked("one").await;
    let mut seen = stream.until("requested").await;
    house.close().await;
    // The rest of what was underway comes, or not: then the stream ends.
    let last = numbers(&seen).pop().unwrap();
    drop(stream);
    let house = House::open(&ground).await;
    let mut stream = Stream::open(&house, "agent", path, Some(last)).await.unwrap();
    house.decide("approver", &card, "once").await;
    house.until(&action, "succeeded").await;
    seen.extend(stream.until("ended").await);
    let all = numbers(&seen);
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>(), "{seen:#?}");
    assert!(seen.iter().any(|event| event["name"] == "approval-opened"));
    assert_eq!(ground.ran(), [action]);
    house.close().await;
}

/// Whose credential is taken back hears nothing of what happens after that,
/// though the stream was open.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_put_out_hears_nothing_more() {
    let house = House::new().await;
    house.post("agent", "/v1/sessions", &json!({ "id": "s1" })).await;
    let path = "/v1/sessions/s1/events";
    let mut stream = Stream::open(&house, "observer", path, None).await.unwrap();
    let mut stays = Stream::open(&house, "approver", path, None).await.unwrap();
    stream.until("session-opened").await;
    stays.until("session-opened").await;
    let mut credentials = glovebox_identity::Credentials::load(&house.ground.path("credentials.toml")).unwrap();
    credentials.remove(&crate::house::name("observer")).unwrap();
    house.asked("one").await;
    stays.until("approval-opened").await;
    assert_eq!(stream.next().await, None);
}

/// A stream of a session that was closed ends; who comes back then is told
/// that nothing will come.
#[tokio::test(flavor = "multi_thread")]
async fn when_all_is_over_it_says_so() {
    let house = House::new().await;
    house.post("agent", "/v1/sessions", &json!({ "id": "s1" })).await;
    let path = "/v1/sessions/s1/events";
    let mut stream = Stream::open(&house, "agent", path, None).await.unwrap();
    house.post("agent", "/v1/sessions/s1/close", &json!({})).await;
    let seen = stream.until("session-closed").await;
    assert_eq!(stream.next().await, None, "the stream ends");
    let last = numbers(&seen).pop().unwrap();
    assert_eq!(Stream::open(&house, "agent", path, Some(last)).await.err(), Some(204));
}

/// A reader that knows more than there is, because the store came back from a
/// copy, is told so, with what there is.
#[tokio::test(flavor = "multi_thread")]
async fn a_gap_is_said_and_never_silent() {
    let house = House::new().await;
    house.asked("one").await;
    let mut stream = Stream::open(&house, "agent", "/v1/sessions/s1/events", Some(5000)).await.unwrap();
    let gap = stream.next().await.unwrap();
    assert_eq!((&gap["kind"], &gap["data"]["after"]), (&json!("gap"), &json!(5000)));
    assert_eq!(gap["data"]["snapshot"]["actions"][0]["state"], "waiting_approval");
    house.asked("two").await;
    let next = stream.next().await.unwrap();
    assert_eq!(next["seq"].as_u64().unwrap(), gap["seq"].as_u64().unwrap() + 1);
}

/// What people are offered is on their stream, and on no agent's.
#[tokio::test(flavor = "multi_thread")]
async fn what_people_are_offered_is_on_no_agents_stream() {
    let house = House::new().await;
    let (_, card) = house.asked("well").await;
    assert_eq!(house.decide("approver", &card, "session").await.0, 200);
    for (who, sees) in [("approver", true), ("agent", false)] {
        let mut stream = Stream::open(&house, who, "/v1/sessions/s1/events", None).await.unwrap();
        let seen = stream.until("grant-made").await;
        let of = |name: &str| seen.iter().find(|event| event["name"] == name).unwrap()["data"].clone();
        let (opened, granted) = (of("approval-opened"), of("grant-made"));
        assert_eq!(opened["approval"]["id"], card["approval"], "{opened}");
        let shown = (opened["approval"]["offers"].is_array(), granted["grant"]["matcher"].is_object());
        assert_eq!(shown, (sees, sees), "{who}: {opened} {granted}");
    }
    house.close().await;
}

/// Output and progress come as they happen, merged; they have no number, so
/// that nobody takes them for a part of the log.
#[tokio::test(flavor = "multi_thread")]
async fn output_comes_while_it_is_written() {
    let house = House::new().await;
    house.post("agent", "/v1/sessions", &json!({ "id": "s1" })).await;
    let mut stream = Stream::open(&house, "agent", "/v1/sessions/s1/events", None).await.unwrap();
    house.ground.on_run(|_, ports| {
        for _ in 0..200 {
            said(ports, "0123456789", 0);
            std::thread::sleep(Duration::from_millis(2));
        }
        said(ports, "end", 0)
    });
    house
        .post("agent", "/v1/actions?wait=0", &json!({ "capability": "fake.read", "arguments": {}, "session": "s1" }))
        .await;
    let seen = stream.until("ended").await;
    let texts: Vec<&Value> = seen.iter().filter(|event| event["kind"] == "text").collect();
    assert!(!texts.is_empty() && texts.len() < 40, "merged: {} events", texts.len());
    assert!(texts.iter().all(|event| event["seq"].is_null()));
    let written: String = texts.iter().filter_map(|event| event["data"]["text"].as_str()).collect();
    assert!(written.starts_with("0123456789") && written.ends_with("end"), "{written}");
}

/// An agent's stream has what is its own; another tenant's session is unknown.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_shows_what_its_reader_may_see() {
    let house = House::new().await;
    house.asked("one").await;
    assert_eq!(Stream::open(&house, "stranger", "/v1/sessions/s1/events", None).await.err(), Some(404));
    let mut stream = Stream::open(&house, "observer", "/v1/sessions/s1/events", None).await.unwrap();
    let seen = stream.until("approval-opened").await;
    assert!(seen.iter().all(|event| event["data"].is_null()), "an observer sees that, not what: {seen:#?}");
}

/// Five hundred read, ten never take a byte: everybody else gets every event.
#[tokio::test(flavor = "multi_thread")]
async fn stuck_readers_hold_nobody_up() {
    let house = House::new().await;
    house.post("agent", "/v1/sessions", &json!({ "id": "s1" })).await;
    let path = "/v1/sessions/s1/events";
    let mut stuck = Vec::new();
    for _ in 0..10 {
        stuck.push(Stream::open(&house, "agent", path, None).await.unwrap());
    }
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let mut stream = Stream::open(&house, "agent", path, None).await.unwrap();
        readers.spawn(async move { numbers(&stream.until("session-closed").await) });
    }
    for round in 0..20 {
        let body = json!({ "capability": "fake.read", "arguments": { "round": round }, "session": "s1" });
        let (status, view) = house.post("agent", "/v1/actions", &body).await;
        assert_eq!(status, 200, "{}", text_of(&view["state"]));
    }
    house.post("agent", "/v1/sessions/s1/close", &json!({})).await;
    let mut heads = Vec::new();
    while let Some(seen) = readers.join_next().await {
        let seen = seen.unwrap();
        assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
        heads.push(seen.len());
    }
    assert!(heads.iter().all(|head| *head == heads[0]) && heads.len() == 500, "{heads:?}");
    drop(stuck);
}
