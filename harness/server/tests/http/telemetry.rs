//! What operators see: figures and lines.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::house::{Ground, House, answer, said, text_of};

async fn figures(house: &House) -> String {
    let (status, text) = house.get("operator", "/metrics").await;
    assert_eq!(status, 200);
    text_of(&text)
}

/// The figures, once this line is among them.
async fn until(house: &House, line: &str) -> String {
    loop {
        let text = figures(house).await;
        if text.lines().any(|there| there == line) {
            return text;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Requests, actions and what waits are counted; the figures end as the format
/// says.
#[tokio::test(flavor = "multi_thread")]
async fn figures_tell_what_happened() {
    let house = House::new().await;
    let read = json!({ "capability": "fake.read", "arguments": {}, "session": "s1" });
    house.post("agent", "/v1/actions", &read).await;
    house.ground.on_run(|_, ports| said(ports, "bad\n", 3));
    house.post("agent", "/v1/actions", &read).await;
    let (action, card) = house.asked("one").await;
    house.get("agent", "/v1/stop").await;
    until(&house, "glovebox_actions_total{capability=\"fake.read\",outcome=\"completed\"} 2").await;
    let mut stream = house.request("GET", "observer", "/v1/sessions/s1/events").send().await.unwrap();
    stream.chunk().await.unwrap();
    let text = figures(&house).await;
    for line in [
        "glovebox_requests_total{route=\"submitAction\",status=\"200\"} 2",
        "glovebox_requests_total{route=\"submitAction\",status=\"202\"} 1",
        "glovebox_request_seconds_count{route=\"submitAction\"} 3",
        "glovebox_action_run_seconds_count{capability=\"fake.read\"} 2",
        "glovebox_refused_total{code=\"method-unknown\"} 1",
        "glovebox_actions_carried 1",
        "glovebox_approvals_pending 1",
        "glovebox_questions_pending 0",
        "glovebox_streams_open 1",
    ] {
        assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
    }
    assert!(text.contains(&format!("glovebox_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"))), "{text}");
    assert!(text.ends_with("# EOF\n"));
    drop(stream);
    house.decide("approver", &card, "once").await;
    house.until(&action, "failed").await;
    let text = until(&house, "glovebox_actions_total{capability=\"fake.write\",outcome=\"completed\"} 1").await;
    assert!(text.contains("glovebox_action_waited_seconds_count{capability=\"fake.write\"} 1\n"), "{text}");
    until(&house, "glovebox_streams_open 0").await;
    house.close().await;
}

/// Figures are for operators of the server's own tenant, and nothing that a
/// caller chooses is in them: no paths, no ids, no methods, no names of theirs.
#[tokio::test(flavor = "multi_thread")]
async fn figures_are_bounded_and_not_for_everybody() {
    let house = House::new().await;
    for who in ["agent", "observer", "approver", "worker", "stranger", "strange-operator"] {
        assert_eq!(house.get(who, "/metrics").await.0, 403, "{who}");
    }
    assert_eq!(house.get("", "/metrics").await.0, 401);
    for round in 0..50 {
        house.get("agent", &format!("/chosen-{round}")).await;
        house.get("agent", &format!("/v1/actions/chosen-{round}?chosen=1")).await;
        answer(house.request(&format!("CHOSEN{round}"), "agent", "/v1/actions")).await;
        let body =
            json!({ "capability": format!("chosen.n{round}"), "arguments": {}, "session": format!("chosen-{round}") });
        house.post("agent", "/v1/actions", &body).await;
    }
    let text = figures(&house).await;
    assert!(!text.to_lowercase().contains("chosen"), "{text}");
    assert!(text.contains("glovebox_requests_total{route=\"none\",status=\"404\"} 50\n"), "{text}");
    house.close().await;
}

/// A line a request, of fields that mean something; and no secret, no body, no
/// path and no query in any of them.
#[tokio::test(flavor = "multi_thread")]
async fn lines_tell_who_asked_and_hold_no_secret() {
    let ground = Ground::new();
    let house = House::open(&ground).await;
    let body = json!({ "capability": "fake.write", "arguments": { "text": "HUSH-ARGUMENT" }, "workspace": "work", "session": "s1" });
    house.post("agent", "/v1/actions", &body).await;
    house.get("agent", "/v1/actions/HUSH-PATH?HUSH-QUERY=1").await;
    let token = ground.token("approver");
    let form = format!("secret={token}");
    let login = house.request("POST", "", "/login").header("content-type", "application/x-www-form-urlencoded");
    let login = login.header("origin", &house.url).body(form).send().await.unwrap();
    let cookie = login.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    house.request("GET", "", "/").header("cookie", &cookie).send().await.unwrap();
    house.close().await;
    let lines = ground.lines();
    let secret = cookie.split_once('=').unwrap().1;
    for hushed in ["HUSH", &token, secret, &ground.token("agent")] {
        assert!(!lines.contains(hushed), "`{hushed}` is in\n{lines}");
    }
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let asked = lines.iter().find(|line| line["route"] == "submitAction").unwrap();
    assert_eq!(
        (&asked["message"], &asked["method"], &asked["status"], &asked["credential"], &asked["tenant"]),
        (&json!("request"), &json!("POST"), &json!(202), &json!("agent"), &json!("local")),
        "{asked}"
    );
    assert!(asked["micros"].is_u64());
    for message in ["started", "stopping", "stopped"] {
        assert!(lines.iter().any(|line| line["message"] == message), "{message}");
    }
    // What waited is taken over by the next server.
    let house = House::open(&ground).await;
    // It listens before it has looked at all of that; long enough for a loaded machine.
    for _ in 0..600 {
        if ground.lines().contains("\"message\":\"adopted\"") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(ground.lines().contains("\"message\":\"adopted\""), "{}", ground.lines());
    house.close().await;
}

/// Whatever strangers send, a line stays one line, says what it is by itself,
/// and has an end.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_write_no_lines() {
    let house = House::new().await;
    let forged = "\u{202e}\u{2028}x\u{85}{\"level\":\"ERROR\",\"message\":\"forged\"}";
    let requests = [
        format!("GET /v1/whoami HTTP/1.1\r\nhost: {forged}\r\nconnection: close\r\n\r\n"),
        format!("GET /v1/whoami HTTP/1.1\r\nhost: 127.0.0.1\r\norigin: {forged}\r\nconnection: close\r\n\r\n"),
        format!("GET /v1/whoami HTTP/1.1\r\nhost: x\r\norigin: {}\r\nconnection: close\r\n\r\n", "y".repeat(9000)),
        "GET /%0a%7b%22level%22:%22ERROR%22,%22message%22:%22forged%22%7d?%0aforged HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(),
        format!("FORGED /v1/whoami HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {forged}\r\nconnection: close\r\n\r\n"),
    ];
    let port = house.url.strip_prefix("http://").unwrap().to_owned();
    for request in &requests {
        let mut stream = tokio::net::TcpStream::connect(&port).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&answer));
    }
    let ground = house.ground.clone();
    house.close().await;
    let lines = ground.lines();
    assert!(!lines.contains(['\u{202e}', '\u{2028}', '\u{85}']), "{lines}");
    let mut refused = 0;
    for line in lines.lines() {
        assert!(line.len() < 1000, "{line}");
        let line: Value = serde_json::from_str(line).unwrap();
        assert_ne!(line["message"], "forged");
        refused += usize::from(line["message"] == "origin refused");
    }
    assert!(refused >= 3, "{lines}");
    assert!(lines.contains("\\\\u{202e}"), "it is there, to be seen: {lines}");
}

