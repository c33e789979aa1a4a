use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use super::*;

fn headers(all: &[(&str, &str)]) -> HeaderMap {
    let pair =
        |(name, value): &(&str, &str)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
    all.iter().map(pair).collect()
}

fn host(reached: &Reached, host: &str) -> bool {
    reached.check_host(&headers(&[("host", host)]), &Uri::from_static("/")).is_ok()
}

#[test]
fn a_listener_answers_to_its_own_names_alone() {
    let plain = Reached::tcp(7410, &["box.example".into()], false);
    for known in ["127.0.0.1:7410", "localhost:7410", "LOCALHOST:7410", "[::1]:7410", "box.example:7410", "box.example"]
    {
        assert!(host(&plain, known), "{known}");
    }
    for foreign in ["127.0.0.1", "127.0.0.1:80", "evil.example:7410", "localhost.evil.example:7410", "0.0.0.0:7410", ""]
    {
        assert!(!host(&plain, foreign), "{foreign}");
    }
    let twice = headers(&[("host", "127.0.0.1:7410"), ("host", "evil.example")]);
    assert!(plain.check_host(&twice, &Uri::from_static("/")).is_err(), "the first of two is no better than the second");
}

#[test]
fn a_browser_says_where_a_change_comes_from() {
    let reached = Reached::tcp(7410, &[], false);
    let own = headers(&[("origin", "http://127.0.0.1:7410")]);
    let none = headers(&[]);
    assert!(reached.check_origin(&Method::POST, &own, true).is_ok());
    assert!(reached.check_origin(&Method::POST, &none, true).is_err(), "with a cookie, silence is not enough");
    assert!(reached.check_origin(&Method::POST, &none, false).is_ok(), "a program with a token has no page");
    assert!(reached.check_origin(&Method::GET, &none, true).is_ok());
    let foreign = headers(&[("origin", "https://evil.example")]);
    for method in [Method::GET, Method::POST] {
        assert!(reached.check_origin(&method, &foreign, true).is_err());
    }
}

#[test]
fn a_person_may_follow_a_link_and_a_foreign_page_may_send_nothing() {
    let reached = Reached::tcp(7410, &[], false);
    let follows = headers(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]);
    assert!(reached.check_origin(&Method::GET, &follows, true).is_ok());
    assert!(reached.check_origin(&Method::POST, &follows, false).is_err());
    let embeds = headers(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")]);
    assert!(reached.check_origin(&Method::GET, &embeds, false).is_err());
}
