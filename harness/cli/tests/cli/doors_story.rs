//! A story through all doors of the real program: a loop that speaks HTTP, an
//! agent that speaks MCP, a front end that follows the events, a person with two
//! windows of a real browser, and one at a terminal.

use serde_json::{Value, json};

use crate::driver::{Client as Window, Driver, run, until};
use crate::mcp::Client;
use crate::served::{Served, write};
use crate::support::House;

/// What `trace` tells of it.
const TRACE: &str = include_str!("doors_story.txt");

/// The session, and its one task.
const STORY: &str = "story";

/// Those who play.
struct Cast {
    house: House,
    served: Served,
    /// The loop, and the operator at the API.
    agent: String,
    operator: String,
}

impl Cast {
    fn new() -> Self {
        let house = House::that_may_write();
        let (agent, operator) = (house.token("loop", "agent"), house.token("ops", "operator"));
        let docs = format!("docs={}:write", house.workspace().display());
        let served = Served::start(&house, &["--workspace", &docs]);
        Self { house, served, agent, operator }
    }

    fn does(&self, token: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.served.post(token, path, body);
        assert!(status < 300, "{path}: {status} {answer}");
        answer
    }

    /// The next turn of the loop.
    fn turn(&self, expected: u64) -> Value {
        let open = json!({ "expected_turn": expected, "goal_version": 1 });
        self.does(&self.agent, &format!("/v1/tasks/{STORY}/turns"), &open)
    }

