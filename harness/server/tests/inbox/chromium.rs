//! The same in a real browser: Debian's Chromium, by WebDriver.

use glovebox_events::ApprovalState;
use glovebox_identity::Role;
use serde_json::{Value, json};

use crate::driver::{Client, Driver, run, until};
use crate::hostile::hostile;
use crate::house::{House, approval, plan};

/// How a browser looks at pages.
#[derive(Clone, Copy)]
struct Look {
    dark: bool,
    width: u32,
    height: u32,
}

const WIDE: Look = Look { dark: false, width: 1000, height: 1700 };

async fn open(driver: &Driver, house: &House, secret: &str, look: Look) -> Client {
    let scheme =
        if look.dark { "--blink-settings=preferredColorScheme=0" } else { "--blink-settings=preferredColorScheme=1" };
    let options = json!({
        "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", scheme],
        "mobileEmulation": { "deviceMetrics": { "width": look.width, "height": look.height, "pixelRatio": 1, "mobile": false, "touch": false } },
    });
    let wanted = json!({
        "goog:chromeOptions": options,
        "goog:loggingPrefs": { "browser": "ALL" },
        "unhandledPromptBehavior": "ignore",
    });
    let client = driver.session(wanted).await;
    client.goto(&format!("http://{}/login", house.address)).await;
    client.type_at("#secret", secret).await;
    client.click("button.primary").await;
    until(&client, "return location.pathname === '/' && document.readyState === 'complete'").await;
    client
}

/// The controls of a card take answers.
async fn ready(client: &Client, approval: &str) {
    let script =
        format!("return document.getElementById('approval-{approval}')?.querySelector('fieldset')?.disabled === false");
    until(client, &script).await;
}

async fn shot(client: &Client, name: &str) {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs_err::write(folder.join(format!("inbox-{name}.png")), client.screenshot().await).unwrap();
}

async fn press(client: &Client, keys: &str) {
    client.press(keys).await;
}

/// The ids of the cards, in their order.
async fn order(client: &Client) -> Vec<String> {
    let ids = run(client, "return [...document.querySelectorAll('article.card')].map(card => card.id)").await;
    serde_json::from_value(ids).unwrap()
}

