//! A server as operators set it up.

use reqwest::Certificate;
use serde_json::{Value, json};

use crate::served::Served;
use crate::support::House;

/// An address that others reach is not served by accident, and half of a
/// certificate is none.
#[test]
fn what_others_reach_is_not_served_without_tls() {
    let house = House::new();
    house.refuses(&["serve", "--listen", "0.0.0.0:0"], 2, "config-invalid", &["0.0.0.0", "--behind-proxy"]);
    let mut command = house.command();
    let half = crate::support::Ran::of(command.env("GLOVEBOX_SERVE_TLS_CERT", "/cert.pem").arg("serve"));
    assert!(half.code == 2 && half.stderr.contains("both"), "{}", half.stderr);
    let served = Served::of(house.command().args(["serve", "--listen", "0.0.0.0:0", "--behind-proxy"]));
    assert_eq!(served.get("", "/health").0, 200);
    assert_eq!(served.end().0, Some(0));
}

/// The program speaks TLS with the files of its configuration, and writes a
/// line of JSON for each request: until it is told to end, and then it says so.
#[test]
fn a_server_speaks_tls_and_says_what_it_does() {
    let house = House::new();
    let token = house.token("ops", "operator");
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let mut command = house.command();
    command
        .env("GLOVEBOX_SERVE_TLS_CERT", house.file("cert.pem", made.cert.pem()))
        .env("GLOVEBOX_SERVE_TLS_KEY", house.file("key.pem", made.signing_key.serialize_pem()))
        .env("GLOVEBOX_SERVE_LOG", "json")
        .env("GLOVEBOX_SERVE_LOG_LEVEL", "info")
        .args(["serve", "--listen", "127.0.0.1:0"]);
    let served = Served::of(&mut command);
    assert!(served.url.starts_with("https://"), "{}", served.url);
    let trusted = Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let client = reqwest::Client::builder().tls_certs_only([trusted]).build().unwrap();
    let (status, _, text) = served.send(client.get(format!("{}/metrics", served.url)).bearer_auth(&token));
    assert!(status == 200 && text.contains("glovebox_build_info{"), "{text}");
    // The socket has none, and needs none.
    assert_eq!(house.json(&["inbox"])["url"], served.url.as_str());
    drop(client);
    let (exit, said) = served.end();
    assert_eq!(exit, Some(0), "{said}");
    assert!(!said.contains(&token), "{said}");
    let lines: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let asked = lines.iter().find(|line| line["route"] == "metrics").unwrap_or_else(|| panic!("{said}"));
    assert_eq!((&asked["credential"], &asked["status"]), (&json!("ops"), &json!(200)), "{asked}");
    for message in ["started", "stopping", "stopped"] {
        assert!(lines.iter().any(|line| line["message"] == message), "{message}: {said}");
    }
}