    /// A window of a browser, logged in with a code of its own, at the inbox.
    fn window(&self, driver: &Driver) -> Window {
        let code = self.house.json(&["inbox"])["code"].as_str().unwrap().to_owned();
        self.served.block_on(async {
            let options = json!({ "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage"] });
            let wanted = json!({ "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } });
            let window = driver.session(wanted).await;
            window.goto(&format!("{}/login", self.served.url)).await;
            window.type_at("#secret", &code).await;
            window.click("button.primary").await;
            until(&window, "return location.pathname === '/' && document.readyState === 'complete'").await;
            window
        })
    }

    /// The card is there, and takes answers.
    fn ready(&self, window: &Window, card: &str) {
        let script = format!("return document.getElementById('{card}')?.querySelector('fieldset')?.disabled === false");
        self.served.block_on(until(window, &script));
    }

    /// The card is there, and takes none any more.
    fn retired(&self, window: &Window, card: &str) -> String {
        let over = format!("return document.getElementById('{card}')?.classList.contains('over') === true");
        self.served.block_on(async {
            until(window, &over).await;
            assert!(!window.has(&format!("#{card} button[name=offer]")).await, "it can still be answered");
            let text = run(window, &format!("return document.getElementById('{card}').innerText")).await;
            text.as_str().unwrap().to_owned()
        })
    }

    /// The trace, indented by what happened because of what.
    fn trace(&self) -> String {
        let (_, trace) = self.served.get(&self.operator, &format!("/v1/tasks/{STORY}/trace"));
        let mut depths = std::collections::BTreeMap::new();
        let mut out = String::new();
        for node in trace["nodes"].as_array().unwrap() {
            let parents = node["parents"].as_array().into_iter().flatten();
            let depth = parents.filter_map(|parent| depths.get(&parent.to_string())).max().map_or(0, |depth| depth + 1);
            depths.insert(node["id"].to_string(), depth);
            let text = |key: &str| node[key].as_str().unwrap_or_default();
            out.push_str(format!("{}{} {}", "  ".repeat(depth), text("what"), text("text")).trim_end());
            out.push('\n');
        }
        out
    }
}

#[test]
fn a_story_through_all_doors() {
    let cast = Cast::new();
    let Some(driver) = cast.served.block_on(Driver::start()) else { return };
    let (agent, operator) = (cast.agent.as_str(), cast.operator.as_str());

    // A person opens the task; a front end follows what happens in it.
    cast.does(operator, "/v1/tasks", &json!({ "id": STORY, "session": STORY, "goal": "count, then write it down" }));
    let followed = cast.served.follow(operator, &format!("/v1/sessions/{STORY}/events"));
    let (one, two) = (cast.window(&driver), cast.window(&driver));

    // The loop takes its first turn, reads and thinks.
    cast.turn(0);
    let count = json!({
        "capability": "text.count", "arguments": { "path": "a.txt" }, "workspace": "docs", "task_id": STORY, "turn": 1,
    });
    let counted = cast.does(agent, "/v1/actions", &count);
    assert_eq!(counted["observation"]["data"]["words"], 3, "{counted}");
    let thought = json!({
        "turn": 1, "parents": [counted["id"]], "what": { "kind": "text" }, "content": "three words, as expected",
    });
    cast.does(agent, &format!("/v1/tasks/{STORY}/entries"), &thought);

    // It wants to know something. A person answers in one window, and the card goes in both.
    let option = |id: &str, label: &str, effect: &str| json!({ "id": id, "label": label, "effect": effect });
    let ask = json!({
        "task": STORY, "turn": 1, "topic": "place", "induced_by": counted["id"],
        "words": {
            "question": "Where is it written down?",
            "options": [option("n", "In n.txt", "a new file"), option("a", "In a.txt", "what is there goes")],
            "recommended": "n",
            "affects": ["the folder"],
        },
    });
    let question = cast.does(agent, "/v1/questions", &ask);
    let card = format!("question-{}", question["id"].as_str().unwrap());
    cast.ready(&one, &card);
    cast.ready(&two, &card);
    cast.served.block_on(one.click(&format!("#{card} button[value=n]")));
    for window in [&one, &two] {
        let text = cast.retired(window, &card);
        assert!(text.contains("Answered"), "{text}");
    }
    // What was said meanwhile is told at the next turn.
    cast.does(operator, &format!("/v1/sessions/{STORY}/steer"), &json!({ "text": "in one line" }));
    let start = cast.turn(1);
    assert_eq!((&start["answers"][0]["option"], &start["steers"][0]["text"]), (&json!("n"), &json!("in one line")));

    // An agent at MCP writes in the same task. The person sees what it would do, and approves it in a window.
    let mut client = Client::start(&cast.house, &["--agent", "coder", "--session", STORY, "--workspace", ".:write"]);
    let asked = client.call("fs.write", json!({ "path": "n.txt", "text": "3", "mode": "create" }));
    let outcome = asked["_meta"]["glovebox/outcome"].clone();
    assert_eq!(outcome["code"], "approval-pending", "{asked}");
    assert!(asked["content"][0]["text"].as_str().unwrap().contains(&cast.served.url), "{asked}");
    let approval = outcome["approval_id"].as_str().unwrap();
    let card = format!("approval-{approval}");
    cast.ready(&one, &card);
    let shown = cast.served.block_on(run(&one, &format!("return document.getElementById('{card}').innerText")));
    for word in ["fs.write", "n.txt", "agent coder", "create"] {
        assert!(shown.as_str().unwrap().contains(word), "`{word}` is missing: {shown}");
    }
    assert!(!cast.house.has("n.txt"));
    cast.served.block_on(one.click(&format!("#{card} button[value=once]")));
    cast.retired(&one, &card);
    assert!(cast.retired(&two, &card).contains("Answered once by"));
    let result = client.call("glovebox.result", json!({ "action_id": outcome["action_id"] }));
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(fs_err::read_to_string(cast.house.workspace().join("n.txt")).unwrap(), "3");
    client.end();

    // It wants more. A person at a terminal declines; the windows see it, and whoever is late is told so.
    let more = |path: &str| {
        let mut more = write(path, "more");
        (more["task_id"], more["turn"]) = (json!(STORY), json!(2));
        cast.does(agent, "/v1/actions", &more)
    };
    let waits = more("m.txt");
    assert_eq!(waits["state"], "waiting_approval", "{waits}");
    let approval = waits["approval"]["id"].as_str().unwrap();
    let card = format!("approval-{approval}");
    cast.ready(&one, &card);
    cast.ready(&two, &card);
    let (_, seen) = cast.served.get(operator, &format!("/v1/approvals/{approval}"));
    cast.house.run(&["approvals", "decline", approval, "--say", "not there"]).ok();
    for window in [&one, &two] {
        assert!(cast.retired(window, &card).contains("Declined"));
    }
    let late = json!({ "plan": seen["plan"], "offer": "once" });
    let (status, problem) = cast.served.post(operator, &format!("/v1/approvals/{approval}/answer"), &late);
    assert_eq!((status, &problem["code"]), (409, &json!("approval-closed")), "{problem}");

    // And once more: now the turn is stopped instead.
    let waits = more("o.txt");
    assert_eq!(cast.house.pending().len(), 1);
    let card = format!("approval-{}", waits["approval"]["id"].as_str().unwrap());
    cast.ready(&one, &card);
    cast.does(operator, &format!("/v1/tasks/{STORY}/turns/interrupt"), &json!({ "reason": "enough is written" }));
    let view = cast.served.until(agent, waits["id"].as_str().unwrap(), "cancelled");
    assert!(view["observation"].is_object(), "{view}");
    cast.retired(&one, &card);
    assert!(!cast.house.has("m.txt") && !cast.house.has("o.txt") && cast.house.pending().is_empty());

    // It goes on with another turn, and says that it is done.
    cast.turn(2);
    cast.does(agent, &format!("/v1/tasks/{STORY}/end"), &json!({ "state": "done", "why": "it is written down" }));
    let trace = cast.trace();
    assert_eq!(trace, TRACE, "the trace of the story is another:\n{trace}");
    for window in [&one, &two] {
        assert_eq!(cast.served.block_on(window.refused()), Vec::<Value>::new(), "pages broke their own policy");
    }

    // Whoever followed it got all of it, in its order, and its end; then nothing comes any more.
    cast.does(operator, &format!("/v1/sessions/{STORY}/close"), &json!({}));
    let events = cast.served.block_on(followed).unwrap();
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert!(numbers.len() > 20 && numbers.iter().copied().eq(1..=numbers.len() as u64), "{numbers:?}");
    for name in ["approval-opened", "approval-answered", "question-opened", "session-closed"] {
        assert!(events.iter().any(|event| event["name"] == name), "no {name}: {:?}", names(&events));
    }
    let last = format!("/v1/sessions/{STORY}/events?after={}", numbers.len());
    assert_eq!(cast.served.get(operator, &last).0, 204);
    cast.house.run(&["audit", "verify"]).ok();
    assert_eq!(cast.served.end().0, Some(0));
    cast.house.is_tidy();
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["name"].as_str()).collect()
}

