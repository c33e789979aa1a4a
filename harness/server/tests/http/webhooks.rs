//! Webhooks, to receivers over real sockets.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use glovebox_identity::{SecretFrom, Webhook, WebhookKind, WebhookSecret, Webhooks};
use serde_json::{Value, json};

use crate::house::{Ground, House, name, text_of};

const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// What a receiver does with the next letters.
#[derive(Clone)]
enum Does {
    Takes,
    Fails,
    Leads(String),
    /// Never answers.
    Sleeps,
}

#[derive(Debug, Clone)]
struct Letter {
    headers: HeaderMap,
    body: Bytes,
    taken: bool,
}

impl Letter {
    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    fn event(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Whether this body is what was signed.
    fn signed(&self, body: &[u8]) -> bool {
        let at = self.header("webhook-timestamp").parse().unwrap();
        let own = WebhookSecret::parse(SECRET).unwrap().sign(self.header("webhook-id"), at, body);
        own == self.header("webhook-signature")
    }
}

/// Somebody who is told.
#[derive(Clone)]
struct Receiver {
    url: String,
    does: Arc<Mutex<Does>>,
    letters: Arc<Mutex<Vec<Letter>>>,
}

impl Receiver {
    async fn new(does: Does) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let receiver = Self { url, does: Arc::new(Mutex::new(does)), letters: Arc::default() };
        let router = Router::new().fallback(received).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        receiver
    }

    fn does(&self, does: Does) {
        *self.does.lock().unwrap() = does;
    }

    fn all(&self) -> Vec<Letter> {
        self.letters.lock().unwrap().clone()
    }

    /// What came, once there is so much of it that was taken.
    async fn taken(&self, count: usize) -> Vec<Letter> {
        until(|| {
            let taken: Vec<Letter> = self.all().into_iter().filter(|letter| letter.taken).collect();
            (taken.len() >= count).then_some(taken)
        })
        .await
    }

    async fn came(&self, count: usize) -> Vec<Letter> {
        until(|| Some(self.all()).filter(|all| all.len() >= count)).await
    }
}

