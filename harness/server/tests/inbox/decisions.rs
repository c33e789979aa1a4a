//! Deciding by forms alone.

use std::time::Duration;

use glovebox_events::ApprovalState;
use glovebox_identity::Role;
use glovebox_plane::Submitted;
use hyper::StatusCode;

use crate::browser::Browser;
use crate::house::{House, PASSPHRASE, approval, plan};

#[tokio::test(flavor = "multi_thread")]
async fn a_card_says_what_decides_and_its_form_approves() {
    let house = House::open().await;
    let action = house.ask("notes.write", r#"{"path":"a.txt","n":7}"#, Some("tidy up")).await;
    let browser = Browser::logged_in(&house, &house.code).await;
    let page = browser.get("/").await;
    for part in [
        "notes.write@1.0.0",
        "agent <strong>coder</strong> for <strong>u</strong>",
        "planner",
        "a.txt",
        ">7<",
        "tidy up",
        "nobody checked them",
        &plan(&action),
        "Approve once",
        "Decline",
        "Approve in this session",
        "for 12 h",
        "filesystem[/workspace]",
        "what it did is unknown",
        "2027-01-16",
    ] {
        assert!(page.text.contains(part), "{part} is not in\n{}", page.text);
    }
    let answer =
        browser.answer(&approval(&action), &[("seen", &plan(&action)), ("offer", "once"), ("words", "go\r\non")]).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    let card = browser.get(answer.header("location")).await;
    assert!(card.text.contains("Approved; it has not run yet") && card.text.contains("go\non"), "{}", card.text);
    assert!(matches!(house.go_on(&action).await, Submitted::Done(done) if done.outcome.code.is_none()));
    assert!(browser.get(answer.header("location")).await.text.contains("It ran and succeeded"));
    assert!(browser.get("/").await.text.contains("Nothing waits for you"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_another_plan_than_the_one_that_was_shown_is_refused() {
    let house = House::open().await;
    let action = house.ask("notes.write", "{}", None).await;
    let browser = Browser::logged_in(&house, &house.code).await;
    let other = house.ask("notes.write", r#"{"n":1}"#, None).await;
    for seen in [plan(&other), plan(&action)[..6].to_owned()] {
        let answer = browser.answer(&approval(&action), &[("seen", &seen), ("offer", "once")]).await;
        assert_eq!(answer.status, StatusCode::CONFLICT, "{seen}");
        assert!(answer.text.contains("code <code>drift</code>"), "{}", answer.text);
    }
    let nothing = browser.answer(&approval(&action), &[("offer", "once")]).await;
    assert_eq!(nothing.status, StatusCode::BAD_REQUEST);
    assert_eq!(house.state(&action), ApprovalState::Pending);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_browsers_the_first_answer_counts_and_the_other_is_told_whose() {
    let house = House::open().await;
    let action = house.ask("notes.write", "{}", None).await;
    let (id, seen) = (approval(&action), plan(&action));
    let one = Browser::logged_in(&house, &house.code).await;
    let two = Browser::logged_in(&house, &house.token("v", Role::Operator)).await;
    let fields = |offer: &'static str| [("seen", seen.as_str()), ("offer", offer)];
    let (token_one, token_two) = (one.get("/").await.field("form_token"), two.get("/").await.field("form_token"));
    let path = format!("/inbox/approvals/{id}");
    let send = async |browser: &Browser, token: &str, offer: &'static str| {
        let mut all = vec![("form_token", token)];
        all.extend(fields(offer));
        browser.post(&path, &all).await
    };
    assert_eq!(send(&one, &token_one, "decline").await.status, StatusCode::SEE_OTHER);
    let late = send(&two, &token_two, "once").await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    assert!(
        late.text.contains("approval-closed")
            && late.text.contains("Declined")
            && late.text.contains("<strong>u</strong>")
    );
    // The same answer once more is no error.
    assert_eq!(send(&one, &token_one, "decline").await.status, StatusCode::SEE_OTHER);
    assert_eq!(house.state(&action), ApprovalState::Declined);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_undone_needs_a_passphrase() {
    let house = House::open().await;
    house.with_mira().await;
    let action = house.ask("mail.send", r#"{"to":"all"}"#, None).await;
    let (id, seen) = (approval(&action), plan(&action));
    let browser = Browser::logged_in(&house, &house.code).await;
    let page = browser.get("/").await.text;
    assert!(page.contains("can’t be undone") && page.contains("data-final=\"yes\""), "{page}");
    assert!(
        page.contains("name=\"passphrase\" type=\"password\"") && page.contains("<option value=\"mira\">"),
        "{page}"
    );
    assert!(!page.contains("Approve for more than once"));
    let base = [("seen", seen.as_str()), ("offer", "once")];
    let without = browser.answer(&id, &base).await;
    assert_eq!(without.status, StatusCode::FORBIDDEN);
    let with =
        |passphrase: &'static str| [base.as_slice(), &[("approver", "mira"), ("passphrase", passphrase)]].concat();
    let wrong = browser.answer(&id, &with("three words that rhyme")).await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED, "{}", wrong.text);
    assert!(!wrong.text.contains("three words"));
    assert_eq!(house.state(&action), ApprovalState::Pending);
    let right = browser.answer(&id, &with(PASSPHRASE)).await;
    assert_eq!(right.status, StatusCode::SEE_OTHER, "{}", right.text);
    assert!(browser.get(right.header("location")).await.text.contains("<strong>mira</strong> (console-login)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_arguments_are_a_new_plan() {
    let house = House::open().await;
    let action = house.ask("notes.write", r#"{"n":1}"#, None).await;
    let browser = Browser::logged_in(&house, &house.code).await;
    let fields = [("seen", &*plan(&action)), ("edit", "yes"), ("arguments", "{\r\n  \"n\": 2\r\n}")];
    let answer = browser.answer(&approval(&action), &fields).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    assert!(browser.get(answer.header("location")).await.text.contains("they are decided anew"));
    let page = browser.get("/").await.text;
    assert!(page.contains("<code>2</code>") && !page.contains(&approval(&action)), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_intents_stand_together_and_are_answered_one_by_one() {
    let house = House::open().await;
    let first = house.ask("notes.write", r#"{"n":1}"#, None).await;
    let other = house.ask("notes.write", r#"{"n":2}"#, None).await;
    house.forward(Duration::from_secs(5));
    let second = house.ask("notes.write", r#"{"n":1}"#, None).await;
    let browser = Browser::logged_in(&house, &house.code).await;
    let page = browser.get("/").await.text;
    assert!(page.contains("2 wait for the same thing"));
    let at = |action| page.find(&format!("id=\"approval-{}\"", approval(action))).unwrap();
    assert!(at(&first) < at(&second) && at(&second) < at(&other));
    browser.answer(&approval(&first), &[("seen", &plan(&first)), ("offer", "decline")]).await;
    assert_eq!((house.state(&first), house.state(&second)), (ApprovalState::Declined, ApprovalState::Pending));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observer_sees_that_something_waits_and_not_what() {
    let house = House::open().await;
    let action = house.ask("notes.write", r#"{"path":"plans.txt"}"#, Some("the reason")).await;
    let watching = Browser::logged_in(&house, &house.token("w", Role::Observer)).await;
    for path in ["/", &format!("/inbox/approvals/{}", approval(&action)), "/sessions/s1"] {
        let seen = watching.get(path).await;
        assert_eq!(seen.status, StatusCode::OK, "{path}: {}", seen.text);
        for hidden in ["plans.txt", "the reason", "notes.write", "coder", &plan(&action)] {
            assert!(!seen.text.contains(hidden), "{hidden} at {path}");
        }
    }
    assert!(watching.get("/").await.text.contains("An approval waits"));
    let answer = watching.answer(&approval(&action), &[("seen", &plan(&action)), ("offer", "once")]).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(house.state(&action), ApprovalState::Pending);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_expired_says_so() {
    let house = House::open().await;
    let action = house.ask("notes.write", "{}", None).await;
    house.forward(Duration::from_secs(25 * 3600));
    let browser = Browser::logged_in(&house, &house.token("v", Role::Operator)).await;
    let fresh = browser.get("/").await.field("form_token");
    let path = format!("/inbox/approvals/{}", approval(&action));
    let answer = browser.post(&path, &[("form_token", &fresh), ("seen", &plan(&action)), ("offer", "once")]).await;
    assert!(
        answer.text.contains("code <code>expired</code>") && answer.text.contains("nobody answered in time"),
        "{}",
        answer.text
    );
}