/// Who is answered when a server stops: everybody who asked before. Streams
/// end.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_answers_whom_it_heard() {
    let ground = Ground::new();
    let house = House::open(&ground).await;
    let (begun, begins) = std::sync::mpsc::channel();
    let go = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let goes = go.clone();
    ground.on_run(move |_, ports| {
        begun.send(()).unwrap();
        while !goes.load(std::sync::atomic::Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(2));
        }
        said(ports, "in time\n", 0)
    });
    let mut stream = house.request("GET", "observer", "/v1/sessions/s1/events").send().await.unwrap();
    stream.chunk().await.unwrap();
    let body = json!({ "capability": "fake.read", "arguments": {}, "session": "s1" });
    let asked = tokio::spawn(answer(house.request("POST", "agent", "/v1/actions").json(&body)));
    tokio::task::spawn_blocking(move || begins.recv().unwrap()).await.unwrap();
    let closing = tokio::spawn(house.close());
    // The stream ends though nothing else does.
    while stream.chunk().await.unwrap().is_some() {}
    assert!(!closing.is_finished() && !asked.is_finished());
    go.store(true, std::sync::atomic::Ordering::Relaxed);
    let (status, view) = asked.await.unwrap();
    assert_eq!((status, &view["observation"]["output"]["stdout"]["text"]), (200, &json!("in time\n")), "{view}");
    closing.await.unwrap();
}
