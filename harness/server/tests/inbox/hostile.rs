//! Text of guests, models and strangers in every field that they control.

use std::os::fd::AsFd as _;
use std::sync::Arc;

use env_contracts::{DerivedEffects, Digest, Scope};
use glovebox_events::Told;
use glovebox_plane::{
    Asking, Made, NewQuestion, NewTask, PermissionRequest, PlanProposal, PlanStep, QuestionOption, QuestionText,
    ResultProposal, Submitted, TaskContext, Telling, Unwatched,
};
use glovebox_runtime::Stop;
use glovebox_runtime::job::{DescribedArtifact, End, Frame, ToolFailure};

use crate::browser::Browser;
use crate::house::{House, approval, id, name, plan};

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
        purpose: Some(plain(&attack)),
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
    said(house, &attack).await;
    Box::pin(made(house, &attack)).await;
    (approval(&action), question.question.id.to_string())
}

/// The same in what people and loops say: a direction, entries of a log, a
/// plan, a result, a permission, the reason of a stop.
async fn said(house: &House, attack: &str) {
    let (loops, person) = (crate::house::agent("u", "coder"), crate::house::person("u"));
    let stop = Stop::default();
    let context =
        TaskContext { session: id("s9"), task: id("t9"), turn: None, purpose: None, stage: Some(plain(attack)) };
    house.service.steer(&person, &id("s9"), None, attack).await.unwrap();
    let model =
        Told::ModelCall { model: plain(attack), input_tokens: 1, output_tokens: 1, cost_micros: 1, context: None };
    let verified = Told::Verified { holds: false, revision: Some(plain(attack)), condition: None, goal: 1 };
    for what in [Told::Text, Told::Progress, Told::Plan, Told::Todo, model, verified] {
        let telling = Telling { turn: None, parents: Vec::new(), what, content: Some(attack.to_owned()) };
        house.service.tell(&person, &id("t9"), telling).await.unwrap();
    }
    let step = PlanStep { title: attack.to_owned(), capability: None, scope: None, effects: DerivedEffects::External };
    let plan = PlanProposal { summary: attack.to_owned(), steps: vec![step] };
    let unwatched = || Arc::new(Unwatched);
    house.service.submit_plan(&person, context.clone(), plan, Asking::Leave, unwatched(), &stop).await.unwrap();
    let made = Made::Content(Digest::of(attack.as_bytes()));
    let result = ResultProposal { artifact: made, condition: attack.to_owned(), evidence: Vec::new() };
    house.service.submit_result(&person, context.clone(), result, Asking::Leave, unwatched(), &stop).await.unwrap();
    let wants = PermissionRequest {
        principal: loops,
        context: TaskContext { session: id("s1"), task: id("t1"), stage: None, ..context },
        capability: "notes.write".parse().unwrap(),
        scope: Scope::from_toml("[limits]\nmemory = \"128MiB\"\n").unwrap(),
        reason: Some(attack.to_owned()),
        asking: Asking::Leave,
    };
    house.service.request_permission(wants, unwatched(), &stop).await.unwrap();
}

/// The same in what a guest makes: the name of a file, what it is said to be,
/// its content, an error, and what is written while it runs.
async fn made(house: &House, attack: &str) {
    let browser = Browser::logged_in(house, &house.token("w", glovebox_identity::Role::Operator)).await;
    for fails in [false, true] {
        let text = attack.to_owned();
        house.on_run(move |bound, ports| {
            let outputs = bound.files.mounts.iter().find(|mount| mount.guest == "/outputs").unwrap();
            let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
            // What a file can be called.
            let name = text.replace('/', "\u{2044}");
            let file = rustix::fs::openat(outputs.dir.as_fd(), name.as_str(), flags, rustix::fs::Mode::RUSR).unwrap();
            rustix::io::write(&file, text.as_bytes()).unwrap();
            ports.frames.frame(Frame::Stdout(text.as_bytes()));
            ports.frames.frame(Frame::Stderr(text.as_bytes()));
            ports.frames.frame(Frame::Progress { done: 1, total: Some(2), message: &text });
            let content = serde_json::json!({ text.clone(): text.clone() }).to_string();
            if fails {
                let (kind, message) = (text.clone(), text.clone());
                return End::Failed(ToolFailure { kind, message, retryable: false, details: Some(content) });
            }
            let (media_type, description) = (Some(text.clone()), Some(text.clone()));
            End::Returned { content, artifacts: vec![DescribedArtifact { path: name, media_type, description }] }
        });
        let action = house.ask("notes.write", &format!("{{\"fails\":{fails}}}"), None).await;
        let seen = plan(&action);
        let fields = [("seen", seen.as_str()), ("offer", "once"), ("words", attack)];
        assert_eq!(browser.answer(&approval(&action), &fields).await.status, 303);
        let Submitted::Done(done) = house.go_on(&action).await else { panic!("it waits") };
        assert!(fails || done.artifacts.len() == 1, "{:?}", done.notices);
    }
}

/// As much of it as a field takes that is one line without controls.
fn plain(attack: &str) -> String {
    attack.chars().filter(|c| !c.is_control()).take(60).collect()
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
    let (approval, question) = Box::pin(hostile(&house)).await;
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
    let (_, question) = Box::pin(hostile(&house)).await;
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
