//! Looking before doing: the preview is an action of its own, what it finds is
//! evidence, and what is done is bound to the version that it saw.

use std::sync::{Arc, Mutex};

use env_contracts::{Code, OutcomeKind};
use glovebox_events::{ActionState, AskedFor, DecidedAt, Right, What};
use glovebox_plane::arguments::Schema;
use glovebox_plane::{Asking, Unwatched};
use glovebox_runtime::Stop;
use serde_json::{Value, json};

use crate::followups::{DEPLOY, PLAYS, PREVIEW, Plays, VERIFY, either, played, setup, what};
use crate::house::{House, Setup, done, name, waiting};

const ARGS: &str = r#"{"target":"shop","note":"now"}"#;

fn house(plays: Plays) -> House {
    let house = House::of(&setup());
    house.plays(plays);
    house
}

#[test]
fn the_preview_is_an_action_of_its_own_with_the_arguments_that_it_names() {
    let house = house(PLAYS);
    let action = house.waits("fake.deploy", ARGS);
    let preview = house.only("fake.preview");
    assert_eq!(preview.parents, std::slice::from_ref(&action.id));
    assert_eq!((&preview.principal, &preview.task), (&action.principal, &action.task));
    assert_eq!((preview.state, preview.right.clone()), (ActionState::Succeeded, Some(Right::Policy)));
    assert_ne!(preview.plan, action.plan, "it has a plan of its own");
    let decided =
        |logged: &glovebox_events::Logged| matches!(&logged.event.what, What::Decided { at: DecidedAt::Plan, .. });
    assert!(house.of_action(&preview.id).iter().any(decided), "it has a verdict of its own");
    assert_eq!(house.arguments(&preview.id), json!({ "target": "shop" }));
    assert_eq!(house.ground.ran(&action.id), 0, "what is looked at first ran");
    house.audit(&["s1"]);
}

#[test]
fn what_is_done_carries_the_version_that_was_seen_and_the_approval_binds_it() {
    let house = house(PLAYS);
    let action = house.waits("fake.deploy", ARGS);
    let want = json!({ "target": "shop", "note": "now", "version": "v1", "key": action.id.as_str() });
    assert_eq!(house.arguments(&action.id), want);
    assert_eq!(action.revision, 2, "the version made another plan");
    let opened = action.approval.clone().unwrap();
    assert_eq!(action.digest, Some(opened.digest), "what is approved is the plan with the version");
    let got = Arc::new(Mutex::new(Value::Null));
    let seen = got.clone();
    house.on_run(move |bound, _| {
        if what(bound) == "fake.deploy" {
            *seen.lock().unwrap() = serde_json::from_str(&bound.plan.arguments).unwrap();
        }
        played(if what(bound) == "fake.verify" { PLAYS.verify } else { PLAYS.deploy })
    });
    house.approve(&action);
    assert_eq!(done(house.resume(&action)).outcome.code, None);
    assert_eq!(*got.lock().unwrap(), want, "the tool got something else");
    assert_eq!(house.all_of("fake.preview").len(), 1, "it was looked at twice for one question");
    house.audit(&["s1"]);
}

