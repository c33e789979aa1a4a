//! Requests that nobody meant: bodies, queries and headers that are made up
//! from the document itself, so that every route is among them.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use crate::house::{Ground, House};
use crate::tape::Tape;

/// How many sequences of requests are made up.
const CASES: u32 = 60;

/// How long a case that fails is made smaller, in milliseconds.
const SHRINK_MS: u32 = 120_000;

/// What took longer than this hangs: nothing here waits for anything.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// One request that a case makes.
struct Asked {
    method: String,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, HeaderValue)>,
    body: Option<(Option<&'static str>, Vec<u8>)>,
}

impl Asked {
    fn made(tape: &mut Tape<'_>, document: &Value, operations: &[(String, String)]) -> Self {
        let (path, method) = tape.one(operations);
        let operation = &document["paths"][&path][&method];
        let mut query = Vec::new();
        let mut headers = Vec::new();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            let fitting = tape.fits(&parameter["schema"], document, 2);
            let text = fitting.as_str().map_or_else(|| fitting.to_string(), str::to_owned);
            match parameter["in"].as_str().unwrap() {
                // A request that waits would only wait.
                "query" if name == "wait" => query.push((name.to_owned(), "0".to_owned())),
                "query" if tape.pick(2) == 1 => query.push((name.to_owned(), text)),
                "header" if tape.pick(2) == 1 => headers.extend(header(name, &text)),
                _ => {}
            }
        }
        if tape.pick(8) == 7 {
            let name =
                tape.one(&["last-event-id", "range", "if-range", "if-none-match", "accept", "cookie", "x-nobody"]);
            headers.extend(header(name, &tape.text()));
        }
        let filled = path.split('/').map(|part| match part.strip_prefix('{') {
            Some("capability}") => tape.one(&["fake.read", "fake.write@1.0.0", "no.such"]).to_owned(),
            Some("stream}") => tape.one(&["stdout", "stderr", "stdin"]).to_owned(),
            Some("number}") => tape.one(&["1", "0", "-1", "18446744073709551616"]).to_owned(),
            Some(_) if tape.pick(16) == 15 => "%FF".to_owned(),
            Some(_) => encoded(&tape.text()),
            None => part.to_owned(),
        });
        let filled: Vec<String> = filled.collect();
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let body = (method == "post").then(|| tape.body(schema, document));
        Self { method: method.to_uppercase(), path: filled.join("/"), query, headers, body }
    }

    async fn send(&self, house: &House, who: &str) -> reqwest::Response {
        let mut last = None;
        // A connection whose last body was not read to its end is closed, while a client may be about to use it
        // again. What makes the server fall fails as often as it is sent.
        for _ in 0..4 {
            let mut request = house.request(&self.method, who, &self.path).query(&self.query);
            for (name, value) in &self.headers {
                request = request.header(name, value);
            }
            if let Some((kind, bytes)) = &self.body {
                request = request.body(bytes.clone());
                if let Some(kind) = kind {
                    request = request.header("content-type", *kind);
                }
            }
            match request.timeout(PATIENCE).send().await {
                Ok(response) => return response,
                Err(error) => last = Some(error),
            }
        }
        panic!("no answer to {}: {last:?}", self.said())
    }

    fn said(&self) -> String {
        let body = self.body.as_ref().map(|(kind, bytes)| {
            let text = String::from_utf8_lossy(bytes);
            (kind, text.chars().take(2000).collect::<String>())
        });
        format!("{} {} {:?} {:?} {body:?}", self.method, self.path, self.query, self.headers)
    }
}