async fn received(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> Response {
    let does = receiver.does.lock().unwrap().clone();
    let taken = matches!(does, Does::Takes);
    receiver.letters.lock().unwrap().push(Letter { headers, body, taken });
    match does {
        Does::Takes => StatusCode::NO_CONTENT.into_response(),
        Does::Fails => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Does::Leads(to) => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response(),
        Does::Sleeps => std::future::pending().await,
    }
}

async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    // Long enough for a loaded machine.
    for _ in 0..12_000 {
        if let Some(found) = look() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came to that")
}

fn add(ground: &Ground, called: &str, url: &str, change: impl FnOnce(&mut Webhook)) {
    let secret = ground.path("hook.secret");
    fs_err::write(&secret, SECRET).unwrap();
    fs_err::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut webhook = Webhook {
        name: name(called),
        tenant: name("local"),
        url: url.to_owned(),
        kinds: Vec::new(),
        classes: Vec::new(),
        objects: true,
        allow_private: true,
        created_ms: 1,
        secret: SecretFrom::File(secret),
    };
    change(&mut webhook);
    Webhooks::load(&ground.path("webhooks.toml")).unwrap().add(webhook).unwrap();
}

/// How a webhook fares, once it is so.
async fn fares(ground: &Ground, called: &str, is: impl Fn(&glovebox_server::WebhookStatus) -> bool) -> String {
    let list = Webhooks::load(&ground.path("webhooks.toml")).unwrap();
    let webhook = list.list().iter().find(|webhook| webhook.name.as_str() == called).unwrap().clone();
    let look = || glovebox_server::webhook_status(&ground.path("webhooks"), &webhook).ok().filter(&is);
    until(look).await.failure.map(|failure| failure.message).unwrap_or_default()
}

/// A server that has begun to serve these webhooks.
async fn serving(ground: &Arc<Ground>, hooks: &[&str]) -> House {
    let house = House::open(ground).await;
    for hook in hooks {
        let path = ground.path("webhooks").join(format!("{hook}.json"));
        until(|| path.exists().then_some(())).await;
    }
    house
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_end_is_told_what_waits_and_that_somebody_else_decided() {
    let ground = Ground::new();
    let (portal, bell, other) =
        tokio::join!(Receiver::new(Does::Takes), Receiver::new(Does::Takes), Receiver::new(Does::Takes));
    add(&ground, "portal", &portal.url, |_| {});
    add(&ground, "bell", &bell.url, |bell| {
        bell.objects = false;
        bell.kinds = vec![WebhookKind::ApprovalOpened];
    });
    add(&ground, "other", &other.url, |other| other.tenant = name("other"));
    let house = serving(&ground, &["portal", "bell", "other"]).await;
    let (action, card) = house.asked("well").await;
    let approval = text_of(&card["approval"]);

    let opened = portal.taken(1).await.remove(0);
    let event = opened.event();
    let id = format!("local/approval/{approval}/opened");
    assert_eq!((event["specversion"].as_str(), event["id"].as_str()), (Some("1.0"), Some(id.as_str())));
    assert_eq!(event["type"], "dev.glovebox.approval.opened.v1");
    assert_eq!(event["subject"], approval);
    assert_eq!(event["data"], card, "all of the card");
    assert_eq!(opened.header("webhook-id"), id);
    assert_eq!(opened.header("content-type"), "application/cloudevents+json");
    assert!(opened.signed(&opened.body));
    let mut changed = opened.body.to_vec();
    changed[10] ^= 1;
    assert!(!opened.signed(&changed), "a changed body is not what was signed");

    house.decide("approver", &card, "once").await;
    house.until(&action, "succeeded").await;
    let resolved = portal.taken(2).await.remove(1).event();
    assert_eq!(resolved["id"], format!("local/approval/{approval}/resolved"));
    assert_eq!(resolved["data"]["answer"]["by"], "approver");

    let outline = bell.taken(1).await.remove(0).event();
    assert_eq!(outline["data"]["approval"], approval);
    assert_eq!(outline["data"].get("arguments"), None, "only that something waits: {outline}");
    house.asked("again").await;
    assert_eq!(bell.taken(2).await[1].event()["type"], "dev.glovebox.approval.opened.v1", "and of nothing else");
    assert!(other.all().is_empty(), "another tenant's");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_taken_is_sent_again_in_its_order_under_the_same_id() {
    let ground = Ground::new();
    let portal = Receiver::new(Does::Fails).await;
    add(&ground, "portal", &portal.url, |_| {});
    let house = serving(&ground, &["portal"]).await;
    let (action, card) = house.asked("well").await;
    portal.came(3).await;
    house.decide("approver", &card, "once").await;
    house.until(&action, "succeeded").await;
    assert_eq!(fares(&ground, "portal", |status| status.pending == 2).await, "it answered 500 Internal Server Error");
    portal.does(Does::Takes);
    let taken = portal.taken(2).await;
    let changes: Vec<&str> =
        taken.iter().map(|letter| letter.header("webhook-id").rsplit('/').next().unwrap()).collect();
    assert_eq!(changes, ["opened", "resolved"]);
    let ids: Vec<Letter> = portal.all();
    let first = ids[0].header("webhook-id");
    assert!(ids[..3].iter().all(|letter| letter.header("webhook-id") == first && letter.signed(&letter.body)));
    assert_eq!(fares(&ground, "portal", |status| status.pending == 0).await, "");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_server_goes_on_where_the_last_one_was() {
    let ground = Ground::new();
    let portal = Receiver::new(Does::Fails).await;
    add(&ground, "portal", &portal.url, |_| {});
    let house = serving(&ground, &["portal"]).await;
    let (_, first) = house.asked("first").await;
    portal.came(1).await;
    house.close().await;
    portal.does(Does::Takes);
    let house = serving(&ground, &["portal"]).await;
    let taken = portal.taken(1).await;
    assert_eq!(taken[0].event()["subject"], first["approval"]);
    assert_eq!(taken[0].header("webhook-id"), portal.all()[0].header("webhook-id"));
    fares(&ground, "portal", |status| status.pending == 0).await;
    house.close().await;
    // What was taken is not told again.
    let house = serving(&ground, &["portal"]).await;
    let (_, second) = house.asked("second").await;
    assert_eq!(portal.taken(2).await[1].event()["subject"], second["approval"]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_leads_nowhere_else() {
    let ground = Ground::new();
    let inner = Receiver::new(Does::Takes).await;
    let portal = Receiver::new(Does::Leads(inner.url.clone())).await;
    add(&ground, "portal", &portal.url, |_| {});
    let house = serving(&ground, &["portal"]).await;
    house.asked("well").await;
    portal.came(2).await;
    let why = fares(&ground, "portal", |status| status.failure.is_some()).await;
    assert!(why.contains("307") && why.contains("leads elsewhere"), "{why}");
    assert!(inner.all().is_empty());
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_into_this_host_is_not_called() {
    let ground = Ground::new();
    let inner = Receiver::new(Does::Takes).await;
    let url = inner.url.replace("http://127.0.0.1", "https://localhost");
    add(&ground, "portal", &url, |portal| portal.allow_private = false);
    let house = serving(&ground, &["portal"]).await;
    house.asked("well").await;
    let why = fares(&ground, "portal", |status| status.failure.is_some()).await;
    assert!(why.contains("this host itself"), "{why}");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_answers_delays_nobody_else() {
    let ground = Ground::new();
    let (stuck, portal) = tokio::join!(Receiver::new(Does::Sleeps), Receiver::new(Does::Takes));
    add(&ground, "stuck", &stuck.url, |_| {});
    add(&ground, "portal", &portal.url, |_| {});
    let house = serving(&ground, &["stuck", "portal"]).await;
    house.asked("one").await;
    stuck.came(1).await;
    house.asked("two").await;
    assert_eq!(portal.taken(2).await.len(), 2);
    assert_eq!(stuck.all().len(), 1);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_told_when_it_is_asked_and_when_it_is_answered() {
    let ground = Ground::new();
    let portal = Receiver::new(Does::Takes).await;
    add(&ground, "portal", &portal.url, |_| {});
    let house = serving(&ground, &["portal"]).await;
    let (status, task) = house.post("agent", "/v1/sessions", &json!({ "id": "s1" })).await;
    assert_eq!(status, 200, "{task}");
    let (status, task) =
        house.post("agent", "/v1/tasks", &json!({ "id": "t1", "session": "s1", "goal": "find out" })).await;
    assert_eq!(status, 200, "{task}");
    let words = json!({
        "question": "how long?",
        "options": [
            { "id": "one", "label": "a year", "effect": "short" },
            { "id": "two", "label": "two years", "effect": "long" },
        ],
        "recommended": "one",
        "affects": ["the files"],
    });
    let (status, asked) =
        house.post("agent", "/v1/questions", &json!({ "task": "t1", "topic": "span", "words": words })).await;
    assert_eq!(status, 200, "{asked}");
    let opened = portal.taken(1).await.remove(0).event();
    assert_eq!((&opened["type"], &opened["subject"]), (&json!("dev.glovebox.question.opened.v1"), &asked["id"]));
    assert_eq!(opened["data"]["words"]["question"], "how long?");
    let path = format!("/v1/questions/{}/answer", text_of(&asked["id"]));
    assert_eq!(house.post("approver", &path, &json!({ "option": "two" })).await.0, 200);
    let resolved = portal.taken(2).await.remove(1).event();
    assert_eq!(
        (&resolved["type"], &resolved["data"]["state"]),
        (&json!("dev.glovebox.question.resolved.v1"), &json!("answered"))
    );
    house.close().await;
}
