//! The same in a real browser: Debian's Chromium, by WebDriver.

use std::process::{Child, Stdio};
use std::time::Duration;

use fantoccini::{Client, ClientBuilder, Locator};
use glovebox_events::ApprovalState;
use glovebox_identity::Role;
use serde_json::{Value, json};

use crate::house::{House, approval, plan};
use crate::hostile::hostile;

/// How long a page may take for what it does: far more than it needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A driver of browsers, which ends with its test.
struct Driver {
    child: Child,
    url: String,
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a browser looks at pages.
#[derive(Clone, Copy)]
struct Look {
    dark: bool,
    width: u32,
    height: u32,
}

const WIDE: Look = Look { dark: false, width: 1000, height: 1700 };

impl Driver {
    /// `None`, and a loud line, where Chromium is not installed.
    async fn start() -> Option<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        #[expect(clippy::disallowed_methods, reason = "the browser that this test is about")]
        let mut command = std::process::Command::new("chromedriver");
        let started = command.arg(format!("--port={port}")).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = match started {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                eprintln!("SKIPPED, no Chromium here: `apt-get install chromium-driver`, and the inbox is tested in it");
                return None;
            }
            Err(error) => panic!("chromedriver: {error}"),
        };
        let driver = Self { child, url: format!("http://127.0.0.1:{port}") };
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Some(driver)
    }

    async fn open(&self, house: &House, secret: &str, look: Look) -> Client {
        let scheme = if look.dark { "--blink-settings=preferredColorScheme=0" } else { "--blink-settings=preferredColorScheme=1" };
        let options = json!({
            "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", scheme],
            "mobileEmulation": { "deviceMetrics": { "width": look.width, "height": look.height, "pixelRatio": 1, "mobile": false, "touch": false } },
        });
        let mut wanted = serde_json::Map::new();
        wanted.insert("goog:chromeOptions".to_owned(), options);
        wanted.insert("unhandledPromptBehavior".to_owned(), json!("ignore"));
        let client = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(wanted)
            .connect(&self.url)
            .await
            .unwrap();
        client.goto(&format!("http://{}/login", house.address)).await.unwrap();
        client.find(Locator::Id("secret")).await.unwrap().send_keys(secret).await.unwrap();
        client.find(Locator::Css("button.primary")).await.unwrap().click().await.unwrap();
        until(&client, "return location.pathname === '/' && document.readyState === 'complete'").await;
        client
    }
}

async fn run(client: &Client, script: &str) -> Value {
    client.execute(script, Vec::new()).await.unwrap()
}

