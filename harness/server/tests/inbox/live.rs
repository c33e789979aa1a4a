//! The stream that says when something changed.

use http_body_util::{BodyExt as _, Empty};
use hyper::StatusCode;
use hyper_util::rt::TokioIo;

use crate::browser::Browser;
use crate::house::{House, approval, plan};

#[tokio::test(flavor = "multi_thread")]
async fn open_pages_are_told_of_what_opens_and_of_what_is_decided_elsewhere() {
    let house = House::open().await;
    let browser = Browser::logged_in(&house, &house.code).await;
    let stream = tokio::net::TcpStream::connect(house.address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::get("/inbox/events")
        .header("host", house.address.to_string())
        .header("cookie", browser.cookie.clone().unwrap())
        .body(Empty::<bytes::Bytes>::new())
        .unwrap();
    let mut body = sender.send_request(request).await.unwrap().into_body();
    let mut told = async || loop {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let text = String::from_utf8(frame.to_vec()).unwrap();
        if text.contains("event: changed") {
            // Nothing of what changed is in it.
            assert!(!text.contains("notes"), "{text}");
            break;
        }
    };
    told().await;
    let action = house.ask("notes.write", "{}", None).await;
    told().await;
    browser.answer(&approval(&action), &[("seen", &plan(&action)), ("offer", "decline")]).await;
    told().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_told_nothing() {
    let house = House::open().await;
    let seen = Browser::new(&house).get("/inbox/events").await;
    assert_eq!(seen.status, StatusCode::SEE_OTHER);
}
