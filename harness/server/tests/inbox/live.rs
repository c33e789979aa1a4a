//! The stream that says when something changed.

use http_body_util::{BodyExt as _, Empty};
use hyper::StatusCode;
use hyper_util::rt::TokioIo;

use crate::browser::Browser;
use crate::house::{House, approval, plan};

/// The stream of an open page.
struct Told(hyper::body::Incoming);

impl Told {
    async fn open(house: &House, browser: &Browser) -> Self {
        let stream = tokio::net::TcpStream::connect(house.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = hyper::Request::get("/inbox/events")
            .header("host", house.address.to_string())
            .header("cookie", browser.cookie.clone().unwrap())
            .body(Empty::<bytes::Bytes>::new())
            .unwrap();
        Self(sender.send_request(request).await.unwrap().into_body())
    }

    /// Whether something changed; `false`: the stream ended.
    async fn next(&mut self) -> bool {
        loop {
            let Some(frame) = self.0.frame().await else { return false };
            let text = String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap();
            if text.contains("event: changed") {
                // Nothing of what changed is in it.
                assert!(!text.contains("notes"), "{text}");
                return true;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn open_pages_are_told_of_what_opens_and_of_what_is_decided_elsewhere() {
    let house = House::open().await;
    let browser = Browser::logged_in(&house, &house.code).await;
    let mut told = Told::open(&house, &browser).await;
    assert!(told.next().await);
    let action = house.ask("notes.write", "{}", None).await;
    assert!(told.next().await);
    browser.answer(&approval(&action), &[("seen", &plan(&action)), ("offer", "decline")]).await;
    assert!(told.next().await);
}

/// Whoever logged out, and whose login ended, is told of nothing that comes
/// after it, though the page is still open.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_logged_out_is_told_nothing_more() {
    let house = House::open().await;
    let browser = Browser::logged_in(&house, &house.code).await;
    let other = Browser::logged_in(&house, &house.token("v", glovebox_identity::Role::Operator)).await;
    let (mut told, mut stays) = (Told::open(&house, &browser).await, Told::open(&house, &other).await);
    assert!(told.next().await && stays.next().await);
    let token = browser.get("/").await.field("form_token");
    browser.post("/logout", &[("form_token", &token)]).await;
    house.ask("notes.write", "{}", None).await;
    assert!(stays.next().await);
    assert!(!told.next().await, "a login that is over is told that something changed");
    house.forward(std::time::Duration::from_secs(12 * 3600 + 1));
    house.ask("notes.write", r#"{"n":2}"#, None).await;
    assert!(!stays.next().await, "a login whose time is over is told that something changed");
}

/// An address that names nothing is answered by a page, for somebody who
/// followed it; and by nothing that a browser would run.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_names_nothing_is_answered_by_a_page() {
    let house = House::open().await;
    let browser = Browser::logged_in(&house, &house.code).await;
    let token = browser.get("/").await.field("form_token");
    let bad = [
        "/inbox/approvals/%20",
        "/inbox/approvals/no-such",
        "/inbox/questions/%3Cb%3E",
        "/sessions/..%2F",
        "/sessions/%FF",
        "/sessions/s1?after=x",
        "/sessions?after=%3C",
        "/view/%FF/1",
        "/view/a/b",
    ];
    for path in bad {
        let seen = browser.get(path).await;
        assert!(seen.status.is_client_error(), "{path}: {}", seen.status);
        assert!(seen.header("content-type").starts_with("text/html"), "{path}: {}", seen.text);
        assert!(seen.text.contains("<h1>That did not work</h1>") && seen.text.contains("code <code>"), "{}", seen.text);
        assert!(seen.header("content-security-policy").contains("default-src 'none'"), "{path}");
    }
    for path in ["/inbox/approvals/%20", "/inbox/questions/%20", "/sessions/%20/steer", "/sessions/%20/interrupt"] {
        let seen = browser.post(path, &[("form_token", &token)]).await;
        assert!(seen.status.is_client_error(), "{path}: {}", seen.status);
        assert!(seen.header("content-type").starts_with("text/html"), "{path}: {}", seen.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_told_nothing() {
    let house = House::open().await;
    let seen = Browser::new(&house).get("/inbox/events").await;
    assert_eq!(seen.status, StatusCode::SEE_OTHER);
}