fn header(name: &str, text: &str) -> Option<(String, HeaderValue)> {
    HeaderValue::from_bytes(text.as_bytes()).ok().map(|value| (name.to_owned(), value))
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

/// Whatever an answer is, it is one that the door gives: no failure of its own,
/// and every refusal a problem with a code.
async fn well_said(response: reqwest::Response, asked: &str) -> u16 {
    let status = response.status().as_u16();
    assert!(status < 500, "{status} to {asked}");
    if status < 400 {
        return status;
    }
    let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
    let text = response.text().await.unwrap();
    // It has no such part: the headers say all.
    if status == 416 {
        return status;
    }
    assert_eq!(kind.as_deref(), Some("application/problem+json"), "{status} {text} to {asked}");
    let problem: Value = serde_json::from_str(&text).unwrap();
    let code = problem["code"].as_str().unwrap();
    assert_eq!(
        (&problem["status"], &problem["type"]),
        (&json!(status), &json!(format!("urn:glovebox:problem:{code}")))
    );
    for field in ["title", "detail", "help"] {
        assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {text} to {asked}");
    }
    assert!(problem["retryable"].is_boolean(), "{text}");
    status
}

/// Things to ask about, and their ids.
async fn furnished(house: &House) -> Vec<String> {
    let (action, card) = house.asked("one").await;
    let task = json!({ "id": "t1", "session": "s2", "goal": "something" });
    assert_eq!(house.post("agent", "/v1/tasks", &task).await.0, 200);
    let turn = json!({ "expected_turn": 0, "goal_version": 1 });
    assert_eq!(house.post("agent", "/v1/tasks/t1/turns", &turn).await.0, 200);
    let body = json!({ "capability": "fake.read", "arguments": {}, "session": "s3" });
    let (_, ended) = house.post("agent", "/v1/actions", &body).await;
    let option = |id: &str| json!({ "id": id, "label": id, "effect": id });
    let words =
        json!({ "question": "which?", "options": [option("a"), option("b")], "recommended": "a", "affects": ["x"] });
    let ask = json!({ "task": "t1", "turn": 1, "topic": "which", "words": words });
    let (status, question) = house.post("agent", "/v1/questions", &ask).await;
    assert_eq!(status, 200, "{question}");
    let ids = [json!(action), card["approval"].clone(), ended["id"].clone(), question["id"].clone()];
    let known = ids.iter().filter_map(Value::as_str).map(str::to_owned);
    known.chain(["s1", "s2", "s3", "t1"].map(str::to_owned)).collect()
}

/// Waits until nothing is written any more that others began.
async fn quiet(ground: &Ground) -> u64 {
    let mut last = ground.recorded();
    loop {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let now = ground.recorded();
        if now == last {
            return now;
        }
        last = now;
    }
}

/// Every route but the pages, with whatever its document lets one make up, and
/// more: no failure, every refusal a problem, and what could not be understood
/// leaves nothing behind.
#[test]
fn whatever_is_asked_is_answered_and_what_makes_no_sense_leaves_nothing() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let house = runtime.block_on(House::new());
    let ids = runtime.block_on(furnished(&house));
    let document = glovebox_server::openapi();
    let each = document["paths"].as_object().unwrap().iter();
    let each = each.flat_map(|(path, methods)| methods.as_object().unwrap().keys().map(move |method| (path, method)));
    // The kill switch has tests of its own; the protocol of MCP has another form of errors.
    let known = each.filter(|(path, _)| *path != "/v1/stop" && *path != "/mcp");
    let operations: Vec<(String, String)> = known.map(|(path, method)| (path.clone(), method.clone())).collect();
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_time: SHRINK_MS,
        ..Config::default()
    });
    let tapes = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..160), 1..16);
    let ran = runner.run(&tapes, |tapes| {
        runtime.block_on(async {
            for tape in &tapes {
                let mut tape = Tape { left: tape.iter(), ids: &ids };
                let who = tape.one(&["operator", "agent", "approver", "observer", "front-end"]);
                let asked = Asked::made(&mut tape, &document, &operations);
                let before = house.ground.recorded();
                let status = well_said(asked.send(&house, who).await, &asked.said()).await;
                // What others began may be written meanwhile: then it is looked at alone.
                if matches!(status, 400 | 413 | 415) && house.ground.recorded() != before {
                    let before = quiet(&house.ground).await;
                    asked.send(&house, who).await;
                    assert_eq!(quiet(&house.ground).await, before, "left something: {}", asked.said());
                }
            }
        });
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
    // It still does what it is for.
    let body = json!({ "capability": "fake.read", "arguments": {}, "session": "after" });
    assert_eq!(runtime.block_on(house.post("operator", "/v1/actions", &body)).0, 200);
    runtime.block_on(house.close());
}

/// A body is what the document shows: an object, with keys that are known, also
/// further in. The types of the handlers would take lists for them.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_no_body_and_a_key_that_is_not_known_is_refused() {
    let house = House::new().await;
    let before = house.ground.recorded();
    let wrong = [
        ("/v1/sessions", json!(["s9", null])),
        ("/v1/sessions", json!({ "id": "s9", "nobody-knows": 1 })),
        ("/v1/environments/check", json!({ "schema": "glovebox/contract/v1", "limits": [null, null] })),
        ("/v1/actions", json!({ "capability": "fake.read", "nobody-knows": 1 })),
        ("/v1/actions", json!({ "capability": "fake.read", "scope": { "nobody-knows": 1 } })),
        ("/v1/policy/explain", json!(["s9", null, null, "fake.read"])),
        ("/v1/tasks", json!(null)),
        ("/v1/stop", json!(["because"])),
    ];
    for (path, body) in wrong {
        let (status, problem) = house.post("operator", path, &body).await;
        assert_eq!((status, &problem["code"]), (400, &json!("usage")), "{path} takes {body}: {problem}");
    }
    assert_eq!(house.ground.recorded(), before);
    house.close().await;
}