/// Two windows and a terminal answer the same approval at the same moment: one
/// answer counts, all three see which, and what it says happens.
#[test]
fn of_two_windows_and_a_terminal_one_decides() {
    let cast = Cast::new();
    let Some(driver) = cast.served.block_on(Driver::start()) else { return };
    let (one, two) = (cast.window(&driver), cast.window(&driver));
    for round in 0..3 {
        let path = format!("r{round}.txt");
        let waits = cast.does(&cast.agent, "/v1/actions", &write(&path, "words"));
        let (action, approval) = (waits["id"].as_str().unwrap(), waits["approval"]["id"].as_str().unwrap());
        let card = format!("approval-{approval}");
        cast.ready(&one, &card);
        cast.ready(&two, &card);
        std::thread::scope(|all| {
            all.spawn(|| cast.house.run(&["approvals", "approve", approval]));
            let press = |offer: &str| format!("document.querySelector('#{card} button[value={offer}]')?.click()");
            let (yes, no) = (press("once"), press("decline"));
            cast.served.block_on(async { tokio::join!(run(&one, &yes), run(&two, &no)) });
        });
        cast.retired(&one, &card);
        cast.retired(&two, &card);
        let (_, shown) = cast.served.get(&cast.operator, &format!("/v1/actions/{action}"));
        let approved = shown["approval"]["answer"]["offer"] != "decline";
        cast.served.until(&cast.agent, action, if approved { "succeeded" } else { "failed" });
        assert_eq!(cast.house.has(&path), approved, "{shown}");
    }
    cast.served.end();
    cast.house.run(&["audit", "verify"]).ok();
}