#[test]
fn the_card_shows_what_the_preview_found() {
    let house = house(PLAYS);
    let action = house.waits("fake.deploy", ARGS);
    let card = house.card_of(&action);
    let shown = card.previewed.unwrap();
    assert_eq!((shown.ok, shown.version.as_deref(), shown.reason), (true, Some("v1"), None));
    assert_eq!(shown.action, Some(house.only("fake.preview").id));
    assert_eq!(shown.outcome.unwrap().code, None);
    assert!(shown.text.unwrap().contains("a line"));
    assert!(card.arguments.unwrap().contains(r#""version":"v1""#));
}

#[test]
fn without_a_preview_or_with_a_failed_one_the_card_says_so_and_why() {
    let none = House::of(&Setup::of(&[&DEPLOY.replace("preview = \"fake.preview@1.0.0\"\n", ""), VERIFY]));
    none.runs_well();
    let shown = none.card_of(&none.waits("fake.deploy", ARGS)).previewed.unwrap();
    assert_eq!((shown.ok, shown.reason.as_deref()), (false, Some("the tool names no preview")));

    let missing = House::of(&Setup::of(&[DEPLOY, VERIFY]));
    missing.runs_well();
    let action = missing.waits("fake.deploy", ARGS);
    let shown = missing.card_of(&action).previewed.unwrap();
    assert!(!shown.ok && shown.action.is_none() && shown.reason.unwrap().contains("fake.preview"));

    let failed = house(Plays { preview: "!unreachable", ..PLAYS });
    let action = failed.waits("fake.deploy", ARGS);
    let shown = failed.card_of(&action).previewed.unwrap();
    assert!(!shown.ok && shown.version.is_none());
    assert_eq!(shown.reason.as_deref(), Some("it failed: unreachable"));
    assert_eq!(shown.outcome.unwrap().code, Some(Code::ToolFailed));
    assert_eq!(failed.arguments(&action.id).get("version"), None);
    failed.approve(&action);
    assert_eq!(done(failed.resume(&action)).outcome.code, None, "a person may decide without");

    let torn = house(Plays { preview: r#"!half{"version":"v1"}"#, ..PLAYS });
    let action = torn.waits("fake.deploy", ARGS);
    assert_eq!(torn.arguments(&action.id).get("version"), None, "a failure saw no version");

    let blind = house(Plays { preview: r#"{"version":7}"#, ..PLAYS });
    let shown = blind.card_of(&blind.waits("fake.deploy", ARGS)).previewed.unwrap();
    assert!(shown.ok && shown.version.is_none() && shown.reason.unwrap().contains("version"));
}

#[test]
fn a_preview_that_could_do_something_is_not_run() {
    let writes = PREVIEW.replace("access = \"read\"", "access = \"write\"");
    let house = House::of(&Setup::of(&[DEPLOY, &writes, VERIFY]).rules(
        "permit (principal, action, resource) when { context has approval };\n\
         permit (principal, action == Action::\"fake.preview@1.0.0\", resource);",
    ));
    house.plays(PLAYS);
    let action = house.waits("fake.deploy", ARGS);
    let shown = house.card_of(&action).previewed.unwrap();
    assert!(!shown.ok && shown.reason.as_ref().unwrap().contains("a preview changes nothing"), "{shown:?}");
    let preview = house.only("fake.preview");
    let end = preview.end.unwrap();
    assert_eq!((end.kind, end.which.as_deref()), (OutcomeKind::ContractUnsatisfied, Some("preview")));
    assert!(house.ground.runs().is_empty());
}

#[test]
fn a_preview_never_asks_anybody() {
    for (rules, kind) in [
        ("permit (principal, action, resource) when { context has approval };", OutcomeKind::Unattended),
        (
            "permit (principal, action, resource) when { context has approval };\n\
             forbid (principal, action == Action::\"fake.preview@1.0.0\", resource);",
            OutcomeKind::PolicyDenied,
        ),
    ] {
        let house = House::of(&setup().rules(rules));
        house.plays(PLAYS);
        let action = house.waits("fake.deploy", ARGS);
        let preview = house.only("fake.preview");
        assert_eq!(preview.end.as_ref().unwrap().kind, kind);
        assert!(!house.was_asked(&preview.id));
        assert_eq!(house.pending().len(), 1, "one person is asked about one thing");
        assert!(!house.card_of(&action).previewed.unwrap().ok);
        assert!(house.ground.runs().is_empty());
    }
}

#[test]
fn a_preview_is_no_authority_and_is_not_looked_at_for_what_is_denied_or_allowed() {
    for (rules, kind) in [
        ("permit (principal, action == Action::\"fake.preview@1.0.0\", resource);", OutcomeKind::PolicyDenied),
        ("permit (principal, action, resource);", OutcomeKind::Completed),
    ] {
        let house = House::of(&setup().rules(rules));
        house.plays(PLAYS);
        let seen = done(house.send(house.asked("fake.deploy", ARGS)).unwrap());
        assert_eq!(seen.outcome.kind, kind);
        assert!(house.all_of("fake.preview").is_empty());
    }
}

#[test]
fn a_rule_that_wants_a_preview_gets_one_also_where_it_allows() {
    let house = House::of(&setup().rules("@preview permit (principal, action, resource);"));
    house.plays(PLAYS);
    let seen = done(house.send(house.asked("fake.deploy", ARGS)).unwrap());
    assert_eq!(seen.outcome.code, None, "{:?}", seen.outcome);
    assert_eq!(house.arguments(&seen.action_id)["version"], "v1");
    assert_eq!(house.only("fake.preview").parents, std::slice::from_ref(&seen.action_id));
    house.audit(&["s1"]);
}

#[test]
fn a_version_of_the_requesters_that_is_no_more_is_a_drift() {
    let house = house(PLAYS);
    let seen = done(house.send(house.asked("fake.deploy", r#"{"target":"shop","version":"v0"}"#)).unwrap());
    assert_eq!((seen.outcome.kind, seen.outcome.which.as_deref()), (OutcomeKind::Drift, Some("object")));
    assert_eq!(seen.outcome.code, Some(Code::Drift));
    assert!(!house.was_asked(&seen.action_id));
    assert_eq!(house.ground.ran(&seen.action_id), 0);
    let same = house.waits("fake.deploy", r#"{"target":"shop","version":"v1"}"#);
    assert_eq!((same.revision, &house.arguments(&same.id)["version"]), (1, &json!("v1")));
    house.audit(&["s1"]);
}

#[test]
fn after_a_drift_or_an_edit_it_is_looked_at_again() {
    let house = house(PLAYS);
    let wider = || {
        let again = House::open(&house.ground, &setup());
        again.plays(Plays { preview: r#"{"version":"v2"}"#, ..PLAYS });
        again
    };
    // The tool's limits come from the ceiling: what would run is another plan.
    let action = house.waits("fake.deploy", ARGS);
    house.approve(&action);
    let mut other = setup();
    other.ceiling.install.limits.inodes = Some(7);
    let later = House::open(&house.ground, &other);
    later.plays(Plays { preview: r#"{"version":"v2"}"#, ..PLAYS });
    let again = waiting(later.resume(&action));
    assert_eq!(again.approval.as_ref().unwrap().asked_for, AskedFor::Drift);
    assert_eq!(later.arguments(&action.id)["version"], "v2", "our own version is no wish of the requester's");
    assert_eq!(later.all_of("fake.preview").len(), 2);

    let action = wider().waits("fake.deploy", r#"{"target":"inn"}"#);
    let edited = wider().edit(&action, r#"{"target":"bar"}"#).unwrap().action;
    assert_eq!(edited.state, ActionState::WaitingApproval);
    assert_eq!(house.arguments(&edited.id)["target"], "bar");
    assert_eq!(house.arguments(&edited.id)["version"], "v2");
    let newest = house.all_of("fake.preview").remove(0);
    assert_eq!(house.arguments(&newest.id), json!({ "target": "bar" }), "it was of the other arguments");
    house.audit(&["s1"]);
}

#[test]
fn where_nobody_can_be_asked_nobody_looks() {
    let house = house(PLAYS);
    let mut submission = house.asked("fake.deploy", ARGS);
    submission.asking = Asking::Never;
    assert_eq!(done(house.send(submission).unwrap()).outcome.kind, OutcomeKind::Unattended);
    assert!(house.all_of("fake.preview").is_empty());
}

#[test]
fn whoever_stops_the_action_while_it_is_looked_at_is_heard() {
    let house = house(PLAYS);
    let stop = Stop::default();
    let heard = stop.clone();
    house.on_run(move |_, _| {
        heard.request();
        played(PLAYS.preview)
    });
    let went = house.block_on(house.service.submit(house.asked("fake.deploy", ARGS), Arc::new(Unwatched), &stop));
    let seen = either(went.unwrap()).unwrap();
    assert_eq!((seen.outcome.kind, seen.outcome.which.as_deref()), (OutcomeKind::Interrupted, Some("preview")));
    assert!(house.pending().is_empty());
    house.nothing_left();
}

#[test]
fn the_key_is_the_requests_or_the_actions_and_nobody_elses() {
    let house = House::of(&setup().rules("permit (principal, action, resource);"));
    house.plays(PLAYS);
    let mut submission = house.asked("fake.deploy", ARGS);
    submission.request.idempotency_key = Some(name("once"));
    let seen = done(house.send(submission).unwrap());
    assert_eq!(house.arguments(&seen.action_id)["key"], "once");
    let seen = done(house.send(house.asked("fake.deploy", ARGS)).unwrap());
    assert_eq!(house.arguments(&seen.action_id)["key"], seen.action_id.as_str());
    let seen = done(house.send(house.asked("fake.deploy", r#"{"key":"mine"}"#)).unwrap());
    assert_eq!(seen.outcome.kind, OutcomeKind::SchemaRejected);
    assert!(seen.outcome.message.unwrap().contains("Glovebox fills it in"));
}

#[test]
fn marks_stand_at_one_string_argument_each_and_a_version_is_not_required() {
    let with = |properties: Value, required: Value| {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        Schema::compile(&schema).map(drop).map_err(|error| error.to_string())
    };
    let version = || json!({ "type": "string", "x-glovebox-version": true });
    let key = || json!({ "type": "string", "x-glovebox-key": true });
    with(json!({ "v": version(), "k": key() }), json!(["k"])).unwrap();
    for (properties, required, why) in [
        (json!({ "v": { "type": "integer", "x-glovebox-version": true } }), json!([]), "\"string\""),
        (json!({ "v": { "type": ["string", "null"], "x-glovebox-version": true } }), json!([]), "\"string\""),
        (json!({ "v": { "x-glovebox-key": true } }), json!([]), "\"string\""),
        (json!({ "v": { "type": "string", "x-glovebox-key": "yes" } }), json!([]), "it is `true`"),
        (json!({ "v": version(), "w": version() }), json!([]), "not two"),
        (json!({ "k": key(), "l": key() }), json!([]), "not two"),
        (json!({ "v": version() }), json!(["v"]), "don't require it"),
        (json!({ "o": { "type": "object", "properties": { "v": version() } } }), json!([]), "an argument itself"),
        (json!({ "o": { "type": "array", "items": key() } }), json!([]), "an argument itself"),
        (
            json!({ "v": { "type": "string", "x-glovebox-version": true, "x-glovebox-key": true } }),
            json!([]),
            "both version and key",
        ),
    ] {
        let error = with(properties.clone(), required).unwrap_err();
        assert!(error.contains(why), "{properties}: {error}");
    }
}