/// What pages of ours did that their own policy forbids, and what they asked
/// of others.
async fn violations(client: &Client) -> Value {
    let out = run(
        client,
        "return performance.getEntriesByType('resource').map(one => one.name).filter(name => !name.startsWith(location.origin))",
    )
    .await;
    let mut all = client.refused().await;
    all.extend(out.as_array().unwrap().iter().cloned());
    Value::Array(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_act_on_the_card_that_is_marked_and_on_no_other() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    house.with_mira().await;
    let first = house.ask("notes.write", r#"{"path":"a.txt"}"#, Some("because")).await;
    let second = house.ask("mail.send", r#"{"to":"everybody@example.com","text":"Hello"}"#, None).await;
    let third = house.ask("notes.write", r#"{"path":"b.txt"}"#, None).await;
    let client = open(&driver, &house, &house.code, WIDE).await;
    assert_eq!(order(&client).await.len(), 3);
    ready(&client, &approval(&third)).await;
    shot(&client, "three").await;
    // Nothing is marked: nothing is decided.
    press(&client, "ad").await;
    press(&client, "j").await;
    press(&client, "j").await;
    let at = run(&client, "return document.activeElement.id").await;
    assert_eq!(at, json!(format!("approval-{}", approval(&second))));
    // What can't be undone has no key: it leads to where that is decided.
    press(&client, "a").await;
    assert_eq!(run(&client, "return document.activeElement.name").await, json!("passphrase"));
    press(&client, "a").await;
    assert_eq!(run(&client, "return document.activeElement.value").await, json!("a"), "a field takes what is typed");
    press(&client, "\u{E00C}").await;
    let back = run(&client, "return document.activeElement.id").await;
    assert_eq!(back, json!(format!("approval-{}", approval(&second))));
    press(&client, "j").await;
    press(&client, "d").await;
    until(
        &client,
        &format!("return document.getElementById('approval-{}').classList.contains('over')", approval(&third)),
    )
    .await;
    assert_eq!(house.state(&third), ApprovalState::Declined);
    assert_eq!((house.state(&first), house.state(&second)), (ApprovalState::Pending, ApprovalState::Pending));
    assert_eq!(order(&client).await.len(), 3, "it stays where it was");
    shot(&client, "declined").await;
    assert_eq!(violations(&client).await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_card_comes_last_and_takes_no_answer_for_a_moment() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    let first = house.ask("notes.write", r#"{"n":1}"#, None).await;
    let client = open(&driver, &house, &house.code, WIDE).await;
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
}

/// What waits for the same thing is said to, where it comes while the page is
/// open; and nothing that stood there moves for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_card_of_the_same_intent_comes_last_and_says_so() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    let first = house.ask("notes.write", r#"{"n":1}"#, None).await;
    let other = house.ask("notes.write", r#"{"n":2}"#, None).await;
    let client = open(&driver, &house, &house.code, WIDE).await;
    ready(&client, &approval(&other)).await;
    let place = format!("return document.getElementById('approval-{}').getBoundingClientRect().top", approval(&other));
    let before = run(&client, &place).await;
    let mut all = vec![first, other];
    for waits in [2, 3] {
        let same = house.ask("notes.write", r#"{"n":1}"#, None).await;
        ready(&client, &approval(&same)).await;
        all.push(same);
        let ids: Vec<String> = all.iter().map(|action| format!("approval-{}", approval(action))).collect();
        assert_eq!(order(&client).await, ids, "new ones come last");
        let said =
            run(&client, "return [...document.querySelectorAll('.group .same')].map(one => one.innerText)").await;
        let text =
            format!("{waits} wait for the same thing. An answer counts for one alone. The first of them stands above.");
        assert_eq!(said, json!([text]));
    }
    assert_eq!(run(&client, &place).await, before, "what stood there moved");
    let inside =
        run(&client, "return [...document.querySelectorAll('.group article.card')].map(card => card.id)").await;
    assert_eq!(inside.as_array().unwrap().len(), 2);
    // An answer counts for one alone.
    let one = approval(&all[2]);
    client.click(&format!("#approval-{one} details.alike > summary")).await;
    client.click(&format!("#approval-{one} button[value=decline]")).await;
    until(&client, "return document.querySelector('.group .same').innerText.startsWith('2 wait')").await;
    let states: Vec<ApprovalState> = all.iter().map(|action| house.state(action)).collect();
    assert_eq!(
        states,
        [ApprovalState::Pending, ApprovalState::Pending, ApprovalState::Declined, ApprovalState::Pending]
    );
    shot(&client, "same").await;
    assert_eq!(violations(&client).await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_elsewhere_retires_the_card_at_once_where_it_is() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    let first = house.ask("notes.write", r#"{"n":1}"#, None).await;
    let second = house.ask("notes.write", r#"{"n":2}"#, None).await;
    let one = open(&driver, &house, &house.code, WIDE).await;
    let two = open(&driver, &house, &house.token("v", Role::Operator), WIDE).await;
    let id = approval(&first);
    ready(&one, &id).await;
    ready(&two, &id).await;
    let before = order(&two).await;
    let approve = format!("#approval-{id} button[value=once]");
    one.click(&approve).await;
    let over = format!("return document.getElementById('approval-{id}').classList.contains('over')");
    until(&one, &over).await;
    until(&two, &over).await;
    assert_eq!(order(&two).await, before);
    let text = run(&two, &format!("return document.getElementById('approval-{id}').innerText")).await;
    assert!(text.as_str().unwrap().contains("Answered once by u"), "{text}");
    assert!(!two.has(&approve).await, "it can still be answered");
    shot(&two, "retired").await;
    // The other one is as it was.
    ready(&two, &approval(&second)).await;
    assert_eq!((house.state(&first), house.state(&second)), (ApprovalState::Approved, ApprovalState::Pending));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_long_is_opened_before_it_is_approved() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    let long: Vec<String> = (0..60).map(|n| format!("line {n} of a long text")).collect();
    let action = house.ask("notes.write", &json!({ "text": long.join("\n") }).to_string(), None).await;
    let client = open(&driver, &house, &house.code, WIDE).await;
    let id = approval(&action);
    ready(&client, &id).await;
    shot(&client, "folded").await;
    let off = "return [...document.querySelectorAll('[data-approves]')].every(button => button.disabled)";
    assert_eq!(run(&client, off).await, json!(true));
    press(&client, "j").await;
    press(&client, "a").await;
    client.click("details.folded > summary").await;
    until(&client, "return !document.querySelector('button[value=once]').disabled").await;
    assert!(
        run(&client, "return document.querySelector('details.folded').innerText")
            .await
            .as_str()
            .unwrap()
            .contains("line 59")
    );
    assert_eq!(house.state(&action), ApprovalState::Pending);
    client.click("button[value=once]").await;
    until(&client, &format!("return document.getElementById('approval-{id}').classList.contains('over')")).await;
    assert_eq!(house.state(&action), ApprovalState::Approved);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_fit_a_phone_and_the_night() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    house.with_mira().await;
    let hostile = Box::pin(hostile(&house)).await;
    let action = house
        .ask(
            "notes.write",
            &json!({ "path": "a/very/long/path".repeat(20), "text": "+".repeat(300) }).to_string(),
            Some("so that it is there"),
        )
        .await;
    house.ask("mail.send", r#"{"to":"a@b.example","text":"Dear all,\nthis is it.\nYours"}"#, Some("they wait")).await;
    let fits = "return document.documentElement.scrollWidth <= innerWidth";
    let phone = Look { dark: false, width: 320, height: 2600 };
    let client = open(&driver, &house, &house.code, phone).await;
    assert_eq!(run(&client, "return innerWidth").await, json!(320));
    let cards = [format!("/inbox/approvals/{}", approval(&action)), format!("/inbox/questions/{}", hostile.1)];
    for path in ["/", "/sessions", "/sessions/s1", "/sessions/s9", &cards[0], &cards[1]] {
        client.goto(&format!("http://{}{path}", house.address)).await;
        until(&client, "return document.readyState === 'complete'").await;
        run(&client, "document.querySelectorAll('details').forEach(box => { box.open = true; })").await;
        assert_eq!(run(&client, fits).await, json!(true), "{path}");
        shot(&client, &format!("phone{}", path.split('/').take(3).collect::<Vec<_>>().join("-"))).await;
    }
    let night = Look { dark: true, ..WIDE };
    let client = open(&driver, &house, &house.token("n", Role::Operator), night).await;
    assert_eq!(run(&client, "return matchMedia('(prefers-color-scheme: dark)').matches").await, json!(true));
    let ground = run(&client, "return getComputedStyle(document.body).backgroundColor").await;
    assert_eq!(ground, json!("rgb(18, 22, 20)"));
    shot(&client, "dark").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_strangers_write_runs_or_leaves() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    let (approval, question) = Box::pin(hostile(&house)).await;
    let client = open(&driver, &house, &house.code, WIDE).await;
    let pages = [
        "/".to_owned(),
        "/sessions/s1".to_owned(),
        "/sessions/s9".to_owned(),
        format!("/inbox/approvals/{approval}"),
        format!("/inbox/questions/{question}"),
    ];
    for path in &pages {
        client.goto(&format!("http://{}{path}", house.address)).await;
        until(&client, "return document.readyState === 'complete'").await;
        run(&client, "document.querySelectorAll('details').forEach(box => { box.open = true; })").await;
        assert!(!client.alerted().await, "{path}");
        assert_eq!(violations(&client).await, json!([]), "{path}");
        let made = run(&client, "return document.querySelectorAll('#main :is(script, iframe, img, object, embed, [onerror], [onfocus], [style])').length").await;
        assert_eq!(made, json!(0), "{path}");
    }
    // What is watched for would be seen.
    run(&client, "document.body.append(Object.assign(document.createElement('script'), { textContent: 'alert(1)' }))")
        .await;
    assert!(!client.alerted().await);
    assert_ne!(violations(&client).await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_page_runs_nothing_and_knows_nothing() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    let client = open(&driver, &house, &house.code, WIDE).await;
    let browser = crate::browser::Browser::logged_in(&house, &house.token("v", Role::Operator)).await;
    let path = Box::pin(crate::guest::made(&house, &browser)).await;
    client.goto(&format!("http://{}/sessions/s1", house.address)).await;
    shot(&client, "session").await;
    client.goto(&format!("http://{}/view/{path}", house.address)).await;
    let there = run(&client, "return location.hostname").await;
    assert_eq!(there, json!("localhost"));
    assert!(run(&client, "return document.body.innerText").await.as_str().unwrap().contains("made by a guest"));
    assert_eq!(run(&client, "return document.title").await, json!("x"), "its script ran");
    let origin = run(&client, "return self.origin").await;
    assert_eq!(origin, json!("null"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_scripts_the_same_forms_decide() {
    let Some(driver) = Driver::start().await else { return };
    let house = House::open().await;
    let action = house.ask("notes.write", r#"{"n":1}"#, None).await;
    let client = open(&driver, &house, &house.code, WIDE).await;
    let id = approval(&action);
    ready(&client, &id).await;
    // As a browser sends it that runs none of ours.
    run(&client, &format!("const form = document.querySelector('#approval-{id} form');
        const button = Object.assign(document.createElement('input'), {{ type: 'hidden', name: 'offer', value: 'decline' }});
        form.append(button); form.submit();")).await;
    until(&client, &format!("return location.pathname === '/inbox/approvals/{id}'")).await;
    assert_eq!(house.state(&action), ApprovalState::Declined, "{}", plan(&action));
}
