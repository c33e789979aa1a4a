//! Text of guests, models and strangers in every field that they control.

use glovebox_plane::{NewQuestion, NewTask, QuestionOption, QuestionText};

use crate::browser::Browser;
use crate::house::{House, approval, id, name};

/// What would do something, were it not text.
pub(crate) const ATTACKS: [&str; 5] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(2)>",
    "' autofocus onfocus=alert(3) x='",
    "</textarea></pre><iframe src=\"javascript:alert(4)\"></iframe>",
    "\u{202e}\u{2066}moc.live\u{1b}[2J\u{200b}",
];

pub(crate) fn attack() -> String {
    ATTACKS.join(" ")
}

/// An approval and a question that are all attack.
pub(crate) async fn hostile(house: &House) -> (String, String) {
    let attack = attack();
    let arguments = serde_json::json!({
        attack.clone(): attack, "path": "javascript:alert(5)", "list": [attack, { "x": attack }],
        "long": attack.repeat(20), "url": "https://\u{0430}pple.com/",
    });
    let action = house.ask("notes.write", &arguments.to_string(), Some(&attack)).await;
    let task = NewTask {
        id: Some(id("t9")),
        session: id("s9"),
        goal: attack.clone(),
        purpose: Some(attack.chars().filter(|c| !c.is_control()).take(60).collect()),
        stage: None,
        budget: glovebox_events::Budget::default(),
    };
    house.service.open_task(&crate::house::person("u"), task).await.unwrap();
    let option = |name: &str| QuestionOption {
        id: id(name),
        label: format!("{name} {}", ATTACKS[1]),
        effect: format!("{name} {}", ATTACKS[2]),
    };
    let text = QuestionText {
        question: format!("{}{}", ATTACKS[0], ATTACKS[4]),
        options: vec![option("one"), option("two")],
        recommended: id("one"),
        affects: vec![ATTACKS[3].to_owned(), ATTACKS[4].to_owned()],
    };
    let asked =
        NewQuestion { task: id("t9"), turn: None, topic: name("which"), text, induced_by: None, lasts_ms: None };
    let question = house.service.ask(&crate::house::person("u"), asked).await.unwrap();
    (approval(&action), question.question.id.to_string())
}

/// Whether a page has anything of an attack that is not text.
fn harmless(page: &str, at: &str) {
    for bad in
        ["<script>", "<img", "<iframe", "onerror=alert(2)>", "\" onfocus", "href=\"javascript:", "src=\"javascript:"]
    {
        assert!(!page.contains(bad), "{bad} at {at}:\n{page}");
    }
    let odd = page.chars().find(|&c| {
        c != '\n'
            && (c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'))
    });
    assert_eq!(odd, None, "at {at}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_they_write_is_text() {
    let house = House::open().await;
    let (approval, question) = hostile(&house).await;
    let browser = Browser::logged_in(&house, &house.code).await;
    let mut paths = vec!["/".to_owned(), "/sessions".to_owned(), "/sessions/s1".to_owned(), "/sessions/s9".to_owned()];
    paths.push(format!("/inbox/approvals/{approval}"));
    paths.push(format!("/inbox/questions/{question}"));
    for path in &paths {
        let seen = browser.get(path).await;
        assert_eq!(seen.status, 200, "{path}: {}", seen.text);
        harmless(&seen.text, path);
        let policy = seen.header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(seen.header("x-frame-options"), "DENY");
        assert_eq!(seen.header("cache-control"), "no-store");
        assert!(!seen.text.contains("style=\"") && !seen.text.contains("<style"), "{path}");
    }
    let inbox = browser.get("/").await.text;
    assert!(inbox.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && inbox.contains("\\u{202e}"), "{inbox}");
    assert!(inbox.contains("xn--pple-43d.com"));
    // What people say, and what they mistype, is text as well.
    let attack = attack();
    let plan = browser.get("/").await.field("seen");
    for fields in [
        vec![("seen", attack.as_str()), ("offer", "once")],
        vec![("seen", &plan), ("offer", "decline"), ("words", &attack)],
    ] {
        let seen = browser.answer(&approval, &fields).await;
        harmless(&seen.text, "an answer");
    }
    harmless(&browser.get(&format!("/inbox/approvals/{approval}")).await.text, "a card that was answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_are_small() {
    let house = House::open().await;
    let browser = Browser::logged_in(&house, &house.code).await;
    let page = browser.get("/").await.text;
    let assets: Vec<&str> = page.split('"').filter(|part| part.starts_with("/assets/")).collect();
    assert_eq!(assets.len(), 3, "{page}");
    let mut size = page.len();
    for path in assets {
        let asset = browser.get(path).await;
        assert!(asset.header("cache-control").contains("immutable"), "{path}");
        size += asset.text.len();
    }
    assert!(size <= 100 << 10, "{size} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_by_form() {
    let house = House::open().await;
    let (_, question) = hostile(&house).await;
    let browser = Browser::logged_in(&house, &house.token("p", glovebox_identity::Role::Approver)).await;
    let token = browser.get("/").await.field("form_token");
    let path = format!("/inbox/questions/{question}");
    let wrong = browser.post(&path, &[("form_token", &token), ("option", "three")]).await;
    assert!(wrong.text.contains("code <code>usage</code>"), "{}", wrong.text);
    let said = browser.post(&path, &[("form_token", &token), ("option", "two"), ("words", "but slowly")]).await;
    assert_eq!(said.status, 303, "{}", said.text);
    let card = browser.get(&path).await.text;
    assert!(
        card.contains("<code>two</code>") && card.contains("but slowly") && card.contains("<strong>p</strong>"),
        "{card}"
    );
    let late = browser.post(&path, &[("form_token", &token), ("option", "one")]).await;
    assert_eq!(late.status, 409);
    assert!(late.text.contains("question-closed"), "{}", late.text);
}
