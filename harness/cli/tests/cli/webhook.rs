//! `glovebox webhook`: who is told of what waits, as an operator sets it up.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::served::{Served, write};
use crate::support::House;

/// A secret as receivers and senders share it.
const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// A receiver that takes everything, and hands it on.
fn receiver(status: u16) -> (String, mpsc::Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/bell", listener.local_addr().unwrap());
    let (send, received) = mpsc::channel();
    // It goes with the process of these tests.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = Vec::new();
            let (head, body) = loop {
                let mut chunk = [0; 4096];
                let read = stream.read(&mut chunk).unwrap();
                bytes.extend_from_slice(&chunk[..read]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head
                    .lines()
                    .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
                if read == 0 || length.is_none_or(|length: usize| body.len() >= length) {
                    break (head.to_owned(), body.to_owned());
                }
            };
            write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
            let _ = send.send((head, serde_json::from_str(&body).unwrap_or_default()));
        }
    });
    (url, received)
}

fn secret(house: &House) -> String {
    let path = house.file("portal.secret", SECRET);
    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

#[test]
fn a_webhook_is_added_listed_tried_and_removed() {
    let house = House::new();
    let (url, received) = receiver(204);
    let file = secret(&house);
    let add = [
        "webhook",
        "add",
        "bell",
        "--url",
        &url,
        "--allow-private",
        "--secret-file",
        &file,
        "--kind",
        "approval.opened",
    ];
    let added = house.run(&add).ok().stdout;
    assert!(added.contains(&format!("`bell`: {url} of local: approval.opened")), "{added}");
    assert!(added.contains("private addresses allowed") && !added.contains("whsec_"), "{added}");

    let listed = house.json(&["webhook", "list"])["webhooks"].clone();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["webhook"]["name"]), (1, &json!("bell")), "{listed}");
    assert!(!listed.to_string().contains("whsec_"), "a secret is shown: {listed}");
    assert!(house.run(&["webhook", "list"]).ok().stdout.contains("nothing taken yet"));
    house.refuses(&add, 2, "webhook-conflict", &["bell"]);

    house.run(&["webhook", "test", "bell"]).ok();
    let (head, body) = received.recv().unwrap();
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with("post /bell") && head.contains("webhook-signature: v1,"), "{head}");
    assert_eq!(body["specversion"], "1.0", "{body}");

    assert!(house.run(&["webhook", "remove", "bell"]).ok().stdout.contains("`bell` is told nothing any more"));
    assert_eq!(house.json(&["webhook", "list"])["webhooks"], json!([]));
    house.refuses(&["webhook", "test", "bell"], 2, "webhook-unknown", &["bell"]);
    house.refuses(&["webhook", "remove", "bell"], 2, "webhook-unknown", &["bell"]);
}

/// An address that leads to this host or a private network, one without TLS,
/// and a secret that others can read are refused before anything is kept.
#[test]
fn what_would_lead_where_it_must_not_is_never_kept() {
    let house = House::new();
    let file = secret(&house);
    for url in [
        "http://portal.example/",
        "https://127.0.0.1/",
        "https://10.0.0.1/",
        "https://[::1]/",
        "https://169.254.169.254/latest",
        "https://user:word@portal.example/",
        "file:///etc/passwd",
        "portal",
        "",
    ] {
        let args = ["webhook", "add", "portal", "--url", url, "--secret-file", &file];
        house.refuses(&args, 2, "webhook-target", &[]);
    }
    fs_err::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let args = |file| ["webhook", "add", "portal", "--url", "https://portal.example/", "--secret-file", file];
    house.refuses(&args(&file), 2, "webhook-secret", &[]);
    let none = house.file("none.secret", "not a secret");
    fs_err::set_permissions(&none, std::fs::Permissions::from_mode(0o600)).unwrap();
    house.refuses(&args(&none), 2, "webhook-secret", &[]);
    assert_eq!(house.json(&["webhook", "list"])["webhooks"], json!([]));
}

/// A receiver that does not take it is named, with what it said.
#[test]
fn a_receiver_that_refuses_is_said_so() {
    let house = House::new();
    let (url, _received) = receiver(500);
    let file = secret(&house);
    house.run(&["webhook", "add", "bell", "--url", &url, "--allow-private", "--secret-file", &file]).ok();
    house.refuses(&["webhook", "test", "bell"], 2, "webhook-failed", &["500"]);
}

/// A server tells of what waits; how it fares is seen at the command line.
#[test]
fn a_server_tells_of_what_waits_and_the_list_says_how_it_fares() {
    let house = House::that_may_write();
    let (url, received) = receiver(200);
    let file = secret(&house);
    house.run(&["webhook", "add", "bell", "--url", &url, "--allow-private", "--secret-file", &file, "--outline"]).ok();
    let docs = format!("docs={}:write", house.workspace().display());
    let agent = house.token("ci", "agent");
    let served = Served::start(&house, &["--workspace", &docs]);
    let (status, waits) = served.post(&agent, "/v1/actions", &write("n.txt", "THE-WORDS"));
    assert_eq!(status, 202, "{waits}");
    let (_, opened) = received.recv().unwrap();
    assert!(opened["type"].as_str().unwrap().ends_with("approval.opened.v1"), "{opened}");
    assert!(!opened.to_string().contains("THE-WORDS"), "an outline shows no object: {opened}");
    house.run(&["approvals", "decline", house.pending()[0]["approval"].as_str().unwrap()]).ok();
    let (_, resolved) = received.recv().unwrap();
    assert!(resolved["type"].as_str().unwrap().ends_with("approval.resolved.v1"), "{resolved}");
    served.end();
    let listed = house.json(&["webhook", "list"])["webhooks"].clone();
    assert!(listed[0]["status"]["sent_ms"].is_u64(), "{listed}");
    assert!(house.run(&["webhook", "list"]).ok().stdout.contains("last taken"));
    house.is_tidy();
}