/// Waits until a script says yes.
async fn until(client: &Client, script: &str) {
    let wait = async {
        while client.execute(script, Vec::new()).await.ok() != Some(Value::Bool(true)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, wait).await.is_err() {
        let page = client.source().await.unwrap_or_default();
        panic!("it never came to `{script}`:\n{page}");
    }
}

/// The controls of a card take answers.
async fn ready(client: &Client, approval: &str) {
    let script = format!("return document.getElementById('approval-{approval}')?.querySelector('fieldset')?.disabled === false");
    until(client, &script).await;
}

async fn shot(client: &Client, name: &str) {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs_err::write(folder.join(format!("inbox-{name}.png")), client.screenshot().await.unwrap()).unwrap();
}

async fn press(client: &Client, keys: &str) {
    client.active_element().await.unwrap().send_keys(keys).await.unwrap();
}

/// The ids of the cards, in their order.
async fn order(client: &Client) -> Vec<String> {
    let ids = run(client, "return [...document.querySelectorAll('article.card')].map(card => card.id)").await;
    serde_json::from_value(ids).unwrap()
}

/// What pages of ours did that their own policy forbids, and what they asked
/// of others.
async fn violations(client: &Client) -> Value {
    let script = "const done = arguments[0];
        const seen = new ReportingObserver(() => {}, { types: ['csp-violation'], buffered: true });
        seen.observe();
        setTimeout(() => {
            const all = seen.takeRecords().map(one => one.body.blockedURL + ' ' + one.body.effectiveDirective);
            const out = performance.getEntriesByType('resource').map(one => one.name).filter(name => !name.startsWith(location.origin));
            done([...all, ...out]);
        }, 50);";
    client.execute_async(script, Vec::new()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_act_on_the_card_that_is_marked_and_on_no_other() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    house.with_mira().await;
    let first = house.ask("notes.write", r#"{"path":"a.txt"}"#, Some("because")).await;
    let second = house.ask("mail.send", r#"{"to":"everybody@example.com","text":"Hello"}"#, None).await;
    let third = house.ask("notes.write", r#"{"path":"b.txt"}"#, None).await;
    let client = driver.open(&house, &house.code, WIDE).await;
    assert_eq!(order(&client).await.len(), 3);
    ready(&client, &approval(&third)).await;
    shot(&client, "three").await;
    // Nothing is marked: nothing is decided.
    press(&client, "ad").await;
    press(&client, "j").await;
    press(&client, "j").await;
    let at = run(&client, "return document.activeElement.id").await;
    assert_eq!(at, json!(format!("approval-{}", approval(&second))));
    // What can't be undone has no key.
    press(&client, "a").await;
    press(&client, "j").await;
    press(&client, "d").await;
    until(&client, &format!("return document.getElementById('approval-{}').classList.contains('over')", approval(&third))).await;
    assert_eq!(house.state(&third), ApprovalState::Declined);
    assert_eq!((house.state(&first), house.state(&second)), (ApprovalState::Pending, ApprovalState::Pending));
    assert_eq!(order(&client).await.len(), 3, "it stays where it was");
    shot(&client, "declined").await;
    assert_eq!(violations(&client).await, json!([]));
    client.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_card_comes_last_and_takes_no_answer_for_a_moment() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    let first = house.ask("notes.write", r#"{"n":1}"#, None).await;
    let client = driver.open(&house, &house.code, WIDE).await;
    ready(&client, &approval(&first)).await;
    // When the controls of a card that appears can be used, and since when it is there.
    run(&client, "window.seen = {};
        new MutationObserver(changes => {
            for (const { addedNodes } of changes) for (const card of addedNodes) {
                if (!card.matches?.('article.card')) continue;
                const field = card.querySelector('fieldset');
                const since = performance.now();
                window.seen[card.id] = { began: field.disabled };
                new MutationObserver(() => { if (!field.disabled) window.seen[card.id].after ??= performance.now() - since; })
                    .observe(field, { attributes: true });
            }
        }).observe(document.getElementById('cards'), { childList: true });").await;
    let second = house.ask("notes.write", r#"{"n":2}"#, None).await;
    ready(&client, &approval(&second)).await;
    let ids: Vec<String> = [&first, &second].map(|action| format!("approval-{}", approval(action))).into();
    assert_eq!(order(&client).await, ids);
    let seen = run(&client, "return window.seen").await;
    let of = &seen[&ids[1]];
    assert_eq!(of["began"], json!(true), "{seen}");
    assert!(of["after"].as_f64().unwrap() >= 590.0, "{seen}");
    assert!(run(&client, "return document.title").await.as_str().unwrap().starts_with("(2) Inbox"));
    client.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_elsewhere_retires_the_card_at_once_where_it_is() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    let first = house.ask("notes.write", r#"{"n":1}"#, None).await;
    let second = house.ask("notes.write", r#"{"n":2}"#, None).await;
    let one = driver.open(&house, &house.code, WIDE).await;
    let two = driver.open(&house, &house.token("v", Role::Operator), WIDE).await;
    let id = approval(&first);
    ready(&one, &id).await;
    ready(&two, &id).await;
    let before = order(&two).await;
    let approve = format!("#approval-{id} button[value=once]");
    one.find(Locator::Css(&approve)).await.unwrap().click().await.unwrap();
    let over = format!("return document.getElementById('approval-{id}').classList.contains('over')");
    until(&one, &over).await;
    until(&two, &over).await;
    assert_eq!(order(&two).await, before);
    let text = run(&two, &format!("return document.getElementById('approval-{id}').innerText")).await;
    assert!(text.as_str().unwrap().contains("Answered once by u"), "{text}");
    assert!(two.find(Locator::Css(&approve)).await.is_err(), "it can still be answered");
    shot(&two, "retired").await;
    // The other one is as it was.
    ready(&two, &approval(&second)).await;
    assert_eq!((house.state(&first), house.state(&second)), (ApprovalState::Approved, ApprovalState::Pending));
    one.close().await.unwrap();
    two.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_long_is_opened_before_it_is_approved() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    let long: Vec<String> = (0..60).map(|n| format!("line {n} of a long text")).collect();
    let action = house.ask("notes.write", &json!({ "text": long.join("\n") }).to_string(), None).await;
    let client = driver.open(&house, &house.code, WIDE).await;
    let id = approval(&action);
    ready(&client, &id).await;
    shot(&client, "folded").await;
    let off = "return [...document.querySelectorAll('[data-approves]')].every(button => button.disabled)";
    assert_eq!(run(&client, off).await, json!(true));
    press(&client, "j").await;
    press(&client, "a").await;
    client.find(Locator::Css("details.folded > summary")).await.unwrap().click().await.unwrap();
    until(&client, "return !document.querySelector('button[value=once]').disabled").await;
    assert!(run(&client, "return document.querySelector('details.folded').innerText").await.as_str().unwrap().contains("line 59"));
    assert_eq!(house.state(&action), ApprovalState::Pending);
    client.find(Locator::Css("button[value=once]")).await.unwrap().click().await.unwrap();
    until(&client, &format!("return document.getElementById('approval-{id}').classList.contains('over')")).await;
    assert_eq!(house.state(&action), ApprovalState::Approved);
    client.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_fit_a_phone_and_the_night() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    house.with_mira().await;
    let hostile = hostile(&house).await;
    let action = house.ask("notes.write", &json!({ "path": "a/very/long/path".repeat(20), "text": "+".repeat(300) }).to_string(), Some("so that it is there")).await;
    house.ask("mail.send", r#"{"to":"a@b.example","text":"Dear all,\nthis is it.\nYours"}"#, Some("they wait")).await;
    let fits = "return document.documentElement.scrollWidth <= innerWidth";
    let phone = Look { dark: false, width: 320, height: 2600 };
    let client = driver.open(&house, &house.code, phone).await;
    assert_eq!(run(&client, "return innerWidth").await, json!(320));
    let cards = [format!("/inbox/approvals/{}", approval(&action)), format!("/inbox/questions/{}", hostile.1)];
    for path in ["/", "/sessions", "/sessions/s1", "/sessions/s9", &cards[0], &cards[1]] {
        client.goto(&format!("http://{}{path}", house.address)).await.unwrap();
        until(&client, "return document.readyState === 'complete'").await;
        run(&client, "document.querySelectorAll('details').forEach(box => { box.open = true; })").await;
        assert_eq!(run(&client, fits).await, json!(true), "{path}");
        shot(&client, &format!("phone{}", path.split('/').take(3).collect::<Vec<_>>().join("-"))).await;
    }
    client.close().await.unwrap();
    let night = Look { dark: true, ..WIDE };
    let client = driver.open(&house, &house.token("n", Role::Operator), night).await;
    assert_eq!(run(&client, "return matchMedia('(prefers-color-scheme: dark)').matches").await, json!(true));
    let ground = run(&client, "return getComputedStyle(document.body).backgroundColor").await;
    assert_eq!(ground, json!("rgb(18, 22, 20)"));
    shot(&client, "dark").await;
    client.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_strangers_write_runs_or_leaves() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    let (approval, question) = hostile(&house).await;
    let client = driver.open(&house, &house.code, WIDE).await;
    let pages = ["/".to_owned(), "/sessions/s1".to_owned(), "/sessions/s9".to_owned(), format!("/inbox/approvals/{approval}"), format!("/inbox/questions/{question}")];
    for path in &pages {
        client.goto(&format!("http://{}{path}", house.address)).await.unwrap();
        until(&client, "return document.readyState === 'complete'").await;
        run(&client, "document.querySelectorAll('details').forEach(box => { box.open = true; })").await;
        assert!(client.get_alert_text().await.is_err(), "{path}");
        assert_eq!(violations(&client).await, json!([]), "{path}");
        let made = run(&client, "return document.querySelectorAll('#main :is(script, iframe, img, object, embed, [onerror], [onfocus], [style])').length").await;
        assert_eq!(made, json!(0), "{path}");
    }
    // What is watched for would be seen.
    run(&client, "document.body.append(Object.assign(document.createElement('script'), { textContent: 'alert(1)' }))").await;
    assert!(client.get_alert_text().await.is_err());
    assert_ne!(violations(&client).await, json!([]));
    client.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_page_runs_nothing_and_knows_nothing() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    let client = driver.open(&house, &house.code, WIDE).await;
    let browser = crate::browser::Browser::logged_in(&house, &house.token("v", Role::Operator)).await;
    let path = crate::guest::made(&house, &browser).await;
    client.goto(&format!("http://{}/sessions/s1", house.address)).await.unwrap();
    shot(&client, "session").await;
    client.goto(&format!("http://{}/view/{path}", house.address)).await.unwrap();
    let there = client.current_url().await.unwrap();
    assert_eq!(there.host_str(), Some("localhost"), "{there}");
    assert!(client.source().await.unwrap().contains("made by a guest"));
    assert_eq!(client.title().await.unwrap(), "x", "its script ran");
    let origin = run(&client, "return self.origin").await;
    assert_eq!(origin, json!("null"));
    client.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_scripts_the_same_forms_decide() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    let action = house.ask("notes.write", r#"{"n":1}"#, None).await;
    let client = driver.open(&house, &house.code, WIDE).await;
    let id = approval(&action);
    ready(&client, &id).await;
    // As a browser sends it that runs none of ours.
    run(&client, &format!("const form = document.querySelector('#approval-{id} form');
        const button = Object.assign(document.createElement('input'), {{ type: 'hidden', name: 'offer', value: 'decline' }});
        form.append(button); form.submit();")).await;
    until(&client, &format!("return location.pathname === '/inbox/approvals/{id}'")).await;
    assert_eq!(house.state(&action), ApprovalState::Declined, "{}", plan(&action));
    client.close().await.unwrap();
}