/// Whatever a range says: what comes is that part of the content, all of it, or
/// nothing.
#[test]
fn a_part_is_a_part_of_the_whole() {
    use std::os::fd::AsFd as _;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let content: Vec<u8> = (0..=255).cycle().take(1000).collect();
    let house = runtime.block_on(House::new());
    let written = content.clone();
    house.ground.on_run(move |bound, ports| {
        let outputs = bound.files.mounts.iter().find(|mount| mount.guest == "/outputs").unwrap();
        let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
        let file = rustix::fs::openat(outputs.dir.as_fd(), "a.bin", flags, rustix::fs::Mode::RUSR).unwrap();
        rustix::io::write(&file, &written).unwrap();
        crate::house::said(ports, "made\n", 0)
    });
    let body = json!({ "capability": "fake.read", "arguments": {}, "session": "s1" });
    let (_, view) = runtime.block_on(house.post("agent", "/v1/actions", &body));
    let uri = view["observation"]["artifacts"][0]["uri"].as_str().unwrap_or_else(|| panic!("{view}"));
    let path = format!("/v1/artifacts/{}", uri.strip_prefix("artifact/").unwrap());
    let end = prop_oneof![Just(String::new()), (0_u64..1100).prop_map(|n| n.to_string()), "[0-9+, -]{0,22}"];
    let range = prop_oneof![
        4 => (end.clone(), end).prop_map(|(first, last)| format!("bytes={first}-{last}")),
        1 => "[a-z=0-9,-]{0,30}",
    ];
    let mut runner = TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
    let ran = runner.run(&range, |range| {
        runtime.block_on(async {
            let response = house.request("GET", "agent", &path).header("range", &range).send().await.unwrap();
            let status = response.status().as_u16();
            let said = response.headers().get("content-range").map(|part| part.to_str().unwrap().to_owned());
            let bytes = response.bytes().await.unwrap();
            match status {
                200 => assert_eq!(bytes, content, "{range}"),
                206 => {
                    let said = said.unwrap();
                    let part = said.strip_prefix("bytes ").and_then(|part| part.strip_suffix("/1000")).unwrap();
                    let (first, last) = part.split_once('-').unwrap();
                    let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
                    assert_eq!(bytes, content[first..=last], "{range}");
                }
                416 => assert_eq!((said.as_deref(), bytes.len()), (Some("bytes */1000"), 0), "{range}"),
                other => panic!("{other} to {range}"),
            }
        });
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
    runtime.block_on(house.close());
}
