//! The MCP door as the conformance suite wants to find it: with the tools that
//! its scenarios call, and without a credential, which it can't send.
//!
//! The server is the one that is shipped, with all that stands before `/mcp`. In
//! front of it is a relay that adds an agent's token and translates the suite's
//! names of tools, which have an underscore, into names of capabilities, which
//! have none. It prints its address, and ends with its standard input.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for tests")]

#[path = "../../tests/http/house.rs"]
#[expect(dead_code, reason = "the house of the tests over HTTP, of which this needs a part")]
mod house;

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};
use glovebox_runtime::job::{End, Frame};
use glovebox_runtime::{Bound, Ports};
use serde_json::Value;

use house::{Ground, House, said};

/// The tools of the suite that Glovebox can have.
const TOOLS: [&str; 7] = [
    "test-simple-text",
    "test-error-handling",
    "test-tool-with-progress",
    "greet",
    "slow-compute",
    "failing-job",
    "protocol-error-job",
];

/// How much longer a second of the suite lasts: what is over in less than two is
/// answered at once here.
const LONGER: u64 = 3;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(serve());
}

async fn serve() {
    let ground = Ground::new();
    let tools = TOOLS.map(|name| {
        format!(
            "name = \"{name}\"\nentry = {{ kind = \"command\", argv = [\"prog\"], result = \"text\" }}\n\
             input = {{ type = \"object\" }}\n[contract]\nschema = \"glovebox/contract/v1\"\n\
             limits = {{ wall = \"60s\", memory = \"64MiB\", output = \"1MiB\" }}\n"
        )
    });
    ground.more.lock().unwrap().extend(tools);
    ground.on_run(run);
    let house = House::open(&ground).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    println!("http://{address}/mcp");
    let relay = Arc::new(Relay { house, address });
    let router = Router::new().fallback(relayed).with_state(relay);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    // Whoever started this has gone.
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await.unwrap().unwrap();
}

/// What the suite's tools do.
fn run(bound: &Bound, ports: &mut Ports) -> End {
    match bound.plan.capability.name.as_str() {
        "test-simple-text" => said(ports, "This is a simple text response for testing.", 0),
        "test-tool-with-progress" => {
            for done in [0, 50, 100] {
                ports.frames.frame(Frame::Progress { done, total: Some(100), message: "" });
                // Longer than it takes until the next may be told.
                std::thread::sleep(Duration::from_millis(300));
            }
            said(ports, "done", 0)
        }
        "greet" => {
            let greeting = format!("Hello, {}!", argument(bound, "name").as_str().unwrap_or_default());
            said(ports, &greeting, 0)
        }
        "slow-compute" => {
            lasts(ports, argument(bound, "seconds").as_u64().unwrap_or(1));
            said(ports, "computed", 0)
        }
        "failing-job" => {
            lasts(ports, 1);
            said(ports, "it failed", 1)
        }
        "protocol-error-job" => {
            lasts(ports, 1);
            End::HostFailed("the suite wants it so".to_owned())
        }
        _ => said(ports, "This tool intentionally returns an error for testing", 1),
    }
}

/// What stands in front.
struct Relay {
    house: House,
    /// Where the suite finds it.
    address: String,
}

fn argument(bound: &Bound, name: &str) -> Value {
    serde_json::from_str::<Value>(&bound.plan.arguments).unwrap()[name].take()
}

/// So many of the suite's seconds, or until it is asked to stop.
fn lasts(ports: &Ports, seconds: u64) {
    let until = std::time::Instant::now() + Duration::from_secs(seconds * LONGER);
    while std::time::Instant::now() < until && !ports.stop.is_requested() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

async fn relayed(State(relay): State<Arc<Relay>>, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    let house = &relay.house;
    let behind = house.url.trim_start_matches("http://");
    let mut message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut request = house.request(method.as_str(), "agent", "/mcp");
    let here = |text: &str| Some(text.replace('_', "-")).filter(|name| TOOLS.contains(&name.as_str()));
    for (name, value) in &headers {
        let text = value.to_str().unwrap_or_default();
        let own = match name.as_str() {
            "mcp-name" => here(text),
            // Foreign hosts and origins stay what they are.
            "host" | "origin" => Some(text.replace(&relay.address, behind)),
            _ => None,
        };
        let value = own.map_or_else(|| value.clone(), |own| HeaderValue::from_str(&own).unwrap());
        // The length is another by now.
        if name != header::CONTENT_LENGTH && name != header::CONNECTION {
            request = request.header(name, value);
        }
    }
    if let Some(name) = message["params"]["name"].as_str().and_then(here) {
        message["params"]["name"] = name.into();
    }
    let listing = message["method"] == "tools/list";
    let body = if message.is_object() { serde_json::to_vec(&message).unwrap() } else { body.to_vec() };
    let answer = request.body(body).send().await.unwrap();
    let (status, headers) = (answer.status(), answer.headers().clone());
    let body = if listing {
        let text = answer.text().await.unwrap();
        Body::from(TOOLS.iter().fold(text, |text, name| text.replace(name, &name.replace('-', "_"))))
    } else {
        Body::from_stream(answer.bytes_stream())
    };
    let mut response = (status, body).into_response();
    for (name, value) in &headers {
        if name != header::CONTENT_LENGTH && name != header::TRANSFER_ENCODING {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}
