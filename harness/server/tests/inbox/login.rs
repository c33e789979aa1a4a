//! Logging in, staying in, and the forms of others.

use std::time::Duration;

use glovebox_identity::Role;
use hyper::StatusCode;

use crate::browser::Browser;
use crate::house::{House, approval, plan};

#[tokio::test(flavor = "multi_thread")]
async fn a_code_lets_one_browser_in_once() {
    let house = House::open().await;
    let stranger = Browser::new(&house);
    let sent_away = stranger.get("/").await;
    assert_eq!((sent_away.status, sent_away.header("location")), (StatusCode::SEE_OTHER, "/login"));
    let browser = Browser::logged_in(&house, &house.code).await;
    assert!(browser.get("/").await.text.contains("Nothing waits for you"));
    let again = stranger.post("/login", &[("secret", &house.code)]).await;
    assert_eq!(again.status, StatusCode::UNAUTHORIZED);
    assert!(again.text.contains("code <code>token-unknown</code>"), "{}", again.text);
    assert!(again.headers.get("set-cookie").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cookie_is_kept_from_scripts_and_foreign_pages_and_ends() {
    let house = House::open().await;
    let stranger = Browser::new(&house);
    let seen = stranger.post("/login", &[("secret", &house.token("mira", Role::Approver))]).await;
    let cookie = seen.header("set-cookie");
    for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age=43200"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let mut browser = Browser::new(&house);
    browser.cookie = Some(cookie.split(';').next().unwrap().to_owned());
    assert_eq!(browser.get("/").await.status, StatusCode::OK);
    house.forward(Duration::from_secs(12 * 3600 + 1));
    assert_eq!(browser.get("/").await.status, StatusCode::SEE_OTHER);
}

#[tokio::test(flavor = "multi_thread")]
async fn logging_out_ends_the_login_everywhere() {
    let house = House::open().await;
    let browser = Browser::logged_in(&house, &house.code).await;
    let token = browser.get("/").await.field("form_token");
    assert_eq!(browser.post("/logout", &[("form_token", &token)]).await.status, StatusCode::SEE_OTHER);
    assert_eq!(browser.get("/").await.header("location"), "/login");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_do_not_get_in() {
    let house = House::open().await;
    let token = house.token("u", Role::Agent);
    let seen = Browser::new(&house).post("/login", &[("secret", &token)]).await;
    assert_eq!(seen.status, StatusCode::FORBIDDEN);
    let with = format!("Bearer {token}");
    let seen = Browser::new(&house).send("GET", "/", None, &[("authorization", &with)]).await;
    assert_eq!(seen.status, StatusCode::FORBIDDEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_guesses_codes_is_slowed_down() {
    let house = House::open().await;
    let stranger = Browser::new(&house);
    let mut last = StatusCode::OK;
    for _ in 0..15 {
        last = stranger.post("/login", &[("secret", "AAAA-AAAA")]).await.status;
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_without_its_token_decides_nothing() {
    let house = House::open().await;
    let action = house.ask("notes.write", "{}", None).await;
    let browser = Browser::logged_in(&house, &house.code).await;
    let path = format!("/inbox/approvals/{}", approval(&action));
    let seen = plan(&action);
    let other = Browser::logged_in(&house, &house.token("v", Role::Operator)).await;
    let foreign = other.get("/").await.field("form_token");
    for token in [None, Some(""), Some("x"), Some(foreign.as_str())] {
        let mut fields = vec![("seen", seen.as_str()), ("offer", "once")];
        fields.extend(token.map(|token| ("form_token", token)));
        let answer = browser.post(&path, &fields).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{token:?}");
    }
    assert_eq!(house.state(&action).as_str(), "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_a_foreign_page_decides_nothing() {
    let house = House::open().await;
    let action = house.ask("notes.write", "{}", None).await;
    let mut browser = Browser::logged_in(&house, &house.code).await;
    let token = browser.get("/").await.field("form_token");
    let (path, seen) = (format!("/inbox/approvals/{}", approval(&action)), plan(&action));
    for origin in [None, Some("http://evil.example"), Some("null")] {
        browser.origin = origin.map(str::to_owned);
        let answer = browser.post(&path, &[("form_token", &token), ("seen", &seen), ("offer", "once")]).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{origin:?}");
    }
    assert_eq!(house.state(&action).as_str(), "pending");
}
