//! Bytes of guests never come from the pages' origin.

use std::os::fd::AsFd as _;
use std::time::Duration;

use glovebox_plane::Submitted;
use glovebox_runtime::job::End;
use hyper::StatusCode;

use crate::browser::Browser;
use crate::house::{House, approval, plan};

/// A page that would like to be one of ours.
const PAGE: &str = "<!doctype html><title>x</title><script>document.title='ran'</script><h1>made by a guest</h1>";

/// An action that made a page, and the path of its artifact.
pub(crate) async fn made(house: &House, browser: &Browser) -> String {
    house.on_run(|bound, _| {
        let outputs = bound.files.mounts.iter().find(|mount| mount.guest == "/outputs").unwrap();
        let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
        let file = rustix::fs::openat(outputs.dir.as_fd(), "page.html", flags, rustix::fs::Mode::RUSR).unwrap();
        rustix::io::write(&file, PAGE.as_bytes()).unwrap();
        End::Returned { content: r#"{"ok":1}"#.into(), artifacts: Vec::new() }
    });
    let action = house.ask("notes.write", "{}", None).await;
    browser.answer(&approval(&action), &[("seen", &plan(&action)), ("offer", "once")]).await;
    let Submitted::Done(done) = house.go_on(&action).await else { panic!("it waits") };
    assert_eq!(done.artifacts.len(), 1, "{:?}", done.notices);
    done.artifacts[0].uri.strip_prefix("artifact/").unwrap().to_owned()
}

fn parts(url: &str) -> (&str, &str) {
    let rest = url.strip_prefix("http://").unwrap();
    rest.split_at(rest.find('/').unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn they_have_another_origin_no_rights_and_an_address_for_once() {
    let house = House::open().await;
    let browser = Browser::logged_in(&house, &house.code).await;
    let path = Box::pin(made(&house, &browser)).await;
    assert!(browser.get("/sessions/s1").await.text.contains(&format!("href=\"/view/{path}\"")));
    let led = browser.get(&format!("/view/{path}")).await;
    assert_eq!(led.status, StatusCode::SEE_OTHER, "{}", led.text);
    let (host, handle) = parts(led.header("location"));
    assert_eq!(host, format!("localhost:{}", house.address.port()));
    // Nobody is logged in there.
    let there = Browser::new(&house);
    let seen = there.send("GET", handle, None, &[("host", host)]).await;
    assert_eq!((seen.status, seen.text.as_str()), (StatusCode::OK, PAGE));
    let policy = seen.header("content-security-policy");
    assert!(policy.starts_with("sandbox; default-src 'none';") && !policy.contains("allow-"), "{policy}");
    assert!(!policy.contains("script-src"), "{policy}");
    assert_eq!(seen.header("x-content-type-options"), "nosniff");
    assert_eq!(seen.header("cache-control"), "no-store");
    let again = there.send("GET", handle, None, &[("host", host)]).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
    assert!(!again.text.contains("made by a guest"));
}

#[tokio::test(flavor = "multi_thread")]
async fn never_at_the_origin_of_the_pages() {
    let house = House::open().await;
    let browser = Browser::logged_in(&house, &house.code).await;
    let path = Box::pin(made(&house, &browser)).await;
    let led = browser.get(&format!("/view/{path}")).await;
    let (host, handle) = parts(led.header("location"));
    // With the address rewritten to where the cookie goes.
    assert_eq!(browser.get(handle).await.status, StatusCode::NOT_FOUND);
    // And it is used up by that.
    let there = Browser::new(&house).send("GET", handle, None, &[("host", host)]).await;
    assert_eq!(there.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_good_for_a_moment() {
    let house = House::open().await;
    let browser = Browser::logged_in(&house, &house.code).await;
    let path = Box::pin(made(&house, &browser)).await;
    let led = browser.get(&format!("/view/{path}")).await;
    house.forward(Duration::from_secs(31));
    let (host, handle) = parts(led.header("location"));
    let late = Browser::new(&house).send("GET", handle, None, &[("host", host)]).await;
    assert_eq!(late.status, StatusCode::NOT_FOUND);
}
