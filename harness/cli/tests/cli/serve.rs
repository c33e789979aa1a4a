//! `glovebox serve` as people, agents and the system that starts it meet it.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::served::{Served, write};
use crate::support::House;

/// It says where it is and lets the first person in; when it is told to end, it
/// ends well and leaves nothing.
#[test]
fn a_server_starts_says_where_it_is_and_leaves_nothing() {
    let house = House::new();
    house.refuses(&["inbox"], 42, "backend-unavailable", &["no server runs"]);
    let served = Served::start(&house, &[]);
    let code = served.login.split("with the code ").nth(1).unwrap().split(',').next().unwrap();
    assert_eq!(code.len(), 14, "{}", served.login);
    let (note, socket) = (house.state().join("serve.json"), house.state().join("serve.sock"));
    let found: serde_json::Value = serde_json::from_slice(&fs_err::read(&note).unwrap()).unwrap();
    assert_eq!((&found["url"], &found["socket"]), (&json!(served.url), &json!(socket)), "{found}");
    for path in [&note, &socket] {
        assert_eq!(fs_err::metadata(path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
    // The code logs one browser in, and no other.
    let log_in = || {
        let form = served.request("POST", "", "/login").header("origin", &served.url);
        let form = form.header("content-type", "application/x-www-form-urlencoded").body(format!("secret={code}"));
        served.send(form)
    };
    let (status, headers, text) = log_in();
    assert_eq!(status, 303, "{text}");
    let cookie = headers["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!log_in().1.contains_key("set-cookie"), "the code opened twice");

    assert_eq!(served.get("", "/ready").0, 200);
    let (exit, said) = served.end();
    assert_eq!(exit, Some(0), "{said}");
    assert!(!note.exists() && !socket.exists());
    house.is_tidy();
}

/// Two servers at one socket would each be asked half.
#[test]
fn a_second_server_at_the_same_socket_is_refused() {
    let house = House::new();
    let served = Served::start(&house, &[]);
    house.refuses(&["serve", "--listen", "127.0.0.1:0"], 42, "backend-unavailable", &["another server", "serve.sock"]);
    // The one that runs is as it was.
    assert_eq!(served.get("", "/health").0, 200);
    assert_eq!(house.json(&["inbox"])["url"], served.url.as_str());
    served.end();
}

/// What a crash left is no obstacle.
#[test]
fn a_socket_that_a_crash_left_is_taken_over() {
    let house = House::new();
    Served::start(&house, &[]).kill();
    assert!(house.state().join("serve.sock").exists());
    let served = Served::start(&house, &[]);
    assert_eq!(house.json(&["inbox"])["url"], served.url.as_str());
    assert_eq!(served.end().0, Some(0));
}

#[test]
fn a_code_of_the_inbox_is_for_whoever_asks_at_the_socket() {
    let house = House::new();
    house.token("ci", "agent");
    let served = Served::start(&house, &[]);
    // Somebody is known already: a code is made when it is asked for.
    assert!(served.login.contains("`glovebox inbox`"), "{}", served.login);
    let shown = house.run(&["inbox"]).ok().stdout;
    assert!(shown.contains(&format!("{}/login", served.url)), "{shown}");
    assert!(shown.contains("code "), "{shown}");
    served.end();
}

/// A real tool, over real sockets, for whoever has a token; and for no page.
#[test]
fn an_agent_counts_the_words_of_a_folder_that_has_a_name() {
    let house = House::new();
    let docs = format!("docs={}", house.workspace().display());
    let agent = house.token("ci", "agent");
    let served = Served::start(&house, &["--workspace", &docs]);
    let count = json!({ "capability": "text.count", "arguments": { "path": "a.txt" }, "workspace": "docs" });
    let (status, view) = served.post(&agent, "/v1/actions", &count);
    assert_eq!((status, &view["observation"]["data"]["words"]), (200, &json!(3)), "{view}");
    assert_eq!(view["principal"]["agent"], "coder", "{view}");
    // By its name alone, and only by one that it has.
    for (workspace, code) in [("other", "workspace-unavailable"), ("/etc", "usage")] {
        let elsewhere = json!({ "capability": "text.count", "arguments": { "path": "a.txt" }, "workspace": workspace });
        let (_, problem) = served.post(&agent, "/v1/actions", &elsewhere);
        assert_eq!(problem["code"], code, "{problem}");
    }
    let (status, problem) = served.post("", "/v1/actions", &count);
    assert_eq!((status, &problem["code"]), (401, &json!("credential-missing")));
    // A page of another origin, and a name that was made to lead here.
    let request = || served.request("POST", &agent, "/v1/actions").json(&count);
    for foreign in [request().header("origin", "https://example.org"), request().header("host", "example.org")] {
        let (status, _, text) = served.send(foreign);
        assert!(status == 403 && text.contains("origin-refused"), "{text}");
    }
    assert_eq!(house.json(&["action", "list"])["actions"].as_array().unwrap().len(), 1);
    served.end();
}

/// What an operator changes holds from the next step on, without a restart; and
/// what nobody can read is no licence.
#[test]
fn a_running_server_keeps_to_the_ceiling_and_profiles_of_now() {
    let house = House::new();
    let docs = format!("docs={}", house.workspace().display());
    let agent = house.token("ci", "agent");
    let served = Served::start(&house, &["--workspace", &docs]);
    let count = json!({ "capability": "text.count", "arguments": { "path": "a.txt" }, "workspace": "docs" });
    let counts = || served.post(&agent, "/v1/actions", &count);
    assert_eq!(counts().0, 200);
    let ceiling = house.run(&["config", "show", "--ceiling=shipped"]).ok().stdout;
    let set = |name: &str, text: &str| house.file(&format!("config/glovebox/{name}"), text);

    set("ceiling.toml", &ceiling.replace("[{ source = \"workspace\", access = \"overlay\" }]", "[]"));
    let (_, lower) = counts();
    assert_eq!(lower["observation"]["outcome"]["code"], "contract-unsatisfied", "{lower}");
    set("ceiling.toml", "schema = ");
    let (_, broken) = counts();
    assert_eq!(broken["code"], "ceiling-invalid", "{broken}");
    set("ceiling.toml", &ceiling);
    assert_eq!(counts().1["state"], "succeeded");

    set("profiles.toml", "schema = \"glovebox/profiles/v1\"\n[default]\ndiscover = []\nexecute = []\n");
    let (status, hidden) = counts();
    assert_eq!((status, &hidden["code"]), (404, &json!("tool-unknown")), "{hidden}");
    served.end();
    house.is_tidy();
}

/// Whoever waits at the server gets the end, wherever it was answered.
#[test]
fn what_is_approved_at_a_terminal_goes_on_in_the_server() {
    let house = House::that_may_write();
    let docs = format!("docs={}:write", house.workspace().display());
    let agent = house.token("ci", "agent");
    let served = Served::start(&house, &["--workspace", &docs]);
    let (status, waits) = served.post(&agent, "/v1/actions", &write("n.txt", "words"));
    assert_eq!((status, &waits["state"]), (202, &json!("waiting_approval")), "{waits}");
    let action = waits["id"].as_str().unwrap();
    let resumed = served.post_beside(&agent, &format!("/v1/actions/{action}/resume?wait=50"), &json!({}));
    let pending = house.pending();
    assert_eq!((pending.len(), &pending[0]["action"]), (1, &json!(action)));
    assert!(!house.has("n.txt"));
    house.run(&["approvals", "approve", pending[0]["approval"].as_str().unwrap()]).ok();
    served.answer(resumed).unwrap();
    let view = served.until(&agent, action, "succeeded");
    assert_eq!(view["right"]["kind"], "approval", "{view}");
    assert_eq!(fs_err::read_to_string(house.workspace().join("n.txt")).unwrap(), "words");
    served.end();
    house.is_tidy();
}

/// A server that dies while people think loses nothing, and the next one runs
/// what they approved: once.
#[test]
fn what_waits_when_a_server_is_killed_is_finished_once_by_the_next() {
    let house = House::that_may_write();
    let docs = format!("docs={}:write", house.workspace().display());
    let agent = house.token("ci", "agent");
    let served = Served::start(&house, &["--workspace", &docs]);
    let body = write("n.txt", "words");
    let keyed = |served: &Served| {
        let request = served.request("POST", &agent, "/v1/actions").header("idempotency-key", "one").json(&body);
        let (status, _, text) = served.send(request);
        (status, serde_json::from_str::<serde_json::Value>(&text).unwrap())
    };
    let (status, waits) = keyed(&served);
    assert_eq!(status, 202, "{waits}");
    let action = waits["id"].as_str().unwrap().to_owned();
    served.kill();
    // Answered while no server runs.
    let pending = house.pending();
    assert_eq!(pending.len(), 1);
    house.run(&["approvals", "approve", pending[0]["approval"].as_str().unwrap()]).ok();
    assert!(!house.has("n.txt"));

    let served = Served::start(&house, &["--workspace", &docs]);
    let first = served.until(&agent, &action, "succeeded");
    fs_err::remove_file(house.workspace().join("n.txt")).unwrap();
    // Sent again by a client that lost its answer: the same action, and no other run.
    let (status, again) = keyed(&served);
    assert_eq!((status, &again["id"], &again["observation"]), (200, &first["id"], &first["observation"]));
    assert!(!house.has("n.txt"), "it ran twice");
    assert_eq!(house.json(&["action", "list"])["actions"].as_array().unwrap().len(), 1);
    served.end();
    house.is_tidy();
}
