//! Spans, as a collector on the loopback gets them.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::json;

use crate::house::{Ground, House, answer, said};

type Taken = Arc<Mutex<Vec<Bytes>>>;

/// A collector, and what it took.
async fn collector() -> (String, Taken) {
    let taken = Taken::default();
    let take = async |State(taken): State<Taken>, body: Bytes| taken.lock().unwrap().push(body);
    let router = Router::new().route("/v1/traces", post(take)).with_state(taken.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, taken)
}

fn spans(taken: &Taken) -> Vec<Span> {
    let all = taken.lock().unwrap();
    let requests = all.iter().map(|body| ExportTraceServiceRequest::decode(body.clone()).unwrap());
    let scopes = requests.flat_map(|request| request.resource_spans).flat_map(|resource| resource.scope_spans);
    scopes.flat_map(|scope| scope.spans).collect()
}

fn attribute(span: &Span, key: &str) -> Option<String> {
    let pair = span.attributes.iter().find(|pair| pair.key == key)?;
    match pair.value.clone()?.value? {
        Any::StringValue(text) => Some(text),
        Any::IntValue(number) => Some(number.to_string()),
        other => panic!("{other:?}"),
    }
}

/// A request and its action are spans of the trace that the client began, named
/// as the conventions say, without what was asked and what came of it.
#[tokio::test(flavor = "multi_thread")]
async fn an_action_is_a_span_below_its_request() {
    let ground = Ground::new();
    let (url, taken) = collector().await;
    *ground.otlp.lock().unwrap() = Some(url);
    let house = House::open(&ground).await;
    ground.on_run(|_, ports| said(ports, "HUSH-OUTPUT\n", 3));
    let body = json!({ "capability": "fake.read", "arguments": { "a": "HUSH-ARGUMENT" }, "session": "s1" });
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let request = house.request("POST", "agent", "/v1/actions?wait=41").json(&body);
    let request = request.header("traceparent", format!("00-{trace}-b7ad6b7169203331-01"));
    let (status, view) = answer(request).await;
    assert_eq!(status, 200, "{view}");
    house.get("agent", "/health").await;
    // The event is read by the same feed that streams read.
    while !ground.lines().contains("\"route\":\"health\"") || figures_are_behind(&house).await {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    house.close().await;
    let all = spans(&taken);
    let named = |name: &str| all.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {all:?}"));
    let (asked, ran) = (named("POST /v1/actions"), named("execute_tool fake.read"));
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!((hex(&asked.trace_id), hex(&asked.parent_span_id)), (trace.into(), "b7ad6b7169203331".into()));
    assert_eq!((&ran.trace_id, &ran.parent_span_id), (&asked.trace_id, &asked.span_id));
    for (key, value) in [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "fake.read"),
        ("gen_ai.tool.type", "function"),
        ("gen_ai.conversation.id", "s1"),
        ("error.type", "tool-failed"),
        ("glovebox.outcome", "completed"),
    ] {
        assert_eq!(attribute(ran, key).as_deref(), Some(value), "{key}");
    }
    assert_eq!(attribute(ran, "gen_ai.tool.call.id").as_deref(), view["id"].as_str());
    assert_eq!(attribute(asked, "http.route").as_deref(), Some("/v1/actions"));
    assert_eq!(attribute(asked, "http.response.status_code").as_deref(), Some("200"));
    assert!(ran.start_time_unix_nano <= ran.end_time_unix_nano);
    assert!(!all.iter().any(|span| span.name.contains("/health")));
    let raw = taken.lock().unwrap().concat();
    for hushed in ["HUSH", &ground.token("agent"), "wait=41"] {
        assert!(!raw.windows(hushed.len()).any(|part| part == hushed.as_bytes()), "{hushed}");
    }
}

async fn figures_are_behind(house: &House) -> bool {
    let (_, text) = house.get("operator", "/metrics").await;
    !text.as_str().unwrap().contains("glovebox_actions_total{capability=\"fake.read\",outcome=\"completed\"} 1\n")
}

/// A collector that is not there fails and delays nothing, and is told once.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_collector_all_goes_on() {
    let ground = Ground::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    *ground.otlp.lock().unwrap() = Some(format!("http://{}", listener.local_addr().unwrap()));
    drop(listener);
    let house = House::open(&ground).await;
    for _ in 0..20 {
        assert_eq!(house.get("agent", "/v1/whoami").await.0, 200);
    }
    house.close().await;
    assert_eq!(ground.lines().matches("traces were not taken").count(), 1, "{}", ground.lines());
}
